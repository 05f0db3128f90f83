package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// nonzeroRules give places of elements, or repeat elements, as often as the data says, up to a number that is known.
var nonzeroRules = map[string]rule{
	"nonzero":                       value(func(c *call) *ir.Value { return c.nonzero(c.val("self")) }),
	"argwhere":                      value(func(c *call) *ir.Value { return c.nonzero(c.val("self")) }),
	"nonzero_numpy":                 values(func(c *call) []*ir.Value { return c.nonzeroColumns(c.val("self")) }),
	"where":                         values(func(c *call) []*ir.Value { return c.nonzeroColumns(c.val("condition")) }),
	"masked_select":                 value(maskedSelect),
	"nonzero_static":                value(nonzeroStatic),
	"repeat_interleave.Tensor":      value(func(c *call) *ir.Value { return c.repeated(c.val("repeats")) }),
	"repeat_interleave.self_Tensor": value(repeatBy),
}

// compacted is the places of the true elements of mask [n] in order, followed by those of the others, and how many are true; all i64.
func (c *call) compacted(mask *ir.Value) (places, count *ir.Value) {
	id := counting(c.b, tensor.I64, mask.Type.Dims, 0)
	last := c.cast(op.Not.Make(c.b, mask), tensor.I32)
	places = op.Sort.MakeAll(c.b, op.SortAttr{Axis: 0, Stable: true}, last, id)[1]
	return places, reduce(c.b, op.Sum, c.cast(mask, tensor.I64), []int64{0}, false)
}

// trueRows is the places of the true elements of mask [n], with an extent as many as there are, or as many where they are known.
func (c *call) trueRows(mask *ir.Value) *ir.Value {
	if mask.Type.Elements() == 0 {
		return literal(c.b, tensor.I64, []int64{0}, nil)
	}
	if x := c.known(mask); x != nil {
		var ids []int64
		for i, on := range x.Ints() {
			if on != 0 {
				ids = append(ids, int64(i))
			}
		}
		return literal(c.b, tensor.I64, []int64{int64(len(ids))}, ids)
	}
	if e, open := c.extentOf(mask); open && e.axis >= 0 {
		mask = c.covered(mask, e, intScalar(0))
	}
	places, count := c.compacted(mask)
	if short := minOpen - places.Type.Dims[0]; short > 0 {
		places = op.Pad.Make(c.b, op.PadAttr{Low: []int64{0}, High: []int64{short}, Interior: []int64{0}}, places, zero(c.b, tensor.I64))
	}
	return c.open(places, 0, count)
}

// trueCount is how many elements of a mask are true.
func trueCount(mask *tensor.Tensor) int64 {
	n := int64(0)
	for _, on := range mask.Ints() {
		n += on
	}
	return n
}

// masked is the elements of x whose dimensions from at on are true in the mask, in order, in one dimension.
func (c *call) masked(x, mask *ir.Value, at int) *ir.Value {
	n := mask.Type.Rank()
	if at+n > x.Type.Rank() || !slices.Equal(x.Type.Dims[at:at+n], mask.Type.Dims) {
		c.failf("the mask is %s for dimension %d of %s", mask.Type, at, x.Type)
	}
	all := mask.Type.Elements()
	rows := c.trueRows(reshape(c.b, mask, []int64{all}))
	flat := slices.Concat(x.Type.Dims[:at], []int64{all}, x.Type.Dims[at+n:])
	x = reshape(c.b, x, flat)
	if e, open := c.extentOf(x); open && e.axis == at { // of which the mask names elements that are meant
		x = c.wholeAs(x)
	}
	if x.Type.Elements() == 0 || rows.Type.Elements() == 0 {
		flat[at] = rows.Type.Dims[0]
		y := splat(c.b, x.Type.DType, intScalar(0), flat)
		if e, open := c.extentOf(rows); open {
			return c.open(y, at, e.count)
		}
		return y
	}
	return op.Take.Make(c.b, op.TakeAttr{Axis: int64(at)}, x, rows)
}

// maskedRows writes the rows of v along axis at, in order, to the elements of x that the mask names, or adds them.
func (c *call) maskedRows(x, v, mask *ir.Value, at int, accumulate bool) *ir.Value {
	n := mask.Type.Elements()
	place := op.CumSum.Make(c.b, op.CumSumAttr{Axis: 0}, c.cast(reshape(c.b, mask, []int64{n}), tensor.I64))
	place = op.Sub.Make(c.b, place, like(c.b, place, intScalar(1))) // clamped by Take where the mask is false
	rows := c.whole(op.Take.Make(c.b, op.TakeAttr{Axis: int64(at)}, v, place))
	rows = op.BroadcastTo(c.b, reshape(c.b, rows, slices.Concat(v.Type.Dims[:at], mask.Type.Dims, v.Type.Dims[at+1:])), x.Type.Dims)
	if accumulate {
		rows = op.Add.Make(c.b, x, rows)
	}
	dims := make([]int64, mask.Type.Rank())
	for i := range dims {
		dims[i] = int64(at + i)
	}
	return op.Select.Make(c.b, op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: x.Type.Dims, Dims: dims}, mask), rows, x)
}

// soleMask is the mask in the argument indices where it is the only index, and its dimension; nil for anything else.
func (c *call) soleMask() (mask *ir.Value, at int) {
	for d, r := range c.refs("indices") {
		if r == nil {
			continue
		}
		if mask != nil || r.typ.DType != tensor.Bool {
			return nil, 0
		}
		mask, at = r.read(c.b), d
	}
	return mask, at
}

// nonzero is the indices of the elements that are not 0, [elements, rank].
func (c *call) nonzero(x *ir.Value) *ir.Value {
	return c.coordinates(c.trueRows(c.isTrue(reshape(c.b, x, []int64{x.Type.Elements()}))), x.Type.Dims)
}

