package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// indexRules read and write elements at computed places. Negative indices count from the end where torch says so; other indices out
// of range are errors in torch and undefined here.
var indexRules = map[string]rule{
	"index.Tensor":          value(func(c *call) *ir.Value { return c.indexAt(c.val("self"), c.wrapIndex) }),
	"_unsafe_index.Tensor":  value(func(c *call) *ir.Value { return c.indexAt(c.val("self"), c.wrapIndex) }),
	"_unsafe_masked_index":  value(maskedIndex),
	"index_select":          value(func(c *call) *ir.Value { return indexSelect(c) }),
	"gather":                value(gather),
	"take_along_dim":        value(takeAlong),
	"take":                  value(take),
	"scatter.src":           value(func(c *call) *ir.Value { return c.scatter(op.Set, "src") }),
	"scatter.value":         value(func(c *call) *ir.Value { return c.scatter(op.Set, "value") }),
	"scatter_add":           value(func(c *call) *ir.Value { return c.scatter(op.Sum, "src") }),
	"scatter.reduce":        value(func(c *call) *ir.Value { return c.scatter(c.reducer("reduce"), "src") }),
	"scatter.value_reduce":  value(func(c *call) *ir.Value { return c.scatter(c.reducer("reduce"), "value") }),
	"scatter_reduce.two":    value(scatterReduce),
	"index_copy":            value(func(c *call) *ir.Value { return c.indexWrite(op.Set, "source", 1) }),
	"index_add":             value(func(c *call) *ir.Value { return c.indexWrite(op.Sum, "source", c.float("alpha")) }),
	"index_fill.int_Scalar": value(indexFill),
	"index_fill.int_Tensor": value(indexFill),
	"index_put":             value(indexPut),
	"_unsafe_index_put":     value(indexPut),
	"put":                   value(put),
	"masked_scatter":        value(maskedScatter),
	"_unsafe_masked_index_put_accumulate": value(func(c *call) *ir.Value {
		v := c.val("values")
		kept := op.BroadcastTo(c.b, c.cast(c.val("mask"), tensor.Bool), v.Type.Dims)
		return c.indexPut(op.Select.Make(c.b, kept, v, likeF(c.b, v, 0)), true, c.clampIndex)
	}),
}

// wrapIndex counts negative indices from the end of n elements.
func (c *call) wrapIndex(ids *ir.Value, n int64) *ir.Value {
	if ids.Type.DType.IsUnsigned() {
		return ids
	}
	neg := compare(c.b, op.LT, ids, like(c.b, ids, intScalar(0)))
	return op.Select.Make(c.b, neg, op.Add.Make(c.b, ids, like(c.b, ids, intScalar(n))), ids)
}

// wrapWithin is wrapIndex for a dimension whose extent e the data decides, told by its largest size n; bound is for the others.
func (c *call) wrapWithin(e extent, n int64, bound func(*ir.Value, int64) *ir.Value) func(*ir.Value, int64) *ir.Value {
	return func(ids *ir.Value, size int64) *ir.Value {
		if size != n {
			return bound(ids, size)
		}
		ids = c.cast(ids, tensor.I64)
		neg := compare(c.b, op.LT, ids, like(c.b, ids, intScalar(0)))
		last := op.Mul.Make(c.b, e.count, intConst(c.b, tensor.I64, e.scale))
		return op.Select.Make(c.b, neg, op.Add.Make(c.b, ids, op.BroadcastTo(c.b, last, ids.Type.Dims)), ids)
	}
}

// clampIndex is wrapIndex with indices out of range taken to the ends.
func (c *call) clampIndex(ids *ir.Value, n int64) *ir.Value {
	if n == 0 {
		return ids
	}
	return c.wrapIndex(c.clampTo(ids, intScalar(-n), intScalar(n-1)), n)
}

// advanced is a list of index tensors: index i for dimension i of x; nil entries and the rest are whole dimensions.
type advanced struct {
	dims []int64     // the indexed dimensions of x, ascending
	ids  []*ir.Value // one a dimension, wrapped, broadcast to one shape
	at   int         // where the index shape stands in the result
}

