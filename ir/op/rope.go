package op

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// RopeAttr is the attribute struct of Rope.
type RopeAttr struct {
	Interleaved bool `ir:"interleaved"` // pairs are elements 2i and 2i+1; otherwise i and i + half the last dimension
}

// Rope turns pairs of elements of x's last dimension by angles: y = x * cos + r * sin, where r holds, for each pair (a, b), (-b, a) in the
// same places (rotary position embedding, arXiv:2104.09864). x is float of an even last dimension; cos and sin have x's dtype and rank and
// any dimension x's or 1. Both products and their sum are each rounded to the dtype, as models spell it.
var Rope = define(Def[RopeAttr]{
	Name: "rope", Doc: "Turns pairs of elements of the last dimension by angles.", Args: "x cos sin",
	Infer: inferRope, Decompose: decomposeRope, Eval: evalRope,
	Cost: func(n *ir.Node, _ RopeAttr) ir.Cost { return ir.Cost{Flops: 4 * n.Outs[0].Type.Elements()} },
})

// inferRope checks x in 1, cos and sin in 2 and 3.
func inferRope(in []tensor.Type, _ RopeAttr) ([]tensor.Type, error) {
	x := in[0]
	if !x.DType.IsFloat() || x.Rank() < 1 || x.Dims[x.Rank()-1]%2 != 0 {
		return nil, fail(1, "x is %s, wanted floats with an even last dimension", x)
	}
	for i, t := range in[1:] {
		name := []string{"cos", "sin"}[i]
		if t.DType != x.DType || t.Rank() != x.Rank() {
			return nil, fail(2, "%s is %s, wanted dtype %s and rank %d as x", name, t, x.DType, x.Rank())
		}
		for d, n := range t.Dims {
			if n != 1 && n != x.Dims[d] {
				return nil, fail(3, "%s dimension %d is %d, wanted 1 or %d as x", name, d, n, x.Dims[d])
			}
		}
	}
	return one(x)
}

// decomposeRope takes the halves apart by slices, which TPU does within its vector registers where it would move a reshaped tensor.
func decomposeRope(b *ir.Builder, n *ir.Node, a RopeAttr) []*ir.Value {
	x, dims := n.Args[0], n.Args[0].Type.Dims
	last := int64(len(dims) - 1)
	half := dims[last] / 2
	part := func(i int64) *ir.Value { // element i of every pair
		cut := SliceAttr{Start: make([]int64, len(dims)), Limit: slices.Clone(dims), Stride: slices.Repeat([]int64{1}, len(dims))}
		if a.Interleaved {
			cut.Start[last], cut.Stride[last] = min(i, dims[last]), 2
			return reshape(b, Slice.Make(b, cut, x), slices.Concat(dims[:last], []int64{half, 1})...)
		}
		cut.Start[last], cut.Limit[last] = i*half, (i+1)*half
		return Slice.Make(b, cut, x)
	}
	first, second := part(0), part(1)
	r := Concat.Make(b, ConcatAttr{Axis: int64(first.Type.Rank() - 1)}, Neg.Make(b, second), first)
	y := Mul.Make(b, x, Stretch(b, n.Args[1], dims))
	return []*ir.Value{Add.Make(b, y, Mul.Make(b, reshape(b, r, dims...), Stretch(b, n.Args[2], dims)))}
}

// evalRope rounds after every step, as the decomposition does.
func evalRope(in []*tensor.Tensor, a RopeAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	t := out[0]
	round := func(v []float64) []float64 { return tensor.FromFloats(t, v).Floats() }
	x, cos, sin := in[0].Floats(), stretched(in[1], t), stretched(in[2], t)
	n := t.Dims[t.Rank()-1]
	y, r := make([]float64, len(x)), make([]float64, len(x))
	for i := range x {
		at := int64(i) % max(n, 1)
		first, step := at < n/2, n/2
		if a.Interleaved {
			first, step = at%2 == 0, 1
		}
		partner := int64(i) - step
		sign := 1.0
		if first {
			partner, sign = int64(i)+step, -1
		}
		y[i], r[i] = x[i]*cos[i], sign*x[partner]*sin[i]
	}
	y, r = round(y), round(r)
	for i := range y {
		y[i] += r[i]
	}
	return result(tensor.FromFloats(t, y))
}

// stretched are the elements of x repeated along its dimensions of extent 1 to t's shape.
func stretched(x *tensor.Tensor, t tensor.Type) []float64 {
	strides := tensor.Strides(x.Dims)
	for d, n := range x.Dims {
		if n == 1 {
			strides[d] = 0
		}
	}
	return tensor.Gather(t, x.Data, 0, strides).Floats()
}
