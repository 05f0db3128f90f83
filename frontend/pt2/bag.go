package pt2

import (
	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// bagRules look up rows of a table and combine them by bags of consecutive indices.
var bagRules = map[string]rule{
	"embedding_bag":               values(embeddingBag),
	"embedding_bag.padding_idx":   values(embeddingBag),
	"_embedding_bag":              values(embeddingBag),
	"_embedding_bag_forward_only": values(embeddingBag),
}

// Modes of bags.
const (
	bagSum  = 0
	bagMean = 1
	bagMax  = 2
)

// embeddingBag sums, averages or takes the maximum of the rows of each bag; bag k begins at offsets[k]. Rows of padding_idx count for nothing,
// and a bag without rows is 0. The further results are the bag of every index, the number of rows of every bag, and the rows of maxima
// (aten/src/ATen/native/EmbeddingBag.cpp), in the shapes that the archive records.
func embeddingBag(c *call) []*ir.Value {
	w, ids, offsets := c.val("weight"), c.val("indices"), c.val("offsets")
	if w.Type.Rank() != 2 || ids.Type.Rank() != 1 || offsets.Type.Rank() != 1 {
		c.failf("weight is %s, indices %s, offsets %s, wanted ranks 2, 1 and 1", w.Type, ids.Type, offsets.Type)
	}
	mode := c.int("mode")
	if mode < bagSum || mode > bagMax {
		c.failf("mode is %d, wanted 0 to 2", mode)
	}
	n, bags, width := ids.Type.Dims[0], offsets.Type.Dims[0], w.Type.Dims[1]
	if c.bool("include_last_offset") {
		if bags < 1 {
			c.failf("offsets are %s, wanted one at least", offsets.Type)
		}
		bags--
	}
	f := fb{c.b, c}
	d := wide(w.Type.DType)
	rows := c.cast(op.Take.Make(c.b, op.TakeAttr{Axis: 0}, w, ids), d)
	if s := c.opt("per_sample_weights"); s != nil {
		if mode != bagSum || s.Type.Rank() != 1 || s.Type.Dims[0] != n {
			c.failf("per_sample_weights are %s in mode %d, wanted %d in mode 0", s.Type, mode, n)
		}
		rows = f.mul(rows, along(c.b, c.cast(s, d), rows.Type.Dims, 0))
	}
	counts := boolSplat(c.b, []int64{n}, true)
	if c.schema.param("padding_idx") != nil && c.has("padding_idx") {
		pad := c.int("padding_idx")
		if pad < 0 && c.op == "embedding_bag.padding_idx" {
			pad += w.Type.Dims[0]
		}
		counts = compare(c.b, op.NE, ids, like(c.b, ids, intScalar(pad)))
	}
	// Every offset begins a bag, so the bag of an index is the number of offsets up to it, less one.
	begun := c.scatterRows(op.Sum, splat(c.b, tensor.I32, intScalar(0), []int64{n + 1}), c.cast(slice(c.b, offsets, 0, 0, bags, 1), tensor.I64), splat(c.b, tensor.I32, intScalar(1), []int64{bags}))
	bag := op.CumSum.Make(c.b, op.CumSumAttr{Axis: 0}, begun)
	bag = c.cast(op.Sub.Make(c.b, slice(c.b, bag, 0, 0, n, 1), splat(c.b, tensor.I32, intScalar(1), []int64{n})), tensor.I64)

	kind := op.Sum
	if mode == bagMax {
		kind = op.Max
	}
	none := neutral(kind, d)
	live := op.Select.Make(c.b, along(c.b, counts, rows.Type.Dims, 0), rows, like(c.b, rows, none))
	y := c.scatterRows(kind, splat(c.b, d, none, []int64{bags, width}), bag, live)
	size := c.scatterRows(op.Sum, splat(c.b, tensor.I64, intScalar(0), []int64{bags}), bag, c.cast(counts, tensor.I64))
	empty := along(c.b, compare(c.b, op.EQ, size, like(c.b, size, intScalar(0))), y.Type.Dims, 0)
	if mode == bagMean {
		y = op.Div.Make(c.b, y, along(c.b, c.cast(size, d), y.Type.Dims, 0))
	}
	y = op.Select.Make(c.b, empty, f.c(y, 0), y)

	top := size
	if mode == bagMax {
		// The first place whose row is the bag's maximum.
		place := counting(c.b, tensor.I64, rows.Type.Dims, 0)
		hit := compare(c.b, op.EQ, live, op.Take.Make(c.b, op.TakeAttr{Axis: 0}, y, bag))
		hit = op.And.Make(c.b, hit, along(c.b, counts, rows.Type.Dims, 0))
		far := like(c.b, place, intScalar(n))
		first := c.scatterRows(op.Min, splat(c.b, tensor.I64, intScalar(n), y.Type.Dims), bag, op.Select.Make(c.b, hit, place, far))
		none := compare(c.b, op.EQ, first, like(c.b, first, intScalar(n)))
		top = op.Select.Make(c.b, none, like(c.b, first, intScalar(0)), op.Take.Make(c.b, op.TakeAttr{Axis: 0}, c.cast(ids, tensor.I64), first))
	}
	if mode == bagSum { // torch does not count there
		size = like(c.b, size, intScalar(0))
		top = size
	}
	out := []*ir.Value{c.cast(y, w.Type.DType)}
	for i, v := range []*ir.Value{bag, size, top} {
		out = append(out, c.fitted(i+1, v))
	}
	return out
}

// fitted is v in the dtype that the archive records for result i, cut or filled with zeros to the first dimension that it records.
func (c *call) fitted(i int, v *ir.Value) *ir.Value {
	v = c.cast(v, c.recorded(i, v))
	names := outputNames(c.node)
	if i >= len(names) {
		return v
	}
	meta, ok := c.im.g.TensorValues[names[i]]
	if !ok || len(meta.Sizes) != v.Type.Rank() {
		return v
	}
	t, _, err := c.im.typeOf(&meta)
	if err != nil {
		c.failf("%v", err)
	}
	high := make([]int64, v.Type.Rank())
	high[0] = t.Dims[0] - v.Type.Dims[0]
	if high[0] == 0 {
		return v
	}
	return op.Pad.Make(c.b, op.PadAttr{Low: make([]int64, len(high)), High: high, Interior: make([]int64, len(high))}, v, zero(c.b, v.Type.DType))
}

// scatterRows combines the elements or rows of v with those of x at a 1-d index.
func (c *call) scatterRows(kind op.Reducer, x, ids, v *ir.Value) *ir.Value {
	a := op.ScatterAttr{InsertedWindowDims: []int64{0}, ScatterDimsToOperandDims: []int64{0}, IndexVectorDim: 1, Kind: kind}
	for d := 1; d < v.Type.Rank(); d++ {
		a.UpdateWindowDims = append(a.UpdateWindowDims, int64(d))
	}
	return op.Scatter.Make(c.b, a, x, reshape(c.b, ids, []int64{ids.Type.Elements(), 1}), v)
}