// advancedIndex reads the indices argument; bound brings those of a dimension of n elements to 0 to n-1. Masks are refused: the result's shape
// depends on them.
func (c *call) advancedIndex(x tensor.Type, bound func(ids *ir.Value, n int64) *ir.Value) advanced {
	var a advanced
	refs := c.refs("indices")
	if len(refs) > x.Rank() {
		c.failf("%d indices for rank %d", len(refs), x.Rank())
	}
	var ops []operand
	for d, r := range refs {
		if r == nil {
			continue
		}
		v := r.read(c.b)
		if v.Type.DType == tensor.Bool || v.Type.DType == tensor.U8 {
			c.unsupported("indexing by a mask: the number of elements depends on the data")
		}
		if !v.Type.DType.IsInt() {
			c.failf("index %d is %s, wanted integers", d, v.Type)
		}
		a.dims = append(a.dims, int64(d))
		ops = append(ops, tensorOperand(c.cast(bound(v, x.Dims[d]), tensor.I64)))
	}
	if len(ops) == 0 {
		return a
	}
	shape := c.broadcastDims(ops...)
	for _, o := range ops {
		a.ids = append(a.ids, op.BroadcastTo(c.b, o.x, shape))
	}
	if n := len(a.dims); a.dims[n-1]-a.dims[0] == int64(n-1) { // next to each other: the result's indices stand in their place
		a.at = int(a.dims[0])
	}
	return a
}

// vectors joins the index tensors along a new last dimension.
func (a *advanced) vectors(b *ir.Builder) *ir.Value {
	if len(a.ids) == 1 {
		return a.ids[0] // the index vector dimension may be implicit
	}
	parts := make([]*ir.Value, len(a.ids))
	for i, v := range a.ids {
		parts[i] = reshape(b, v, append(slices.Clone(v.Type.Dims), 1))
	}
	return concat(b, parts[0].Type.Rank()-1, parts...)
}

// windowDims are the places of x's whole dimensions in a result of index shape and whole dimensions.
func (a *advanced) windowDims(rank int) []int64 {
	n := a.ids[0].Type.Rank()
	var out []int64
	for i := range rank - len(a.dims) {
		if i < a.at {
			out = append(out, int64(i))
		} else {
			out = append(out, int64(i+n))
		}
	}
	return out
}

// indexAt is x[ids, ...]: one index tensor takes slices, several take the elements where they meet.
func (c *call) indexAt(x *ir.Value, bound func(ids *ir.Value, n int64) *ir.Value) *ir.Value {
	if mask, at := c.soleMask(); mask != nil {
		return c.masked(x, mask, at)
	}
	e, open := c.extentOf(x)
	if open && e.axis >= 0 {
		bound = c.wrapWithin(e, x.Type.Dims[e.axis], bound)
	}
	a := c.advancedIndex(x.Type, bound)
	if len(a.dims) == 0 {
		return x
	}
	if open && slices.Contains(a.dims, int64(e.axis)) { // indices name elements that are meant
		x = c.wholeAs(x)
	}
	if len(a.dims) == 1 {
		return op.Take.Make(c.b, op.TakeAttr{Axis: a.dims[0]}, x, a.ids[0])
	}
	sizes := slices.Clone(x.Type.Dims)
	for _, d := range a.dims {
		sizes[d] = 1
	}
	return op.Gather.Make(c.b, op.GatherAttr{OffsetDims: a.windowDims(x.Type.Rank()), CollapsedSliceDims: a.dims, StartIndexMap: a.dims,
		IndexVectorDim: int64(a.ids[0].Type.Rank()), SliceSizes: sizes}, x, a.vectors(c.b))
}

// maskedIndex is x[ids, ...] where the mask is set, and fill elsewhere, where indices may be out of range.
func maskedIndex(c *call) *ir.Value {
	x := c.val("self")
	fill := constant(c.b, x.Type.DType, c.scalar("fill"))
	if x.Type.Elements() == 0 {
		return op.BroadcastTo(c.b, fill, c.resultType().Dims)
	}
	y := c.indexAt(x, c.clampIndex)
	mask := op.BroadcastTo(c.b, c.cast(c.val("mask"), tensor.Bool), y.Type.Dims)
	return op.Select.Make(c.b, mask, y, op.BroadcastTo(c.b, fill, y.Type.Dims))
}