// nonzeroColumns is nonzero by dimension; a number counts as one of dimension 1.
func (c *call) nonzeroColumns(x *ir.Value) []*ir.Value {
	if x.Type.Rank() == 0 {
		x = reshape(c.b, x, []int64{1})
	}
	at := c.nonzero(x)
	var out []*ir.Value
	for d := range x.Type.Rank() {
		out = append(out, reshape(c.b, slice(c.b, at, 1, int64(d), int64(d)+1, 1), at.Type.Dims[:1]))
	}
	return out
}

// maskedSelect is the elements where the mask is set, after both are broadcast.
func maskedSelect(c *call) *ir.Value {
	x, m := tensorOperand(c.val("self")), tensorOperand(c.isTrue(c.val("mask")))
	dims := c.broadcastDims(x, m)
	mask := c.materialize(m, tensor.Bool, dims)
	n := mask.Type.Elements()
	return c.masked(reshape(c.b, c.materialize(x, x.x.Type.DType, dims), []int64{n}), reshape(c.b, mask, []int64{n}), 0)
}

// coordinates are the indices in a tensor of dims of places in its flattened form, [places, rank].
func (c *call) coordinates(places *ir.Value, dims []int64) *ir.Value {
	n := places.Type.Dims[0]
	stride := tensor.Strides(dims)
	cols := make([]*ir.Value, len(dims))
	for d := range dims {
		v := op.Div.Make(c.b, places, like(c.b, places, intScalar(max(stride[d], 1))))
		v = op.Rem.Make(c.b, v, like(c.b, v, intScalar(max(dims[d], 1))))
		cols[d] = reshape(c.b, v, []int64{n, 1})
	}
	if len(cols) == 0 {
		none := splat(c.b, tensor.I64, intScalar(0), []int64{n, 0})
		if e, open := c.extentOf(places); open {
			return c.open(none, 0, e.count)
		}
		return none
	}
	return concat(c.b, 1, cols...)
}

// nonzeroStatic is the indices of the first size elements that are not 0, [size, rank], filled up with fill_value.
func nonzeroStatic(c *call) *ir.Value {
	x, size := c.val("self"), c.int("size")
	n := x.Type.Elements()
	dims := []int64{size, int64(x.Type.Rank())}
	if err := tensor.Make(tensor.I64, dims...).Check(); err != nil {
		c.failf("size is %d: %v", size, err)
	}
	fill := splat(c.b, tensor.I64, intScalar(c.int("fill_value")), dims)
	if n == 0 || size == 0 {
		return fill
	}
	places, count := c.compacted(c.isTrue(reshape(c.b, x, []int64{n})))
	if size > n {
		places = op.Pad.Make(c.b, op.PadAttr{Low: []int64{0}, High: []int64{size - n}, Interior: []int64{0}}, places, zero(c.b, tensor.I64))
	}
	at := c.coordinates(slice(c.b, places, 0, 0, size, 1), x.Type.Dims)
	in := compare(c.b, op.LT, counting(c.b, tensor.I64, dims, 0), op.BroadcastTo(c.b, count, dims))
	return op.Select.Make(c.b, in, at, fill)
}

// repeated is each place in repeats as often as it says, i64: as many as the argument output_size, or a constant, says.
func (c *call) repeated(repeats *ir.Value) *ir.Value {
	if repeats.Type.Rank() != 1 {
		c.failf("repeats are %s, wanted rank 1", repeats.Type)
	}
	total := int64(0)
	if c.has("output_size") {
		total = c.int("output_size")
	} else {
		known := c.known(repeats)
		if known == nil {
			c.unsupported("its result's shape depends on the data of argument repeats")
		}
		for _, n := range known.Ints() {
			if n < 0 || n > maxViewed {
				c.failf("repeats hold %d, wanted 0 to %d", n, maxViewed)
			}
			total += n
		}
	}
	if total < 0 || total > maxViewed {
		c.failf("%d repeats, wanted 0 to %d", total, maxViewed)
	}
	if repeats.Type.Dims[0] == 0 {
		return splat(c.b, tensor.I64, intScalar(0), []int64{total})
	}
	ends := op.CumSum.Make(c.b, op.CumSumAttr{Axis: 0}, c.cast(repeats, tensor.I64))
	return c.search(ends, counting(c.b, tensor.I64, []int64{total}, 0), true, false)
}

// repeatBy repeats the slices of self along dim, or the elements of the flattened self, each as often as repeats says, which may be one number
// for all.
func repeatBy(c *call) *ir.Value {
	x, repeats := c.val("self"), c.val("repeats")
	axis := 0
	if c.has("dim") {
		axis = c.axis("dim", x.Type.Rank())
	} else {
		x = reshape(c.b, x, []int64{x.Type.Elements()})
	}
	if x.Type.Rank() == 0 {
		x = reshape(c.b, x, []int64{1})
	}
	if repeats.Type.Elements() == 1 {
		repeats = op.BroadcastTo(c.b, reshape(c.b, repeats, nil), []int64{x.Type.Dims[axis]})
	}
	if repeats.Type.Rank() != 1 || repeats.Type.Dims[0] != x.Type.Dims[axis] {
		c.failf("repeats are %s for dimension %d of %s", repeats.Type, axis, x.Type)
	}
	ids := c.repeated(repeats)
	if x.Type.Elements() == 0 {
		dims := slices.Clone(x.Type.Dims)
		dims[axis] = ids.Type.Dims[0]
		return splat(c.b, x.Type.DType, intScalar(0), dims)
	}
	return op.Take.Make(c.b, op.TakeAttr{Axis: int64(axis)}, x, ids)
}
