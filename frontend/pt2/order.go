package pt2

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// orderRules work along a dimension whose order matters: running sums and extremes, differences, sorting.
var orderRules = map[string]rule{
	"cumsum":         value(cumsum),
	"cumprod":        value(cumprod),
	"cummax":         values(func(c *call) []*ir.Value { return c.cumExtreme(false) }),
	"cummin":         values(func(c *call) []*ir.Value { return c.cumExtreme(true) }),
	"diff":           value(diff),
	"sort":           values(sort),
	"sort.stable":    values(sort),
	"argsort":        value(func(c *call) *ir.Value { return sort(c)[1] }),
	"argsort.stable": value(func(c *call) *ir.Value { return sort(c)[1] }),
	"topk":           values(topk),
	"logcumsumexp":   value(logCumSumExp),
	"median":         value(func(c *call) *ir.Value { return c.medianAll(false) }),
	"nanmedian":      value(func(c *call) *ir.Value { return c.medianAll(true) }),
	"median.dim":     values(func(c *call) []*ir.Value { return c.medianDim(false) }),
	"nanmedian.dim":  values(func(c *call) []*ir.Value { return c.medianDim(true) }),
	"msort": value(func(c *call) *ir.Value {
		x := c.val("self")
		return op.Sort.Make(c.b, op.SortAttr{Axis: 0, Stable: true}, x)
	}),
}

// cumsum of integers and bools is i64.
func cumsum(c *call) *ir.Value {
	x := c.val("self")
	axis := c.axis("dim", x.Type.Rank())
	x = c.cast(x, c.summedType(x.Type.DType))
	if x.Type.Rank() == 0 {
		return x
	}
	return op.CumSum.Make(c.b, op.CumSumAttr{Axis: int64(axis)}, x)
}

// scan combines every element with all before it along axis, in log2(n) steps of doubling distance.
func (c *call) scan(axis int, xs, neutral []*ir.Value, combine func(earlier, later []*ir.Value) []*ir.Value) []*ir.Value {
	n := xs[0].Type.Dims[axis]
	for step := int64(1); step < n; step *= 2 {
		earlier := make([]*ir.Value, len(xs))
		for i, x := range xs {
			low, high := make([]int64, x.Type.Rank()), make([]int64, x.Type.Rank())
			low[axis], high[axis] = step, -step
			earlier[i] = op.Pad.Make(c.b, op.PadAttr{Low: low, High: high, Interior: make([]int64, len(low))}, x, neutral[i])
		}
		xs = combine(earlier, xs)
	}
	return xs
}

// cumprod multiplies up to every element.
func cumprod(c *call) *ir.Value {
	x := c.val("self")
	axis := c.axis("dim", x.Type.Rank())
	d := c.summedType(x.Type.DType)
	x = c.cast(x, d)
	if x.Type.Rank() == 0 {
		return x
	}
	return op.CumProd.Make(c.b, op.CumProdAttr{Axis: int64(axis)}, x)
}

// cumExtreme gives running extremes and their last index.
func (c *call) cumExtreme(smallest bool) []*ir.Value {
	x := c.val("self")
	axis := c.axis("dim", x.Type.Rank())
	if x.Type.Rank() == 0 {
		return []*ir.Value{x, intConst(c.b, tensor.I64, 0)}
	}
	return op.CumMax.MakeAll(c.b, op.CumMaxAttr{Axis: int64(axis), Smallest: smallest}, x)
}

// diff subtracts neighbours n times.
func diff(c *call) *ir.Value {
	x := c.val("self")
	axis := c.axis("dim", x.Type.Rank())
	if x.Type.Rank() == 0 {
		c.failf("self has rank 0, wanted 1 or more")
	}
	times := c.int("n")
	if times < 0 {
		c.failf("n is %d, wanted 0 or more", times)
	}
	if times == 0 { // nothing is joined either
		return x
	}
	var parts []*ir.Value
	if p := c.opt("prepend"); p != nil {
		parts = append(parts, p)
	}
	parts = append(parts, x)
	if p := c.opt("append"); p != nil {
		parts = append(parts, p)
	}
	x = concat(c.b, axis, parts...)
	times = min(times, x.Type.Dims[axis])
	if times > maxTaps {
		c.unsupported("differences of order %d", times)
	}
	for range times {
		n := x.Type.Dims[axis]
		hi, lo := slice(c.b, x, axis, min(1, n), n, 1), slice(c.b, x, axis, 0, max(n-1, 0), 1)
		if x.Type.DType == tensor.Bool {
			x = op.Xor.Make(c.b, hi, lo)
		} else {
			x = op.Sub.Make(c.b, hi, lo)
		}
	}
	return x
}