// indexPut writes values at index tensors, or through a mask of x's leading dimensions.
func indexPut(c *call) *ir.Value {
	return c.indexPut(c.val("values"), c.bool("accumulate"), c.wrapIndex)
}

// dropBeyond takes indices beyond an extent out of range, where a scatter drops them, and with them the elements of v, which it gives.
func (c *call) dropBeyond(a *advanced, x, v *ir.Value) *ir.Value {
	for i, ids := range a.ids {
		e, open := c.extentOf(ids)
		if !open || e.axis < 0 {
			continue
		}
		a.ids[i] = c.beyondTo(ids, e, x.Type.Dims[a.dims[i]])
		if s, open := c.extentOf(v); open && s.axis == v.Type.Rank()-len(ids.Type.Dims)-(x.Type.Rank()-len(a.dims))+a.at+e.axis {
			v = c.wholeAs(v)
		}
	}
	return v
}

// put writes source at an index of the flattened tensor, or adds it.
func put(c *call) *ir.Value {
	x, ids, src := c.val("self"), c.val("index"), c.val("source")
	n, k := x.Type.Elements(), ids.Type.Elements()
	if src.Type.Elements() != k {
		c.failf("index is %s, source %s, wanted as many elements", ids.Type, src.Type)
	}
	kind := op.Set
	if c.bool("accumulate") {
		kind = op.Sum
	}
	ids = c.wrapIndex(reshape(c.b, ids, []int64{k}), n)
	src = reshape(c.b, c.cast(src, x.Type.DType), []int64{k})
	return reshape(c.b, c.scatterAlong(kind, reshape(c.b, x, []int64{n}), ids, src, 0), x.Type.Dims)
}

// indexPut writes v at index tensors, or adds it.
func (c *call) indexPut(v *ir.Value, accumulate bool, bound func(ids *ir.Value, n int64) *ir.Value) *ir.Value {
	x := c.val("self")
	v = c.cast(v, x.Type.DType)
	if y := c.maskedPut(x, v, accumulate); y != nil {
		return y
	}
	a := c.advancedIndex(x.Type, bound)
	if len(a.dims) == 0 {
		v = op.BroadcastTo(c.b, v, x.Type.Dims)
		if accumulate {
			return op.Add.Make(c.b, x, v)
		}
		return v
	}
	v = c.dropBeyond(&a, x, v)
	rank := x.Type.Rank()
	window := a.windowDims(rank)
	dims := make([]int64, len(window)+a.ids[0].Type.Rank())
	whole := slices.DeleteFunc(iotaInts(rank), func(d int64) bool { return slices.Contains(a.dims, d) })
	for i, d := range window {
		dims[d] = x.Type.Dims[whole[i]]
	}
	k := 0
	for d := range dims {
		if !slices.Contains(window, int64(d)) {
			dims[d] = a.ids[0].Type.Dims[k]
			k++
		}
	}
	if v.Type.Rank() > len(dims) { // leading dimensions of extent 1 may be left over
		v = reshape(c.b, v, v.Type.Dims[v.Type.Rank()-len(dims):])
	}
	v = op.BroadcastTo(c.b, v, dims)
	if !accumulate && a.ids[0].Type.Elements() == 1 {
		starts := make([]*ir.Value, rank)
		update := slices.Clone(x.Type.Dims)
		for d := range starts {
			starts[d] = intConst(c.b, tensor.I64, 0)
		}
		for i, d := range a.dims {
			starts[d], update[d] = reshape(c.b, a.ids[i], nil), 1
		}
		if a.at == 0 || int64(a.at) == a.dims[0] {
			return op.DynamicUpdateSlice.Make(c.b, append([]*ir.Value{x, reshape(c.b, v, update)}, starts...)...)
		}
	}
	s := op.ScatterAttr{UpdateWindowDims: window, InsertedWindowDims: a.dims, ScatterDimsToOperandDims: a.dims,
		IndexVectorDim: int64(a.ids[0].Type.Rank()), Kind: op.Set}
	if accumulate {
		s.Kind = op.Sum
	}
	return c.scattered(s, x, a.vectors(c.b), v)
}

