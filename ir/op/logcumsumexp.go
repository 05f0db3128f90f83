package op

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// LogCumSumExpAttr is the attribute struct of LogCumSumExp.
type LogCumSumExpAttr struct {
	Axis int64 `ir:"axis"`
}

// LogCumSumExp is the logarithm of the sum of the exponentials of every element and all before it along Axis, without overflow
// (aten::logcumsumexp). Floats, computed in f32 at least and rounded once.
var LogCumSumExp = define(Def[LogCumSumExpAttr]{
	Name: "logcumsumexp", Doc: "Takes the logarithm of sums of exponentials up to every element along an axis.", Args: "x",
	Infer: func(in []tensor.Type, a LogCumSumExpAttr) ([]tensor.Type, error) {
		return inferFloatAxis(in[0], a.Axis)
	},
	Decompose: func(b *ir.Builder, n *ir.Node, a LogCumSumExpAttr) []*ir.Value {
		x := widen(b, n.Args[0])
		y := cumulate(b, a.Axis, false, []*ir.Value{x}, []*tensor.Tensor{bound(x.Type.DType, false)}, func(e, l []*ir.Value) []*ir.Value {
			return []*ir.Value{LogAddExp(b, e[0], l[0])}
		})
		return []*ir.Value{Cast(b, y[0], n.Outs[0].Type.DType)}
	},
	Eval: func(in []*tensor.Tensor, a LogCumSumExpAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		return alongAxis(in[0], out[0], a.Axis, func(row []float64) {
			for i := 1; i < len(row); i++ {
				row[i] = logAddExp(row[i-1], row[i])
			}
		})
	},
	Cost: func(n *ir.Node, _ LogCumSumExpAttr) ir.Cost { return ir.Cost{Flops: 4 * n.Outs[0].Type.Elements()} },
})

// LogAddExp is log(exp x + exp y) of floats of one type without overflow; equal infinities stay.
func LogAddExp(b *ir.Builder, x, y *ir.Value) *ir.Value {
	hi := Maximum.Make(b, x, y)
	diff := Neg.Make(b, Abs.Make(b, Sub.Make(b, x, y)))
	z := Add.Make(b, hi, Log1p.Make(b, Exp.Make(b, diff)))
	inf := Compare.Make(b, CompareAttr{Dir: EQ}, Abs.Make(b, hi), Splat(b, hi.Type, math.Inf(1)))
	same := Compare.Make(b, CompareAttr{Dir: EQ}, x, y)
	return Select.Make(b, And.Make(b, inf, same), hi, z)
}

func logAddExp(x, y float64) float64 {
	if x == y && math.IsInf(x, 0) {
		return x
	}
	return max(x, y) + math.Log1p(math.Exp(-math.Abs(x-y)))
}
