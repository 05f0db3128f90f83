package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// CumProdAttr is the attribute struct of CumProd.
type CumProdAttr struct {
	Axis    int64 `ir:"axis"`
	Reverse bool  `ir:"reverse"` // multiplies from the end
}

// CumProd is the product of every element and all before it along Axis (aten::cumprod). Any numeric dtype; floats below f32 accumulate in
// f32, integers wrap.
var CumProd = define(Def[CumProdAttr]{
	Name: "cumprod", Doc: "Multiplies up to every element along an axis.", Args: "x",
	Infer: func(in []tensor.Type, a CumProdAttr) ([]tensor.Type, error) {
		switch x := in[0]; {
		case !numbers.has(x.DType):
			return nil, fail(1, "dtype %s, wanted %s", x.DType, numbers)
		case a.Axis < 0 || a.Axis >= int64(x.Rank()):
			return nil, fail(2, "axis %d, wanted one of rank %d", a.Axis, x.Rank())
		}
		return one(in[0])
	},
	Decompose: func(b *ir.Builder, n *ir.Node, a CumProdAttr) []*ir.Value {
		x := widen(b, n.Args[0])
		y := cumulate(b, a.Axis, a.Reverse, []*ir.Value{x}, []*tensor.Tensor{tensor.Scalar(x.Type.DType, 1)},
			func(earlier, later []*ir.Value) []*ir.Value { return []*ir.Value{Mul.Make(b, later[0], earlier[0])} })
		return []*ir.Value{Cast(b, y[0], n.Outs[0].Type.DType)}
	},
	Eval: func(in []*tensor.Tensor, a CumProdAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		return evalCumulative(in[0], a.Axis, a.Reverse, out[0], &mulFn)
	},
})