// scattered is op.Scatter, of bools with sums as or and products as and.
func (c *call) scattered(a op.ScatterAttr, x, ids, v *ir.Value) *ir.Value {
	if x.Type.DType != tensor.Bool || a.Kind == op.Set {
		return op.Scatter.Make(c.b, a, x, ids, v)
	}
	a.Kind = map[op.Reducer]op.Reducer{op.Sum: op.Max, op.Max: op.Max, op.Prod: op.Min, op.Min: op.Min}[a.Kind]
	return c.cast(op.Scatter.Make(c.b, a, c.cast(x, tensor.I32), ids, c.cast(v, tensor.I32)), tensor.Bool)
}

// maskedPut is indexPut with one mask and values that are the same for all its elements; nil where it is something else.
func (c *call) maskedPut(x, v *ir.Value, accumulate bool) *ir.Value {
	mask, at := c.soleMask()
	if mask == nil {
		return nil
	}
	n := mask.Type.Rank()
	if at+n > x.Type.Rank() {
		c.failf("the mask is %s for %s", mask.Type, x.Type)
	}
	rest := x.Type.Rank() - at - n
	if v.Type.Rank() == at+1+rest {
		e, open := c.extentOf(v)
		known := c.known(mask)
		switch {
		case open && e.axis == at && e.scale == 1:
			return c.maskedRows(x, v, mask, at, accumulate)
		case known != nil && v.Type.Dims[at] == trueCount(known):
			if v.Type.Elements() == 0 {
				return x
			}
			return c.maskedRows(x, v, mask, at, accumulate)
		}
	}
	if v.Type.Rank() > rest && !(v.Type.Rank() == rest+1 && v.Type.Dims[0] == 1) {
		c.unsupported("values by a mask: their number depends on the data")
	}
	if v.Type.Rank() == rest+1 {
		v = reshape(c.b, v, v.Type.Dims[1:])
	}
	at64 := make([]int64, n)
	for i := range at64 {
		at64[i] = int64(at + i)
	}
	m := op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: x.Type.Dims, Dims: at64}, mask)
	v = op.BroadcastTo(c.b, v, x.Type.Dims)
	if accumulate {
		v = op.Add.Make(c.b, x, v)
	}
	return op.Select.Make(c.b, m, v, x)
}

// indexSelect takes slices along dim at a 1-d index; negative indices are an error in torch.
func indexSelect(c *call) *ir.Value {
	x, ids := c.val("self"), c.val("index")
	axis := c.axis("dim", x.Type.Rank())
	if x.Type.Rank() == 0 {
		return reshape(c.b, x, nil)
	}
	return op.Take.Make(c.b, op.TakeAttr{Axis: int64(axis)}, x, reshape(c.b, ids, []int64{ids.Type.Elements()}))
}

// gather is y[i, j, k] = x[i, ids[i, j, k], k] for dim 1.
func gather(c *call) *ir.Value {
	x, ids := c.val("self"), c.val("index")
	return c.gatherAlong(x, ids, c.axis("dim", x.Type.Rank()))
}

// gatherAlong is gather with x cut to the extent of ids outside axis, so that the other dimensions run together as batches.
func (c *call) gatherAlong(x, ids *ir.Value, axis int) *ir.Value {
	rank := x.Type.Rank()
	if ids.Type.Elements() == 0 {
		return splat(c.b, x.Type.DType, intScalar(0), ids.Type.Dims)
	}
	if rank == 0 || ids.Type.Rank() == 0 {
		if rank != 0 {
			return reshape(c.b, op.Take.Make(c.b, op.TakeAttr{Axis: 0}, x, ids), nil)
		}
		return op.BroadcastTo(c.b, x, ids.Type.Dims)
	}
	if ids.Type.Rank() != rank {
		c.failf("index is %s, wanted rank %d", ids.Type, rank)
	}
	if rank == 1 {
		return op.Take.Make(c.b, op.TakeAttr{Axis: 0}, x, ids)
	}
	for d := range rank { // the index may cover less
		if n := ids.Type.Dims[d]; d != axis {
			if n > x.Type.Dims[d] {
				c.failf("index is %s, self is %s", ids.Type, x.Type)
			}
			x = slice(c.b, x, d, 0, n, 1)
		}
	}
	batch := slices.DeleteFunc(iotaInts(rank), func(d int64) bool { return d == int64(axis) })
	return op.Gather.Make(c.b, op.GatherAttr{CollapsedSliceDims: []int64{int64(axis)}, OperandBatchingDims: batch, StartIndicesBatchingDims: batch,
		StartIndexMap: []int64{int64(axis)}, IndexVectorDim: int64(rank), SliceSizes: slices.Repeat([]int64{1}, rank)}, x, ids)
}

