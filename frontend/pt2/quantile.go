package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// quantileRules pick elements by their rank or by how often they occur.
var quantileRules = map[string]rule{
	"quantile":           value(func(c *call) *ir.Value { return c.quantile(false) }),
	"quantile.scalar":    value(func(c *call) *ir.Value { return c.quantile(false) }),
	"nanquantile":        value(func(c *call) *ir.Value { return c.quantile(true) }),
	"nanquantile.scalar": value(func(c *call) *ir.Value { return c.quantile(true) }),
	"kthvalue":           values(kthValue),
	"mode":               values(mode),
}

// quantile is the elements at the places q (n-1) of the sorted n, between neighbours as the argument interpolation says. q is a number or a
// tensor; the results of a 1-d q stand in a new first dimension. A NaN is the result of its row, or is left out where skip is set.
func (c *call) quantile(skip bool) *ir.Value {
	x := c.val("self")
	if !x.Type.DType.IsFloat() || x.Type.Elements() == 0 {
		c.failf("self is %s, wanted floats and at least one", x.Type)
	}
	keep := c.bool("keepdim")
	axis, kept := 0, x.Type.Dims // kept is the result's dimensions with extent 1 at axis
	if c.has("dim") {
		axis = c.axis("dim", x.Type.Rank())
	} else {
		kept = slices.Repeat([]int64{1}, x.Type.Rank())
		x = reshape(c.b, x, []int64{x.Type.Elements()})
	}
	if x.Type.Rank() == 0 {
		x = reshape(c.b, x, []int64{1})
	} else if c.has("dim") {
		kept = keptDims(kept, []int64{int64(axis)})
	}
	dims := kept
	if !keep && c.has("dim") && len(kept) > 0 {
		dims = slices.Delete(slices.Clone(kept), axis, axis+1)
	} else if !keep {
		dims = nil
	}
	x = swap(c.b, x, axis, x.Type.Rank()-1)
	last := x.Type.Rank() - 1
	n := x.Type.Dims[last]
	rows := x.Type.Elements() / n
	sorted := op.Sort.Make(c.b, op.SortAttr{Axis: 1, Stable: true}, reshape(c.b, x, []int64{rows, n}))

	d := x.Type.DType
	given := c.operand("q")
	lead := given.dims()
	q := c.materialize(given, d, lead)
	if len(lead) > 1 {
		c.failf("q is %s, wanted rank 0 or 1", q.Type)
	}
	count := q.Type.Elements()
	grid := []int64{rows, count}
	f := fb{c.b, c}
	q = along(c.b, reshape(c.b, q, []int64{count}), grid, 1)
	numbers := reduce(c.b, op.Sum, c.cast(compare(c.b, op.EQ, sorted, sorted), tensor.I64), []int64{1}, false)
	end := f.c(q, float64(n-1))
	var rank *ir.Value
	if skip {
		end = along(c.b, c.cast(numbers, d), grid, 0)
		rank = f.max(f.mul(q, f.sub(end, f.c(end, 1))), 0)
	} else {
		whole := compare(c.b, op.EQ, numbers, like(c.b, numbers, intScalar(n)))
		rank = op.Select.Make(c.b, along(c.b, whole, grid, 0), f.mul(q, end), end)
	}
	at := func(place *ir.Value) *ir.Value { return c.gatherAlong(sorted, c.cast(place, tensor.I64), 1) }
	var y *ir.Value
	switch word := c.str("interpolation"); word {
	case "lower":
		y = at(op.Floor.Make(c.b, rank))
	case "higher":
		y = at(op.Ceil.Make(c.b, rank))
	case "nearest":
		y = at(op.Round.Make(c.b, rank))
	case "linear", "midpoint":
		low := op.Floor.Make(c.b, rank)
		weight := f.sub(rank, low)
		if word == "midpoint" {
			weight = f.where(op.EQ, weight, 0, weight, f.c(weight, 0.5))
		}
		below, above := at(low), at(op.Ceil.Make(c.b, rank))
		y = f.lerp(below, above, weight)
	default:
		c.failf("interpolation is %q, wanted linear, lower, higher, midpoint or nearest", clip(word))
	}
	// [rows, count] to [count, rows as they were].
	inner := slices.Clone(kept)
	if c.has("dim") && len(kept) > 0 { // rows have the order with axis and the last dimension exchanged
		inner[axis], inner[len(inner)-1] = inner[len(inner)-1], 1
	}
	y = reshape(c.b, transpose(c.b, y, []int64{1, 0}), slices.Concat([]int64{count}, inner))
	if c.has("dim") && len(kept) > 0 {
		y = swap(c.b, y, axis+1, len(inner))
	}
	return reshape(c.b, y, slices.Concat(lead, dims))
}

