package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// SoftmaxAttr is the attribute struct of Softmax.
type SoftmaxAttr struct {
	Axis int64 `ir:"axis"`
}

// Softmax is exp(x - max) / sum(exp(x - max)) along Axis, computed in f32 at least and rounded once (aten::_softmax).
// A slice of only -inf gives NaN, as torch does.
var Softmax = define(Def[SoftmaxAttr]{
	Name: "softmax", Doc: "Normalises exponentials along an axis.", Args: "x",
	Infer: func(in []tensor.Type, a SoftmaxAttr) ([]tensor.Type, error) {
		x := in[0]
		switch {
		case !x.DType.IsFloat():
			return nil, fail(1, "dtype %s, wanted float", x.DType)
		case a.Axis < 0 || a.Axis >= int64(x.Rank()):
			return nil, fail(2, "axis %d, wanted one of rank %d", a.Axis, x.Rank())
		}
		return one(x)
	},
	Decompose: func(b *ir.Builder, n *ir.Node, a SoftmaxAttr) []*ir.Value {
		x := widen(b, n.Args[0])
		e := Exp.Make(b, Sub.Make(b, x, keepReduce(b, Max, x, a.Axis)))
		y := Div.Make(b, e, keepReduce(b, Sum, e, a.Axis))
		return []*ir.Value{Cast(b, y, n.Outs[0].Type.DType)}
	},
})
