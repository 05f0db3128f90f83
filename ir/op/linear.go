package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Linear is y[..., o] = sum over i of x[..., i] w[o, i], plus b[o] (aten::linear): x [..., in] of rank 1 or more, w [out, in] and b [out]
// of one numeric dtype give [..., out]. Floats below f32 accumulate, the bias included, in f32 and are rounded once.
var Linear = definePlain(Def[None]{
	Name: "linear", Doc: "Multiplies the last dimension by a transposed matrix and adds a bias.", Args: "x w b?",
	Infer: inferLinear, Decompose: decomposeLinear, Eval: evalLinear,
	Cost: func(n *ir.Node, _ None) ir.Cost {
		return ir.Cost{Flops: 2 * n.Args[1].Type.Dims[1] * n.Outs[0].Type.Elements()}
	},
})

// inferLinear checks dtype and ranks in 1 and 2, w in 3 and 4, b in 5.
func inferLinear(in []tensor.Type, _ None) ([]tensor.Type, error) {
	x, w := in[0], in[1]
	switch {
	case !numbers.has(x.DType):
		return nil, fail(1, "dtype %s, wanted %s", x.DType, numbers)
	case x.Rank() < 1 || w.Rank() != 2:
		return nil, fail(2, "x is %s, w is %s, wanted rank 1 or more and rank 2", x, w)
	case w.DType != x.DType:
		return nil, fail(3, "w is %s, wanted dtype %s as x", w, x.DType)
	case w.Dims[1] != x.Dims[x.Rank()-1]:
		return nil, fail(4, "w dimension 1 is %d, wanted %d as the last one of x", w.Dims[1], x.Dims[x.Rank()-1])
	case len(in) == 3 && !in[2].Equal(tensor.Make(x.DType, w.Dims[0])):
		return nil, fail(5, "b is %s, wanted %s", in[2], tensor.Make(x.DType, w.Dims[0]))
	}
	return one(x.WithDims(with(x.Dims, int64(x.Rank()-1), w.Dims[0])...))
}

// decomposeLinear keeps the product in f32 until the bias is added; without a bias the product is rounded by itself.
func decomposeLinear(b *ir.Builder, n *ir.Node, _ None) []*ir.Value {
	x, w, out := n.Args[0], n.Args[1], n.Outs[0].Type
	dot := DotAttr{Contract: [][]int64{{int64(x.Type.Rank() - 1)}, {1}}}
	if len(n.Args) == 2 {
		return []*ir.Value{Dot.Make(b, dot, x, w)}
	}
	if out.DType.IsFloat() && out.DType.Bits() < 32 {
		dot.Out = tensor.F32
	}
	y := Dot.Make(b, dot, x, w)
	bias := BroadcastTo(b, Cast(b, n.Args[2], y.Type.DType), out.Dims)
	return []*ir.Value{Cast(b, Add.Make(b, y, bias), out.DType)}
}

// evalLinear sums in float64, complex128 or wrapping int64.
func evalLinear(in []*tensor.Tensor, _ None, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, w, t := in[0], in[1], out[0]
	switch {
	case t.DType.IsFloat():
		return result(tensor.FromFloats(t, matmulT(x.Floats(), w.Floats(), bias(in, (*tensor.Tensor).Floats), x.Dims, w.Dims)))
	case t.DType.IsComplex():
		return result(tensor.FromComplexes(t, matmulT(x.Complexes(), w.Complexes(), bias(in, (*tensor.Tensor).Complexes), x.Dims, w.Dims)))
	}
	return result(tensor.FromInts(t, matmulT(x.Ints(), w.Ints(), bias(in, (*tensor.Tensor).Ints), x.Dims, w.Dims)))
}

// bias reads the third argument, nil without one.
func bias[T any](in []*tensor.Tensor, read func(*tensor.Tensor) []T) []T {
	if len(in) < 3 {
		return nil
	}
	return read(in[2])
}

// matmulT multiplies rows of x by rows of w and adds b, where it is not nil. xd and wd are the shapes.
func matmulT[T int64 | float64 | complex128](x, w, b []T, xd, wd []int64) []T {
	o, k := int(wd[0]), int(wd[1])
	rows := int(product(xd[:len(xd)-1]))
	y := make([]T, 0, rows*o)
	for r := range rows {
		row := x[r*k : (r+1)*k]
		for j := range o {
			sum := dotProduct(row, w[j*k:(j+1)*k])
			if b != nil {
				sum += b[j]
			}
			y = append(y, sum)
		}
	}
	return y
}
