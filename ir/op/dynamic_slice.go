package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// DynamicSliceAttr is the attribute struct of DynamicSlice.
type DynamicSliceAttr struct {
	Sizes []int64 `ir:"sizes"` // of the box, one a dimension of x
}

// DynamicSlice is the box of Sizes at starts in x, of any dtype (StableHLO dynamic_slice). starts are 0-d integers of one dtype, one a
// dimension, clamped so that the box lies within x.
var DynamicSlice = define(Def[DynamicSliceAttr]{
	Name: "dynamic_slice", Doc: "Takes a box out of a tensor at a computed place.", Args: "x starts...",
	Traits: ir.Exact,
	Infer:  inferDynamicSlice,
	Lower: func(e ir.Emitter, n *ir.Node, a DynamicSliceAttr) []ir.Ref {
		return e.Emit(ir.HLO{Name: "stablehlo.dynamic_slice", Args: refs(e, n), Attrs: []string{"slice_sizes = " + i64Array(a.Sizes)},
			Out: []tensor.Type{n.Outs[0].Type}})
	},
	Eval: func(in []*tensor.Tensor, a DynamicSliceAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		strides := tensor.Strides(in[0].Dims)
		offset := int64(0)
		for d, s := range in[1:] {
			offset += clampIndex(s, 0, in[0].Dims[d]-a.Sizes[d]) * strides[d]
		}
		return result(tensor.Gather(out[0], in[0].Data, offset, strides))
	},
	Cost: func(n *ir.Node, _ DynamicSliceAttr) ir.Cost { return ir.Cost{Bytes: 2 * n.Outs[0].Type.Bytes()} },
})

// inferDynamicSlice checks the sizes in 1 and 2, the starts in 3 and 4.
func inferDynamicSlice(in []tensor.Type, a DynamicSliceAttr) ([]tensor.Type, error) {
	x, starts := in[0], in[1:]
	if len(a.Sizes) != x.Rank() {
		return nil, fail(1, "%d sizes, wanted %d", len(a.Sizes), x.Rank())
	}
	for i, n := range a.Sizes {
		if n < 0 || n > x.Dims[i] {
			return nil, fail(2, "size %d of dimension %d, wanted 0 to %d", n, i, x.Dims[i])
		}
	}
	if len(starts) != x.Rank() {
		return nil, fail(3, "%d starts, wanted %d", len(starts), x.Rank())
	}
	for i, s := range starts {
		if !s.DType.IsInt() || s.Rank() != 0 || s.DType != starts[0].DType {
			return nil, fail(4, "start %d is %s, wanted 0-d integers of one dtype", i, s)
		}
	}
	return one(x.WithDims(a.Sizes...))
}
