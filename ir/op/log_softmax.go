package op

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// LogSoftmaxAttr is the attribute struct of LogSoftmax.
type LogSoftmaxAttr struct {
	Axis int64 `ir:"axis"`
}

// LogSoftmax is x - max - log(sum(exp(x - max))) along Axis, floats, computed in f32 at least and rounded once (aten::_log_softmax).
var LogSoftmax = define(Def[LogSoftmaxAttr]{
	Name: "log_softmax", Doc: "Takes the logarithm of normalised exponentials along an axis.", Args: "x",
	Infer: func(in []tensor.Type, a LogSoftmaxAttr) ([]tensor.Type, error) { return inferFloatAxis(in[0], a.Axis) },
	Decompose: func(b *ir.Builder, n *ir.Node, a LogSoftmaxAttr) []*ir.Value {
		x := widen(b, n.Args[0])
		d := Sub.Make(b, x, keepReduce(b, Max, x, a.Axis))
		// The logarithm is taken before repeating.
		sum := Reduce.Make(b, ReduceAttr{Kind: Sum, Axes: []int64{a.Axis}}, Exp.Make(b, d))
		y := Sub.Make(b, d, Broadcast.Make(b, BroadcastAttr{Shape: x.Type.Dims, Dims: free(x.Type.Rank(), []int64{a.Axis})}, Log.Make(b, sum)))
		return []*ir.Value{Cast(b, y, n.Outs[0].Type.DType)}
	},
	Eval: func(in []*tensor.Tensor, a LogSoftmaxAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		return alongAxis(in[0], out[0], a.Axis, func(row []float64) {
			top, sum := rowMax(row), 0.0
			for _, v := range row {
				sum += math.Exp(v - top)
			}
			for i := range row {
				row[i] -= top + math.Log(sum)
			}
		})
	},
	Cost: func(n *ir.Node, _ LogSoftmaxAttr) ir.Cost { return ir.Cost{Flops: 4 * n.Outs[0].Type.Elements()} },
})

// inferFloatAxis is the shape rule of operators along one axis of a float tensor that keep its type. Checks 1 and 2.
func inferFloatAxis(x tensor.Type, axis int64) ([]tensor.Type, error) {
	switch {
	case !x.DType.IsFloat():
		return nil, fail(1, "dtype %s, wanted float", x.DType)
	case axis < 0 || axis >= int64(x.Rank()):
		return nil, fail(2, "axis %d, wanted one of rank %d", axis, x.Rank())
	}
	return one(x)
}

// alongAxis applies f to every line of x along axis, in place on a copy.
func alongAxis(x *tensor.Tensor, t tensor.Type, axis int64, f func(row []float64)) ([]*tensor.Tensor, error) {
	v := x.Floats()
	steps := offsets(x.Dims, []int64{axis})
	row := make([]float64, len(steps))
	for _, o := range offsets(x.Dims, free(x.Rank(), []int64{axis})) {
		for i, s := range steps {
			row[i] = v[o+s]
		}
		f(row)
		for i, s := range steps {
			v[o+s] = row[i]
		}
	}
	return result(tensor.FromFloats(t, v))
}

// rowMax is the largest element, NaN if one is, -inf of none.
func rowMax(row []float64) float64 {
	top := math.Inf(-1)
	for _, v := range row {
		top = max(top, v)
	}
	return top
}