// takeAlong is gather with the other dimensions broadcast; without dim on the flattened tensor.
func takeAlong(c *call) *ir.Value {
	x, ids := c.val("self"), c.val("indices")
	if !c.has("dim") {
		x = reshape(c.b, x, []int64{x.Type.Elements()})
		ids = reshape(c.b, ids, []int64{ids.Type.Elements()})
		return c.gatherAlong(x, c.wrapIndex(ids, x.Type.Dims[0]), 0)
	}
	axis := c.axis("dim", x.Type.Rank())
	if x.Type.Rank() != ids.Type.Rank() || x.Type.Rank() == 0 {
		c.failf("indices are %s for %s, wanted one rank", ids.Type, x.Type)
	}
	xd, id := slices.Clone(x.Type.Dims), slices.Clone(ids.Type.Dims)
	n := xd[axis]
	xd[axis], id[axis] = 1, 1
	common := c.broadcastDims(operand{x: zeroOf(xd)}, operand{x: zeroOf(id)})
	xd, id = slices.Clone(common), slices.Clone(common)
	xd[axis], id[axis] = n, ids.Type.Dims[axis]
	return c.gatherAlong(op.BroadcastTo(c.b, x, xd), op.BroadcastTo(c.b, c.wrapIndex(ids, n), id), axis)
}

// take indexes the flattened tensor.
func take(c *call) *ir.Value {
	x, ids := c.val("self"), c.val("index")
	x = reshape(c.b, x, []int64{x.Type.Elements()})
	return op.Take.Make(c.b, op.TakeAttr{Axis: 0}, x, c.wrapIndex(ids, x.Type.Dims[0]))
}

// reducer is torch's word for a reduction.
func (c *call) reducer(name string) op.Reducer {
	r, ok := map[string]op.Reducer{"sum": op.Sum, "add": op.Sum, "prod": op.Prod, "multiply": op.Prod, "amax": op.Max, "amin": op.Min}[c.str(name)]
	if !ok {
		c.unsupported("reduction %q", clip(c.str(name)))
	}
	return r
}

// scatter is the inverse of gather: x[i, ids[i, j, k], k] takes src[i, j, k] for dim 1.
func (c *call) scatter(kind op.Reducer, srcArg string) *ir.Value {
	x, ids := c.val("self"), c.val("index")
	src := c.operand(srcArg)
	v := src.x
	if v == nil || v.Type.Rank() == 0 && ids.Type.Rank() > 0 {
		v = c.materialize(src, x.Type.DType, ids.Type.Dims)
	}
	return c.scatterAlong(kind, x, ids, c.cast(v, x.Type.DType), c.axis("dim", x.Type.Rank()))
}

