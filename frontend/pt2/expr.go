package pt2

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// maxExprDepth bounds the nesting of a symbolic expression; real ones stay below ten.
const maxExprDepth = 200

// expr is a symbolic expression in the form of sympy's srepr: a function of arguments, a symbol, or a number.
type expr struct {
	fn   string // "Symbol", "Integer", "Float", or a function such as "Mul"
	args []*expr
	name string // of a Symbol
	num  num    // of an Integer or Float
}

// num is an exact integer or a float.
type num struct {
	i     int64
	f     float64
	float bool
}

func (n num) value() float64 {
	if n.float {
		return n.f
	}
	return float64(n.i)
}

func (n num) String() string {
	if n.float {
		return strconv.FormatFloat(n.f, 'g', -1, 64)
	}
	return strconv.FormatInt(n.i, 10)
}

// parseExpr reads an srepr such as Mul(Integer(2), Symbol('s77', positive=True, integer=True)), or plain text such as 2*s0.
func parseExpr(s string) (*expr, error) {
	p := exprParser{in: s}
	e, err := p.expr(0)
	if err != nil {
		return nil, fmt.Errorf("symbolic expression %q: %w", clip(s), err)
	}
	if p.skip(); p.at != len(s) {
		return nil, fmt.Errorf("symbolic expression %q: unexpected %q at offset %d", clip(s), clip(s[p.at:]), p.at)
	}
	return e, nil
}

// clip shortens text from a file for a message.
func clip(s string) string {
	if len(s) > 120 {
		return strings.ToValidUTF8(s[:120], "") + "..."
	}
	return s
}

type exprParser struct {
	in    string
	at    int
	terms int // operators so far
}

func (p *exprParser) skip() {
	for p.at < len(p.in) && p.in[p.at] == ' ' {
		p.at++
	}
}

func (p *exprParser) take(c byte) bool {
	if p.skip(); p.at < len(p.in) && p.in[p.at] == c {
		p.at++
		return true
	}
	return false
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (p *exprParser) word() string {
	p.skip()
	from := p.at
	for p.at < len(p.in) && wordByte(p.in[p.at]) {
		p.at++
	}
	return p.in[from:p.at]
}

// quoted reads 'text' or "text" without escapes.
func (p *exprParser) quoted() (string, error) {
	p.skip()
	if p.at < len(p.in) {
		if q := p.in[p.at]; q == '\'' || q == '"' {
			if n := strings.IndexByte(p.in[p.at+1:], q); n >= 0 {
				s := p.in[p.at+1 : p.at+1+n]
				p.at += n + 2
				return s, nil
			}
		}
	}
	return "", fmt.Errorf("wanted a quoted name at offset %d", p.at)
}

// primary reads a number, a symbol, a function of arguments, or an expression in parentheses.
func (p *exprParser) primary(depth int) (*expr, error) {
	if depth > maxExprDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxExprDepth)
	}
	if p.take('(') {
		e, err := p.expr(depth + 1)
		if err == nil && !p.take(')') {
			err = fmt.Errorf("wanted ) at offset %d", p.at)
		}
		return e, err
	}
	w := p.word()
	switch {
	case w == "":
		return nil, fmt.Errorf("wanted a name or number at offset %d", p.at)
	case w[0] >= '0' && w[0] <= '9':
		return p.literal(w)
	case !p.take('('):
		return &expr{fn: "Symbol", name: w}, nil
	}
	e := &expr{fn: w}
	switch w {
	case "Symbol":
		name, err := p.quoted()
		if err != nil {
			return nil, err
		}
		e.name = name
		for p.take(',') { // assumptions such as positive=True
			if p.word() == "" || !p.take('=') || p.word() == "" {
				return nil, fmt.Errorf("wanted an assumption such as integer=True at offset %d", p.at)
			}
		}
	case "Float":
		s, err := p.quoted()
		if err != nil {
			return nil, err
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("float %q is no number", clip(s))
		}
		e.num = num{f: f, float: true}
		for p.take(',') { // precision=53
			if p.word() == "" || !p.take('=') || p.word() == "" {
				return nil, fmt.Errorf("wanted precision=N at offset %d", p.at)
			}
		}
	default:
		for !p.take(')') {
			if len(e.args) > 0 && !p.take(',') {
				return nil, fmt.Errorf("wanted , or ) at offset %d", p.at)
			}
			a, err := p.expr(depth + 1)
			if err != nil {
				return nil, err
			}
			e.args = append(e.args, a)
		}
		if w == "Integer" {
			if len(e.args) != 1 || e.args[0].fn != "Integer" {
				return nil, fmt.Errorf("wanted Integer(number)")
			}
			return e.args[0], nil
		}
		return e, nil
	}
	if !p.take(')') {
		return nil, fmt.Errorf("wanted ) at offset %d", p.at)
	}
	return e, nil
}

