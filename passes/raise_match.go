package passes

import (
	"slices"
	"strconv"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Helpers of raise's matchers. A pattern is in f32 or f64: narrower dtypes round after every operator, composites once.

// wide reports a dtype in which composites do not round between their steps.
func wide(v *ir.Value) bool {
	d := v.Type.DType
	return d.IsFloat() && d.Bits() >= 32
}

// splatOf is the float that v is everywhere; ok is false where it is not known.
func splatOf(v *ir.Value) (w float64, ok bool) {
	if s := splat(v); s != nil && s.DType.IsFloat() {
		return s.Floats()[0], true
	}
	return 0, false
}

// is reports a known value that is w rounded to v's dtype.
func is(v *ir.Value, w float64) bool {
	got, ok := splatOf(v)
	return ok && got == tensor.Scalar(v.Type.DType, w).Floats()[0]
}

// withSplat splits a commutative or a dividing node into the argument that is not known and the one that is.
func withSplat(n *ir.Node) (x *ir.Value, w float64, ok bool) {
	if w, ok = splatOf(n.Args[1]); ok {
		return n.Args[0], w, true
	}
	if w, ok = splatOf(n.Args[0]); ok && n.Op.Traits&ir.Commutative != 0 {
		return n.Args[1], w, true
	}
	return nil, 0, false
}

// shortest is the decimal that rounds to w in v's dtype, so that a written 1e-06 comes back as that.
func shortest(v *ir.Value, w float64) float64 {
	if v.Type.DType != tensor.F32 {
		return w
	}
	d, err := strconv.ParseFloat(strconv.FormatFloat(w, 'g', -1, 32), 64)
	if err != nil {
		return w
	}
	return d
}

// pairs gives a node's two arguments in both orders, so that a pattern need not know which side is which.
func pairs(n *ir.Node) [2][2]*ir.Value {
	return [2][2]*ir.Value{{n.Args[0], n.Args[1]}, {n.Args[1], n.Args[0]}}
}

// spread matches v = broadcast(s) to x's shape and gives s and, in order, the dimensions of x that s's long dimensions are; a v of x's shape that
// is no broadcast is its own.
func spread(v *ir.Value) (s *ir.Value, dims []int64) {
	if !op.Broadcast.Is(v.Def) {
		return v, long(v.Type.Dims)
	}
	s = v.Def.Args[0]
	return s, at(op.Broadcast.Attr(v.Def).Dims, long(s.Type.Dims))
}

// unkeep looks through a reshape that only inserts or drops dimensions of extent 1.
func unkeep(v *ir.Value) *ir.Value {
	if op.Reshape.Is(v.Def) {
		x := v.Def.Args[0]
		if sameExtents(v.Type.Dims, long(v.Type.Dims), x.Type.Dims, long(x.Type.Dims)) {
			return x
		}
	}
	return v
}

// reduced matches r = reduce(y) over axes of y's, where dims, the long dimensions that are left, are those of the spread result.
func reduced(r *ir.Value, kind op.Reducer, dims []int64) (y *ir.Value, axes []int64) {
	r = unkeep(r)
	if !op.Reduce.Is(r.Def) || op.Reduce.Attr(r.Def).Kind != kind {
		return nil, nil
	}
	y, axes = r.Def.Args[0], op.Reduce.Attr(r.Def).Axes
	var left []int64
	for _, d := range long(y.Type.Dims) {
		if !slices.Contains(axes, d) {
			left = append(left, d)
		}
	}
	if !slices.Equal(left, dims) {
		return nil, nil
	}
	return y, axes
}

// meanOf matches m = sum(y) / n or sum(y) * (1/n) over axes of extents n.
func meanOf(m *ir.Value, dims []int64) (y *ir.Value, axes []int64) {
	n := unkeep(m).Def
	if !op.Div.Is(n) && !op.Mul.Is(n) {
		return nil, nil
	}
	sum, w, ok := withSplat(n)
	if !ok {
		return nil, nil
	}
	y, axes = reduced(sum, op.Sum, dims)
	if y == nil {
		return nil, nil
	}
	count := float64(product(at(y.Type.Dims, axes)))
	if op.Mul.Is(n) {
		count = 1 / count
	}
	if w != tensor.Scalar(m.Type.DType, count).Floats()[0] {
		return nil, nil
	}
	return y, axes
}

// lastRank is the number of axes where they are x's last ones, otherwise 0.
func lastRank(x *ir.Value, axes []int64) int64 {
	rank := int64(x.Type.Rank())
	if !slices.Equal(axes, upTo(rank-int64(len(axes)), rank)) {
		return 0
	}
	return int64(len(axes))
}

// alongLast gives w of x's last rank dimensions where v repeats it along the others; nil where it does not. It may build a reshape.
func alongLast(b *ir.Builder, v *ir.Value, rank int64) *ir.Value {
	last := v.Type.Dims[v.Type.Rank()-int(rank):]
	s, dims := spread(v)
	want := long(v.Type.Dims)
	want = slices.DeleteFunc(want, func(d int64) bool { return d < int64(v.Type.Rank())-rank })
	if !slices.Equal(dims, want) {
		return nil
	}
	if slices.Equal(s.Type.Dims, last) {
		return s
	}
	if x := unkeep(s); slices.Equal(x.Type.Dims, last) {
		return x
	}
	return op.Reshape.Make(b, op.ReshapeAttr{Shape: last}, s)
}

// unbroadcast gives v with its repeated dimensions as extents of 1, of v's rank.
func unbroadcast(b *ir.Builder, v *ir.Value) *ir.Value {
	if !op.Broadcast.Is(v.Def) {
		return v
	}
	s := v.Def.Args[0]
	dims := slices.Repeat([]int64{1}, v.Type.Rank())
	for i, d := range op.Broadcast.Attr(v.Def).Dims {
		dims[d] = s.Type.Dims[i]
	}
	return reshapeTo(b, s, dims)
}

// reshapeTo is x in another shape: x itself, what x is a reshape of, or a reshape.
func reshapeTo(b *ir.Builder, x *ir.Value, dims []int64) *ir.Value {
	if slices.Equal(x.Type.Dims, dims) {
		return x
	}
	if op.Reshape.Is(x.Def) {
		return reshapeTo(b, x.Def.Args[0], dims)
	}
	return op.Reshape.Make(b, op.ReshapeAttr{Shape: dims}, x)
}
