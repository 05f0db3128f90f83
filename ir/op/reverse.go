package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// ReverseAttr is the attribute struct of Reverse.
type ReverseAttr struct {
	Axes []int64 `ir:"axes"` // ascending
}

// Reverse reverses the order of elements along Axes (StableHLO reverse, aten::flip). Any dtype.
var Reverse = define(Def[ReverseAttr]{
	Name: "reverse", Doc: "Reverses the order of elements along axes.", Args: "x",
	Traits: ir.Exact,
	Infer: func(in []tensor.Type, a ReverseAttr) ([]tensor.Type, error) {
		if !ascending(a.Axes, in[0].Rank()) {
			return nil, fail(1, "axes are %v, wanted ascending dimensions of rank %d", a.Axes, in[0].Rank())
		}
		return one(in[0])
	},
	Lower: func(e ir.Emitter, n *ir.Node, a ReverseAttr) []ir.Ref {
		return e.Emit(ir.HLO{Name: "stablehlo.reverse", Args: refs(e, n), Attrs: []string{"dimensions = " + i64Array(a.Axes)},
			Out: []tensor.Type{n.Outs[0].Type}})
	},
	Eval: func(in []*tensor.Tensor, a ReverseAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		strides := tensor.Strides(in[0].Dims)
		offset := int64(0)
		for _, d := range a.Axes {
			offset += (in[0].Dims[d] - 1) * strides[d]
			strides[d] = -strides[d]
		}
		return result(tensor.Gather(out[0], in[0].Data, offset, strides))
	},
	Cost: noCost[ReverseAttr],
})
