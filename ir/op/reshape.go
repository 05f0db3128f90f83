package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// ReshapeAttr is the attribute struct of Reshape.
type ReshapeAttr struct {
	Shape []int64 `ir:"shape"` // of the result
}

// Reshape gives x another shape of as many elements, in row-major order (StableHLO reshape, aten::reshape). Any dtype.
var Reshape = define(Def[ReshapeAttr]{
	Name: "reshape", Doc: "Changes the shape, keeping the elements in row-major order.", Args: "x",
	Traits: ir.Exact,
	Infer: func(in []tensor.Type, a ReshapeAttr) ([]tensor.Type, error) {
		out := in[0].WithDims(a.Shape...)
		if err := out.Check(); err != nil {
			return nil, fail(2, "shape %v: %v", a.Shape, err)
		}
		if out.Elements() != in[0].Elements() {
			return nil, fail(1, "shape %v has %d elements, wanted the %d of %s", a.Shape, out.Elements(), in[0].Elements(), in[0])
		}
		return one(out)
	},
	Lower: func(e ir.Emitter, n *ir.Node, _ ReshapeAttr) []ir.Ref {
		return lowerTo("stablehlo.reshape")(e, n, None{})
	},
	Eval: func(in []*tensor.Tensor, _ ReshapeAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		return result(&tensor.Tensor{Type: out[0], Data: in[0].Data})
	},
	Cost: noCost[ReshapeAttr],
})
