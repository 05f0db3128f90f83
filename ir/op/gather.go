package op

import (
	"fmt"
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// GatherAttr is the attribute struct of Gather, with StableHLO's names.
type GatherAttr struct {
	OffsetDims               []int64 `ir:"offset_dims"`                 // result dimensions that run within a slice, ascending
	CollapsedSliceDims       []int64 `ir:"collapsed_slice_dims"`        // dimensions of x of slice size 1 that the result lacks, ascending
	OperandBatchingDims      []int64 `ir:"operand_batching_dims"`       // dimensions of x that run along with those of indices, ascending
	StartIndicesBatchingDims []int64 `ir:"start_indices_batching_dims"` // their partners in indices
	StartIndexMap            []int64 `ir:"start_index_map"`             // for each component of an index the dimension of x
	IndexVectorDim           int64   `ir:"index_vector_dim"`            // dimension of indices that holds the components; its rank: one component
	SliceSizes               []int64 `ir:"slice_sizes"`                 // one a dimension of x
}

// Gather takes slices of x at computed places (StableHLO gather). x is of any dtype, indices are integers; a place is clamped so that
// its slice lies within x. The result holds, for every index, one slice along OffsetDims.
var Gather = define(Def[GatherAttr]{
	Name: "gather", Doc: "Takes slices of a tensor at computed places.", Args: "x indices",
	Traits: ir.Exact,
	Infer:  inferGather, Lower: lowerGather, Eval: evalGather,
	Cost: func(n *ir.Node, _ GatherAttr) ir.Cost {
		return ir.Cost{Bytes: 2*n.Outs[0].Type.Bytes() + n.Args[1].Type.Bytes()}
	},
})

// inferGather checks indices in 1 to 6, slices in 11 to 14 and the result's dimensions in 15.
func inferGather(in []tensor.Type, a GatherAttr) ([]tensor.Type, error) {
	x, ids := in[0], in[1]
	batch, err := checkIndices(x, ids, a.StartIndexMap, a.OperandBatchingDims, a.StartIndicesBatchingDims, a.IndexVectorDim)
	if err != nil {
		return nil, err
	}
	if !ascending(a.CollapsedSliceDims, x.Rank()) || !distinct(slices.Concat(a.CollapsedSliceDims, a.OperandBatchingDims), x.Rank()) {
		return nil, fail(11, "collapsed_slice_dims %v, wanted ascending dimensions of rank %d that are not in operand_batching_dims %v",
			a.CollapsedSliceDims, x.Rank(), a.OperandBatchingDims)
	}
	if len(a.SliceSizes) != x.Rank() {
		return nil, fail(12, "%d slice_sizes, wanted %d", len(a.SliceSizes), x.Rank())
	}
	for d, n := range a.SliceSizes {
		if n < 0 || n > x.Dims[d] {
			return nil, fail(13, "slice size %d of dimension %d, wanted 0 to %d", n, d, x.Dims[d])
		}
	}
	for _, d := range slices.Concat(a.CollapsedSliceDims, a.OperandBatchingDims) {
		if a.SliceSizes[d] != 1 {
			return nil, fail(14, "slice size %d of dimension %d, wanted 1 as the result lacks it", a.SliceSizes[d], d)
		}
	}
	window := free(x.Rank(), a.CollapsedSliceDims, a.OperandBatchingDims)
	rank := len(batch) + len(window)
	if len(a.OffsetDims) != len(window) || !ascending(a.OffsetDims, rank) {
		return nil, fail(15, "offset_dims %v, wanted %d ascending dimensions of rank %d", a.OffsetDims, len(window), rank)
	}
	dims := make([]int64, rank)
	for i, d := range free(rank, a.OffsetDims) {
		dims[d] = batch[i]
	}
	for i, d := range a.OffsetDims {
		dims[d] = a.SliceSizes[window[i]]
	}
	return one(x.WithDims(dims...))
}

// checkIndices checks what gather and scatter share, ids 1 to 6, and gives the dimensions of ids but the index vector.
func checkIndices(x, ids tensor.Type, indexMap, xBatch, idsBatch []int64, vector int64) ([]int64, error) {
	if !ids.DType.IsInt() {
		return nil, fail(1, "indices are %s, wanted an integer dtype", ids)
	}
	if vector < 0 || vector > int64(ids.Rank()) {
		return nil, fail(2, "index_vector_dim %d, wanted 0 to the rank %d of indices", vector, ids.Rank())
	}
	components := int64(1)
	if vector < int64(ids.Rank()) {
		components = ids.Dims[vector]
	}
	if int64(len(indexMap)) != components {
		return nil, fail(3, "%d places in the index map, wanted %d as components of an index", len(indexMap), components)
	}
	if !ascending(xBatch, x.Rank()) || !distinct(slices.Concat(indexMap, xBatch), x.Rank()) {
		return nil, fail(4, "index map %v and batching dimensions %v, wanted distinct dimensions of rank %d", indexMap, xBatch, x.Rank())
	}
	if len(idsBatch) != len(xBatch) || !distinct(idsBatch, ids.Rank()) || slices.Contains(idsBatch, vector) {
		return nil, fail(5, "batching dimensions %v of indices, wanted %d distinct ones but the index vector's", idsBatch, len(xBatch))
	}
	for i, d := range xBatch {
		if x.Dims[d] != ids.Dims[idsBatch[i]] {
			return nil, fail(6, "batching dimensions differ: x dimension %d is %d, indices dimension %d is %d", d, x.Dims[d], idsBatch[i], ids.Dims[idsBatch[i]])
		}
	}
	return pick(ids.Dims, free(ids.Rank(), []int64{vector})), nil
}

func lowerGather(e ir.Emitter, n *ir.Node, a GatherAttr) []ir.Ref {
	numbers := fmt.Sprintf("dimension_numbers = #stablehlo.gather<offset_dims = %s, collapsed_slice_dims = %s, operand_batching_dims = %s, "+
		"start_indices_batching_dims = %s, start_index_map = %s, index_vector_dim = %d>", list(a.OffsetDims), list(a.CollapsedSliceDims),
		list(a.OperandBatchingDims), list(a.StartIndicesBatchingDims), list(a.StartIndexMap), a.IndexVectorDim)
	return e.Emit(ir.HLO{Name: "stablehlo.gather", Args: refs(e, n),
		Attrs: []string{numbers, "indices_are_sorted = false", "slice_sizes = " + i64Array(a.SliceSizes)}, Out: []tensor.Type{n.Outs[0].Type}})
}

// evalGather copies, for every index, the elements of one slice: their offsets from the slice's start are the same for all.
func evalGather(in []*tensor.Tensor, a GatherAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, y := in[0], tensor.Zeros(out[0])
	p := newPlaces(in[1], a.StartIndexMap, a.OperandBatchingDims, a.StartIndicesBatchingDims, a.IndexVectorDim)
	batch, window := free(y.Rank(), a.OffsetDims), free(x.Rank(), a.CollapsedSliceDims, a.OperandBatchingDims)
	xs, ys := tensor.Strides(x.Dims), tensor.Strides(y.Dims)
	limit := make([]int64, x.Rank())
	for d := range limit {
		limit[d] = x.Dims[d] - a.SliceSizes[d]
	}
	ext := pick(y.Dims, a.OffsetDims)
	from, to := boxOffsets(ext, pick(xs, window)), boxOffsets(ext, pick(ys, a.OffsetDims))
	start := make([]int64, x.Rank())
	size := int64(x.DType.Size())
	walk(pick(y.Dims, batch), func(ix []int64) {
		p.at(ix, start)
		xo, yo := int64(0), int64(0)
		for d := range start {
			xo += min(max(start[d], 0), limit[d]) * xs[d]
		}
		for i, d := range batch {
			yo += ix[i] * ys[d]
		}
		for i := range from {
			copy(y.Data[(yo+to[i])*size:(yo+to[i]+1)*size], x.Data[(xo+from[i])*size:])
		}
	})
	return result(y)
}

// boxOffsets are the offsets of all indices over extents, in row-major order, with the given strides.
func boxOffsets(ext, strides []int64) []int64 {
	out := make([]int64, 0, product(ext))
	walk(ext, func(ix []int64) {
		at := int64(0)
		for i := range ix {
			at += ix[i] * strides[i]
		}
		out = append(out, at)
	})
	return out
}

// places reads the index vectors of gather and scatter.
type places struct {
	ids       []int64
	strides   []int64 // of the batch dimensions of indices
	step      int64   // between components
	indexMap  []int64
	xBatch    []int64
	idsBatch  []int64 // as positions among the batch dimensions
	saturated bool    // indices are unsigned 64-bit
}

// newPlaces reads all indices; vector and the lists are as in GatherAttr.
func newPlaces(ids *tensor.Tensor, indexMap, xBatch, idsBatch []int64, vector int64) *places {
	strides := tensor.Strides(ids.Dims)
	batch := free(ids.Rank(), []int64{vector})
	p := &places{ids: ids.Ints(), strides: pick(strides, batch), indexMap: indexMap, xBatch: xBatch, saturated: ids.DType == tensor.U64}
	if vector < int64(ids.Rank()) {
		p.step = strides[vector]
	}
	for _, d := range idsBatch {
		p.idsBatch = append(p.idsBatch, int64(slices.Index(batch, d)))
	}
	return p
}

// at writes the place that batch index ix names into start, one entry a dimension of x, unclamped.
func (p *places) at(ix, start []int64) {
	clear(start)
	at := int64(0)
	for i := range ix {
		at += ix[i] * p.strides[i]
	}
	for i, d := range p.indexMap {
		start[d] = p.ids[at+int64(i)*p.step]
		if p.saturated && start[d] < 0 {
			start[d] = 1<<63 - 1
		}
	}
	for i, d := range p.xBatch {
		start[d] = ix[p.idsBatch[i]]
	}
}
