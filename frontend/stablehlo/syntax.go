package stablehlo

import (
	"strconv"
	"strings"

	"tpuc/ir/tensor"
)

// typ is a type of the text: a ranked static tensor, or only its spelling and why it is none.
type typ struct {
	tensor.Type
	text string
	bad  string // what was wanted instead; empty for a tensor

	instead  string // what to do about it, where there is more to say
	elements []typ  // of a tuple of tensors
}

// elementsOf gives the elements of a tuple that is the only type.
func elementsOf(types []typ) []typ {
	if len(types) == 1 && types[0].elements != nil {
		return types[0].elements
	}
	return types
}

// operand is a use of a value.
type operand struct {
	name string // with %, and #n where it is one of several results
	at   int32  // offset
}

// operation is one operation in either form. Attributes of the pretty form carry the names that they have in the generic one.
type operation struct {
	name    string
	at      int32 // offset of the name
	line    int32
	results []string // names as they are used: %0#0, %0#1 of %0:2
	named   int      // how many results are named
	args    []operand
	attrs   dict
	regions []*region
	out     []typ
	tuple   bool   // out are the elements of a tuple
	in      []typ  // declared types of args, where they are written
	loc     string // what stands in loc(...)

	first, last int // the tokens from the name up to the location
}

// region is a block of operations: no operation of StableHLO has more than one.
type region struct {
	params []param
	body   []*operation
}

// param is an argument of a block or a function.
type param struct {
	name  string
	typ   typ
	attrs dict
	loc   string
}

// function is a func.func.
type function struct {
	name    string
	at      int32
	public  bool
	params  []param
	results []typ
	names   []dict // attributes of the results
	body    *region
	busy    bool // while it is inlined
}

// syntax turns tokens into operations. A syntax error ends its operation: reading goes on at the next line.
type syntax struct {
	*lexed
	p       *importer
	pos     int
	depth   int
	types   map[string]typ
	dicts   map[string]dict
	aliases map[string]string // #name: its attribute, or what stands in loc(...)
	funcs   []*function
	module  dict
}

// syntaxError is thrown at a token.
type syntaxError struct {
	t    token
	want string
}

func (s *syntax) peek() token { return s.tokens[s.pos] }

func (s *syntax) ahead(n int) token { return s.tokens[min(s.pos+n, len(s.tokens)-1)] }

func (s *syntax) next() token {
	t := s.tokens[s.pos]
	if t.kind != tEOF {
		s.pos++
	}
	return t
}

func (s *syntax) is(text string) bool {
	t := s.peek()
	return (t.kind == tPunct || t.kind == tIdent) && s.text(t) == text
}

// eat takes the punctuation or word if it stands next.
func (s *syntax) eat(text string) bool {
	if s.is(text) {
		s.pos++
		return true
	}
	return false
}

func (s *syntax) want(text string) {
	if !s.eat(text) {
		s.fail(strconv.Quote(text))
	}
}

func (s *syntax) take(k kind, want string) string {
	if s.peek().kind != k {
		s.fail(want)
	}
	return s.text(s.next())
}

func (s *syntax) fail(want string) { panic(syntaxError{s.peek(), want}) }

// guard runs f and gives the syntax error that ended it.
func (s *syntax) guard(f func()) (err *syntaxError) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			err = &e
		}
	}()
	f()
	return nil
}

// file reads the whole text: functions, with or without a module around them, and definitions of aliases.
func (s *syntax) file() {
	for i := 0; i+1 < len(s.tokens); i++ { // aliases may be used before they are defined
		t := s.tokens[i]
		if t.kind != tHash || s.text(s.tokens[i+1]) != "=" || i > 0 && s.tokens[i-1].line == t.line {
			continue
		}
		if v := s.tokens[min(i+2, len(s.tokens)-1)]; v.kind == tLoc || v.kind == tHash || v.kind == tAngle {
			s.aliases[s.text(t)] = s.text(v)
		}
	}
	for s.peek().kind != tEOF && !s.p.full {
		start := s.pos
		if err := s.guard(s.item); err != nil {
			s.p.syntaxError(err)
			s.skipLine(start)
		}
	}
}

// item is a statement of a file or module.
func (s *syntax) item() {
	switch t := s.peek(); {
	case t.kind == tHash: // an alias
		s.next()
		s.want("=")
		for line := s.next().line; s.peek().line == line && s.peek().kind != tEOF; {
			s.next()
		}
	case t.kind == tMeta:
		s.next()
	case t.kind == tLoc || s.is("}"): // the module's end
		s.next()
	case s.eat("module"):
		s.moduleHead()
	case s.is("func.func"):
		s.function()
	case t.kind == tIdent && strings.HasPrefix(s.text(t), "sdy."): // a mesh
		s.skipLine(s.pos)
	case t.kind == tString:
		s.genericItem()
	default:
		s.fail("a module or a function")
	}
}

