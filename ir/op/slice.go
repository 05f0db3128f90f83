package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// SliceAttr is the attribute struct of Slice. Each list has one entry a dimension of x.
type SliceAttr struct {
	Start  []int64 `ir:"start"`  // first index
	Limit  []int64 `ir:"limit"`  // one past the last index
	Stride []int64 `ir:"stride"` // 1 or more
}

// Slice takes every Stride-th element from Start up to Limit along every dimension (StableHLO slice, aten::slice). Any dtype.
var Slice = define(Def[SliceAttr]{
	Name: "slice", Doc: "Takes a strided box out of a tensor.", Args: "x",
	Traits: ir.Exact,
	Infer:  inferSlice,
	Lower: func(e ir.Emitter, n *ir.Node, a SliceAttr) []ir.Ref {
		return e.Emit(ir.HLO{Name: "stablehlo.slice", Args: refs(e, n), Attrs: []string{"limit_indices = " + i64Array(a.Limit),
			"start_indices = " + i64Array(a.Start), "strides = " + i64Array(a.Stride)}, Out: []tensor.Type{n.Outs[0].Type}})
	},
	Eval: func(in []*tensor.Tensor, a SliceAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		strides := tensor.Strides(in[0].Dims)
		offset := int64(0)
		for d := range strides {
			offset += a.Start[d] * strides[d]
			strides[d] *= a.Stride[d]
		}
		return result(tensor.Gather(out[0], in[0].Data, offset, strides))
	},
	Cost: func(n *ir.Node, _ SliceAttr) ir.Cost { return ir.Cost{Bytes: 2 * n.Outs[0].Type.Bytes()} },
})

// inferSlice checks lengths in 1, bounds in 2 and strides in 3.
func inferSlice(in []tensor.Type, a SliceAttr) ([]tensor.Type, error) {
	x := in[0]
	if len(a.Start) != x.Rank() || len(a.Limit) != x.Rank() || len(a.Stride) != x.Rank() {
		return nil, fail(1, "%d starts, %d limits and %d strides, wanted %d of each", len(a.Start), len(a.Limit), len(a.Stride), x.Rank())
	}
	dims := make([]int64, x.Rank())
	for i, extent := range x.Dims {
		start, limit, stride := a.Start[i], a.Limit[i], a.Stride[i]
		if start < 0 || start > limit || limit > extent {
			return nil, fail(2, "dimension %d: start %d and limit %d, wanted 0 <= start <= limit <= %d", i, start, limit, extent)
		}
		if stride < 1 {
			return nil, fail(3, "dimension %d: stride %d, wanted 1 or more", i, stride)
		}
		dims[i] = (limit-start-1)/stride + 1
		if limit == start {
			dims[i] = 0
		}
	}
	return one(x.WithDims(dims...))
}
