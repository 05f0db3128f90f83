package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
)

// follow finds the extents of the results of nodes that were built since the last time.
func (x *extents) follow(b *ir.Builder) {
	from := x.seen[b]
	x.seen[b] = len(b.Body)
	if len(x.of) == 0 || from > len(b.Body) {
		return
	}
	for _, n := range b.Body[from:] {
		var args []extent
		open := false
		for _, a := range n.Args {
			e, ok := x.of[a]
			if !ok {
				e = whole
			}
			e.count = x.one(e.count)
			open = open || ok
			args = append(args, e)
		}
		if !open {
			continue
		}
		out, ok := flow(n, args)
		if !ok {
			out = spoilt
		}
		for _, o := range n.Outs {
			if _, given := x.of[o]; !given && !x.meant[o] && out != whole {
				x.of[o] = out
			}
		}
	}
}

// whole is the extent of a value without one.
var whole = extent{axis: -2}

// flow is the extent of n's results from those of its arguments; ok is false where elements beyond an extent reach others.
func flow(n *ir.Node, args []extent) (out extent, ok bool) {
	if slices.Contains(args, spoilt) {
		return out, false
	}
	x := args[0]
	dims := n.Args[0].Type.Dims
	alone := func() bool { // only the first argument has an extent
		return x != whole && !slices.ContainsFunc(args[1:], func(e extent) bool { return e != whole })
	}
	besides := func(axes ...int64) (extent, bool) { return x, alone() && !slices.Contains(axes, int64(x.axis)) }
	before := func(rank int64) (extent, bool) { return x, alone() && int64(x.axis) < int64(len(dims))-rank }
	switch {
	case n.Op.Traits&ir.Elementwise != 0, op.Select.Is(n):
		return joined(n, args)
	case op.Concat.Is(n):
		e, ok := joined(n, args)
		return e, ok && int64(e.axis) != op.Concat.Attr(n).Axis
	case op.Broadcast.Is(n):
		a := op.Broadcast.Attr(n)
		to := int(a.Dims[x.axis])
		return extent{to, x.scale, x.count}, a.Shape[to] == dims[x.axis]
	case op.Reshape.Is(n):
		return reshaped(dims, n.Outs[0].Type.Dims, x)
	case op.Transpose.Is(n):
		return extent{slices.Index(op.Transpose.Attr(n).Perm, int64(x.axis)), x.scale, x.count}, true
	case op.Slice.Is(n):
		a := op.Slice.Attr(n)
		if a.Start[x.axis] != 0 || a.Stride[x.axis] != 1 {
			return out, false
		}
		if a.Limit[x.axis] < dims[x.axis] { // the program asserts that there are so many; a size less than the count's is no size that is recorded
			return whole, true
		}
		return x, true
	case op.Pad.Is(n):
		a := op.Pad.Attr(n)
		return x, alone() && a.Low[x.axis] == 0 && a.High[x.axis] == 0 && a.Interior[x.axis] == 0
	case op.Reverse.Is(n):
		return besides(op.Reverse.Attr(n).Axes...)
	case op.Reduce.Is(n):
		axes := op.Reduce.Attr(n).Axes
		if slices.Contains(axes, int64(x.axis)) {
			return out, false
		}
		before := 0
		for _, a := range axes {
			if a < int64(x.axis) {
				before++
			}
		}
		return extent{x.axis - before, x.scale, x.count}, true
	case op.Sort.Is(n):
		e, ok := joined(n, args)
		return e, ok && int64(e.axis) != op.Sort.Attr(n).Axis
	case op.TopK.Is(n):
		return besides(op.TopK.Attr(n).Axis)
	case op.CumSum.Is(n): // sums up to an element hold none beyond it
		a := op.CumSum.Attr(n)
		return x, int64(x.axis) != a.Axis || !a.Reverse
	case op.CumProd.Is(n):
		return x, true
	case op.Softmax.Is(n):
		return besides(op.Softmax.Attr(n).Axis)
	case op.LogSoftmax.Is(n):
		return besides(op.LogSoftmax.Attr(n).Axis)
	case op.Linear.Is(n):
		return before(1)
	case op.LayerNorm.Is(n):
		return before(op.LayerNorm.Attr(n).Rank)
	case op.RMSNorm.Is(n):
		return before(op.RMSNorm.Attr(n).Rank)
	case op.GroupNorm.Is(n), op.Conv.Is(n):
		return x, alone() && x.axis == 0
	case op.ReduceWindow.Is(n):
		a := op.ReduceWindow.Attr(n)
		return x, a.Window[x.axis] == 1 && a.Strides[x.axis] == 1 && a.Padding[x.axis][0] == 0 && a.Padding[x.axis][1] == 0
	case op.Attention.Is(n): // the batch
		for i, e := range args {
			if e == whole && (n.Args[i].Type.Rank() != 4 || n.Args[i].Type.Dims[0] != 1) || e != whole && (e.axis != 0 || out.count != nil && e != out) {
				return out, false
			}
			if e != whole {
				out = e
			}
		}
		return out, args[0] != whole
	case op.Dot.Is(n):
		return dotExtent(op.Dot.Attr(n), n, args)
	case op.Take.Is(n):
		return takeExtent(int(op.Take.Attr(n).Axis), n.Args[1].Type.Rank(), args)
	case op.Embedding.Is(n):
		return args[1], args[0] == whole
	case op.Gather.Is(n):
		a := op.Gather.Attr(n)
		e := args[1]
		if args[0] != whole || int64(e.axis) == a.IndexVectorDim {
			return out, false
		}
		at := e.axis
		if int64(at) > a.IndexVectorDim {
			at--
		}
		for d := range n.Outs[0].Type.Rank() { // the at-th of the dimensions that do not run within a slice
			if slices.Contains(a.OffsetDims, int64(d)) {
				continue
			}
			if at == 0 {
				return extent{d, e.scale, e.count}, true
			}
			at--
		}
	}
	return out, false
}

