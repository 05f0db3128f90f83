package passes

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Rules of simplify on operators that move elements.

// identity matches operators whose result can equal the argument's type only if it equals the argument. A broadcast of equal types
// has all dimensions in order, a slice of equal shapes starts at 0 with stride 1.
func identity(_ *ir.Builder, n *ir.Node) []*ir.Value {
	if x := n.Args[0]; x.Type.Equal(n.Outs[0].Type) {
		return one(x)
	}
	return nil
}

// identityTranspose looks at the order and not at the type: a transposed square has its argument's.
func identityTranspose(_ *ir.Builder, n *ir.Node) []*ir.Value {
	if slices.IsSorted(op.Transpose.Attr(n).Perm) {
		return one(n.Args[0])
	}
	return nil
}

// reshapeReshape goes to the last shape at once; row-major order makes the one between irrelevant.
func reshapeReshape(b *ir.Builder, n *ir.Node) []*ir.Value {
	in := n.Args[0].Def
	if !op.Reshape.Is(in) {
		return nil
	}
	return one(op.Reshape.Make(b, op.Reshape.Attr(n), in.Args[0]))
}

// transposeTranspose composes the permutations: result dimension i is dimension inner[outer[i]] of x.
func transposeTranspose(b *ir.Builder, n *ir.Node) []*ir.Value {
	in := n.Args[0].Def
	if !op.Transpose.Is(in) {
		return nil
	}
	inner := op.Transpose.Attr(in).Perm
	perm := make([]int64, len(inner))
	for i, d := range op.Transpose.Attr(n).Perm {
		perm[i] = inner[d]
	}
	return one(op.Transpose.Make(b, op.TransposeAttr{Perm: perm}, in.Args[0]))
}

// unitTranspose matches where the dimensions longer than 1 keep their order, so that no element moves. Decoders that work on one
// position at a time swap it with their heads in every layer.
func unitTranspose(b *ir.Builder, n *ir.Node) []*ir.Value {
	x := n.Args[0]
	var long []int64 // where the dimensions longer than 1 come from
	for _, d := range op.Transpose.Attr(n).Perm {
		if x.Type.Dims[d] != 1 {
			long = append(long, d)
		}
	}
	if !slices.IsSorted(long) {
		return nil
	}
	return one(op.Reshape.Make(b, op.ReshapeAttr{Shape: n.Outs[0].Type.Dims}, x))
}

// broadcastBroadcast looks the places of x's dimensions up in the outer broadcast. A dimension of extent 1 may grow in either.
func broadcastBroadcast(b *ir.Builder, n *ir.Node) []*ir.Value {
	in := n.Args[0].Def
	if !op.Broadcast.Is(in) {
		return nil
	}
	outer := op.Broadcast.Attr(n)
	dims := make([]int64, 0, len(outer.Dims))
	for _, d := range op.Broadcast.Attr(in).Dims {
		dims = append(dims, outer.Dims[d])
	}
	return one(op.Broadcast.Make(b, op.BroadcastAttr{Shape: outer.Shape, Dims: dims}, in.Args[0]))
}

// sliceSlice composes start + i*stride. Limits are tight; the stride of a single element is 1, or it could pass the extent.
func sliceSlice(b *ir.Builder, n *ir.Node) []*ir.Value {
	in := n.Args[0].Def
	if !op.Slice.Is(in) || n.Outs[0].Type.Elements() == 0 {
		return nil
	}
	outer, inner := op.Slice.Attr(n), op.Slice.Attr(in)
	var a op.SliceAttr
	for i, count := range n.Outs[0].Type.Dims {
		start := inner.Start[i] + outer.Start[i]*inner.Stride[i]
		stride := int64(1)
		if count > 1 {
			stride = inner.Stride[i] * outer.Stride[i]
		}
		a.Start = append(a.Start, start)
		a.Limit = append(a.Limit, start+(count-1)*stride+1)
		a.Stride = append(a.Stride, stride)
	}
	return one(op.Slice.Make(b, a, in.Args[0]))
}

// identityPad matches amounts that are all 0: with an interior amount the shape may be x's by chance.
func identityPad(_ *ir.Builder, n *ir.Node) []*ir.Value {
	a := op.Pad.Attr(n)
	for _, amounts := range [][]int64{a.Low, a.High} {
		if slices.ContainsFunc(amounts, func(v int64) bool { return v != 0 }) {
			return nil
		}
	}
	return identity(nil, n)
}

// unitBroadcast matches a result with as many elements as x. Reshapes join with their neighbours, broadcasts do not. A literal scalar and
// its broadcast are the normal form of equal elements, which stays.
func unitBroadcast(b *ir.Builder, n *ir.Node) []*ir.Value {
	x, out := n.Args[0], n.Outs[0].Type
	if out.Elements() != x.Type.Elements() || out.Elements() == 0 || op.Constant.Is(x.Def) {
		return nil
	}
	return one(op.Reshape.Make(b, op.ReshapeAttr{Shape: out.Dims}, x))
}

