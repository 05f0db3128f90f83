package pt2

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Operators that torch does not define are unknown here, unless their users say in the IR what they compute: one function or more an
// operator, each for one list of argument types, which takes the place of every call that it fits. docs/custom-ops.md has the form.

// CustomOp is a function that a user gave for an operator. Its name is the operator's, such as "mylib::scale.default", with the values of
// arguments that it is for, such as "mylib::roll.default(shift=2)"; its parameters are named as the operator's other arguments.
// The parameters that it updates are the ones that the operator writes to.
type CustomOp struct {
	Func *ir.Func
	Loc  *diag.Loc // where it is defined
}

// CustomOps is a checked list of them. It is never changed, so programs may share it.
type CustomOps struct {
	Text   string // what they were read from; empty where that is not known
	Digest string // of that, for keys of a cache; may be empty

	byTarget map[string][]*customOp
	all      []*customOp
}

type customOp struct {
	CustomOp
	target string       // as in archives: "torch.ops.mylib.scale.default"
	fixed  []fixedValue // of arguments, by the name
}

// fixedValue is the value that an argument must have, as Python writes it.
type fixedValue struct{ arg, value string }

// NewCustomOps checks the functions' names. All mistakes come in one list, in the functions' order.
func NewCustomOps(list []CustomOp) (*CustomOps, error) {
	out := &CustomOps{byTarget: make(map[string][]*customOp)}
	var errs diag.List
	for _, f := range list {
		o, err := newCustomOp(f)
		switch {
		case err != nil:
			errs.Addf(f.Loc, "custom/name", "%v", err)
			continue
		case Supported(o.target):
			errs.Addf(f.Loc, "custom/known", "operator %s is supported already, wanted functions for others only", o.name())
			continue
		}
		for _, p := range out.byTarget[o.target] {
			if o.sameAs(p) {
				errs.Addf(f.Loc, "custom/twice", "the function for %s takes the same arguments as the one at %s, wanted others", o.name(), place(p.Loc))
			}
		}
		out.byTarget[o.target] = append(out.byTarget[o.target], o)
		out.all = append(out.all, o)
	}
	return out, errs.Err()
}

// newCustomOp reads the name: NAMESPACE::OPERATOR[.OVERLOAD][(ARGUMENT=VALUE, ...)].
func newCustomOp(f CustomOp) (*customOp, error) {
	name, values, fixed := strings.Cut(f.Func.Name, "(")
	space, base, ok := strings.Cut(name, "::")
	base, overload, named := strings.Cut(base, ".")
	if !named {
		overload = "default"
	}
	if !ok || !isWord(space) || !isWord(base) || !isWord(overload) || fixed && !strings.HasSuffix(values, ")") {
		return nil, fmt.Errorf("function %q, wanted a name such as mylib::scale.default or mylib::roll.default(shift=2)", clip(f.Func.Name))
	}
	o := &customOp{CustomOp: f, target: "torch.ops." + space + "." + base + "." + overload}
	if !fixed {
		return o, nil
	}
	for _, part := range splitTop(strings.TrimSuffix(values, ")")) {
		arg, value, ok := strings.Cut(part, "=")
		v := fixedValue{strings.TrimSpace(arg), strings.ReplaceAll(strings.TrimSpace(value), " ", "")}
		if !ok || !isWord(v.arg) || v.value == "" {
			return nil, fmt.Errorf("function %q: %q, wanted ARGUMENT=VALUE", clip(f.Func.Name), clip(part))
		}
		if slices.ContainsFunc(o.fixed, func(w fixedValue) bool { return w.arg == v.arg }) || o.param(v.arg) != nil {
			return nil, fmt.Errorf("function %q: argument %s is given twice", clip(f.Func.Name), v.arg)
		}
		o.fixed = append(o.fixed, v)
	}
	slices.SortFunc(o.fixed, func(a, b fixedValue) int { return strings.Compare(a.arg, b.arg) })
	return o, nil
}

