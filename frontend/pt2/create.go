package pt2

import (
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// createRules make tensors from numbers. Uninitialised memory is zeros.
var createRules = map[string]rule{
	"arange":            value(arange),
	"arange.start":      value(arange),
	"arange.start_step": value(arange),
	"range":             value(rangeTo),
	"range.step":        value(rangeTo),
	"full": value(func(c *call) *ir.Value {
		return c.filled(c.ints("size"), c.scalar("fill_value"), numberType(c.scalar("fill_value")))
	}),
	"zeros":               value(func(c *call) *ir.Value { return c.filled(c.ints("size"), intScalar(0), tensor.F32) }),
	"ones":                value(func(c *call) *ir.Value { return c.filled(c.ints("size"), intScalar(1), tensor.F32) }),
	"empty.memory_format": value(func(c *call) *ir.Value { return c.filled(c.ints("size"), intScalar(0), tensor.F32) }),
	"empty_permuted":      value(func(c *call) *ir.Value { return c.filled(c.ints("size"), intScalar(0), tensor.F32) }),
	"empty_strided":       value(func(c *call) *ir.Value { return c.filled(c.ints("size"), intScalar(0), tensor.F32) }),
	"scalar_tensor":       value(func(c *call) *ir.Value { return c.filled(nil, c.scalar("s"), tensor.F32) }),
	// What refs.where decomposes a number to.
	"torch.ops.prims.scalar_tensor": value(func(c *call) *ir.Value {
		s := c.scalar("s")
		if c.has("dtype") {
			return c.filled(nil, s, numberType(s))
		}
		return splat(c.b, numberType(s), s, nil)
	}),
	"full_like":         value(func(c *call) *ir.Value { return c.filledLike(c.scalar("fill_value")) }),
	"zeros_like":        value(func(c *call) *ir.Value { return c.filledLike(intScalar(0)) }),
	"ones_like":         value(func(c *call) *ir.Value { return c.filledLike(intScalar(1)) }),
	"empty_like":        value(func(c *call) *ir.Value { return c.filledLike(intScalar(0)) }),
	"new_zeros":         value(func(c *call) *ir.Value { return c.filled(c.ints("size"), intScalar(0), c.ref("self").typ.DType) }),
	"new_ones":          value(func(c *call) *ir.Value { return c.filled(c.ints("size"), intScalar(1), c.ref("self").typ.DType) }),
	"new_empty":         value(func(c *call) *ir.Value { return c.filled(c.ints("size"), intScalar(0), c.ref("self").typ.DType) }),
	"new_empty_strided": value(func(c *call) *ir.Value { return c.filled(c.ints("size"), intScalar(0), c.ref("self").typ.DType) }),
	"new_full": value(func(c *call) *ir.Value {
		return c.filled(c.ints("size"), c.scalar("fill_value"), c.ref("self").typ.DType)
	}),
	"eye":          value(func(c *call) *ir.Value { return c.eye(c.int("n"), c.int("n")) }),
	"eye.m":        value(func(c *call) *ir.Value { return c.eye(c.int("n"), c.int("m")) }),
	"one_hot":      value(oneHot),
	"tril_indices": value(func(c *call) *ir.Value { return triangleIndices(c, func(d, off int64) bool { return d <= off }) }),
	"triu_indices": value(func(c *call) *ir.Value { return triangleIndices(c, func(d, off int64) bool { return d >= off }) }),
}

// filled is a tensor of a number, in the dtype argument's type.
func (c *call) filled(dims []int64, s scalar, dflt tensor.DType) *ir.Value {
	t := tensor.Make(c.dtype("dtype", dflt), dims...)
	if err := t.Check(); err != nil {
		c.failf("%v", err)
	}
	return splat(c.b, t.DType, s, t.Dims)
}

// filledLike is a tensor of self's shape, in self's dtype unless one is asked for.
func (c *call) filledLike(s scalar) *ir.Value {
	t := c.ref("self").typ
	return splat(c.b, c.dtype("dtype", t.DType), s, t.Dims)
}

// arange is start, start+step, ... below end.
func arange(c *call) *ir.Value {
	start, step, end := intScalar(0), intScalar(1), c.scalar("end")
	if c.schema.param("start") != nil {
		start = c.scalar("start")
	}
	if c.schema.param("step") != nil {
		step = c.scalar("step")
	}
	allInt := start.kind <= kindInt && step.kind <= kindInt && end.kind <= kindInt
	d := tensor.F32
	if allInt {
		d = tensor.I64
	}
	d = c.dtype("dtype", d)
	if step.float() == 0 || (end.float()-start.float())/step.float() < 0 {
		c.failf("from %s to %s by %s", start, end, step)
	}
	length := math.Ceil((end.float() - start.float()) / step.float())
	if !(length < 1<<40) {
		c.failf("from %s to %s by %s has %v elements", start, end, step, length)
	}
	n := int64(length)
	if d.IsInt() { // torch cuts both before it counts
		start, step = intScalar(int64(start.float())), intScalar(int64(step.float()))
	}
	return c.progression(d, n, start, step)
}

// rangeTo is start, start+step, ... up to and including end.
func rangeTo(c *call) *ir.Value {
	start, end, step := c.scalar("start"), c.scalar("end"), intScalar(1)
	if c.schema.param("step") != nil {
		step = c.scalar("step")
	}
	steps := math.Floor((end.float() - start.float()) / step.float())
	if !(steps >= 0 && steps < maxViewed) {
		c.failf("from %s to %s by %s", start, end, step)
	}
	return c.progression(c.dtype("dtype", tensor.F32), int64(steps)+1, start, step)
}

// progression is start + i*step for i below n. Whole numbers are counted by the program, others are computed here, as torch
// computes them in double precision.
func (c *call) progression(d tensor.DType, n int64, start, step scalar) *ir.Value {
	whole := func(s scalar) bool { return s.kind != kindFloat || s.f == math.Trunc(s.f) && math.Abs(s.f) < 1<<52 }
	if !whole(start) || !whole(step) {
		if n > maxConstant {
			c.unsupported("%d elements of steps that are no integers", n)
		}
		v := make([]float64, n)
		for i := range v {
			v[i] = start.float() + float64(i)*step.float()
		}
		return op.Constant.Make(c.b, op.ConstantAttr{Value: tensor.FromFloats(tensor.Make(d, n), v)})
	}
	count := tensor.I64
	if d == tensor.I32 {
		count = d
	}
	x := counting(c.b, count, []int64{n}, 0)
	if !step.is(1) {
		x = op.Mul.Make(c.b, x, like(c.b, x, intScalar(int64(step.float()))))
	}
	if !start.is(0) {
		x = op.Add.Make(c.b, x, like(c.b, x, intScalar(int64(start.float()))))
	}
	return c.cast(x, d)
}

// eye is 1 on the main diagonal of n rows and m columns.
func (c *call) eye(n, m int64) *ir.Value {
	dims := []int64{n, m}
	t := tensor.Make(c.dtype("dtype", tensor.F32), dims...)
	if err := t.Check(); err != nil {
		c.failf("%v", err)
	}
	return c.cast(compare(c.b, op.EQ, counting(c.b, tensor.I64, dims, 0), counting(c.b, tensor.I64, dims, 1)), t.DType)
}

// oneHot marks the class of each element in a new last dimension, as i64.
func oneHot(c *call) *ir.Value {
	x, n := c.val("self"), c.int("num_classes")
	if n < 0 {
		c.unsupported("the number of classes depends on the data")
	}
	dims := append(slices.Clone(x.Type.Dims), n)
	at := op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: dims, Dims: iotaInts(len(dims) - 1)}, x)
	return c.cast(compare(c.b, op.EQ, at, counting(c.b, x.Type.DType, dims, len(dims)-1)), tensor.I64)
}

// triangleIndices lists rows and columns, [2, count], of the places whose column minus row is in.
func triangleIndices(c *call, in func(d, off int64) bool) *ir.Value {
	rows, cols, off := c.int("row"), c.int("col"), c.int("offset")
	if rows < 0 || cols < 0 || rows > maxConstant || cols > maxConstant || rows*cols > 1<<20 {
		c.unsupported("%d rows and %d columns", rows, cols)
	}
	var r, k []int64
	for i := range rows {
		for j := range cols {
			if in(j-i, off) {
				r, k = append(r, i), append(k, j)
			}
		}
	}
	return literal(c.b, c.dtype("dtype", tensor.I64), []int64{2, int64(len(r))}, append(r, k...))
}
