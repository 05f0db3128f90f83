package stablehlo

import (
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// The grammar of attributes and of the heads of modules and functions. Types, literals and dialect attributes are one token each.

// entry is a named attribute; one without a value is a unit.
type entry struct {
	Name  string `parser:"@( Ident | String )"`
	Value *attr  `parser:"( '=' @@ )?"`
}

// attr is the value of an attribute.
type attr struct {
	Func   *funcType `parser:"(  @@"`
	Str    *string   `parser:"| @String"`
	Num    *string   `parser:"| @Number"`
	Sym    *string   `parser:"| @Sym ( '::' Sym )*"`
	Hash   *string   `parser:"| @Hash"`
	Angle  *string   `parser:"| @Angle"` // dense<...>, array<...>, a type
	Word   *string   `parser:"| @( Ident | Bang )"`
	IsList bool      `parser:"| ( @'['"`
	List   []*attr   `parser:"    ( @@ ( ',' @@ )* )? ']' )"`
	Dict   *dictAttr `parser:"| @@ )"`
	Type   string    `parser:"( ':' @( Angle | Bang | Ident ) )?"`
}

type dictAttr struct {
	Entries []*entry `parser:"( '{' | '<{' ) ( @@ ( ',' @@ )* )? ( '}' | '}>' )"`
}

// funcType is (types) -> types.
type funcType struct {
	In  []string `parser:"'(' ( @( Angle | Bang | Ident ) ( ',' @( Angle | Bang | Ident ) )* )? ')' '->'"`
	Out []string `parser:"( '(' ( @( Angle | Bang | Ident ) ( ',' @( Angle | Bang | Ident ) )* )? ')' | @( Angle | Bang | Ident ) )"`
}

// funcHead is what stands between func.func and the body.
type funcHead struct {
	Visibility string        `parser:"@( 'public' | 'private' | 'nested' )?"`
	Name       string        `parser:"@Sym"`
	Params     []*headParam  `parser:"'(' ( @@ ( ',' @@ )* )? ')'"`
	Results    []*headResult `parser:"( '->' ( '(' ( @@ ( ',' @@ )* )? ')' | @@ ) )?"`
	Attrs      *dictAttr     `parser:"( 'attributes' @@ )?"`
}

type headParam struct {
	Name  string    `parser:"( @Value ':' )?"`
	Type  string    `parser:"@( Angle | Bang | Ident )"`
	Attrs *dictAttr `parser:"@@?"`
	Loc   string    `parser:"@Loc?"`
}

type headResult struct {
	Type  string    `parser:"@( Angle | Bang | Ident )"`
	Attrs *dictAttr `parser:"@@?"`
}

// moduleHead is what stands between module and its body.
type moduleHead struct {
	Name  string    `parser:"@Sym?"`
	Attrs *dictAttr `parser:"( 'attributes' @@ )?"`
}

// symbols are the token types of the grammar.
var symbols = map[string]lexer.TokenType{"EOF": lexer.EOF, "Punct": -2, "Value": -3, "Sym": -4, "String": -5, "Number": -6, "Ident": -7,
	"Angle": -8, "Bang": -9, "Hash": -10, "Block": -11, "Loc": -12, "Meta": -13}

// definition says to participle what tokens there are; the tokens themselves come from lex.
type definition struct{}

func (definition) Symbols() map[string]lexer.TokenType { return symbols }

func (definition) Lex(string, io.Reader) (lexer.Lexer, error) {
	return &stream{}, nil
}

// stream gives participle a range of tokens.
type stream struct {
	*lexed
	tokens []token
}

func (s *stream) Next() (lexer.Token, error) {
	if len(s.tokens) == 0 {
		return lexer.Token{Type: lexer.EOF}, nil
	}
	t := s.tokens[0]
	s.tokens = s.tokens[1:]
	// Offset is the token's; the rest of a position is found when there is something to report.
	return lexer.Token{Type: lexer.TokenType(-1 - int(t.kind)), Value: s.text(t), Pos: lexer.Position{Offset: int(t.off)}}, nil
}

var (
	attrGrammar = sync.OnceValue(func() *participle.Parser[attr] {
		return participle.MustBuild[attr](participle.Lexer(definition{}), participle.UseLookahead(2))
	})
	dictGrammar = sync.OnceValue(func() *participle.Parser[dictAttr] {
		return participle.MustBuild[dictAttr](participle.Lexer(definition{}), participle.UseLookahead(2))
	})
	funcGrammar = sync.OnceValue(func() *participle.Parser[funcHead] {
		return participle.MustBuild[funcHead](participle.Lexer(definition{}), participle.UseLookahead(3))
	})
	moduleGrammar = sync.OnceValue(func() *participle.Parser[moduleHead] {
		return participle.MustBuild[moduleHead](participle.Lexer(definition{}), participle.UseLookahead(2))
	})
)

// parseRange reads the tokens from s.pos to end by a grammar, and goes there.
func parseRange[G any](s *syntax, p *participle.Parser[G], end int) *G {
	from, err := lexer.Upgrade(&stream{s.lexed, s.tokens[s.pos:end]})
	if err != nil {
		s.fail("tokens")
	}
	out, err := p.ParseFromLexer(from)
	if err != nil {
		at := end
		if e, ok := err.(participle.Error); ok {
			for i := s.pos; i < end; i++ {
				if int(s.tokens[i].off) == e.Position().Offset {
					at = i
					break
				}
			}
		}
		s.pos = at
		s.fail(expected(err))
	}
	s.pos = end
	return out
}

// expected takes what was wanted out of participle's message.
func expected(err error) string {
	msg := err.Error()
	if e, ok := err.(participle.Error); ok {
		msg = e.Message()
	}
	if _, want, ok := strings.Cut(msg, "(expected "); ok {
		return strings.ReplaceAll(strings.ToLower(strings.TrimSuffix(want, ")")), `"`, "'")
	}
	return "an attribute"
}

// closing is the place behind the bracket that closes the one at s.pos.
func (s *syntax) closing() int {
	depth := 0
	for i := s.pos; i < len(s.tokens); i++ {
		if t := s.tokens[i]; t.kind == tPunct {
			switch s.text(t) {
			case "{", "(", "[", "<{":
				if depth++; depth > maxDepth {
					s.pos = i
					s.fail("brackets that are nested less deep")
				}
			case "}", ")", "]", "}>":
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	s.pos = len(s.tokens) - 1
	s.fail("a closing bracket")
	return 0
}

// dict reads { ... } or <{ ... }>. Equal texts are read once.
func (s *syntax) dict() dict {
	end := s.closing()
	text := s.src[s.peek().off:s.tokens[end-1].end]
	d, ok := s.dicts[text]
	if ok {
		s.pos = end
		return d
	}
	d = parseRange(s, dictGrammar(), end).entries()
	s.dicts[text] = d
	return d
}

// attrUntil reads the value of an attribute that ends before end.
func (s *syntax) attrUntil(end int) *attr { return parseRange(s, attrGrammar(), end) }

func (s *syntax) moduleHead() {
	end := s.pos
	for ; end < len(s.tokens)-1; end++ {
		if s.text(s.tokens[end]) == "{" && (end == s.pos || s.text(s.tokens[end-1]) != "attributes") {
			break
		}
		if s.text(s.tokens[end]) == "attributes" && s.text(s.tokens[end+1]) == "{" {
			was := s.pos
			s.pos = end + 1
			end = s.closing() - 1
			s.pos = was
		}
	}
	head := parseRange(s, moduleGrammar(), end)
	s.module = append(s.module, head.Attrs.entries()...)
	s.want("{")
}

// function reads func.func in pretty form.
func (s *syntax) function() {
	f := &function{at: s.next().off}
	depth, end := 0, s.pos
	for ; end < len(s.tokens)-1; end++ {
		if s.tokens[end].kind != tPunct {
			continue
		}
		t := s.text(s.tokens[end])
		if t == "{" && depth == 0 && s.text(s.tokens[end-1]) != "attributes" {
			break
		}
		switch t {
		case "{", "(", "[":
			if depth++; depth > maxDepth {
				s.pos = end
				s.fail("brackets that are nested less deep")
			}
		case "}", ")", "]":
			depth--
		}
	}
	head := parseRange(s, funcGrammar(), end)
	f.name, f.public = unquote(head.Name[1:]), head.Visibility != "private"
	for _, p := range head.Params {
		f.params = append(f.params, param{name: p.Name, typ: s.typeOf(p.Type), attrs: p.Attrs.entries(), loc: strings.TrimSuffix(strings.TrimPrefix(p.Loc, "loc("), ")")})
	}
	for _, r := range head.Results {
		f.results = append(f.results, s.typeOf(r.Type))
		f.names = append(f.names, r.Attrs.entries())
	}
	f.body = s.region()
	f.body.params = f.params
	s.location()
	s.funcs = append(s.funcs, f)
}

// dict are named attributes in the order written.
type dict []*entry

func (d *dictAttr) entries() dict {
	if d == nil {
		return nil
	}
	for _, e := range d.Entries {
		if strings.HasPrefix(e.Name, `"`) {
			e.Name = unquote(e.Name)
		}
	}
	return d.Entries
}

// find gives the attribute of that name.
func (d dict) find(name string) (*attr, bool) {
	for _, e := range d {
		if e.Name == name {
			if e.Value == nil {
				return &attr{}, true
			}
			return e.Value, true
		}
	}
	return nil, false
}

// word is a string, a symbol or a bare word.
func (d dict) word(name string) string {
	a, ok := d.find(name)
	if !ok {
		return ""
	}
	return a.word()
}

func (a *attr) word() string {
	switch {
	case a.Str != nil:
		return unquote(*a.Str)
	case a.Sym != nil:
		return unquote((*a.Sym)[1:])
	case a.Word != nil:
		return *a.Word
	case a.Hash != nil: // #stablehlo<comparison_direction LT>
		s := strings.TrimSuffix(*a.Hash, ">")
		return s[strings.LastIndexByte(s, ' ')+1:]
	}
	return ""
}

// integers are the elements of [1, 2], array<i64: 1, 2> or dense<[1, 2]>, row by row.
func (a *attr) integers() ([]int64, bool) {
	switch {
	case a.Angle != nil && strings.HasPrefix(*a.Angle, "array<"):
		_, body, _ := strings.Cut(strings.TrimSuffix(*a.Angle, ">"), ":")
		return splitIntegers(body)
	case a.Angle != nil && strings.HasPrefix(*a.Angle, "dense<"):
		t := parseType(a.Type)
		if t.bad != "" || !t.DType.IsInt() || t.Elements() > 1<<12 {
			return nil, false
		}
		x, err := denseLiteral((*a.Angle)[len("dense<"):len(*a.Angle)-1], t.Type)
		if err != "" {
			return nil, false
		}
		return x.Ints(), true
	case a.IsList:
		out := []int64{}
		for _, e := range a.List {
			v, ok := e.integers()
			if !ok {
				return nil, false
			}
			out = append(out, v...)
		}
		return out, true
	case a.Num != nil:
		v, err := strconv.ParseInt(*a.Num, 10, 64)
		return []int64{v}, err == nil
	}
	return nil, false
}

// bools are the elements of [false, true], array<i1: false> or dense<false>.
func (a *attr) bools() (out []bool) {
	switch {
	case a.Word != nil:
		return []bool{*a.Word == "true"}
	case a.Angle != nil:
		for _, w := range strings.FieldsFunc(*a.Angle, func(r rune) bool { return !('a' <= r && r <= 'z') }) {
			if w == "true" || w == "false" {
				out = append(out, w == "true")
			}
		}
	}
	for _, e := range a.List {
		out = append(out, e.bools()...)
	}
	return out
}

// splitIntegers reads "1, 2, 3".
func splitIntegers(s string) ([]int64, bool) {
	out := []int64{}
	if s = strings.TrimSpace(s); s == "" {
		return out, true
	}
	for f := range strings.SplitSeq(s, ",") {
		v, err := strconv.ParseInt(strings.TrimSpace(f), 10, 64)
		if err != nil {
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}

// field is the text of a field of a dialect attribute, such as offset_dims of #stablehlo.gather<offset_dims = [0], index_vector_dim = 1>.
func field(hash, name string) (string, bool) {
	for at := 0; ; {
		i := strings.Index(hash[at:], name)
		if i < 0 {
			return "", false
		}
		i += at
		at = i + len(name)
		rest := strings.TrimLeft(hash[at:], " ")
		if i > 0 && isSuffix(hash[i-1]) || !strings.HasPrefix(rest, "=") {
			continue
		}
		rest = strings.TrimLeft(rest[1:], " ")
		if strings.HasPrefix(rest, "[") {
			body, _, ok := strings.Cut(rest[1:], "]")
			return body, ok
		}
		if i := strings.IndexAny(rest, ",>"); i >= 0 {
			rest = rest[:i]
		}
		return strings.TrimSpace(rest), true
	}
}