// sort gives the elements in order and their indices.
func sort(c *call) []*ir.Value {
	x := c.val("self")
	axis := c.axis("dim", x.Type.Rank())
	if x.Type.Rank() == 0 {
		return []*ir.Value{x, intConst(c.b, tensor.I64, 0)}
	}
	a := op.SortAttr{Axis: int64(axis), Descending: c.bool("descending"), Stable: true}
	return op.Sort.MakeAll(c.b, a, x, counting(c.b, tensor.I64, x.Type.Dims, axis))
}

// topk gives the k extremes in order and their indices; of equal ones the first.
func topk(c *call) []*ir.Value {
	x := c.val("self")
	axis, k := c.axis("dim", x.Type.Rank()), c.int("k")
	if x.Type.Rank() == 0 {
		return []*ir.Value{x, intConst(c.b, tensor.I64, 0)}
	}
	return op.TopK.MakeAll(c.b, op.TopKAttr{K: k, Axis: int64(axis), Largest: c.bool("largest")}, x)
}

// logCumSumExp of a 0-d tensor is itself.
func logCumSumExp(c *call) *ir.Value {
	x := c.val("self")
	axis := c.axis("dim", x.Type.Rank())
	if x.Type.Rank() == 0 {
		return x
	}
	if x.Type.DType.IsComplex() {
		none := constant(c.b, x.Type.DType, floatScalar(math.Inf(-1)))
		return c.scan(axis, []*ir.Value{x}, []*ir.Value{none}, func(e, l []*ir.Value) []*ir.Value {
			return []*ir.Value{logaddexp(c.b, []*ir.Value{e[0], l[0]})}
		})[0]
	}
	return op.LogCumSumExp.Make(c.b, op.LogCumSumExpAttr{Axis: int64(axis)}, x)
}

// medianAll is the lower median of all elements.
func (c *call) medianAll(skip bool) *ir.Value {
	x := c.val("self")
	n := x.Type.Elements()
	if n == 0 {
		return likeF(c.b, reshape(c.b, splat(c.b, x.Type.DType, intScalar(0), []int64{1}), nil), math.NaN())
	}
	v := c.medianAlong(reshape(c.b, x, []int64{n}), 0, skip)
	return reshape(c.b, v[0], nil)
}

// medianDim is the lower median along dim, and where it stands.
func (c *call) medianDim(skip bool) []*ir.Value {
	x := c.val("self")
	axis := c.axis("dim", x.Type.Rank())
	if x.Type.Rank() == 0 {
		return []*ir.Value{x, intConst(c.b, tensor.I64, 0)}
	}
	if x.Type.Dims[axis] == 0 {
		c.failf("the median over no elements of %s", x.Type)
	}
	return c.dropped(axis, c.medianAlong(x, axis, skip)...)
}

// medianAlong sorts, NaN last, and picks the lower of the middle elements: of those that are numbers where skip is set, otherwise the
// first NaN where there is one. The dimension is kept with extent 1.
func (c *call) medianAlong(x *ir.Value, axis int, skip bool) []*ir.Value {
	n := x.Type.Dims[axis]
	axes := []int64{int64(axis)}
	index := counting(c.b, tensor.I64, x.Type.Dims, axis)
	sorted := op.Sort.MakeAll(c.b, op.SortAttr{Axis: int64(axis), Stable: true}, x, index)
	at := splat(c.b, tensor.I64, intScalar((n-1)/2), keptDims(x.Type.Dims, axes))
	if x.Type.DType.IsFloat() {
		numbers := reduce(c.b, op.Sum, c.cast(compare(c.b, op.EQ, x, x), tensor.I64), axes, true)
		if skip {
			at = op.Div.Make(c.b, op.Sub.Make(c.b, numbers, like(c.b, numbers, intScalar(1))), like(c.b, numbers, intScalar(2)))
		} else {
			at = op.Select.Make(c.b, compare(c.b, op.LT, numbers, like(c.b, numbers, intScalar(n))), numbers, at)
		}
	}
	return []*ir.Value{c.gatherAlong(sorted[0], at, axis), c.gatherAlong(sorted[1], at, axis)}
}