// joined is the extent that all arguments of one shape have. Those without one are meant whole, and so are not less than the others.
func joined(n *ir.Node, args []extent) (out extent, ok bool) {
	out = whole
	for i, e := range args {
		switch {
		case e == whole:
		case n.Args[i].Type.Rank() != n.Outs[0].Type.Rank():
			return out, false
		case out == whole:
			out = e
		case out != e:
			return out, false
		}
	}
	return out, true
}

// reshaped is the extent of elements in other dimensions: those that are meant must be the first along one of them, of the same blocks.
func reshaped(from, to []int64, e extent) (extent, bool) {
	product := func(dims []int64) int64 {
		n := int64(1)
		for _, d := range dims {
			n *= d
		}
		return n
	}
	blocks, block := product(from[:e.axis]), product(from[e.axis+1:])
	for d := range to {
		if rest := product(to[d+1:]); to[d] > 1 && product(to[:d]) == blocks && rest > 0 {
			return extent{d, e.scale * block / rest, e.count}, e.scale*block%rest == 0
		}
	}
	return e, false
}

// dotExtent is of a product, whose dimensions are those of the batch, the others of the left side, and the others of the right side.
func dotExtent(a op.DotAttr, n *ir.Node, args []extent) (out extent, ok bool) {
	pair := func(p [][]int64, side int) []int64 {
		if len(p) == 0 {
			return nil
		}
		return p[side]
	}
	out = whole
	at := len(pair(a.Batch, 0))
	for side, e := range args[:2] {
		batch, contract := pair(a.Batch, side), pair(a.Contract, side)
		free := slices.DeleteFunc(iotaInts(n.Args[side].Type.Rank()), func(d int64) bool { return slices.Contains(batch, d) || slices.Contains(contract, d) })
		first := at
		at += len(free)
		if e == whole {
			continue
		}
		d := slices.Index(batch, int64(e.axis))
		if d < 0 {
			if d = slices.Index(free, int64(e.axis)); d < 0 {
				return out, false // it is summed over
			}
			d += first
		}
		moved := extent{d, e.scale, e.count}
		if out != whole && out != moved {
			return out, false
		}
		out = moved
	}
	return out, true
}

// takeExtent is of slices along axis at ids of a rank.
func takeExtent(axis, rank int, args []extent) (extent, bool) {
	x, ids := args[0], args[1]
	switch {
	case x == whole:
		return extent{axis + ids.axis, ids.scale, ids.count}, true
	case ids != whole || x.axis == axis:
		return x, false
	case x.axis > axis:
		return extent{x.axis + rank - 1, x.scale, x.count}, true
	}
	return x, true
}