// symbols adds the names of e's symbols to the set.
func (e *expr) symbols(set map[string]bool) {
	if e.fn == "Symbol" {
		set[e.name] = true
	}
	for _, a := range e.args {
		a.symbols(set)
	}
}

// unboundError names a symbol that has no value.
type unboundError struct{ symbol string }

func (u unboundError) Error() string { return fmt.Sprintf("symbol %s has no value", u.symbol) }

// eval computes e. Integer arithmetic is exact: overflow and division by zero are errors.
func (e *expr) eval(bound map[string]int64) (num, error) {
	switch e.fn {
	case "Symbol":
		v, ok := bound[e.name]
		if !ok {
			return num{}, unboundError{e.name}
		}
		return num{i: v}, nil
	case "Integer", "Float":
		return e.num, nil
	}
	f, ok := exprFuncs[e.fn]
	if !ok {
		return num{}, fmt.Errorf("unknown function %s in a symbolic expression", clip(e.fn))
	}
	if len(e.args) < f.min || f.max > 0 && len(e.args) > f.max {
		return num{}, fmt.Errorf("%s has %d arguments", e.fn, len(e.args))
	}
	v := make([]num, len(e.args))
	for i, a := range e.args {
		var err error
		if v[i], err = a.eval(bound); err != nil {
			return num{}, err
		}
	}
	return f.eval(v)
}

// evalInt is eval for a dimension.
func (e *expr) evalInt(bound map[string]int64) (int64, error) {
	v, err := e.eval(bound)
	switch {
	case err != nil:
		return 0, err
	case !v.float:
		return v.i, nil
	case v.f == math.Trunc(v.f) && math.Abs(v.f) < 1<<53:
		return int64(v.f), nil
	}
	return 0, fmt.Errorf("a dimension is %v, wanted an integer", v.f)
}

// String is e in infix form, such as "2*s77".
func (e *expr) String() string {
	join := func(sep string, atom bool) string {
		parts := make([]string, len(e.args))
		for i, a := range e.args {
			parts[i] = a.String()
			if atom && (a.fn == "Add") {
				parts[i] = "(" + parts[i] + ")"
			}
		}
		return strings.Join(parts, sep)
	}
	switch e.fn {
	case "Symbol":
		return e.name
	case "Integer", "Float":
		return e.num.String()
	case "Add":
		return join(" + ", false)
	case "Mul":
		return join("*", true)
	}
	return e.fn + "(" + join(", ", false) + ")"
}

