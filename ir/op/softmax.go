package op

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// SoftmaxAttr is the attribute struct of Softmax.
type SoftmaxAttr struct {
	Axis int64 `ir:"axis"`
}

// Softmax is exp(x - max) / sum(exp(x - max)) along Axis, floats, computed in f32 at least and rounded once (aten::_softmax).
// A slice of only -inf gives NaN, as torch does.
var Softmax = define(Def[SoftmaxAttr]{
	Name: "softmax", Doc: "Normalises exponentials along an axis.", Args: "x",
	Infer: func(in []tensor.Type, a SoftmaxAttr) ([]tensor.Type, error) { return inferFloatAxis(in[0], a.Axis) },
	Decompose: func(b *ir.Builder, n *ir.Node, a SoftmaxAttr) []*ir.Value {
		x := widen(b, n.Args[0])
		e := Exp.Make(b, Sub.Make(b, x, keepReduce(b, Max, x, a.Axis)))
		y := Div.Make(b, e, keepReduce(b, Sum, e, a.Axis))
		return []*ir.Value{Cast(b, y, n.Outs[0].Type.DType)}
	},
	Eval: func(in []*tensor.Tensor, a SoftmaxAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		return alongAxis(in[0], out[0], a.Axis, func(row []float64) {
			top, sum := rowMax(row), 0.0
			for i, v := range row {
				row[i] = math.Exp(v - top)
				sum += row[i]
			}
			for i := range row {
				row[i] /= sum
			}
		})
	},
	Cost: func(n *ir.Node, _ SoftmaxAttr) ir.Cost { return ir.Cost{Flops: 5 * n.Outs[0].Type.Elements()} },
})