// genericItem is a module or a function in generic form.
func (s *syntax) genericItem() {
	o := s.operation()
	s.genericOp(o)
}

func (s *syntax) genericOp(o *operation) {
	switch {
	case o.name == "builtin.module" && len(o.regions) == 1:
		s.module = append(s.module, o.attrs...)
		for _, f := range o.regions[0].body {
			s.genericOp(f)
		}
	case o.name == "func.func" && len(o.regions) == 1:
		s.genericFunction(o)
	case strings.HasPrefix(o.name, "sdy."):
	default:
		s.p.errorAt(o.at, "stablehlo/syntax", "%s outside of a function, wanted a module or a function", o.name)
	}
}

func (s *syntax) genericFunction(o *operation) {
	f := &function{name: o.attrs.word("sym_name"), at: o.at, public: o.attrs.word("sym_visibility") != "private", body: o.regions[0]}
	ft, ok := o.attrs.find("function_type")
	if !ok || ft.Func == nil {
		s.p.errorAt(o.at, "stablehlo/syntax", "func.func without a function_type, wanted one")
		return
	}
	f.params = f.body.params
	for _, t := range ft.Func.Out {
		f.results = append(f.results, s.typeOf(t))
	}
	if a, ok := o.attrs.find("arg_attrs"); ok {
		for i, d := range a.List {
			if i < len(f.params) {
				f.params[i].attrs = d.Dict.entries()
			}
		}
	}
	if a, ok := o.attrs.find("res_attrs"); ok {
		for _, d := range a.List {
			f.names = append(f.names, d.Dict.entries())
		}
	}
	s.funcs = append(s.funcs, f)
}

// skipLine goes to the first token of a line after the one that start is on, brackets that open on the way included.
func (s *syntax) skipLine(start int) {
	line := s.tokens[max(start, s.pos)].line
	depth := 0
	s.pos = start
	for t := s.peek(); t.kind != tEOF; t = s.peek() {
		if depth <= 0 && t.line > line {
			return
		}
		if t.kind == tPunct {
			switch s.text(t) {
			case "{", "(", "[", "<{":
				depth++
			case "}", ")", "]", "}>":
				if depth--; depth < 0 {
					if s.pos == start {
						s.pos++ // a bracket too many: get past it
					}
					return // it closes what stands around the statement
				}
			}
		}
		line = max(line, t.line)
		s.pos++
	}
}

// typeOf gives the meaning of a type's text.
func (s *syntax) typeOf(text string) typ {
	t, ok := s.types[text]
	if !ok {
		t = parseType(text)
		if body, ok := strings.CutPrefix(text, "tuple<"); ok {
			t.elements = s.tupleElements(strings.TrimSuffix(body, ">"))
		}
		s.types[text] = t
	}
	return t
}

// tupleElements are the types in a tuple; nil where one is a tuple itself.
func (s *syntax) tupleElements(body string) []typ {
	out := []typ{}
	for body != "" {
		first, rest := splitTop(body, ",")
		if first = strings.TrimSpace(first); strings.HasPrefix(first, "tuple<") {
			return nil
		}
		out = append(out, s.typeOf(first))
		body = rest
	}
	return out
}

func (s *syntax) typ() typ {
	t := s.peek()
	if t.kind != tAngle && t.kind != tBang && t.kind != tIdent {
		s.fail("a type")
	}
	s.next()
	return s.typeOf(s.text(t))
}

// typeList is a type, or several in brackets.
func (s *syntax) typeList() (out []typ) {
	if !s.eat("(") {
		return []typ{s.typ()}
	}
	for !s.eat(")") {
		out = append(out, s.typ())
		if !s.is(")") {
			s.want(",")
		}
	}
	return out
}

// signature follows an operation behind a colon: operands and results, or types of the operands, the last of which is the result's.
func (s *syntax) signature(o *operation) {
	if s.is("(") {
		o.in = s.typeList()
		s.want("->")
		o.out = s.typeList()
		return
	}
	types := []typ{s.typ()}
	for s.eat(",") {
		types = append(types, s.typ())
	}
	if s.eat("->") {
		o.in, o.out = types, s.typeList()
		return
	}
	if o.out = types; len(types) > 1 && o.named == 1 {
		o.out = types[len(types)-1:]
	}
}

