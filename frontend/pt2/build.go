package pt2

import (
	"fmt"
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Builders of single operators that skip the ones that change nothing.

func reshape(b *ir.Builder, x *ir.Value, dims []int64) *ir.Value {
	if slices.Equal(x.Type.Dims, dims) {
		return x
	}
	return op.Reshape.Make(b, op.ReshapeAttr{Shape: slices.Clone(dims)}, x)
}

func transpose(b *ir.Builder, x *ir.Value, perm []int64) *ir.Value {
	if slices.IsSorted(perm) {
		return x
	}
	return op.Transpose.Make(b, op.TransposeAttr{Perm: slices.Clone(perm)}, x)
}

// swap exchanges two dimensions.
func swap(b *ir.Builder, x *ir.Value, i, j int) *ir.Value {
	perm := iotaInts(x.Type.Rank())
	perm[i], perm[j] = perm[j], perm[i]
	return transpose(b, x, perm)
}

// slice takes start, start+step, ... below limit along axis.
func slice(b *ir.Builder, x *ir.Value, axis int, start, limit, step int64) *ir.Value {
	if start == 0 && limit == x.Type.Dims[axis] && step == 1 {
		return x
	}
	a := op.SliceAttr{Start: make([]int64, x.Type.Rank()), Limit: slices.Clone(x.Type.Dims), Stride: make([]int64, x.Type.Rank())}
	for d := range a.Stride {
		a.Stride[d] = 1
	}
	a.Start[axis], a.Limit[axis], a.Stride[axis] = start, limit, step
	return op.Slice.Make(b, a, x)
}

// concat joins along axis.
func concat(b *ir.Builder, axis int, xs ...*ir.Value) *ir.Value {
	if len(xs) == 1 {
		return xs[0]
	}
	return op.Concat.Make(b, op.ConcatAttr{Axis: int64(axis)}, xs...)
}

// reduce combines along axes in any order; the result lacks them, or has them with extent 1.
func reduce(b *ir.Builder, kind op.Reducer, x *ir.Value, axes []int64, keep bool) *ir.Value {
	axes = slices.Sorted(slices.Values(axes))
	y := x
	if len(axes) > 0 {
		y = op.Reduce.Make(b, op.ReduceAttr{Kind: kind, Axes: axes}, x)
	}
	if keep {
		y = reshape(b, y, keptDims(x.Type.Dims, axes))
	}
	return y
}

// keptDims is dims with extent 1 at axes.
func keptDims(dims, axes []int64) []int64 {
	out := slices.Clone(dims)
	for _, a := range axes {
		out[a] = 1
	}
	return out
}

// along repeats a 1-d x along all dimensions of dims but axis.
func along(b *ir.Builder, x *ir.Value, dims []int64, axis int) *ir.Value {
	return op.Broadcast.Make(b, op.BroadcastAttr{Shape: dims, Dims: []int64{int64(axis)}}, x)
}

// iotaInts is 0, 1, ..., n-1.
func iotaInts(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

// scalar is a Python number, or a symbolic one whose value is known.
type scalar struct {
	kind kind
	i    int64   // kindBool, kindInt
	f    float64 // kindFloat; the real part of kindComplex
	im   float64 // kindComplex
}

// kind orders the categories of torch's type promotion.
type kind uint8

const (
	kindBool kind = iota
	kindInt
	kindFloat
	kindComplex
)

func intScalar(v int64) scalar     { return scalar{kind: kindInt, i: v} }
func floatScalar(v float64) scalar { return scalar{kind: kindFloat, f: v} }

// float is a real number; a complex one ends the rule.
func (s scalar) float() float64 {
	switch s.kind {
	case kindFloat:
		return s.f
	case kindComplex:
		panic(&ruleError{unsupported: true, msg: fmt.Sprintf("the complex number %v in place of a real one", s)})
	}
	return float64(s.i)
}

// is reports a number equal to v.
func (s scalar) is(v float64) bool {
	if s.kind == kindComplex {
		return s.f == v && s.im == 0
	}
	return s.float() == v
}

// constant is a 0-d literal, converted to d as torch converts Python numbers.
func constant(b *ir.Builder, d tensor.DType, s scalar) *ir.Value {
	var x *tensor.Tensor
	switch {
	case s.kind == kindComplex && d.IsComplex():
		x = tensor.FromComplexes(tensor.Make(d), []complex128{complex(s.f, s.im)})
	case s.kind == kindComplex: // torch refuses one that is not real
		if s.im != 0 {
			panic(&ruleError{msg: fmt.Sprintf("the number %v is not real, for a tensor of %s", s, d)})
		}
		return constant(b, d, floatScalar(s.f))
	case d == tensor.Bool && s.kind == kindFloat:
		x = tensor.ScalarInt(d, btoi64(s.f != 0))
	case s.kind == kindFloat:
		x = tensor.Scalar(d, s.f)
	default:
		x = tensor.ScalarInt(d, s.i)
	}
	return op.Constant.Make(b, op.ConstantAttr{Value: x})
}

// splat is a tensor of dims filled with s.
func splat(b *ir.Builder, d tensor.DType, s scalar, dims []int64) *ir.Value {
	return op.BroadcastTo(b, constant(b, d, s), dims)
}

func intConst(b *ir.Builder, d tensor.DType, v int64) *ir.Value { return constant(b, d, intScalar(v)) }
func zero(b *ir.Builder, d tensor.DType) *ir.Value              { return intConst(b, d, 0) }
func boolConst(b *ir.Builder, v bool) *ir.Value {
	return constant(b, tensor.Bool, intScalar(btoi64(v)))
}

func boolSplat(b *ir.Builder, dims []int64, v bool) *ir.Value {
	return splat(b, tensor.Bool, intScalar(btoi64(v)), dims)
}

// literal is a constant tensor of integers.
func literal(b *ir.Builder, d tensor.DType, dims []int64, v []int64) *ir.Value {
	return op.Constant.Make(b, op.ConstantAttr{Value: tensor.FromInts(tensor.Make(d, dims...), v)})
}

// like is s in x's dtype, repeated to x's shape.
func like(b *ir.Builder, x *ir.Value, s scalar) *ir.Value {
	return splat(b, x.Type.DType, s, x.Type.Dims)
}

// likeF is like for a float.
func likeF(b *ir.Builder, x *ir.Value, v float64) *ir.Value { return like(b, x, floatScalar(v)) }

// lowest is the identity of max: -inf, or the least integer.
func lowest(d tensor.DType) scalar {
	switch {
	case d.IsFloat():
		return floatScalar(math.Inf(-1))
	case d == tensor.Bool:
		return intScalar(0)
	}
	lo, _ := d.IntRange()
	return intScalar(lo)
}

// highest is the identity of min.
func highest(d tensor.DType) scalar {
	switch {
	case d.IsFloat():
		return floatScalar(math.Inf(1))
	case d == tensor.Bool:
		return intScalar(1)
	}
	_, hi := d.IntRange()
	return intScalar(hi)
}

// compare compares two values of one type elementwise.
func compare(b *ir.Builder, dir op.CompareDir, x, y *ir.Value) *ir.Value {
	return op.Compare.Make(b, op.CompareAttr{Dir: dir}, x, y)
}

// counting counts along axis.
func counting(b *ir.Builder, d tensor.DType, dims []int64, axis int) *ir.Value {
	return op.Iota.Make(b, op.IotaAttr{Type: tensor.Make(d, dims...), Axis: int64(axis)})
}