// scatterAlong combines v into x at ids along axis. v and x may be larger than ids outside axis: only the extent of ids counts.
func (c *call) scatterAlong(kind op.Reducer, x, ids, v *ir.Value, axis int) *ir.Value {
	if x.Type.DType == tensor.Bool && kind != op.Set { // sums are or, products are and
		kind = map[op.Reducer]op.Reducer{op.Sum: op.Max, op.Max: op.Max, op.Prod: op.Min, op.Min: op.Min}[kind]
		return c.cast(c.scatterAlong(kind, c.cast(x, tensor.I32), ids, c.cast(v, tensor.I32), axis), tensor.Bool)
	}
	shape := x.Type.Dims
	if x.Type.Rank() == 0 {
		x = reshape(c.b, x, []int64{1})
	}
	if ids.Type.Rank() == 0 {
		ids, v = reshape(c.b, ids, []int64{1}), reshape(c.b, v, []int64{1})
	}
	rank := x.Type.Rank()
	if ids.Type.Rank() != rank || v.Type.Rank() != rank {
		c.failf("index is %s and src %s, wanted rank %d", ids.Type, v.Type, rank)
	}
	if ids.Type.Elements() == 0 {
		return reshape(c.b, x, shape)
	}
	full := true
	for d := range rank { // src may be larger than the index
		n := ids.Type.Dims[d]
		if n > v.Type.Dims[d] || d != axis && n > x.Type.Dims[d] {
			c.failf("index is %s, src is %s, self is %s", ids.Type, v.Type, x.Type)
		}
		v = slice(c.b, v, d, 0, n, 1)
		full = full && (d == axis || n == x.Type.Dims[d])
	}
	if full {
		batch := slices.DeleteFunc(iotaInts(rank), func(d int64) bool { return d == int64(axis) })
		y := c.scattered(op.ScatterAttr{InsertedWindowDims: []int64{int64(axis)}, InputBatchingDims: batch,
			ScatterIndicesBatchingDims: batch, ScatterDimsToOperandDims: []int64{int64(axis)}, IndexVectorDim: int64(rank), Kind: kind}, x, ids, v)
		return reshape(c.b, y, shape)
	}
	// The index covers a part of x: every dimension gets an explicit coordinate.
	coords := make([]*ir.Value, rank)
	for d := range rank {
		id := ids
		if d != axis {
			id = counting(c.b, ids.Type.DType, ids.Type.Dims, d)
		}
		coords[d] = reshape(c.b, id, append(slices.Clone(ids.Type.Dims), 1))
	}
	y := c.scattered(op.ScatterAttr{InsertedWindowDims: iotaInts(rank), ScatterDimsToOperandDims: iotaInts(rank),
		IndexVectorDim: int64(rank), Kind: kind}, x, concat(c.b, rank, coords...), v)
	return reshape(c.b, y, shape)
}

// scatterReduce combines with self's elements, or without them.
func scatterReduce(c *call) *ir.Value {
	x, ids := c.val("self"), c.val("index")
	axis := c.axis("dim", x.Type.Rank())
	src := c.cast(c.val("src"), x.Type.DType)
	if c.str("reduce") == "mean" {
		ones := likeF(c.b, src, 1)
		base, n := x, likeF(c.b, x, 1)
		if !c.bool("include_self") {
			zeros := likeF(c.b, x, 0)
			hit := c.scatterAlong(op.Sum, zeros, ids, ones, axis)
			untouched := compare(c.b, op.EQ, hit, zeros)
			base, n = op.Select.Make(c.b, untouched, x, zeros), op.Select.Make(c.b, untouched, n, zeros)
		}
		total, n := c.scatterAlong(op.Sum, base, ids, src, axis), c.scatterAlong(op.Sum, n, ids, ones, axis)
		if x.Type.DType.IsInt() {
			return floorDivision(c.b, []*ir.Value{total, n})
		}
		return op.Div.Make(c.b, total, n)
	}
	kind := c.reducer("reduce")
	if !c.bool("include_self") { // elements that get something start from the neutral one
		neutral := map[op.Reducer]scalar{op.Sum: intScalar(0), op.Prod: intScalar(1), op.Max: lowest(x.Type.DType), op.Min: highest(x.Type.DType)}[kind]
		x = c.scatterAlong(op.Set, x, ids, like(c.b, src, neutral), axis)
	}
	return c.scatterAlong(kind, x, ids, src, axis)
}

// indexWrite combines slices of source along dim at a 1-d index.
func (c *call) indexWrite(kind op.Reducer, srcArg string, alpha float64) *ir.Value {
	x := c.val("self")
	src := c.cast(c.val(srcArg), x.Type.DType)
	if alpha != 1 {
		src = op.Mul.Make(c.b, src, likeF(c.b, src, alpha))
	}
	return c.indexed(kind, x, src)
}

