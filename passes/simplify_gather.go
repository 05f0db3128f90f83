package passes

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// affine is what is known of an integer value's elements: that at index i is Base + sum over d of Step[d] * i[d]. Steps along
// extents of 1 are 0.
type affine struct {
	base int64
	step []int64
}

// maxAffine bounds bases and steps, and the nodes that affineOf looks through, so that nothing overflows and a rule costs little.
const (
	maxAffine      = 1 << 31
	maxAffineDepth = 8
)

// affineOf recognises counts: iota and literals, moved, widened, shifted and scaled. It gives nil for others.
func affineOf(v *ir.Value, depth int) *affine {
	n := v.Def
	if n == nil || depth == 0 || !v.Type.DType.IsInt() {
		return nil
	}
	var x *affine
	if len(n.Args) > 0 && !op.Gather.Is(n) {
		if x = affineOf(n.Args[0], depth-1); x == nil {
			return nil
		}
	}
	a := &affine{step: make([]int64, v.Type.Rank())}
	switch {
	case op.Constant.Is(n):
		a = affineInts(op.Constant.Attr(n).Value.Ints(), v.Type.Dims)
	case op.Iota.Is(n):
		a.step[op.Iota.Attr(n).Axis] = 1
	case op.Broadcast.Is(n):
		a.base = x.base
		for i, d := range op.Broadcast.Attr(n).Dims {
			a.step[d] = x.step[i]
		}
	case op.Reshape.Is(n):
		from, to := long(n.Args[0].Type.Dims), long(v.Type.Dims)
		if !sameExtents(n.Args[0].Type.Dims, from, v.Type.Dims, to) {
			return nil
		}
		a.base = x.base
		for i, d := range to {
			a.step[d] = x.step[from[i]]
		}
	case op.Transpose.Is(n):
		a.base = x.base
		for i, d := range op.Transpose.Attr(n).Perm {
			a.step[i] = x.step[d]
		}
	case op.Slice.Is(n):
		s := op.Slice.Attr(n)
		a.base = x.base
		for d := range a.step {
			a.base += s.Start[d] * x.step[d]
			a.step[d] = s.Stride[d] * x.step[d]
		}
	case op.Convert.Is(n):
		a = x
	case op.Add.Is(n), op.Sub.Is(n), op.Mul.Is(n):
		y := affineOf(n.Args[1], depth-1)
		if y == nil {
			return nil
		}
		if a = combine(n, x, y); a == nil {
			return nil
		}
	default:
		return nil
	}
	if a == nil || !a.fits(v.Type) {
		return nil
	}
	for d, extent := range v.Type.Dims {
		if extent == 1 {
			a.step[d] = 0
		}
	}
	return a
}

// combine adds, subtracts or, where one is constant, multiplies.
func combine(n *ir.Node, x, y *affine) *affine {
	a := &affine{step: make([]int64, len(x.step))}
	sign := int64(1)
	switch {
	case op.Sub.Is(n):
		sign = -1
		fallthrough
	case op.Add.Is(n):
		a.base = x.base + sign*y.base
		for d := range a.step {
			a.step[d] = x.step[d] + sign*y.step[d]
		}
		return a
	}
	if y.constant() {
		x, y = y, x
	}
	if !x.constant() {
		return nil
	}
	a.base = x.base * y.base
	for d := range a.step {
		a.step[d] = x.base * y.step[d]
	}
	return a
}

func (a *affine) constant() bool {
	return !slices.ContainsFunc(a.step, func(s int64) bool { return s != 0 })
}

// fits reports that no element is beyond t's dtype or the bound, so that nothing wraps.
func (a *affine) fits(t tensor.Type) bool {
	lo, hi := a.base, a.base
	for d, s := range a.step {
		if s < -maxAffine || s > maxAffine || t.Dims[d] > maxAffine {
			return false
		}
		if last := s * (t.Dims[d] - 1); last < 0 {
			lo += last
		} else {
			hi += last
		}
		if lo < -maxAffine || hi > maxAffine {
			return false
		}
	}
	least, most := t.DType.IntRange()
	if t.DType == tensor.U64 {
		most = maxAffine
	}
	return lo >= least && hi <= most && lo >= -maxAffine && hi <= maxAffine
}

// affineInts fits row-major elements of shape dims; nil where they are no count.
func affineInts(v, dims []int64) *affine {
	if len(v) == 0 {
		return nil
	}
	a := &affine{base: v[0], step: make([]int64, len(dims))}
	strides := tensor.Strides(dims)
	for d, extent := range dims {
		if extent > 1 {
			a.step[d] = v[strides[d]] - v[0]
		}
	}
	for i, w := range v {
		for d, extent := range dims {
			w -= a.step[d] * (int64(i) / strides[d] % extent)
		}
		if w != a.base {
			return nil
		}
	}
	return a
}

// long are the dimensions of more than one element.
func long(dims []int64) (out []int64) {
	for d, extent := range dims {
		if extent != 1 {
			out = append(out, int64(d))
		}
	}
	return out
}

// sameExtents compares the extents of the named dimensions of two shapes, in order.
func sameExtents(x, xd, y, yd []int64) bool {
	return slices.EqualFunc(xd, yd, func(i, j int64) bool { return x[i] == y[j] })
}

// walkOf is how the start of gather's slices moves along one dimension of x: from base in steps along one batch dimension of indices.
type walkOf struct {
	base, step int64
	batch      int // place among the batch dimensions, -1: nowhere
}