// exprFuncs are the functions of torch.utils._sympy.functions and of sympy that occur in archives.
var exprFuncs = map[string]struct {
	min, max int // arguments; max 0: any number
	eval     func(v []num) (num, error)
}{
	"Add":             {1, 0, foldNum(addInt, func(a, b float64) float64 { return a + b })},
	"Mul":             {1, 0, foldNum(mulInt, func(a, b float64) float64 { return a * b })},
	"Max":             {1, 0, foldNum(func(a, b int64) (int64, bool) { return max(a, b), true }, math.Max)},
	"Min":             {1, 0, foldNum(func(a, b int64) (int64, bool) { return min(a, b), true }, math.Min)},
	"Pow":             {2, 2, powNum},
	"PowByNatural":    {2, 2, powNum},
	"FloorDiv":        {2, 2, intDiv(floorDiv)},
	"CleanDiv":        {2, 2, intDiv(floorDiv)},
	"CeilDiv":         {2, 2, intDiv(func(a, b int64) int64 { return -floorDiv(-a, b) })},
	"CeilToInt":       {1, 1, toInt(math.Ceil)},
	"FloorToInt":      {1, 1, toInt(math.Floor)},
	"TruncToInt":      {1, 1, toInt(math.Trunc)},
	"RoundToInt":      {1, 1, toInt(math.RoundToEven)},
	"Mod":             {2, 2, intDiv(floorMod)},
	"PythonMod":       {2, 2, intDiv(floorMod)},
	"ModularIndexing": {3, 3, modularIndexing},
	"IntTrueDiv":      {2, 2, trueDiv},
	"FloatTrueDiv":    {2, 2, trueDiv},
	"Rational":        {2, 2, trueDiv},
	"ToFloat":         {1, 1, func(v []num) (num, error) { return num{f: v[0].value(), float: true}, nil }},
	"Identity":        {1, 1, func(v []num) (num, error) { return v[0], nil }},
	"Abs":             {1, 1, func(v []num) (num, error) { return foldAbs(v[0]), nil }},
	"Where":           {3, 3, func(v []num) (num, error) { return v[btoi(v[0].value() == 0)+1], nil }},
	"Equality":        {2, 2, compareNum(func(c int) bool { return c == 0 })},
	"Unequality":      {2, 2, compareNum(func(c int) bool { return c != 0 })},
	"LessThan":        {2, 2, compareNum(func(c int) bool { return c <= 0 })},
	"GreaterThan":     {2, 2, compareNum(func(c int) bool { return c >= 0 })},
	"StrictLessThan":  {2, 2, compareNum(func(c int) bool { return c < 0 })},
	"StrictGreaterThan": {2, 2, compareNum(func(c int) bool {
		return c > 0
	})},
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// foldNum combines any number of arguments: as integers, checked for overflow, or as floats if one is.
func foldNum(i func(a, b int64) (int64, bool), f func(a, b float64) float64) func(v []num) (num, error) {
	return func(v []num) (num, error) {
		isFloat := slices.ContainsFunc(v, func(n num) bool { return n.float })
		acc := v[0]
		if isFloat {
			acc = num{f: acc.value(), float: true}
		}
		for _, n := range v[1:] {
			if isFloat {
				acc.f = f(acc.f, n.value())
				continue
			}
			var ok bool
			if acc.i, ok = i(acc.i, n.i); !ok {
				return num{}, fmt.Errorf("a symbolic expression overflows 64 bits")
			}
		}
		return acc, nil
	}
}

// addInt is a+b and whether 64 bits hold it.
func addInt(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

// mulInt is a*b and whether 64 bits hold it.
func mulInt(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	return a * b, hi == 0 && lo <= math.MaxInt64 && a != math.MinInt64 && b != math.MinInt64
}

func powNum(v []num) (num, error) {
	if v[0].float || v[1].float || v[1].i < 0 {
		return num{f: math.Pow(v[0].value(), v[1].value()), float: true}, nil
	}
	out, base, ok := int64(1), v[0].i, true
	for e := v[1].i; e > 0 && ok; e >>= 1 { // by squaring
		if e&1 == 1 {
			out, ok = mulInt(out, base)
		}
		if e > 1 && ok {
			base, ok = mulInt(base, base)
		}
	}
	if !ok {
		return num{}, fmt.Errorf("a symbolic expression overflows 64 bits")
	}
	return num{i: out}, nil
}

func btoi64(b bool) int64 { return int64(btoi(b)) }

// intDiv is a division of integers by something that is not zero.
func intDiv(f func(a, b int64) int64) func(v []num) (num, error) {
	return func(v []num) (num, error) {
		switch {
		case v[0].float || v[1].float:
			return num{}, fmt.Errorf("integer division of floats in a symbolic expression")
		case v[1].i == 0:
			return num{}, fmt.Errorf("a symbolic expression divides by zero")
		}
		return num{i: f(v[0].i, v[1].i)}, nil
	}
}

// floorDiv rounds towards minus infinity, as Python does.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// floorMod has the sign of b, as Python's %.
func floorMod(a, b int64) int64 { return a - b*floorDiv(a, b) }

func toInt(f func(float64) float64) func(v []num) (num, error) {
	return func(v []num) (num, error) {
		r := f(v[0].value())
		if !v[0].float {
			return v[0], nil
		}
		if !(math.Abs(r) < 1<<63) {
			return num{}, fmt.Errorf("%v in a symbolic expression is no 64-bit integer", r)
		}
		return num{i: int64(r)}, nil
	}
}

// modularIndexing is (base // divisor) % modulus.
func modularIndexing(v []num) (num, error) {
	q, err := intDiv(floorDiv)(v[:2])
	if err != nil {
		return num{}, err
	}
	return intDiv(floorMod)([]num{q, v[2]})
}

func trueDiv(v []num) (num, error) {
	if v[1].value() == 0 {
		return num{}, fmt.Errorf("a symbolic expression divides by zero")
	}
	return num{f: v[0].value() / v[1].value(), float: true}, nil
}

func foldAbs(n num) num { return num{i: max(n.i, -n.i), f: math.Abs(n.f), float: n.float} }

func compareNum(f func(c int) bool) func(v []num) (num, error) {
	return func(v []num) (num, error) {
		c := 0
		if a, b := v[0].value(), v[1].value(); a < b {
			c = -1
		} else if a > b {
			c = 1
		}
		return num{i: btoi64(f(c))}, nil
	}
}
