package op

import (
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// LayerNormAttr is the attribute struct of LayerNorm.
type LayerNormAttr struct {
	Eps  float64 `ir:"eps"`
	Rank int64   `ir:"rank"` // normalise over the last so many dimensions
}

// LayerNorm is (x - mean) / sqrt(variance + Eps) * w + b over the last Rank dimensions (aten::layer_norm). x, w and b are floats; w and b
// have the shape of those dimensions. All is computed in f32 at least and rounded once, to x's dtype.
var LayerNorm = define(Def[LayerNormAttr]{
	Name: "layer_norm", Doc: "Normalises mean and variance over the last dimensions, then scales and shifts.", Args: "x w? b?",
	Infer: func(in []tensor.Type, a LayerNormAttr) ([]tensor.Type, error) { return inferNorm(in, a.Rank) },
	Decompose: func(b *ir.Builder, n *ir.Node, a LayerNormAttr) []*ir.Value {
		x := widen(b, n.Args[0])
		y := standardize(b, x, lastAxes(x.Type, a.Rank), a.Eps)
		return []*ir.Value{affine(b, y, n.Args[1:], n.Outs[0].Type)}
	},
	Eval: func(in []*tensor.Tensor, a LayerNormAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		v := in[0].Floats()
		size := int(product(in[0].Dims[in[0].Rank()-int(a.Rank):]))
		for row := range chunks(v, size) {
			standardizeRow(row, a.Eps)
		}
		return result(tensor.FromFloats(out[0], affineRows(v, in[1:])))
	},
	Cost: func(n *ir.Node, _ LayerNormAttr) ir.Cost { return ir.Cost{Flops: 8 * n.Outs[0].Type.Elements()} },
})

// inferNorm is the shape rule of norms over the last dimensions. Checks 1 to 3.
func inferNorm(in []tensor.Type, rank int64) ([]tensor.Type, error) {
	x := in[0]
	if rank < 1 || rank > int64(x.Rank()) {
		return nil, fail(1, "rank %d, wanted 1 to %d", rank, x.Rank())
	}
	last := x.Dims[x.Rank()-int(rank):]
	for i, t := range in {
		if !t.DType.IsFloat() {
			return nil, fail(2, "argument %d is %s, wanted float", i, t)
		}
		if i > 0 && !slices.Equal(t.Dims, last) {
			return nil, fail(3, "argument %d is %s, wanted shape %v as the last dimensions of x", i, t, last)
		}
	}
	return one(x)
}

// lastAxes are the last n dimensions of t.
func lastAxes(t tensor.Type, n int64) []int64 { return count(t.Rank()-int(n), t.Rank()) }

// standardize is (x - mean) * rsqrt(variance + eps) over the axes.
func standardize(b *ir.Builder, x *ir.Value, axes []int64, eps float64) *ir.Value {
	d := Sub.Make(b, x, spread(b, mean(b, x, axes), x.Type, axes))
	return Mul.Make(b, d, spread(b, rsqrtEps(b, mean(b, Mul.Make(b, d, d), axes), eps), x.Type, axes))
}

// mean over the axes, which are dropped; NaN over no elements.
func mean(b *ir.Builder, x *ir.Value, axes []int64) *ir.Value {
	sum := Reduce.Make(b, ReduceAttr{Kind: Sum, Axes: axes}, x)
	return Mul.Make(b, sum, Splat(b, sum.Type, 1/float64(product(pick(x.Type.Dims, axes)))))
}

// rsqrtEps is 1 / sqrt(v + eps).
func rsqrtEps(b *ir.Builder, v *ir.Value, eps float64) *ir.Value {
	return Rsqrt.Make(b, Add.Make(b, v, Splat(b, v.Type, eps)))
}

// spread repeats what was reduced from type t along axes.
func spread(b *ir.Builder, x *ir.Value, t tensor.Type, axes []int64) *ir.Value {
	return Broadcast.Make(b, BroadcastAttr{Shape: t.Dims, Dims: free(t.Rank(), axes)}, x)
}

// affine is y * w + b, each where given, along y's last dimensions, cast to t.
func affine(b *ir.Builder, y *ir.Value, wb []*ir.Value, t tensor.Type) *ir.Value {
	for i, v := range wb {
		v = BroadcastTo(b, Cast(b, v, y.Type.DType), t.Dims)
		if i == 0 {
			y = Mul.Make(b, y, v)
		} else {
			y = Add.Make(b, y, v)
		}
	}
	return Cast(b, y, t.DType)
}

// standardizeRow makes mean 0 and variance 1, in place.
func standardizeRow(row []float64, eps float64) {
	sum := 0.0
	for _, v := range row {
		sum += v
	}
	m, squares := sum/float64(len(row)), 0.0
	for _, v := range row {
		squares += (v - m) * (v - m)
	}
	for i := range row {
		row[i] = (row[i] - m) / math.Sqrt(squares/float64(len(row))+eps)
	}
}

// affineRows multiplies rows of v by the first of wb and adds the second, each where given, in place.
func affineRows(v []float64, wb []*tensor.Tensor) []float64 {
	for k, x := range wb {
		f := x.Floats()
		for row := range chunks(v, len(f)) {
			for i := range row {
				if k == 0 {
					row[i] *= f[i]
				} else {
					row[i] += f[i]
				}
			}
		}
	}
	return v
}

// chunks yields the consecutive parts of v of one size; none for size 0.
func chunks(v []float64, size int) func(yield func([]float64) bool) {
	if size == 0 {
		return func(func([]float64) bool) {}
	}
	return slices.Chunk(v, size)
}
