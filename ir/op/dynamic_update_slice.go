package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// DynamicUpdateSlice is x with the box at starts replaced by update (StableHLO dynamic_update_slice). update has x's dtype and rank and
// is nowhere larger; starts are 0-d integers of one dtype, one a dimension, clamped so that the box lies within x.
var DynamicUpdateSlice = definePlain(Def[None]{
	Name: "dynamic_update_slice", Doc: "Replaces a box of a tensor at a computed place.", Args: "x update starts...",
	Traits: ir.Exact,
	Infer:  inferDynamicUpdateSlice, Lower: lowerTo("stablehlo.dynamic_update_slice"), Eval: evalDynamicUpdateSlice,
	// The update is done in place where x is donated or dead.
	Cost: func(n *ir.Node, _ None) ir.Cost { return ir.Cost{Bytes: 2 * n.Args[1].Type.Bytes()} },
})

// inferDynamicUpdateSlice checks the update in 1 and 2, the starts in 3 and 4.
func inferDynamicUpdateSlice(in []tensor.Type, _ None) ([]tensor.Type, error) {
	x, u, starts := in[0], in[1], in[2:]
	if u.DType != x.DType || u.Rank() != x.Rank() {
		return nil, fail(1, "update is %s, wanted dtype %s and rank %d as x", u, x.DType, x.Rank())
	}
	for i := range u.Dims {
		if u.Dims[i] > x.Dims[i] {
			return nil, fail(2, "update dimension %d is %d, wanted at most %d", i, u.Dims[i], x.Dims[i])
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
	return one(x)
}

// evalDynamicUpdateSlice writes into a copy of x.
func evalDynamicUpdateSlice(in []*tensor.Tensor, _ None, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, u := in[0], in[1]
	strides := tensor.Strides(x.Dims)
	offset := int64(0)
	for d, s := range in[2:] {
		offset += clampIndex(s, 0, x.Dims[d]-u.Dims[d]) * strides[d]
	}
	y := &tensor.Tensor{Type: out[0], Data: append([]byte(nil), x.Data...)}
	size := int64(x.DType.Size())
	from := int64(0)
	walk(u.Dims, func(ix []int64) {
		at := offset
		for d, i := range ix {
			at += i * strides[d]
		}
		copy(y.Data[at*size:(at+1)*size], u.Data[from:])
		from += size
	})
	return result(y)
}

// clampIndex is element 0 of an integer tensor, moved into [lo, hi].
func clampIndex(s *tensor.Tensor, lo, hi int64) int64 {
	v := s.Ints()[0]
	if s.DType == tensor.U64 && v < 0 {
		return hi
	}
	return min(max(v, lo), hi)
}