// gatherSlice matches indices that are counts, such as positions, arange or the [batch, position] pairs of a mask: each dimension of x is
// walked along at most one batch dimension, forwards and within x, and no two along the same. It slices x, brings the dimensions in
// order and repeats along batch dimensions that nothing depends on.
func gatherSlice(b *ir.Builder, n *ir.Node) []*ir.Value {
	a, x, ids, out := op.Gather.Attr(n), n.Args[0], n.Args[1], n.Outs[0].Type
	if out.Elements() == 0 {
		return nil
	}
	extents := slices.Clone(ids.Type.Dims)
	if int(a.IndexVectorDim) < len(extents) {
		extents = slices.Delete(extents, int(a.IndexVectorDim), int(a.IndexVectorDim)+1)
	}
	walks := make([]walkOf, x.Type.Rank())
	for d := range walks {
		walks[d].batch = -1
	}
	for k, d := range a.StartIndexMap {
		c := component(ids, a.IndexVectorDim, k)
		if c == nil {
			return nil
		}
		walks[d].base = c.base
		for j, s := range c.step {
			switch {
			case s == 0:
			case s < 0 || walks[d].batch >= 0:
				return nil
			default:
				walks[d].step, walks[d].batch = s, j
			}
		}
	}
	for i, d := range a.OperandBatchingDims {
		j := a.StartIndicesBatchingDims[i]
		if j > a.IndexVectorDim {
			j--
		}
		if extents[j] > 1 {
			walks[d].step, walks[d].batch = 1, int(j)
		}
	}
	cut := op.SliceAttr{}
	from := make([]int64, len(extents)) // for each batch dimension the dimension of x that it walks, -1: none
	for j := range from {
		from[j] = -1
	}
	for d, w := range walks {
		size, stride, last := a.SliceSizes[d], int64(1), w.base+a.SliceSizes[d]-1
		if w.batch >= 0 {
			if size != 1 || from[w.batch] >= 0 {
				return nil
			}
			from[w.batch] = int64(d)
			stride, last = w.step, w.base+w.step*(extents[w.batch]-1)
		}
		if w.base < 0 || last >= x.Type.Dims[d] {
			return nil // clamped
		}
		cut.Start, cut.Limit, cut.Stride = append(cut.Start, w.base), append(cut.Limit, last+1), append(cut.Stride, stride)
	}
	y := op.Slice.Make(b, cut, x)
	// Where every result dimension comes from: a batch dimension's walk, or a dimension of the slices that nothing walks.
	var order, shape, places []int64
	batch, offset := 0, 0
	var window []int64
	for d := range int64(x.Type.Rank()) {
		if !slices.Contains(a.CollapsedSliceDims, d) && !slices.Contains(a.OperandBatchingDims, d) {
			window = append(window, d)
		}
	}
	for r := range int64(out.Rank()) {
		d := int64(-1)
		if slices.Contains(a.OffsetDims, r) {
			if d = window[offset]; walks[d].batch >= 0 {
				d = -1 // extent 1; the batch dimension has the elements
			}
			offset++
		} else {
			d = from[batch]
			batch++
		}
		if d >= 0 {
			order, shape, places = append(order, d), append(shape, y.Type.Dims[d]), append(places, r)
		}
	}
	for d := range int64(x.Type.Rank()) {
		if !slices.Contains(order, d) {
			order = append(order, d) // extent 1, dropped
		}
	}
	y = op.Transpose.Make(b, op.TransposeAttr{Perm: order}, y)
	y = op.Reshape.Make(b, op.ReshapeAttr{Shape: shape}, y)
	return one(op.Broadcast.Make(b, op.BroadcastAttr{Shape: out.Dims, Dims: places}, y))
}

// component gives component k of the indices as a count along their batch dimensions, nil where it is none. They are a literal, or the
// components joined along the vector dimension.
func component(ids *ir.Value, vector int64, k int) *affine {
	n := ids.Def
	switch {
	case int(vector) == ids.Type.Rank():
		return affineOf(ids, maxAffineDepth)
	case op.Constant.Is(n):
		before, after := product(ids.Type.Dims[:vector]), product(ids.Type.Dims[vector+1:])
		all, extent := op.Constant.Attr(n).Value.Ints(), ids.Type.Dims[vector]
		var v []int64
		for i := range before {
			from := (i*extent + int64(k)) * after
			v = append(v, all[from:from+after]...)
		}
		a := affineInts(v, slices.Concat(ids.Type.Dims[:vector], ids.Type.Dims[vector+1:]))
		if a == nil || slices.ContainsFunc(append(a.step, a.base), func(s int64) bool { return s < -maxAffine || s > maxAffine }) {
			return nil
		}
		return a
	case op.Concat.Is(n) && op.Concat.Attr(n).Axis == vector && len(n.Args) == int(ids.Type.Dims[vector]):
		if a := affineOf(n.Args[k], maxAffineDepth); a != nil {
			return &affine{a.base, slices.Delete(a.step, int(vector), int(vector)+1)}
		}
	case op.Reshape.Is(n) && ids.Type.Dims[vector] == 1: // one component, its dimension inserted
		if a := affineOf(ids, maxAffineDepth); a != nil {
			return &affine{a.base, slices.Delete(a.step, int(vector), int(vector)+1)}
		}
	}
	return nil
}

// product of extents.
func product(dims []int64) int64 { return tensor.Type{Dims: dims}.Elements() }
