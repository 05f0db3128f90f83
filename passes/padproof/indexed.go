package padproof

import (
	"slices"

	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// others are the dimensions of a rank in none of the lists.
func others(rank int, lists ...[]int64) []int64 {
	var out []int64
	for d := range int64(rank) {
		if !slices.Contains(slices.Concat(lists...), d) {
			out = append(out, d)
		}
	}
	return out
}

// gather reads, for an index of padding, elements that reach padding of the result alone. What it reads for a real index is the same where
// the dimension that is indexed is not padded, as an index beyond the end is moved into it, or where all real indices are known to lie inside.
func gather(a *application) ([]state, error) {
	x, y := op.Gather.Attr(a.large), op.Gather.Attr(a.small)
	if !sameButSizes(x, y, "SliceSizes") {
		return nil, a.sameAttrs()
	}
	ids := a.large.Args[1].Type
	batch := others(ids.Rank(), []int64{x.IndexVectorDim})
	out := make(state, a.large.Outs[0].Type.Rank())
	for i, d := range others(len(out), x.OffsetDims) {
		s := a.in[1][batch[i]]
		if k := slices.Index(x.StartIndicesBatchingDims, batch[i]); k >= 0 {
			var err error
			if s, err = a.joinAxes(a.in[0][x.OperandBatchingDims[k]], s, "a batch dimension"); err != nil {
				return nil, err
			}
		}
		out[d] = s
	}
	windows := others(len(a.in[0]), x.CollapsedSliceDims, x.OperandBatchingDims)
	for d := range a.in[0] {
		if slices.Contains(x.OperandBatchingDims, int64(d)) {
			continue
		}
		box, have := factor{x.SliceSizes[d], y.SliceSizes[d]}, a.dims(0, d)
		s := a.in[0][d]
		switch {
		case box == have: // it can lie at 0 only
		case slices.Contains(x.StartIndexMap, int64(d)) && s.isPrefix() && box.equal() && a.inside(slices.Index(x.StartIndexMap, int64(d)), x.IndexVectorDim, have.small-box.small):
			s = prefix(box.large, box.small)
		case slices.Contains(x.StartIndexMap, int64(d)):
			if err := a.wantEqual(0, d, "it takes elements at computed places"); err != nil {
				return nil, err
			}
			if !box.equal() {
				return nil, a.sameAttrs()
			}
			s = prefix(box.large, box.small)
		case s.uniform:
			s = constantAlong(box.large, box.small)
		case !s.isPrefix():
			return nil, a.refuse("dimension %d has padding among its elements", d)
		default:
			s = prefix(box.large, box.small)
		}
		if i := slices.Index(windows, int64(d)); i >= 0 {
			out[x.OffsetDims[i]] = s
		}
	}
	return []state{out}, nil
}

// inside reports that component k of all indices of the small program is known to be from 0 to most, so that none is moved in either program.
func (a *application) inside(k int, vector, most int64) bool {
	ids := a.value(a.small.Args[1])
	if ids == nil {
		return false
	}
	step, components := int64(1), int64(1)
	if vector < int64(ids.Rank()) {
		step, components = tensor.Strides(ids.Dims)[vector], ids.Dims[vector]
	}
	for i, v := range ids.Ints() {
		if int64(i)/step%components == int64(k) && (v < 0 || v > most) {
			return false
		}
	}
	return true
}

// scatter must not be told by padding where to write.
func scatter(a *application) ([]state, error) {
	if err := a.sameAttrs(); err != nil {
		return nil, err
	}
	x := op.Scatter.Attr(a.large)
	out := slices.Clone(a.in[0])
	ids := a.large.Args[1].Type
	batch := others(ids.Rank(), []int64{x.IndexVectorDim})
	for i, e := range others(len(a.in[2]), x.UpdateWindowDims) {
		k := slices.Index(x.ScatterIndicesBatchingDims, batch[i])
		if k < 0 {
			if err := a.wantEqual(2, int(e), "it writes to computed places"); err != nil {
				return nil, err
			}
			continue
		}
		d := x.InputBatchingDims[k]
		for _, s := range []axis{a.in[1][batch[i]], a.in[2][e]} {
			var err error
			if out[d], err = a.joinAxes(out[d], s, "a batch dimension"); err != nil {
				return nil, err
			}
		}
	}
	for i, d := range others(len(out), x.InsertedWindowDims, x.InputBatchingDims) {
		s, err := a.update(0, int(d), 2, int(x.UpdateWindowDims[i]))
		if err != nil {
			return nil, err
		}
		out[d] = s
	}
	for _, d := range x.InsertedWindowDims {
		if err := a.wantEqual(0, int(d), "it replaces elements at a computed place"); err != nil {
			return nil, err
		}
	}
	return []state{out}, nil
}
