package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// searchRules find values among others.
var searchRules = map[string]rule{
	"bucketize.Tensor":    value(bucketize),
	"bucketize.Scalar":    value(bucketize),
	"searchsorted.Tensor": value(searchSorted),
	"searchsorted.Scalar": value(searchSorted),
	"isin.Tensor_Tensor":  value(func(c *call) *ir.Value { return c.isIn("elements", "test_elements") }),
	"isin.Tensor_Scalar":  value(func(c *call) *ir.Value { return c.isIn("elements", "test_element") }),
	"isin.Scalar_Tensor":  value(func(c *call) *ir.Value { return c.isIn("element", "test_elements") }),
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

// numberFor is a number argument as a 0-d tensor in the dtype of a tensor, or a float's where it is a float; or the tensor that it is.
func (c *call) numberFor(name string, x *ir.Value) *ir.Value {
	o := c.operand(name)
	if o.x != nil {
		return o.x
	}
	return constant(c.b, resultType(tensorOperand(x), o), o.s)
}

func bucketize(c *call) *ir.Value {
	bounds := c.val("boundaries")
	if bounds.Type.Rank() != 1 {
		c.failf("boundaries are %s, wanted rank 1", bounds.Type)
	}
	return c.search(bounds, c.numberFor("self", bounds), c.bool("right"), c.bool("out_int32"))
}

// searchSorted is search with one sequence for all values, or one for each row; a sorter gives the sequence's order.
func searchSorted(c *call) *ir.Value {
	seq := c.val("sorted_sequence")
	x := c.numberFor("self", seq)
	if order := c.opt("sorter"); order != nil {
		seq = c.gatherAlong(seq, order, max(seq.Type.Rank()-1, 0))
	}
	if seq.Type.Rank() == 0 || seq.Type.Rank() > 1 && seq.Type.Rank() != x.Type.Rank() {
		c.failf("the sequence is %s for values %s", seq.Type, x.Type)
	}
	return c.search(seq, x, c.bool("right") || c.str("side") == "right", c.bool("out_int32"))
}

// isIn compares every element with every test element.
func (c *call) isIn(elements, tests string) *ir.Value {
	a, b := c.operand(elements), c.operand(tests)
	d := resultType(a, b)
	x, set := c.materialize(a, d, a.dims()), c.materialize(b, d, b.dims())
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