// location takes a location that may follow.
func (s *syntax) location() string {
	if s.peek().kind != tLoc {
		return ""
	}
	t := s.text(s.next())
	return t[len("loc(") : len(t)-1]
}

// regionList is ({ ... }, { ... }).
func (s *syntax) regionList() (out []*region) {
	s.want("(")
	for {
		out = append(out, s.region())
		if s.eat(")") {
			return out
		}
		s.want(",")
	}
}

// region is { [^bb0(params):] operations }.
func (s *syntax) region() *region {
	s.want("{")
	r := &region{}
	if s.peek().kind == tBlock {
		s.next()
		if s.eat("(") {
			r.params = s.params()
		}
		s.want(":")
	}
	s.body(r)
	return r
}

// params are typed names up to the closing bracket, which is taken.
func (s *syntax) params() (out []param) {
	for !s.eat(")") {
		p := param{name: s.take(tValue, "a parameter")}
		s.want(":")
		p.typ = s.typ()
		if s.is("{") {
			p.attrs = s.dict()
		}
		p.loc = s.location()
		out = append(out, p)
		if !s.is(")") {
			s.want(",")
		}
	}
	return out
}

// body reads operations up to the closing brace, which is taken. Broken ones are reported and left out.
func (s *syntax) body(r *region) {
	if s.depth++; s.depth > maxDepth {
		s.fail("regions that are nested less deep")
	}
	defer func() { s.depth-- }()
	for !s.eat("}") {
		if s.peek().kind == tEOF || s.p.full {
			s.fail(`"}"`)
		}
		if s.peek().kind == tBlock {
			s.fail("one block in a region")
		}
		start := s.pos
		if err := s.guard(func() { r.body = append(r.body, s.operation()) }); err != nil {
			if s.p.syntaxError(err); err.t.kind == tEOF {
				s.fail(`"}"`)
			}
			for _, name := range s.defines(start) {
				s.p.broken[name] = true
			}
			s.skipLine(start)
		}
	}
}

// defines are the names of the values that the statement at token start defines.
func (s *syntax) defines(start int) (out []string) {
	for _, t := range s.tokens[start:] {
		if t.kind == tValue {
			out = append(out, s.text(t))
		}
		if s.text(t) == "=" || t.line != s.tokens[start].line {
			break
		}
	}
	return out
}

// operation is one of either form with its results.
func (s *syntax) operation() *operation {
	o := &operation{}
	groups := s.results()
	for _, g := range groups {
		o.named += max(g.n, 1)
	}
	t := s.peek()
	o.at, o.line, o.first = t.off, t.line, s.pos
	switch t.kind {
	case tString:
		o.name = unquote(s.text(s.next()))
		s.generic(o)
	case tIdent:
		o.name = s.text(s.next())
		s.pretty(o)
	default:
		s.fail("an operation")
	}
	o.last = s.pos
	o.loc = s.location()
	if len(o.out) == 1 && o.out[0].elements != nil {
		o.out, o.tuple = o.out[0].elements, true
	}
	for _, g := range groups {
		if g.n == 0 {
			o.results = append(o.results, g.name)
		}
		for i := range min(g.n, len(o.out)-len(o.results)) {
			o.results = append(o.results, g.name+"#"+strconv.Itoa(i))
		}
	}
	return o
}

// group names results: one, or n as %0:n.
type group struct {
	name string
	n    int
}

// results are the names of results and the sign behind them, or nothing.
func (s *syntax) results() (out []group) {
	if s.peek().kind != tValue {
		return nil
	}
	for {
		g := group{name: s.text(s.next())}
		if s.eat(":") {
			var err error
			if g.n, err = strconv.Atoi(s.take(tNumber, "a number of results")); err != nil || g.n < 1 {
				s.pos--
				s.fail("a number of results")
			}
		}
		if out = append(out, g); !s.eat(",") {
			break
		}
	}
	s.want("=")
	return out
}

// generic is "name"(args) <{properties}> ({regions}) {attributes} : signature.
func (s *syntax) generic(o *operation) {
	s.want("(")
	for !s.eat(")") {
		o.args = append(o.args, s.operand())
		if !s.is(")") {
			s.want(",")
		}
	}
	if s.is("<{") {
		o.attrs = s.dict()
	}
	if s.is("(") {
		o.regions = s.regionList()
	}
	if s.is("{") {
		o.attrs = append(o.attrs, s.dict()...)
	}
	s.want(":")
	s.signature(o)
}

func (s *syntax) operand() operand {
	t := s.peek()
	return operand{s.take(tValue, "a value"), t.off}
}
