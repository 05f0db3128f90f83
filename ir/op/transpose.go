package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// TransposeAttr is the attribute struct of Transpose.
type TransposeAttr struct {
	Perm []int64 `ir:"perm"` // for each result dimension the dimension of x
}

// Transpose permutes the dimensions of x (StableHLO transpose, aten::permute). Any dtype.
var Transpose = define(Def[TransposeAttr]{
	Name: "transpose", Doc: "Permutes the dimensions.", Args: "x",
	Traits: ir.Exact,
	Infer: func(in []tensor.Type, a TransposeAttr) ([]tensor.Type, error) {
		x := in[0]
		if len(a.Perm) != x.Rank() || !distinct(a.Perm, x.Rank()) {
			return nil, fail(1, "perm is %v, wanted every dimension of rank %d once", a.Perm, x.Rank())
		}
		return one(x.WithDims(pick(x.Dims, a.Perm)...))
	},
	Lower: func(e ir.Emitter, n *ir.Node, a TransposeAttr) []ir.Ref {
		return e.Emit(ir.HLO{Name: "stablehlo.transpose", Args: refs(e, n), Attrs: []string{"permutation = " + i64Array(a.Perm)},
			Out: []tensor.Type{n.Outs[0].Type}})
	},
	Eval: func(in []*tensor.Tensor, a TransposeAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		return result(tensor.Gather(out[0], in[0].Data, 0, pick(tensor.Strides(in[0].Dims), a.Perm)))
	},
	Cost: noCost[TransposeAttr],
})
