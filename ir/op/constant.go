package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// ConstantAttr is the attribute struct of Constant.
type ConstantAttr struct {
	Value *tensor.Tensor `ir:"value"`
}

// Constant is a literal (StableHLO constant).
var Constant = define(Def[ConstantAttr]{
	Name: "constant", Doc: "A literal tensor.",
	Traits: ir.Exact,
	Infer: func(_ []tensor.Type, a ConstantAttr) ([]tensor.Type, error) {
		if a.Value == nil {
			return nil, fail(1, "no value, wanted a literal")
		}
		return one(a.Value.Type)
	},
	Lower: func(e ir.Emitter, n *ir.Node, a ConstantAttr) []ir.Ref {
		return e.Emit(ir.HLO{Name: "stablehlo.constant", Attrs: []string{"value = " + Dense(a.Value)}, Out: []tensor.Type{a.Value.Type}})
	},
	Eval: func(_ []*tensor.Tensor, a ConstantAttr, _ []tensor.Type) ([]*tensor.Tensor, error) {
		return result(a.Value)
	},
	Cost: func(*ir.Node, ConstantAttr) ir.Cost { return ir.Cost{} },
})
