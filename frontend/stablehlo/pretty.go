package stablehlo

import (
	"strconv"
	"strings"
)

// The pretty form of an operation. Most are words, operands and name = value pairs up to a colon and the signature: phrase reads these.
// Operations with a syntax of their own have a function here. All give the attributes the names of the generic form.

// prettyForm is the function for an operation, by its name without the dialect where that is stablehlo, or nil.
func prettyForm(short string) func(s *syntax, o *operation) {
	switch short {
	case "call", "func.call":
		return (*syntax).call
	case "return", "func.return":
		return (*syntax).returns
	case "constant":
		return (*syntax).constant
	case "slice":
		return (*syntax).slice
	case "reduce":
		return (*syntax).reduce
	case "while":
		return (*syntax).while
	case "convolution":
		return (*syntax).convolution
	case "custom_call":
		return (*syntax).customCall
	case "get_tuple_element":
		return (*syntax).tupleElement
	}
	return nil
}

// renames gives pretty names of attributes their generic ones, by operation.
var renames = map[string]map[string]string{
	"broadcast_in_dim":         {"dims": "broadcast_dimensions"},
	"dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
	"transpose":                {"dims": "permutation"},
	"reverse":                  {"dims": "dimensions"},
	"concatenate":              {"dim": "dimension"},
	"iota":                     {"dim": "iota_dimension"},
	"dynamic_iota":             {"dim": "iota_dimension"},
	"get_dimension_size":       {"dim": "dimension"},
	"pad":                      {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"},
	"dynamic_slice":            {"sizes": "slice_sizes"},
	"dot_general":              {"precision": "precision_config"},
	"dot":                      {"precision": "precision_config"},
	"fft":                      {"type": "fft_type", "length": "fft_length"},
	"rng_bit_generator":        {"algorithm": "rng_algorithm"},
}

// pretty reads what follows the name.
func (s *syntax) pretty(o *operation) {
	short := strings.TrimPrefix(o.name, "stablehlo.")
	switch o.name {
	case "call":
		o.name = "func.call"
	case "return":
		o.name = "func.return"
	}
	if o.name == "sdy.manual_computation" {
		s.pos--
		s.fail("a program for one device: export without shard_map, tpuc places computations on devices itself")
	}
	if f := prettyForm(short); f != nil {
		f(s, o)
		return
	}
	s.phrase(o, short)
	s.want(":")
	s.signature(o)
}

// phrase reads up to the colon of the signature.
func (s *syntax) phrase(o *operation, short string) {
	words := 0
	for depth := 0; ; {
		switch t := s.peek(); {
		case t.kind == tValue:
			o.args = append(o.args, s.operand())
		case t.kind == tIdent && s.text(s.ahead(1)) == "=":
			s.pair(o, short)
		case t.kind == tIdent:
			s.word(o, short, words)
			words++
		case t.kind == tString, t.kind == tSym:
			o.attrs = append(o.attrs, &entry{Name: "name", Value: s.attrUntil(s.pos + 1)})
		case s.eat("("):
			if depth++; depth > maxDepth {
				s.fail("brackets that are nested less deep")
			}
		case depth > 0 && s.eat(")"):
			depth--
		case s.is("{"):
			o.attrs = append(o.attrs, s.dict()...)
		case t.kind == tHash: // a sharding
			s.next()
		case s.eat(","):
		case s.is(":") && depth == 0:
			return
		default:
			s.fail(`an operand, an attribute or ":"`)
		}
	}
}

// word is a bare word: the direction and the type of a comparison, words between operands otherwise.
func (s *syntax) word(o *operation, short string, place int) {
	name := "word"
	if short == "compare" {
		switch place {
		case 0:
			name = "comparison_direction"
		case 1:
			name = "compare_type"
		}
	}
	w := s.text(s.next())
	o.attrs = append(o.attrs, &entry{Name: name, Value: &attr{Word: &w}})
}

// pair is name = value, or name = [..] x [..].
func (s *syntax) pair(o *operation, short string) {
	name := s.text(s.next())
	s.want("=")
	if g, ok := renames[short][name]; ok {
		name = g
	}
	value := s.value()
	if s.is("x") && value.IsList {
		s.next()
		value = &attr{IsList: true, List: []*attr{value, s.value()}}
	}
	o.attrs = append(o.attrs, &entry{Name: name, Value: value})
}

// value is a list or a single token.
func (s *syntax) value() *attr {
	end := s.pos + 1
	if s.is("[") || s.is("{") {
		end = s.closing()
	}
	return s.attrUntil(end)
}

// call is call @f(args) : signature.
func (s *syntax) call(o *operation) {
	callee := s.take(tSym, "a function")
	o.attrs = append(o.attrs, &entry{Name: "callee", Value: &attr{Sym: &callee}})
	s.bracketed(o)
	if s.is("{") {
		o.attrs = append(o.attrs, s.dict()...)
	}
	s.want(":")
	s.signature(o)
}

// bracketed is (args).
func (s *syntax) bracketed(o *operation) {
	s.want("(")
	for !s.eat(")") {
		o.args = append(o.args, s.operand())
		if !s.is(")") {
			s.want(",")
		}
	}
}

// returns is return args : types, or return.
func (s *syntax) returns(o *operation) {
	for s.peek().kind == tValue {
		o.args = append(o.args, s.operand())
		if !s.eat(",") {
			break
		}
	}
	if s.eat(":") {
		o.in = []typ{s.typ()}
		for s.eat(",") {
			o.in = append(o.in, s.typ())
		}
	}
}

// constant is constant dense<...> : type.
func (s *syntax) constant(o *operation) {
	if s.is("{") {
		o.attrs = append(o.attrs, s.dict()...)
	}
	t := s.peek()
	if t.kind != tAngle && t.kind != tHash {
		s.fail("dense<...>")
	}
	s.next()
	value := s.text(t)
	if t.kind == tHash {
		value = s.aliases[value]
	}
	s.want(":")
	typeText := s.peek()
	o.out = []typ{s.typ()}
	o.attrs = append(o.attrs, &entry{Name: "value", Value: &attr{Angle: &value, Type: s.text(typeText)}})
}

// slice is slice %x [0:2, 0:6:3] : signature.
func (s *syntax) slice(o *operation) {
	o.args = []operand{s.operand()}
	var lists [3][]string
	s.want("[")
	for !s.eat("]") {
		lists[0] = append(lists[0], s.take(tNumber, "an index"))
		s.want(":")
		lists[1] = append(lists[1], s.take(tNumber, "an index"))
		stride := "1"
		if s.eat(":") {
			stride = s.take(tNumber, "a stride")
		}
		lists[2] = append(lists[2], stride)
		if !s.is("]") {
			s.want(",")
		}
	}
	for i, name := range []string{"start_indices", "limit_indices", "strides"} {
		o.attrs = append(o.attrs, arrayEntry(name, lists[i]))
	}
	if s.is("{") {
		o.attrs = append(o.attrs, s.dict()...)
	}
	s.want(":")
	s.signature(o)
}

// arrayEntry is a list of integers by their text.
func arrayEntry(name string, values []string) *entry {
	text := "array<i64: " + strings.Join(values, ", ") + ">"
	return &entry{Name: name, Value: &attr{Angle: &text}}
}

// reduce is reduce(%x init: %i), ... [applies op] across dimensions = [..] [attributes] : signature [reducer(params) (params) region].
// Operands come first, then the initial values, as in the generic form.
func (s *syntax) reduce(o *operation) {
	var inits []operand
	for {
		s.want("(")
		o.args = append(o.args, s.operand())
		s.want("init")
		s.want(":")
		inits = append(inits, s.operand())
		s.want(")")
		if !s.eat(",") {
			break
		}
	}
	n := len(inits)
	o.args = append(o.args, inits...)
	applies := ""
	if s.eat("applies") {
		applies = s.take(tIdent, "an operation")
	}
	s.want("across")
	s.want("dimensions")
	s.want("=")
	o.attrs = append(o.attrs, &entry{Name: "dimensions", Value: s.value()})
	if s.is("{") {
		o.attrs = append(o.attrs, s.dict()...)
	}
	s.want(":")
	s.signature(o)
	if applies != "" {
		o.regions = []*region{s.binary(o, applies)}
		return
	}
	if !s.eat("reducer") {
		s.fail(`"applies" or "reducer"`)
	}
	// (%a0, %b0) (%a1, %b1) ...: the accumulated value and the next one of each operand.
	var first, second []param
	for range n {
		s.want("(")
		p := s.params()
		if len(p) != 2 {
			s.fail("two parameters an operand")
		}
		first, second = append(first, p[0]), append(second, p[1])
	}
	r := s.region()
	r.params = append(first, second...)
	o.regions = []*region{r}
}

// binary is the region of one operation on both parameters.
func (s *syntax) binary(o *operation, name string) *region {
	var t typ
	if len(o.out) > 0 {
		t = o.out[0]
		t.Dims = nil
	}
	x, y, z := "%lhs", "%rhs", "%applied"
	apply := &operation{name: name, at: o.at, line: o.line, results: []string{z}, args: []operand{{x, o.at}, {y, o.at}}, out: []typ{t}, loc: o.loc}
	ret := &operation{name: "stablehlo.return", at: o.at, line: o.line, args: []operand{{z, o.at}}}
	return &region{params: []param{{name: x, typ: t}, {name: y, typ: t}}, body: []*operation{apply, ret}}
}

// while is while(%p = %x, ...) : types [attributes {..}] cond region do region.
func (s *syntax) while(o *operation) {
	var params []param
	s.want("(")
	for !s.eat(")") {
		params = append(params, param{name: s.take(tValue, "a parameter")})
		s.want("=")
		o.args = append(o.args, s.operand())
		if !s.is(")") {
			s.want(",")
		}
	}
	if s.eat(":") {
		for i := range params {
			if i > 0 {
				s.want(",")
			}
			params[i].typ = s.typ()
			o.out = append(o.out, params[i].typ)
		}
	}
	if s.eat("attributes") {
		o.attrs = append(o.attrs, s.dict()...)
	}
	for _, word := range []string{"cond", "do"} {
		s.want(word)
		r := s.region()
		r.params = params
		o.regions = append(o.regions, r)
	}
}

// convolution is convolution(%x, %w) dim_numbers = [..]x[..]->[..], window = {..} {attributes} : signature.
func (s *syntax) convolution(o *operation) {
	s.bracketed(o)
	s.want("dim_numbers")
	s.want("=")
	from := s.peek().off
	for i, between := range []string{"x", "->", ""} {
		end := s.closing()
		s.pos = end
		if i < 2 {
			s.want(between)
		}
	}
	numbers := "#stablehlo.conv<" + s.src[from:s.tokens[s.pos-1].end] + ">"
	o.attrs = append(o.attrs, &entry{Name: "dimension_numbers", Value: &attr{Hash: &numbers}})
	s.want(",")
	s.want("window")
	s.want("=")
	for _, e := range s.dict() {
		name := map[string]string{"stride": "window_strides", "pad": "padding", "lhs_dilate": "lhs_dilation", "rhs_dilate": "rhs_dilation",
			"reverse": "window_reversal"}[e.Name]
		if name == "" {
			name = e.Name
		}
		o.attrs = append(o.attrs, &entry{Name: name, Value: e.Value})
	}
	if s.is("{") {
		o.attrs = append(o.attrs, s.dict()...)
	}
	s.want(":")
	s.signature(o)
}

// tupleElement is get_tuple_element %t[1] : signature.
func (s *syntax) tupleElement(o *operation) {
	o.args = []operand{s.operand()}
	s.want("[")
	o.attrs = dict{arrayEntry("index", []string{s.take(tNumber, "an index")})}
	s.want("]")
	s.want(":")
	s.signature(o)
}

// customCall is custom_call @target(args) {attributes} : signature.
func (s *syntax) customCall(o *operation) {
	target := strconv.Quote(unquote(s.take(tSym, "a target")[1:]))
	o.attrs = append(o.attrs, &entry{Name: "call_target_name", Value: &attr{Str: &target}})
	s.bracketed(o)
	if s.is("{") {
		o.attrs = append(o.attrs, s.dict()...)
	}
	s.want(":")
	s.signature(o)
}
