package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// nonzeroRules give places of elements, or repeat elements, as often as the data says, up to a number that is known.
var nonzeroRules = map[string]rule{
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
		return splat(c.b, tensor.I64, intScalar(0), []int64{n, 0})
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
