package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// searchRules find values among others.
var searchRules = map[string]rule{
	"bucketize.Tensor": value(func(c *call) *ir.Value {
		return c.search(c.val("boundaries"), c.val("self"), c.bool("right"), c.bool("out_int32"))
	}),
	"searchsorted.Tensor": value(searchSorted),
	"isin.Tensor_Tensor":  value(isIn),
}

// search counts the boundaries, sorted along the last dimension, that lie before each value.
func (c *call) search(bounds, x *ir.Value, right, small bool) *ir.Value {
	k := bounds.Type.Rank()
	d := resultType(tensorOperand(bounds), tensorOperand(x))
	bounds, x = c.cast(bounds, d), c.cast(x, d)
	n := bounds.Type.Dims[k-1]
	full := append(slices.Clone(x.Type.Dims), n)
	at := []int64{int64(len(full) - 1)}
	if k > 1 { // one list of boundaries a row
		at = append(iotaInts(k-1), int64(len(full)-1))
	}
	bs := op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: full, Dims: at}, bounds)
	xs := op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: full, Dims: iotaInts(len(full) - 1)}, x)
	dir := op.LT
	if right {
		dir = op.LE
	}
	out := tensor.I64
	if small {
		out = tensor.I32
	}
	before := compare(c.b, dir, bs, xs)
	if d.IsFloat() { // NaN comes after everything
		before = op.Or.Make(c.b, before, compare(c.b, op.NE, xs, xs))
	}
	return reduce(c.b, op.Sum, c.cast(before, out), []int64{int64(len(full) - 1)}, false)
}

// searchSorted is search with one sequence for all values, or one for each row.
func searchSorted(c *call) *ir.Value {
	seq, x := c.val("sorted_sequence"), c.val("self")
	if c.has("sorter") {
		c.unsupported("a sorter")
	}
	if seq.Type.Rank() == 0 || seq.Type.Rank() > 1 && seq.Type.Rank() != x.Type.Rank() {
		c.failf("the sequence is %s for values %s", seq.Type, x.Type)
	}
	return c.search(seq, x, c.bool("right") || c.str("side") == "right", c.bool("out_int32"))
}

// isIn compares every element with every test element.
func isIn(c *call) *ir.Value {
	x, set := c.val("elements"), c.val("test_elements")
	d := resultType(tensorOperand(x), tensorOperand(set))
	n := set.Type.Elements()
	full := append(slices.Clone(x.Type.Dims), n)
	xs := op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: full, Dims: iotaInts(len(full) - 1)}, c.cast(x, d))
	ys := along(c.b, reshape(c.b, c.cast(set, d), []int64{n}), full, len(full)-1)
	hit := reduce(c.b, op.AnyTrue, compare(c.b, op.EQ, xs, ys), []int64{int64(len(full) - 1)}, false)
	if c.bool("invert") {
		return op.Not.Make(c.b, hit)
	}
	return hit
}