// broadcastReshape looks through a reshape that inserts dimensions of extent 1, as unsqueeze before expand does.
func broadcastReshape(b *ir.Builder, n *ir.Node) []*ir.Value {
	in := n.Args[0].Def
	if !op.Reshape.Is(in) {
		return nil
	}
	x, a := in.Args[0], op.Broadcast.Attr(n)
	var dims []int64
	at := 0
	for i, extent := range in.Outs[0].Type.Dims {
		switch {
		case at < x.Type.Rank() && x.Type.Dims[at] == extent:
			dims = append(dims, a.Dims[i])
			at++
		case extent != 1:
			return nil
		}
	}
	if at < x.Type.Rank() || x.Type.Rank() == in.Outs[0].Type.Rank() {
		return nil
	}
	return one(op.Broadcast.Make(b, op.BroadcastAttr{Shape: a.Shape, Dims: dims}, x))
}

// sliceConcat matches a slice that reads one part only, as the halves of a shifted sequence do.
func sliceConcat(b *ir.Builder, n *ir.Node) []*ir.Value {
	in := n.Args[0].Def
	if !op.Concat.Is(in) || n.Outs[0].Type.Elements() == 0 {
		return nil
	}
	axis, a := op.Concat.Attr(in).Axis, op.Slice.Attr(n)
	last := a.Start[axis] + (n.Outs[0].Type.Dims[axis]-1)*a.Stride[axis]
	at := int64(0)
	for _, part := range in.Args {
		extent := part.Type.Dims[axis]
		if a.Start[axis] >= at && last < at+extent {
			cut := op.SliceAttr{Start: slices.Clone(a.Start), Limit: slices.Clone(a.Limit), Stride: slices.Clone(a.Stride)}
			cut.Start[axis] -= at
			cut.Limit[axis] = last - at + 1
			if cut.Start[axis]+1 == cut.Limit[axis] {
				cut.Stride[axis] = 1
			}
			return one(op.Slice.Make(b, cut, part))
		}
		at += extent
	}
	return nil
}

// concatSlices matches parts that are all slices of one value with stride 1, each beginning where the one before ends, along the axis of
// the concatenation, and equal elsewhere.
func concatSlices(b *ir.Builder, n *ir.Node) []*ir.Value {
	if len(n.Args) < 2 || !op.Slice.Is(n.Args[0].Def) {
		return nil
	}
	axis, first := op.Concat.Attr(n).Axis, n.Args[0].Def
	a := op.Slice.Attr(first)
	limit := a.Limit[axis]
	for i, part := range n.Args {
		p := part.Def
		if !op.Slice.Is(p) || p.Args[0] != first.Args[0] || op.Slice.Attr(p).Stride[axis] != 1 {
			return nil
		}
		q := op.Slice.Attr(p)
		for d := range q.Start {
			if int64(d) != axis && (q.Start[d] != a.Start[d] || q.Limit[d] != a.Limit[d] || q.Stride[d] != a.Stride[d]) {
				return nil
			}
		}
		if i > 0 {
			if q.Start[axis] != limit {
				return nil
			}
			limit = q.Limit[axis]
		}
	}
	whole := op.SliceAttr{Start: a.Start, Limit: slices.Clone(a.Limit), Stride: a.Stride}
	whole.Limit[axis] = limit
	return one(op.Slice.Make(b, whole, first.Args[0]))
}

// moveSplat matches a first argument of equal known elements: wherever they go the result is made of them.
func moveSplat(b *ir.Builder, n *ir.Node) []*ir.Value {
	s := splat(n.Args[0])
	if s == nil {
		return nil
	}
	return one(makeSplat(b, s, n.Outs[0].Type))
}

// unitIota matches a count that never gets beyond 0.
func unitIota(b *ir.Builder, n *ir.Node) []*ir.Value {
	a := op.Iota.Attr(n)
	if a.Type.Dims[a.Axis] != 1 {
		return nil
	}
	return one(op.Splat(b, a.Type, 0))
}

// unitReduce matches axes of extent 1. A sum of floats begins with 0 and turns -0 into 0, so it stays.
func unitReduce(b *ir.Builder, n *ir.Node) []*ir.Value {
	a, x := op.Reduce.Attr(n), n.Args[0]
	if a.Kind == op.Sum && !x.Type.DType.IsInt() {
		return nil
	}
	for _, d := range a.Axes {
		if x.Type.Dims[d] != 1 {
			return nil
		}
	}
	return one(op.Reshape.Make(b, op.ReshapeAttr{Shape: n.Outs[0].Type.Dims}, x))
}

// splat is the element of a value whose elements are all equal and known, as a 0-d tensor; nil of others. fold leaves such a value as a
// scalar literal and a broadcast.
func splat(v *ir.Value) *tensor.Tensor {
	for {
		switch n := v.Def; {
		case op.Constant.Is(n):
			if s, ok := op.Constant.Attr(n).Value.Splat(); ok {
				return s
			}
			return nil
		case op.Broadcast.Is(n), op.Reshape.Is(n):
			v = n.Args[0]
		default:
			return nil
		}
	}
}

// makeSplat repeats the 0-d tensor s to type t.
func makeSplat(b *ir.Builder, s *tensor.Tensor, t tensor.Type) *ir.Value {
	return op.BroadcastTo(b, op.Constant.Make(b, op.ConstantAttr{Value: s}), t.Dims)
}