// isWord reports an identifier of Python.
func isWord(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

// name is the operator's, as its users write it.
func (o *customOp) name() string {
	space, rest, _ := strings.Cut(strings.TrimPrefix(o.target, "torch.ops."), ".")
	return space + "::" + rest
}

// String is the name with the types and values of the arguments.
func (o *customOp) String() string {
	var parts []string
	for _, p := range o.Func.Params {
		parts = append(parts, p.Name+": "+p.Type.String())
	}
	for _, f := range o.fixed {
		parts = append(parts, f.arg+"="+f.value)
	}
	return o.name() + "(" + strings.Join(parts, ", ") + ")"
}

func (o *customOp) param(name string) *ir.Value {
	for _, p := range o.Func.Params {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// sameAs reports a function that fits the same calls.
func (o *customOp) sameAs(p *customOp) bool {
	if len(o.Func.Params) != len(p.Func.Params) || !slices.Equal(o.fixed, p.fixed) {
		return false
	}
	for _, v := range o.Func.Params {
		if w := p.param(v.Name); w == nil || !w.Type.Equal(v.Type) {
			return false
		}
	}
	return true
}

// SetCustomOps gives operators without a rule the functions of a user, which may be nil, in all imports from here on.
func (p *Program) SetCustomOps(ops *CustomOps) { p.custom = ops }

// supports reports a rule or a function of the user.
func (p *Program) supports(target string) bool {
	return Supported(target) || p.custom != nil && len(p.custom.byTarget[target]) > 0
}

// customRule is the rule of an operator that the user gave functions for, or nil.
func (c *call) customRule() rule {
	if c.im == nil || c.im.p.custom == nil {
		return nil
	}
	list := c.im.p.custom.byTarget[c.node.Target]
	if len(list) == 0 {
		return nil
	}
	return func(c *call) []*ref {
		var reasons []string
		for _, o := range list {
			args, why := o.fit(c)
			if why == nil {
				c.im.markUsed(o)
				return o.apply(c, args)
			}
			reasons = append(reasons, message("%s: %s", place(o.Loc), strings.Join(why, ", ")))
		}
		panic(&ruleError{unsupported: true, msg: "no function that is given for it fits", notes: reasons})
	}
}

// markUsed remembers the functions that took the place of a call.
func (im *importer) markUsed(o *customOp) {
	if im.p.customUsed == nil {
		im.p.customUsed = make(map[*customOp]bool)
	}
	im.p.customUsed[o] = true
}

// UnusedCustomOps names the functions that fitted no call of the imports up to now, each with its place.
func (p *Program) UnusedCustomOps() []string {
	if p.custom == nil {
		return nil
	}
	var out []string
	for _, o := range p.custom.all {
		if !p.customUsed[o] {
			out = append(out, fmt.Sprintf("%s: no operator of the model needs %s", place(o.Loc), o))
		}
	}
	return out
}

// customArg is what a parameter gets.
type customArg struct {
	ref      *ref
	constant *tensor.Tensor // where ref is nil
}

// fit gives the arguments for o's parameters, by name, or everything that keeps o from fitting the call.
func (o *customOp) fit(c *call) (args map[string]customArg, why []string) {
	args = make(map[string]customArg)
	say := func(format string, a ...any) { why = append(why, fmt.Sprintf(format, a...)) }
	seen := make(map[string]bool)
	for i := range c.node.Inputs {
		in := &c.node.Inputs[i]
		if at := slices.IndexFunc(o.fixed, func(f fixedValue) bool { return f.arg == in.Name }); at >= 0 {
			seen[in.Name] = true
			if got := c.literal(in.Name, &in.Arg); !sameValue(got, o.fixed[at].value) {
				say("%s is for %s=%s, the call has %s", o.name(), in.Name, o.fixed[at].value, clip(got))
			}
			continue
		}
		values := c.customValues(in)
		if values == nil && in.Arg.None == nil && in.Arg.kind() != "tensors" {
			say("%s is %s in the call, wanted a function for %s=%s", in.Name, c.literal(in.Name, &in.Arg), in.Name, c.literal(in.Name, &in.Arg))
		}
		for _, v := range values {
			seen[v.name] = true
			p := o.param(v.name)
			switch {
			case p == nil:
				say("it has no parameter %%%s, the call gives %s", clip(v.name), clip(v.String()))
			case v.ref != nil && !v.ref.typ.Equal(p.Type):
				say("%%%s is %s, the call gives %s", v.name, p.Type, v.ref.typ)
			case v.ref != nil:
				args[v.name] = customArg{ref: v.ref}
			default:
				t, err := v.tensor(p.Type)
				if err != nil {
					say("%%%s is %s, the call gives %s", v.name, p.Type, clip(v.String()))
					continue
				}
				args[v.name] = customArg{constant: t}
			}
		}
	}
	for _, p := range o.Func.Params {
		if !seen[p.Name] {
			say("%%%s is no argument of the call (archives leave out None, and values that are the operator's defaults)", p.Name)
		}
	}
	for _, f := range o.fixed {
		if !seen[f.arg] {
			say("it is for %s=%s, which is no argument of the call (archives leave out values that are the operator's defaults)", f.arg, f.value)
		}
	}
	for _, u := range o.Func.Updates {
		if a, ok := args[u.Target.Name]; ok && a.ref == nil {
			say("it updates %%%s, for which the call gives a number", u.Target.Name)
		}
	}
	return args, append(why, o.misfits(c)...)
}

// misfits compares the results with those of the archive.
func (o *customOp) misfits(c *call) []string {
	names, results := outputNames(c.node), o.Func.Results
	if c.wrapped {
		names = names[:min(len(results), len(names))]
	}
	if len(names) != len(results) {
		return []string{fmt.Sprintf("it returns %d tensors, the call %d", len(results), len(names))}
	}
	var why []string
	for i, name := range names {
		meta, ok := c.im.g.TensorValues[name]
		if !ok {
			continue // None, or a fault of the archive that is reported where results are bound
		}
		want, _, err := c.im.typeOf(&meta)
		if err != nil {
			c.failf("tensor %q: %v", clip(name), err)
		}
		if !results[i].Type.Equal(want) {
			why = append(why, fmt.Sprintf("result %d is %s, the call's %s", i, results[i].Type, want))
		}
	}
	return why
}

// apply puts a copy of the function's body in the place of the call, with the call's location, and writes to what the function updates.
func (o *customOp) apply(c *call, args map[string]customArg) []*ref {
	values := make([]*ir.Value, len(o.Func.Params))
	for i, p := range o.Func.Params {
		if a := args[p.Name]; a.ref != nil {
			values[i] = a.ref.read(c.b)
		} else {
			values[i] = op.Constant.Make(c.b, op.ConstantAttr{Value: a.constant})
		}
	}
	for i, u := range o.Func.Updates {
		for _, before := range o.Func.Updates[:i] {
			switch shared, known := overlap(args[before.Target.Name].ref, args[u.Target.Name].ref); {
			case shared:
				c.unsupported("it writes to %s and %s, which share elements", before.Target.Name, u.Target.Name)
			case !known:
				c.unsupported("it writes to %s and %s, which may share elements", before.Target.Name, u.Target.Name)
			}
		}
	}
	// The updates go along as results behind the others.
	whole := &ir.Func{Params: o.Func.Params, Body: o.Func.Body, Results: slices.Clone(o.Func.Results)}
	for _, u := range o.Func.Updates {
		whole.Results = append(whole.Results, u.New)
	}
	from := len(c.b.Body)
	out := c.b.Inline(copyFunc(whole, c.b.Loc), values...)
	for _, n := range c.b.Body[from:] {
		n.Loc = c.b.Loc
	}
	for i, u := range o.Func.Updates {
		args[u.Target.Name].ref.write(c.b, out[len(o.Func.Results)+i])
	}
	refs := make([]*ref, len(o.Func.Results))
	for i := range refs {
		refs[i] = fresh(out[i])
	}
	return refs
}

// copyFunc copies f and the functions that it calls, since passes change functions in place; nodes get loc.
func copyFunc(f *ir.Func, loc *diag.Loc) *ir.Func {
	out := &ir.Func{Name: f.Name}
	for _, p := range f.Params {
		out.AddParam(p.Name, p.Type)
	}
	b := &ir.Builder{}
	out.Results = b.Inline(f, out.Params...)
	out.Body = b.Body
	for _, n := range out.Body {
		n.Loc = loc
		n.MapFuncs(func(g *ir.Func) *ir.Func { return copyFunc(g, loc) })
	}
	return out
}

// customValue is an argument that a parameter takes: a tensor, or numbers.
type customValue struct {
	name    string
	ref     *ref     // nil: numbers
	numbers []scalar // one for a number
	list    bool     // numbers are a list
}

func (v customValue) String() string {
	if v.ref != nil {
		return v.ref.typ.String()
	}
	parts := make([]string, len(v.numbers))
	for i, n := range v.numbers {
		parts[i] = n.String()
	}
	if v.list {
		return "[" + strings.Join(parts, ",") + "]"
	}
	return strings.Join(parts, "")
}

// tensor is the numbers as a constant of type t: a number is 0-d, a list of n is [n]. Integers must be in range; floats are rounded.
func (v customValue) tensor(t tensor.Type) (*tensor.Tensor, error) {
	if v.list && (t.Rank() != 1 || t.Dims[0] != int64(len(v.numbers))) || !v.list && t.Rank() != 0 {
		return nil, errors.New("another shape")
	}
	ints, floats := make([]int64, len(v.numbers)), make([]float64, len(v.numbers))
	for i, n := range v.numbers {
		ints[i], floats[i] = n.i, n.float()
		if fits := t.DType == tensor.Bool && n.kind == kindBool || t.DType.IsInt() && n.kind == kindInt || t.DType.IsFloat() && n.kind != kindBool; !fits {
			return nil, errors.New("another dtype")
		}
	}
	if t.DType.IsFloat() {
		return tensor.FromFloats(t, floats), nil
	}
	out := tensor.FromInts(t, ints)
	if !slices.Equal(out.Ints(), ints) {
		return nil, errors.New("out of range")
	}
	return out, nil
}

// customValues are the values of an argument, each with the name of the parameter for it: the argument's own or, in a list of tensors, with
// _0, _1 and so on behind it. None has none, and neither has what is no number: a function is for one value of it.
func (c *call) customValues(in *namedArg) []customValue {
	a := &in.Arg
	if a.OptionalTensor != nil {
		a = a.OptionalTensor
	}
	one := func(s scalar) []customValue { return []customValue{{name: in.Name, numbers: []scalar{s}}} }
	switch {
	case a.None != nil:
		return nil
	case a.Tensor != nil:
		return []customValue{{name: in.Name, ref: c.tensorNamed(a.Tensor.Name)}}
	case a.Tensors != nil || a.OptionalTensors != nil:
		var out []customValue
		for i, r := range c.refs(in.Name) {
			if r != nil {
				out = append(out, customValue{name: in.Name + "_" + strconv.Itoa(i), ref: r})
			}
		}
		return out
	case a.Int != nil || a.Float != nil || a.Bool != nil || a.SymInt != nil || a.SymFloat != nil || a.SymBool != nil:
		return one(c.number(in.Name, *a))
	case a.Ints != nil || a.SymInts != nil:
		v := customValue{name: in.Name, list: true}
		for _, n := range c.ints(in.Name) {
			v.numbers = append(v.numbers, intScalar(n))
		}
		return []customValue{v}
	case a.Floats != nil:
		v := customValue{name: in.Name, list: true}
		for _, f := range *a.Floats {
			v.numbers = append(v.numbers, floatScalar(float64(f)))
		}
		return []customValue{v}
	}
	return nil
}

// literal is argument name as Python writes it, without quotes and blanks; a kind in words where it has no such form.
func (c *call) literal(name string, a *argument) string {
	switch {
	case a.None != nil:
		return "None"
	case a.String != nil:
		return *a.String
	case a.Strings != nil:
		return "[" + strings.Join(*a.Strings, ",") + "]"
	case a.Bools != nil:
		parts := make([]string, len(*a.Bools))
		for i, b := range *a.Bools {
			parts[i] = scalar{kind: kindBool, i: btoi64(b)}.String()
		}
		return "[" + strings.Join(parts, ",") + "]"
	case a.ScalarType != nil:
		return c.torchDType(*a.ScalarType).String()
	case a.Tensor != nil || a.Tensors != nil || a.OptionalTensor != nil || a.OptionalTensors != nil:
		return "a " + a.kind()
	}
	if v := c.customValues(&namedArg{Name: name, Arg: *a}); len(v) == 1 {
		return v[0].String()
	}
	return "a " + a.kind()
}

// sameValue compares an argument's value with the one that a function is for; 1.0 is 1.
func sameValue(got, want string) bool {
	x, err := strconv.ParseFloat(got, 64)
	y, err2 := strconv.ParseFloat(want, 64)
	return got == want || err == nil && err2 == nil && x == y
}

// place is where a function is defined, for messages.
func place(l *diag.Loc) string {
	if l == nil {
		return "a function"
	}
	return l.String()
}
