package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// domain is a set of element types.
type domain uint8

const (
	bools domain = 1 << iota
	ints
	floats
	complexes
	numbers = ints | floats | complexes
)

func (d domain) has(t tensor.DType) bool {
	switch {
	case t == tensor.Bool:
		return d&bools != 0
	case t.IsInt():
		return d&ints != 0
	case t.IsFloat():
		return d&floats != 0
	default:
		return d&complexes != 0
	}
}

// String is such as "integer or float".
func (d domain) String() string {
	s := ""
	for i, name := range []string{"bool", "integer", "float", "complex"} {
		if d&(1<<i) != 0 {
			if s != "" {
				s += " or "
			}
			s += name
		}
	}
	return s
}

// sameTypes is the shape rule of elementwise operators: equal types from the domain in, that type out.
func sameTypes(d domain) func(in []tensor.Type, _ None) ([]tensor.Type, error) {
	return func(in []tensor.Type, _ None) ([]tensor.Type, error) {
		for i, t := range in {
			if !t.Equal(in[0]) {
				return nil, fail(1, "argument %d is %s, wanted %s as argument 0", i, t, in[0])
			}
		}
		if !d.has(in[0].DType) {
			return nil, fail(2, "dtype %s, wanted %s", in[0].DType, d)
		}
		return one(in[0])
	}
}

// lowerTo emits the StableHLO (or CHLO) operation of that name over all arguments.
func lowerTo(name string) func(e ir.Emitter, n *ir.Node, _ None) []ir.Ref {
	return func(e ir.Emitter, n *ir.Node, _ None) []ir.Ref {
		return e.Emit(ir.HLO{Name: name, Args: refs(e, n), Out: []tensor.Type{n.Outs[0].Type}})
	}
}

// refs are the references of all arguments.
func refs(e ir.Emitter, n *ir.Node) []ir.Ref {
	out := make([]ir.Ref, len(n.Args))
	for i, a := range n.Args {
		out[i] = e.Value(a)
	}
	return out
}

// scalar2 holds a binary function for each kind of element; nil where the operator's domain lacks it. Floats are computed in
// float64 and rounded once; bool uses the integer function.
type scalar2 struct {
	i func(x, y int64) int64
	u func(x, y uint64) uint64 // nil: i on the bit patterns
	f func(x, y float64) float64
	c func(x, y complex128) complex128
}

// eval is the evaluator of a binary elementwise operator of equal types.
func (s scalar2) eval(in []*tensor.Tensor, _ None, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, y, t := in[0], in[1], out[0]
	switch {
	case t.DType.IsFloat():
		a, b := x.Floats(), y.Floats()
		for i := range a {
			a[i] = s.f(a[i], b[i])
		}
		return result(tensor.FromFloats(t, a))
	case t.DType.IsComplex():
		a, b := x.Complexes(), y.Complexes()
		for i := range a {
			a[i] = s.c(a[i], b[i])
		}
		return result(tensor.FromComplexes(t, a))
	}
	a, b := x.Ints(), y.Ints()
	for i := range a {
		if t.DType.IsUnsigned() && s.u != nil {
			a[i] = int64(s.u(uint64(a[i]), uint64(b[i])))
		} else {
			a[i] = s.i(a[i], b[i])
		}
	}
	return result(tensor.FromInts(t, a))
}

// result wraps a single evaluated tensor.
func result(x *tensor.Tensor) ([]*tensor.Tensor, error) { return []*tensor.Tensor{x}, nil }

// scalar1 is scalar2 for functions of one argument.
type scalar1 struct {
	i func(x int64) int64
	u func(x uint64) uint64 // nil: i on the bit patterns
	f func(x float64) float64
	c func(x complex128) complex128
}

// eval is the evaluator of a unary elementwise operator that keeps the type.
func (s scalar1) eval(in []*tensor.Tensor, _ None, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, t := in[0], out[0]
	switch {
	case t.DType.IsFloat():
		v := x.Floats()
		for i := range v {
			v[i] = s.f(v[i])
		}
		return result(tensor.FromFloats(t, v))
	case t.DType.IsComplex():
		v := x.Complexes()
		for i := range v {
			v[i] = s.c(v[i])
		}
		return result(tensor.FromComplexes(t, v))
	}
	v := x.Ints()
	for i := range v {
		if t.DType.IsUnsigned() && s.u != nil {
			v[i] = int64(s.u(uint64(v[i])))
		} else {
			v[i] = s.i(v[i])
		}
	}
	return result(tensor.FromInts(t, v))
}
