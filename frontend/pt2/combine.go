package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// blockDiag puts matrices along the diagonal; vectors are rows and numbers are 1 by 1.
func blockDiag(c *call) *ir.Value {
	xs := c.vals("tensors")
	if len(xs) == 0 {
		c.failf("no tensors, wanted one or more")
	}
	ops := make([]operand, len(xs))
	width := int64(0)
	for i, x := range xs {
		ops[i] = tensorOperand(x)
		if x.Type.Rank() > 2 {
			c.failf("tensor %d is %s, wanted rank 2 or less", i, x.Type)
		}
		dims := slices.Concat(slices.Repeat([]int64{1}, 2-x.Type.Rank()), x.Type.Dims)
		xs[i] = reshape(c.b, x, dims)
		width += dims[1]
	}
	d := resultType(ops...)
	rows := make([]*ir.Value, len(xs))
	left := int64(0)
	for i, x := range xs {
		w := x.Type.Dims[1]
		pad := op.PadAttr{Low: []int64{0, left}, High: []int64{0, width - left - w}, Interior: []int64{0, 0}}
		rows[i] = op.Pad.Make(c.b, pad, c.cast(x, d), zero(c.b, d))
		left += w
	}
	return concat(c.b, 0, rows...)
}

// cartesianProd is all choices of one element of each tensor, a row each; of one tensor the tensor.
func cartesianProd(c *call) *ir.Value {
	xs := c.vals("tensors")
	switch len(xs) {
	case 0:
		c.failf("no tensors, wanted one or more")
	case 1:
		return xs[0]
	}
	var dims []int64
	for i, x := range xs {
		if x.Type.Rank() != 1 {
			c.failf("tensor %d is %s, wanted rank 1", i, x.Type)
		}
		dims = append(dims, x.Type.Dims[0])
	}
	t := tensor.Make(xs[0].Type.DType, dims...)
	if err := t.Check(); err != nil {
		c.failf("%v", err)
	}
	cols := make([]*ir.Value, len(xs))
	for i, x := range xs {
		cols[i] = reshape(c.b, along(c.b, x, dims, i), []int64{t.Elements(), 1})
	}
	return concat(c.b, 1, cols...)
}

// combinations is all choices of r elements of a vector in order, a row each, perhaps with one chosen again.
func combinations(c *call) *ir.Value {
	x, r, again := c.val("self"), c.int("r"), c.bool("with_replacement")
	if x.Type.Rank() != 1 || r < 0 {
		c.failf("choices of %d of %s, wanted a vector", r, x.Type)
	}
	if r == 0 {
		return splat(c.b, x.Type.DType, intScalar(0), []int64{0})
	}
	n := x.Type.Dims[0]
	if !again && r > n {
		return splat(c.b, x.Type.DType, intScalar(0), []int64{0, r})
	}
	var ids []int64
	pick := make([]int64, r)
	var choose func(k, from int64)
	choose = func(k, from int64) {
		if k == r {
			if ids = append(ids, pick...); len(ids) > maxConstant {
				c.unsupported("choices of %d of %d", r, n)
			}
			return
		}
		for i := from; i < n; i++ {
			pick[k] = i
			choose(k+1, i+1-btoi64(again))
		}
	}
	if r > maxTaps {
		c.unsupported("choices of %d of %d", r, n)
	}
	choose(0, 0)
	at := literal(c.b, tensor.I64, []int64{int64(len(ids)) / r, r}, ids)
	if len(ids) == 0 {
		return splat(c.b, x.Type.DType, intScalar(0), at.Type.Dims)
	}
	return op.Take.Make(c.b, op.TakeAttr{Axis: 0}, x, at)
}
