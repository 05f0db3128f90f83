package pt2

import (
	"fmt"
	"slices"
	"strings"

	"tpuc/frontend/weights"
	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// call is one node of the graph while it is imported: its arguments, with defaults from the operator's schema.
// Accessors panic with a *ruleError where the archive does not hold what the schema promises; node recovers it.
type call struct {
	im     *importer
	b      *ir.Builder
	node   *node
	op     string // such as "add.Tensor", or the whole target of other namespaces
	schema *schema

	wrapped bool // the node's outputs are the results and then new contents of arguments (functionalized.go)
}

// ruleError ends a rule. Unsupported ones are gathered into one list, the others are faults of the archive.
type ruleError struct {
	unsupported bool
	msg         string
	notes       []string // further facts, of unsupported ones
}

func (e *ruleError) Error() string { return e.msg }

// maxMessage bounds a message in bytes: it may quote a list of the archive.
const maxMessage = 800

func message(format string, args ...any) string {
	s := fmt.Sprintf(format, args...)
	if len(s) > maxMessage {
		return strings.ToValidUTF8(s[:maxMessage], "") + "..."
	}
	return s
}

// failf ends the rule: the archive is at fault.
func (c *call) failf(format string, args ...any) {
	panic(&ruleError{msg: message(format, args...)})
}

// unsupported ends the rule: a form of the operator that has no rule.
func (c *call) unsupported(format string, args ...any) {
	panic(&ruleError{unsupported: true, msg: message(format, args...)})
}

// arg is an argument by its schema name. Names are as in the schema, and "" matches nothing.
func (c *call) arg(name string) argument {
	for i := range c.node.Inputs {
		if c.node.Inputs[i].Name == name {
			return c.node.Inputs[i].Arg
		}
	}
	p := c.schema.param(name)
	if p == nil {
		c.failf("argument %s is missing", name)
	}
	return p.argument()
}

// has reports an argument that is given, by the archive or by a default that is not None.
func (c *call) has(name string) bool {
	for i := range c.node.Inputs {
		if c.node.Inputs[i].Name == name {
			return c.node.Inputs[i].Arg.None == nil
		}
	}
	p := c.schema.param(name)
	return p != nil && p.argument().None == nil
}

// tensorNamed is a tensor of the graph.
func (c *call) tensorNamed(name string) *ref {
	r, ok := c.im.tensors[name]
	if !ok {
		c.failf("tensor %%%s is used before it is made", clip(name))
	}
	return r
}

// isTensor reports a tensor, as against a number or None.
func (c *call) isTensor(name string) bool {
	a := c.arg(name)
	return a.Tensor != nil || a.OptionalTensor != nil && a.OptionalTensor.Tensor != nil
}

// ref is a tensor argument.
func (c *call) ref(name string) *ref {
	a := c.arg(name)
	if a.OptionalTensor != nil {
		a = *a.OptionalTensor
	}
	if a.Tensor == nil {
		c.failf("argument %s is a %s, wanted a tensor", name, a.kind())
	}
	return c.tensorNamed(a.Tensor.Name)
}

// val is the elements of a tensor argument.
func (c *call) val(name string) *ir.Value { return c.readArg(c.ref(name)) }

// opt is val, or nil for None.
func (c *call) opt(name string) *ir.Value {
	if !c.isTensor(name) {
		return nil
	}
	return c.val(name)
}

// refs is a list of tensors; with None entries as nil.
func (c *call) refs(name string) []*ref {
	a := c.arg(name)
	out := []*ref{}
	switch {
	case a.Tensors != nil:
		for _, t := range *a.Tensors {
			out = append(out, c.tensorNamed(t.Name))
		}
	case a.OptionalTensors != nil:
		for _, t := range *a.OptionalTensors {
			if t.Tensor == nil {
				out = append(out, nil)
				continue
			}
			out = append(out, c.tensorNamed(t.Tensor.Name))
		}
	case a.Ints != nil && len(*a.Ints) == 0, a.None != nil: // an empty list has no kind of its own
	default:
		c.failf("argument %s is a %s, wanted a list of tensors", name, a.kind())
	}
	return out
}

// vals is a list of tensors without None.
func (c *call) vals(name string) []*ir.Value {
	var out []*ir.Value
	for _, r := range c.refs(name) {
		if r == nil {
			c.failf("argument %s holds None, wanted tensors", name)
		}
		out = append(out, r.read(c.b))
	}
	return out
}

// number is a number of the archive, symbolic ones by their value.
func (c *call) number(name string, a argument) scalar {
	switch {
	case a.Int != nil:
		return intScalar(*a.Int)
	case a.Float != nil:
		return floatScalar(float64(*a.Float))
	case a.Bool != nil:
		return scalar{kind: kindBool, i: btoi64(*a.Bool)}
	case a.SymInt != nil:
		c.takesOpen(name, a.SymInt)
		return c.sym(a.SymInt)
	case a.SymFloat != nil:
		return c.sym(a.SymFloat)
	case a.SymBool != nil:
		return c.sym(a.SymBool)
	case a.Complex != nil:
		return scalar{kind: kindComplex, f: float64(a.Complex.Real), im: float64(a.Complex.Imag)}
	}
	c.failf("argument %s is a %s, wanted a number", name, a.kind())
	return scalar{}
}

// sym is the value of a symbolic number.
func (c *call) sym(s *symRef) scalar {
	switch {
	case s.Int != nil:
		return intScalar(*s.Int)
	case s.Float != nil:
		return floatScalar(float64(*s.Float))
	case s.Bool != nil:
		return scalar{kind: kindBool, i: btoi64(*s.Bool)}
	case s.Name != nil:
		if v, ok := c.im.scalars[*s.Name]; ok {
			return v
		}
		if v, ok := c.im.symValue(*s.Name); ok {
			return v
		}
		c.unsupported("the number %%%s depends on the data", clip(*s.Name))
	}
	c.failf("a symbolic number has neither a name nor a value")
	return scalar{}
}

func (c *call) scalar(name string) scalar { return c.number(name, c.arg(name)) }
func (c *call) float(name string) float64 { return c.scalar(name).float() }
func (c *call) bool(name string) bool     { return !c.scalar(name).is(0) }

// int is an integer argument; a float is a fault of the archive.
func (c *call) int(name string) int64 {
	s := c.scalar(name)
	if s.kind >= kindFloat {
		c.failf("argument %s is %s, wanted an integer", name, s)
	}
	return s.i
}

// intOr is an integer, or dflt for None.
func (c *call) intOr(name string, dflt int64) int64 {
	if !c.has(name) {
		return dflt
	}
	return c.int(name)
}

// floatOr is a number, or dflt for None.
func (c *call) floatOr(name string, dflt float64) float64 {
	if !c.has(name) {
		return dflt
	}
	return c.float(name)
}

// ints is a list of integers, one integer as a list of it, None as nil.
func (c *call) ints(name string) []int64 {
	switch a := c.arg(name); {
	case a.Ints != nil:
		return *a.Ints
	case a.SymInts != nil:
		out := make([]int64, len(*a.SymInts))
		for i := range out {
			c.takesOpen(name, &(*a.SymInts)[i])
			out[i] = c.sym(&(*a.SymInts)[i]).i
		}
		return out
	case a.Int != nil, a.SymInt != nil:
		return []int64{c.number(name, a).i}
	case a.None != nil, a.Tensors != nil && len(*a.Tensors) == 0, a.Floats != nil && len(*a.Floats) == 0:
		return nil
	default:
		c.failf("argument %s is a %s, wanted integers", name, a.kind())
	}
	return nil
}

// floats is a list of numbers, or nil for None.
func (c *call) floats(name string) []float64 {
	var out []float64
	switch a := c.arg(name); {
	case a.Floats != nil:
		for _, f := range *a.Floats {
			out = append(out, float64(f))
		}
	case a.Ints != nil:
		for _, i := range *a.Ints {
			out = append(out, float64(i))
		}
	case a.None == nil:
		c.failf("argument %s is a %s, wanted numbers", name, a.kind())
	}
	return out
}

// pair is ints with a single value repeated n times, as for kernel sizes.
func (c *call) pair(name string, n int) []int64 {
	v := c.ints(name)
	switch {
	case len(v) == n:
		return v
	case len(v) == 1:
		return slices.Repeat(v, n)
	}
	c.failf("argument %s has %d values, wanted %d", name, len(v), n)
	return nil
}

// str is a string, or "" for None.
func (c *call) str(name string) string {
	a := c.arg(name)
	if a.String != nil {
		return *a.String
	}
	return ""
}

// dtype is an element type, or dflt for None.
func (c *call) dtype(name string, dflt tensor.DType) tensor.DType {
	a := c.arg(name)
	if a.ScalarType == nil {
		return dflt
	}
	return c.torchDType(*a.ScalarType)
}

// torchDType is the element type of a number of torch's serialised schema; one that the IR lacks is unsupported.
func (c *call) torchDType(n int) tensor.DType {
	d, err := weights.TorchDType(n)
	if err != nil {
		c.unsupported("%v", err)
	}
	return d
}

// axis is a dimension argument of a tensor of a rank, counted from the front. A 0-d tensor has dimension 0, as in torch.
func (c *call) axis(name string, rank int) int { return c.wrap(name, c.int(name), rank) }

// wrap counts a dimension from the front; a 0-d tensor has the dimensions -1 and 0, as in torch.
func (c *call) wrap(name string, d int64, rank int) int {
	n := int64(max(rank, 1))
	if d < -n || d >= n {
		c.failf("argument %s is dimension %d, wanted one of a tensor of rank %d", name, d, rank)
	}
	if d < 0 {
		d += n
	}
	return int(d)
}

// axes is a list of dimensions, each once; None and an empty list are all of them.
func (c *call) axes(name string, rank int) []int64 {
	list := c.ints(name)
	if len(list) == 0 {
		return iotaInts(rank)
	}
	var out []int64
	for _, d := range list {
		a := int64(c.wrap(name, d, rank))
		if slices.Contains(out, a) {
			c.failf("argument %s names dimension %d twice", name, a)
		}
		if rank > 0 {
			out = append(out, a)
		}
	}
	return out
}

// cast converts x. Floats become integers of less than 32 bits by way of i32: what is beyond their range wraps, as in torch.
func (c *call) cast(x *ir.Value, d tensor.DType) *ir.Value {
	if x.Type.DType.IsFloat() && d.IsInt() && d.Bits() < 32 {
		x = op.Cast(c.b, x, tensor.I32)
	}
	return op.Cast(c.b, x, d)
}

// wide is the element type that torch computes x's type in: f32 for narrower floats.
func wide(d tensor.DType) tensor.DType {
	if d.IsFloat() && d.Bits() < 32 {
		return tensor.F32
	}
	return d
}

// rule imports an operator: it gives the results in the schema's order, lists flattened, nil for a result that is None.
type rule func(c *call) []*ref

// value is a rule with one result in new memory.
func value(f func(c *call) *ir.Value) rule {
	return func(c *call) []*ref { return []*ref{fresh(f(c))} }
}

// values is a rule with several results in new memory.
func values(f func(c *call) []*ir.Value) rule {
	return func(c *call) []*ref {
		var out []*ref
		for _, v := range f(c) {
			out = append(out, fresh(v))
		}
		return out
	}
}

// seen is a rule whose result shares memory with its first argument, self.
func seen(f func(c *call, x *ref) view) rule {
	return func(c *call) []*ref {
		x := c.ref("self")
		return []*ref{x.through(c.b, f(c, x))}
	}
}

// nothing is a rule of an operator without results or effects.
func nothing(*call) []*ref { return nil }
