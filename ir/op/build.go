package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Helpers that build common sequences, for decompositions, front ends and passes.

// Cast converts to d, or gives x itself.
func Cast(b *ir.Builder, x *ir.Value, d tensor.DType) *ir.Value {
	if x.Type.DType == d {
		return x
	}
	return Convert.Make(b, ConvertAttr{To: d}, x)
}

// Splat is a constant v of type t, made from a scalar.
func Splat(b *ir.Builder, t tensor.Type, v float64) *ir.Value {
	c := Constant.Make(b, ConstantAttr{Value: tensor.Scalar(t.DType, v)})
	return BroadcastTo(b, c, t.Dims)
}

// BroadcastTo aligns x's dimensions with the last ones of dims and repeats it there, as NumPy does; x itself where nothing changes.
func BroadcastTo(b *ir.Builder, x *ir.Value, dims []int64) *ir.Value {
	if x.Type.Equal(x.Type.WithDims(dims...)) {
		return x
	}
	at := make([]int64, x.Type.Rank())
	for i := range at {
		at[i] = int64(len(dims) - len(at) + i)
	}
	return Broadcast.Make(b, BroadcastAttr{Shape: dims, Dims: at}, x)
}

// widen gives x in f32 where its floats are narrower.
func widen(b *ir.Builder, x *ir.Value) *ir.Value {
	if d := x.Type.DType; d.IsFloat() && d.Bits() < 32 {
		return Cast(b, x, tensor.F32)
	}
	return x
}

// keepReduce reduces along axes, ascending, and repeats the result to x's shape.
func keepReduce(b *ir.Builder, kind Reducer, x *ir.Value, axes ...int64) *ir.Value {
	r := Reduce.Make(b, ReduceAttr{Kind: kind, Axes: axes}, x)
	return Broadcast.Make(b, BroadcastAttr{Shape: x.Type.Dims, Dims: free(x.Type.Rank(), axes)}, r)
}

// Stretch repeats x along its dimensions of extent 1 to dims of the same rank.
func Stretch(b *ir.Builder, x *ir.Value, dims []int64) *ir.Value {
	if x.Type.Equal(x.Type.WithDims(dims...)) {
		return x
	}
	return Broadcast.Make(b, BroadcastAttr{Shape: dims, Dims: count(0, len(dims))}, x)
}

// reshape to dims, or x itself.
func reshape(b *ir.Builder, x *ir.Value, dims ...int64) *ir.Value {
	if x.Type.Equal(x.Type.WithDims(dims...)) {
		return x
	}
	return Reshape.Make(b, ReshapeAttr{Shape: dims}, x)
}