// indexed combines slices of src into x along dim at a 1-d index.
func (c *call) indexed(kind op.Reducer, x, src *ir.Value) *ir.Value {
	ids := c.val("index")
	shape := x.Type.Dims
	axis := c.axis("dim", x.Type.Rank())
	if e, open := c.extentOf(ids); open && e.axis >= 0 && x.Type.Rank() > 0 {
		ids = c.beyondTo(ids, e, x.Type.Dims[axis])
		if s, open := c.extentOf(src); open && s.axis == axis {
			src = c.wholeAs(src)
		}
	}
	if x.Type.Rank() == 0 {
		x, src = reshape(c.b, x, []int64{1}), reshape(c.b, src, []int64{1})
	}
	rank := x.Type.Rank()
	n := ids.Type.Elements()
	update := slices.Clone(x.Type.Dims)
	update[axis] = n
	src = reshape(c.b, src, update)
	if kind == op.Set && n == 1 {
		starts := make([]*ir.Value, rank)
		for d := range starts {
			starts[d] = intConst(c.b, ids.Type.DType, 0)
		}
		starts[axis] = reshape(c.b, ids, nil)
		return reshape(c.b, op.DynamicUpdateSlice.Make(c.b, append([]*ir.Value{x, src}, starts...)...), shape)
	}
	window := slices.DeleteFunc(iotaInts(rank), func(d int64) bool { return d == int64(axis) })
	y := c.scattered(op.ScatterAttr{UpdateWindowDims: window, InsertedWindowDims: []int64{int64(axis)},
		ScatterDimsToOperandDims: []int64{int64(axis)}, IndexVectorDim: 1, Kind: kind}, x, reshape(c.b, ids, []int64{n}), src)
	return reshape(c.b, y, shape)
}

// indexFill sets whole slices along dim to one value, by a mask of the named places.
func indexFill(c *call) *ir.Value {
	x, ids := c.val("self"), c.val("index")
	axis := c.axis("dim", x.Type.Rank())
	dims := x.Type.Dims
	if x.Type.Rank() == 0 {
		return c.materialize(c.operand("value"), x.Type.DType, nil)
	}
	n := dims[axis]
	ids = c.wrapIndex(reshape(c.b, ids, []int64{ids.Type.Elements()}), n)
	// A mask of the named places along the dimension.
	grid := []int64{n, ids.Type.Dims[0]}
	hit := compare(c.b, op.EQ, counting(c.b, ids.Type.DType, grid, 0), along(c.b, ids, grid, 1))
	mask := along(c.b, reduce(c.b, op.AnyTrue, hit, []int64{1}, false), dims, axis)
	return op.Select.Make(c.b, mask, c.materialize(c.operand("value"), x.Type.DType, dims), x)
}

// maskedScatter gives the true places of the mask the elements of source in order.
func maskedScatter(c *call) *ir.Value {
	x, src := c.val("self"), c.val("source")
	m := tensorOperand(c.cast(c.val("mask"), tensor.Bool))
	dims := c.broadcastDims(tensorOperand(x), m)
	mask := c.materialize(m, tensor.Bool, dims)
	x = op.BroadcastTo(c.b, x, dims)
	n := x.Type.Elements()
	flat := reshape(c.b, mask, []int64{n})
	if src.Type.Elements() == 0 || n == 0 {
		return x
	}
	at := op.CumSum.Make(c.b, op.CumSumAttr{Axis: 0}, c.cast(flat, tensor.I64))
	at = op.Sub.Make(c.b, at, like(c.b, at, intScalar(1))) // clamped by Take where the mask is false
	v := op.Take.Make(c.b, op.TakeAttr{Axis: 0}, reshape(c.b, c.cast(src, x.Type.DType), []int64{src.Type.Elements()}), at)
	if e, open := c.extentOf(src); open && e.axis == 0 { // the mask has no more elements than are meant
		v = c.whole(v)
	}
	return op.Select.Make(c.b, mask, reshape(c.b, v, dims), x)
}
