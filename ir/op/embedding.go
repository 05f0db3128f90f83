package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Embedding takes the rows of table [V, D], of any dtype, that ids name, integers of any shape (aten::embedding): the result is
// ids' shape + [D]. Ids are clamped to 0 .. V-1.
var Embedding = definePlain(Def[None]{
	Name: "embedding", Doc: "Takes rows of a table.", Args: "table ids",
	Traits: ir.Exact,
	Infer: func(in []tensor.Type, _ None) ([]tensor.Type, error) {
		switch table, ids := in[0], in[1]; {
		case table.Rank() != 2:
			return nil, fail(1, "table is %s, wanted rank 2", table)
		case !ids.DType.IsInt():
			return nil, fail(2, "ids are %s, wanted integers", ids)
		case table.Dims[0] == 0 && ids.Elements() != 0:
			return nil, fail(3, "table is %s, wanted rows as ids is not empty", table)
		}
		return inferTake(in[0], in[1], 0)
	},
	Decompose: func(b *ir.Builder, n *ir.Node, _ None) []*ir.Value { return decomposeTake(b, n, 0) },
	Eval: func(in []*tensor.Tensor, _ None, out []tensor.Type) ([]*tensor.Tensor, error) {
		return result(take(in[0], in[1], 0, out[0]))
	},
	Cost: func(n *ir.Node, _ None) ir.Cost {
		return ir.Cost{Bytes: 2*n.Outs[0].Type.Bytes() + n.Args[1].Type.Bytes()}
	},
})