// kthValue is the k-th smallest element along dim, NaN largest, and where it stands; of equal ones the first.
func kthValue(c *call) []*ir.Value {
	x := c.val("self")
	axis, k := c.axis("dim", x.Type.Rank()), c.int("k")
	n := int64(1)
	if x.Type.Rank() > 0 {
		n = x.Type.Dims[axis]
	}
	if k < 1 || k > n {
		c.failf("k is %d, wanted 1 to %d", k, n)
	}
	if x.Type.Rank() == 0 {
		return []*ir.Value{x, intConst(c.b, tensor.I64, 0)}
	}
	a := op.SortAttr{Axis: int64(axis), Stable: true}
	sorted := op.Sort.MakeAll(c.b, a, x, counting(c.b, tensor.I64, x.Type.Dims, axis))
	return c.dropped(axis, slice(c.b, sorted[0], axis, k-1, k, 1), slice(c.b, sorted[1], axis, k-1, k, 1))
}

// dropped removes the dimension axis, of extent 1, unless keepdim is set.
func (c *call) dropped(axis int, xs ...*ir.Value) []*ir.Value {
	if c.bool("keepdim") {
		return xs
	}
	for i, x := range xs {
		xs[i] = reshape(c.b, x, slices.Delete(slices.Clone(x.Type.Dims), axis, axis+1))
	}
	return xs
}

// mode is the most frequent element along dim, of several the smallest, and the last place where it stands. Every NaN is an element of its own.
func mode(c *call) []*ir.Value {
	x := c.val("self")
	axis := c.axis("dim", x.Type.Rank())
	if x.Type.Rank() == 0 {
		return []*ir.Value{x, intConst(c.b, tensor.I64, 0)}
	}
	n := x.Type.Dims[axis]
	if n == 0 {
		c.failf("the mode over no elements of %s", x.Type)
	}
	index := counting(c.b, tensor.I64, x.Type.Dims, axis)
	sorted := op.Sort.MakeAll(c.b, op.SortAttr{Axis: int64(axis), Stable: true}, x, index)
	// A run begins where an element differs from the one before, and ends where the next run begins.
	differ := compare(c.b, op.NE, slice(c.b, sorted[0], axis, 1, n, 1), slice(c.b, sorted[0], axis, 0, n-1, 1))
	edge := boolSplat(c.b, keptDims(x.Type.Dims, []int64{int64(axis)}), true)
	begins, ends := concat(c.b, axis, edge, differ), concat(c.b, axis, differ, edge)
	none := like(c.b, index, intScalar(0))
	start := op.CumMax.MakeAll(c.b, op.CumMaxAttr{Axis: int64(axis)}, op.Select.Make(c.b, begins, index, none))[0]
	length := op.Sub.Make(c.b, op.Add.Make(c.b, index, like(c.b, index, intScalar(1))), start)
	_, at := c.firstExtreme(op.Max, op.Select.Make(c.b, ends, length, none), axis)
	return c.dropped(axis, c.gatherAlong(sorted[0], at, axis), c.gatherAlong(sorted[1], at, axis))
}
