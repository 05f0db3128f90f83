package pt2

import (
	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Numbers that the data decides: read from a tensor by item, and computed from such. Where an operator takes a tensor or a number they go into it as
// 0-d tensors, which count as Python numbers for the type of its result. As sizes, bounds and other attributes they are refused.

// computing are operators on numbers that are computed at run time too, in i64 or in f64 as in Python; real ones give floats.
var computing = map[string]struct {
	p    op.Plain
	real bool
}{
	"_operator.add": {p: op.Add}, "_operator.sub": {p: op.Sub}, "_operator.mul": {p: op.Mul}, "_operator.neg": {p: op.Neg},
	"_operator.truediv": {op.Div, true}, "torch.sym_max": {p: op.Maximum}, "torch.sym_min": {p: op.Minimum},
}

// runtimeNumber is a number of the graph that the data decides, or nil.
func (im *importer) runtimeNumber(name string) *ir.Value {
	if v := im.computed[name]; v != nil {
		return v
	}
	if scale, count, open := im.openNumber(name); open && count != nil && im.b == im.extents.root {
		return op.Mul.Make(im.b, count, intConst(im.b, tensor.I64, scale))
	}
	return nil
}

// compute gives the node's number where it follows from numbers that the data decides.
func (im *importer) compute(c *call) {
	f, known := computing[c.op]
	cast := c.op == "torch.sym_float"
	if !known && !cast || len(c.node.Outputs) != 1 {
		return
	}
	var args []*ir.Value
	d := tensor.I64
	for i := range c.node.Inputs {
		a := &c.node.Inputs[i].Arg
		v := im.runtimeOperand(a)
		if v == nil {
			s, ok := im.constantNumber(a)
			if !ok {
				return
			}
			v = constant(im.b, map[bool]tensor.DType{true: tensor.F64, false: tensor.I64}[s.kind == kindFloat], s)
		}
		if v.Type.DType.IsFloat() || f.real || cast {
			d = tensor.F64
		}
		args = append(args, v)
	}
	for i, v := range args {
		args[i] = op.Cast(im.b, v, d)
	}
	y := args[0]
	if known {
		y = f.p.Make(im.b, args...)
	}
	c.node.Outputs[0].visit(func(string) {}, func(name string) { im.computed[name] = y })
}

// runtimeOperand is an argument that is a number which the data decides, or nil.
func (im *importer) runtimeOperand(a *argument) (v *ir.Value) {
	a.visit(func(string) {}, func(name string) { v = im.runtimeNumber(name) })
	return v
}

// constantNumber is an argument that is a number which is known.
func (im *importer) constantNumber(a *argument) (s scalar, ok bool) {
	switch {
	case a.Int != nil:
		return intScalar(*a.Int), true
	case a.Float != nil:
		return floatScalar(float64(*a.Float)), true
	case a.SymInt != nil && a.SymInt.Int != nil:
		return intScalar(*a.SymInt.Int), true
	}
	a.visit(func(string) {}, func(name string) {
		if s, ok = im.scalars[name]; !ok {
			s, ok = im.symValue(name)
		}
	})
	return s, ok
}
