package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// arrangeRules join, repeat and reorder elements in new memory.
var arrangeRules = map[string]rule{
	"cat":          value(func(c *call) *ir.Value { return c.cat(c.int("dim")) }),
	"concat":       value(func(c *call) *ir.Value { return c.cat(c.int("dim")) }),
	"concatenate":  value(func(c *call) *ir.Value { return c.cat(c.int("dim")) }),
	"_chunk_cat":   value(chunkCat),
	"stack":        value(stack),
	"hstack":       value(func(c *call) *ir.Value { return c.stackAlong(1, 1, false) }),
	"vstack":       value(func(c *call) *ir.Value { return c.stackAlong(2, 0, false) }),
	"row_stack":    value(func(c *call) *ir.Value { return c.stackAlong(2, 0, false) }),
	"dstack":       value(func(c *call) *ir.Value { return c.stackAlong(3, 2, false) }),
	"column_stack": value(func(c *call) *ir.Value { return c.stackAlong(2, 1, true) }),
	"rot90":        value(rot90),
	"diag":         value(diagonalMatrix),
	"diagflat": value(func(c *call) *ir.Value {
		x := c.val("self")
		return c.diagEmbed(reshape(c.b, x, []int64{x.Type.Elements()}), c.int("offset"))
	}),
	"diag_embed":                 value(diagEmbed),
	"repeat":                     value(repeat("repeats")),
	"tile":                       value(repeat("dims")),
	"repeat_interleave.self_int": value(repeatInterleave),
	"flip": value(func(c *call) *ir.Value {
		x := c.val("self")
		return reverse(c.b, x, c.axesOrNone("dims", x.Type.Rank()))
	}),
	"flipud":            value(func(c *call) *ir.Value { return c.flipAt(0) }),
	"fliplr":            value(func(c *call) *ir.Value { return c.flipAt(1) }),
	"block_diag":        value(blockDiag),
	"cartesian_prod":    value(cartesianProd),
	"combinations":      value(combinations),
	"pad_sequence":      value(padSequence),
	"roll":              value(roll),
	"tril":              value(func(c *call) *ir.Value { return triangle(c, op.LE) }),
	"triu":              value(func(c *call) *ir.Value { return triangle(c, op.GE) }),
	"pixel_shuffle":     value(pixelShuffle),
	"pixel_unshuffle":   value(pixelUnshuffle),
	"channel_shuffle":   value(channelShuffle),
	"meshgrid":          meshgrid,
	"meshgrid.indexing": meshgrid,
	"broadcast_tensors": broadcastTensors,
}

// cat joins in the common dtype. Empty 1-d tensors count as nothing, as torch keeps for old programs.
func (c *call) cat(dim int64) *ir.Value {
	xs := c.vals("tensors")
	ops := make([]operand, len(xs))
	for i, x := range xs {
		ops[i] = tensorOperand(x)
	}
	d := resultType(ops...)
	var kept []*ir.Value
	for _, x := range xs {
		if x.Type.Rank() != 1 || x.Type.Dims[0] != 0 {
			kept = append(kept, c.cast(x, d))
		}
	}
	if len(kept) == 0 {
		if len(xs) == 0 {
			c.failf("no tensors, wanted one or more")
		}
		return c.cast(xs[0], d)
	}
	axis := c.wrap("dim", dim, kept[0].Type.Rank())
	if y, open := c.joinParts(axis, kept); open {
		return y
	}
	return concat(c.b, axis, kept...)
}

// chunkCat fills up each tensor along dim with zeros to num_chunks equal chunks, flattens every chunk with the dimensions that follow, and
// joins the chunks of the same number.
func chunkCat(c *call) *ir.Value {
	xs, k := c.vals("tensors"), c.int("num_chunks")
	if len(xs) == 0 || k < 1 || k > maxParts {
		c.failf("%d chunks of %d tensors, wanted 1 or more", k, len(xs))
	}
	axis := c.axis("dim", xs[0].Type.Rank())
	for i, x := range xs {
		if x.Type.Rank() <= axis {
			c.failf("tensor %d is %s, wanted a dimension %d", i, x.Type, axis)
		}
		n := x.Type.Dims[axis]
		high := make([]int64, x.Type.Rank())
		high[axis] = (n+k-1)/k*k - n
		pad := op.PadAttr{Low: make([]int64, len(high)), High: high, Interior: make([]int64, len(high))}
		full := op.Pad.Make(c.b, pad, x, zero(c.b, x.Type.DType))
		rest := full.Type.WithDims(full.Type.Dims[axis:]...).Elements() / k
		xs[i] = reshape(c.b, full, slices.Concat(x.Type.Dims[:axis], []int64{k, rest}))
	}
	return concat(c.b, axis+1, xs...)
}

// stack joins tensors of one shape along a new dimension, in their common dtype.
func stack(c *call) *ir.Value {
	xs := c.vals("tensors")
	if len(xs) == 0 {
		c.failf("no tensors, wanted one or more")
	}
	ops := make([]operand, len(xs))
	for i, x := range xs {
		ops[i] = tensorOperand(x)
	}
	d := resultType(ops...)
	at := c.wrap("dim", c.int("dim"), xs[0].Type.Rank()+1)
	for i, x := range xs {
		if at > x.Type.Rank() {
			c.failf("tensor %d is %s, wanted rank %d", i, x.Type, xs[0].Type.Rank())
		}
		xs[i] = reshape(c.b, c.cast(x, d), slices.Insert(slices.Clone(x.Type.Dims), at, 1))
	}
	return concat(c.b, at, xs...)
}

// padSequence stacks tensors whose first dimensions differ, the shorter ones filled up with padding_value; without batch_first they stand along
// the second dimension.
func padSequence(c *call) *ir.Value {
	xs := c.vals("sequences")
	if len(xs) == 0 || xs[0].Type.Rank() == 0 {
		c.failf("%d sequences, wanted one or more of rank 1 or more", len(xs))
	}
	side := c.str("padding_side")
	if side != "right" && side != "left" {
		c.failf("padding_side is %q, wanted left or right", clip(side))
	}
	first := xs[0].Type
	most := int64(0)
	for i, x := range xs {
		if x.Type.Rank() != first.Rank() || x.Type.DType != first.DType || !slices.Equal(x.Type.Dims[1:], first.Dims[1:]) {
			c.failf("sequence %d is %s, the first one %s, wanted other first dimensions at most", i, x.Type, first)
		}
		most = max(most, x.Type.Dims[0])
	}
	at := btoi(!c.bool("batch_first"))
	v := constant(c.b, first.DType, c.scalar("padding_value"))
	for i, x := range xs {
		a := op.PadAttr{Low: make([]int64, first.Rank()), High: make([]int64, first.Rank()), Interior: make([]int64, first.Rank())}
		if missing := most - x.Type.Dims[0]; side == "left" {
			a.Low[0] = missing
		} else {
			a.High[0] = missing
		}
		x = op.Pad.Make(c.b, a, x, v)
		xs[i] = reshape(c.b, x, slices.Insert(slices.Clone(x.Type.Dims), at, 1))
	}
	return concat(c.b, at, xs...)
}

// repeat tiles: each dimension n becomes repeats*n.
func repeat(name string) func(c *call) *ir.Value {
	return func(c *call) *ir.Value {
		x := c.val("self")
		reps := c.ints(name)
		dims := x.Type.Dims
		if len(reps) < len(dims) {
			if name == "repeats" {
				c.failf("%d repeats, wanted at least the rank %d", len(reps), len(dims))
			}
			reps = slices.Concat(slices.Repeat([]int64{1}, len(dims)-len(reps)), reps)
		}
		dims = slices.Concat(slices.Repeat([]int64{1}, len(reps)-len(dims)), dims)
		// Each dimension is split in (repeat, element), repeated, and merged.
		var split, full, merged []int64
		var at []int64
		for i, n := range dims {
			if reps[i] < 0 || n > 0 && reps[i] > (1<<40)/n {
				c.failf("repeats are %v, wanted 0 or more", reps)
			}
			split = append(split, n)
			at = append(at, int64(len(full)+1))
			full = append(full, reps[i], n)
			merged = append(merged, reps[i]*n)
		}
		y := reshape(c.b, x, split)
		if len(full) > 0 {
			y = op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: full, Dims: at}, y)
		}
		return reshape(c.b, y, merged)
	}
}

// repeatInterleave repeats each element along a dimension.
func repeatInterleave(c *call) *ir.Value {
	x, n := c.val("self"), c.int("repeats")
	axis := 0
	if c.has("dim") {
		axis = c.axis("dim", x.Type.Rank())
	} else {
		x = reshape(c.b, x, []int64{x.Type.Elements()})
	}
	if n < 0 || x.Type.Rank() == 0 || n > 1<<40/max(x.Type.Dims[axis], 1) {
		c.failf("%d repeats of %s", n, x.Type)
	}
	dims := x.Type.Dims
	full := slices.Insert(slices.Clone(dims), axis+1, n)
	at := slices.Delete(iotaInts(len(full)), axis+1, axis+2)
	y := op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: full, Dims: at}, x)
	merged := slices.Clone(dims)
	merged[axis] *= n
	return reshape(c.b, y, merged)
}

// reverse turns the order along axes, given in any order.
func reverse(b *ir.Builder, x *ir.Value, axes []int64) *ir.Value {
	if len(axes) == 0 {
		return x
	}
	return op.Reverse.Make(b, op.ReverseAttr{Axes: slices.Sorted(slices.Values(axes))}, x)
}

// flipAt turns the order along one dimension.
func (c *call) flipAt(axis int) *ir.Value {
	x := c.val("self")
	if axis >= x.Type.Rank() {
		c.failf("self is %s, wanted a dimension %d", x.Type, axis)
	}
	return reverse(c.b, x, []int64{int64(axis)})
}

// roll shifts elements around the ends; without dims the flattened tensor.
func roll(c *call) *ir.Value {
	x := c.val("self")
	shifts, axes := c.ints("shifts"), c.axesOrNone("dims", x.Type.Rank())
	y := x
	if len(axes) == 0 {
		y, axes = reshape(c.b, x, []int64{x.Type.Elements()}), []int64{0}
	}
	if len(shifts) != len(axes) || x.Type.Rank() == 0 && len(c.ints("dims")) > 0 {
		c.failf("%d shifts for %d dims", len(shifts), len(axes))
	}
	for i, a := range axes {
		n := y.Type.Dims[a]
		if n == 0 {
			continue
		}
		if k := floorMod(shifts[i], n); k != 0 {
			y = concat(c.b, int(a), slice(c.b, y, int(a), n-k, n, 1), slice(c.b, y, int(a), 0, n-k, 1))
		}
	}
	return reshape(c.b, y, x.Type.Dims)
}

// triangle keeps the elements with column - row <= or >= diagonal, the others are 0.
func triangle(c *call, dir op.CompareDir) *ir.Value {
	x := c.val("self")
	rank := x.Type.Rank()
	if rank < 2 {
		c.failf("self is %s, wanted rank 2 or more", x.Type)
	}
	dims := x.Type.Dims[rank-2:]
	diff := op.Sub.Make(c.b, counting(c.b, tensor.I64, dims, 1), counting(c.b, tensor.I64, dims, 0))
	keep := op.BroadcastTo(c.b, compare(c.b, dir, diff, like(c.b, diff, intScalar(c.int("diagonal")))), x.Type.Dims)
	return op.Select.Make(c.b, keep, x, likeF(c.b, x, 0))
}

// pixelShuffle moves r*r blocks of channels into the last two dimensions.
func pixelShuffle(c *call) *ir.Value {
	x, r := c.val("self"), c.int("upscale_factor")
	n := x.Type.Rank()
	if n < 3 || r < 1 || x.Type.Dims[n-3]%(r*r) != 0 {
		c.failf("self is %s with factor %d, wanted channels that it divides", x.Type, r)
	}
	lead, ch, h, w := x.Type.Dims[:n-3], x.Type.Dims[n-3]/(r*r), x.Type.Dims[n-2], x.Type.Dims[n-1]
	y := reshape(c.b, x, slices.Concat(lead, []int64{ch, r, r, h, w}))
	p, k := iotaInts(n-3), int64(n-3)
	y = transpose(c.b, y, append(p, k, k+3, k+1, k+4, k+2))
	return reshape(c.b, y, slices.Concat(lead, []int64{ch, h * r, w * r}))
}

// pixelUnshuffle is the inverse of pixelShuffle.
func pixelUnshuffle(c *call) *ir.Value {
	x, r := c.val("self"), c.int("downscale_factor")
	n := x.Type.Rank()
	if n < 3 || r < 1 || x.Type.Dims[n-2]%r != 0 || x.Type.Dims[n-1]%r != 0 {
		c.failf("self is %s with factor %d, wanted sizes that it divides", x.Type, r)
	}
	lead, ch, h, w := x.Type.Dims[:n-3], x.Type.Dims[n-3], x.Type.Dims[n-2]/r, x.Type.Dims[n-1]/r
	y := reshape(c.b, x, slices.Concat(lead, []int64{ch, h, r, w, r}))
	p, k := iotaInts(n-3), int64(n-3)
	y = transpose(c.b, y, append(p, k, k+2, k+4, k+1, k+3))
	return reshape(c.b, y, slices.Concat(lead, []int64{ch * r * r, h, w}))
}

// channelShuffle deals the channels, dimension 1, out to groups: channel g*k+i goes to i*groups+g.
func channelShuffle(c *call) *ir.Value {
	x, g := c.val("self"), c.int("groups")
	if x.Type.Rank() < 3 || g < 1 || x.Type.Dims[1]%g != 0 {
		c.failf("self is %s with %d groups", x.Type, g)
	}
	dims := x.Type.Dims
	y := reshape(c.b, x, slices.Concat(dims[:1], []int64{g, dims[1] / g}, dims[2:]))
	return reshape(c.b, swap(c.b, y, 1, 2), dims)
}

// meshgrid spreads 1-d tensors over a grid. With indexing xy the first two change places in the grid, not in the results.
func meshgrid(c *call) []*ref {
	xs := c.vals("tensors")
	xy := c.schema.param("indexing") != nil && c.str("indexing") == "xy" && len(xs) >= 2
	if xy {
		xs[0], xs[1] = xs[1], xs[0]
	}
	var dims []int64
	for _, x := range xs {
		dims = append(dims, x.Type.Elements())
	}
	var out []*ref
	for i, x := range xs {
		out = append(out, fresh(along(c.b, reshape(c.b, x, dims[i:i+1]), dims, i)))
	}
	if xy {
		out[0], out[1] = out[1], out[0]
	}
	return out
}

// broadcastTensors gives views of one common shape.
func broadcastTensors(c *call) []*ref {
	rs := c.refs("tensors")
	ops := make([]operand, len(rs))
	for i, r := range rs {
		ops[i] = tensorOperand(r.read(c.b))
	}
	dims := c.broadcastDims(ops...)
	out := make([]*ref, len(rs))
	for i, r := range rs {
		out[i] = r.through(c.b, expandView(r.typ.Dims, dims))
	}
	return out
}

// stackAlong joins tensors along axis, after giving each a least rank: at the front, and for rank 3 one at the end; columns turn 1-d
// tensors into columns.
func (c *call) stackAlong(rank, axis int, columns bool) *ir.Value {
	xs := c.vals("tensors")
	if len(xs) == 0 {
		c.failf("no tensors, wanted one or more")
	}
	ops := make([]operand, len(xs))
	for i, x := range xs {
		ops[i] = tensorOperand(x)
	}
	d := resultType(ops...)
	for i, x := range xs {
		dims := slices.Clone(x.Type.Dims)
		switch {
		case len(dims) == 0:
			dims = slices.Repeat([]int64{1}, rank)
		case len(dims) == 1 && columns:
			dims = append(dims, 1)
		case len(dims) == 1 && rank == 2:
			dims = []int64{1, dims[0]}
		case len(dims) == 1 && rank == 3:
			dims = []int64{1, dims[0], 1}
		case len(dims) == 2 && rank == 3:
			dims = append(dims, 1)
		}
		xs[i] = reshape(c.b, c.cast(x, d), dims)
	}
	if xs[0].Type.Rank() == 1 {
		axis = 0
	}
	return concat(c.b, axis, xs...)
}

// rot90 turns the plane of two dimensions k times from the first to the second.
func rot90(c *call) *ir.Value {
	x := c.val("self")
	axes := c.axesOrNone("dims", x.Type.Rank())
	if len(axes) != 2 {
		c.failf("%d dims, wanted 2", len(axes))
	}
	a, b := axes[:1], axes[1:]
	turned := func(first []int64) *ir.Value { return swap(c.b, reverse(c.b, x, first), int(axes[0]), int(axes[1])) }
	switch floorMod(c.int("k"), 4) {
	case 1:
		return turned(b)
	case 2:
		return reverse(c.b, x, axes)
	case 3:
		return turned(a)
	}
	return x
}

// diagonalMatrix is the matrix with a diagonal, or the diagonal of a matrix.
func diagonalMatrix(c *call) *ir.Value {
	x := c.ref("self")
	off := c.int("diagonal")
	if x.typ.Rank() == 1 {
		return c.diagEmbed(x.read(c.b), off)
	}
	if x.typ.Rank() != 2 {
		c.failf("self is %s, wanted rank 1 or 2", x.typ)
	}
	return c.diagonalOf(x, 0, 1, off).read(c.b, x.read(c.b))
}

// diagEmbed puts the last dimension on a diagonal of two new ones at the end.
func (c *call) diagEmbed(x *ir.Value, off int64) *ir.Value {
	n := x.Type.Rank()
	if n == 0 || max(off, -off) > 1<<24 {
		c.failf("self is %s with offset %d", x.Type, off)
	}
	low, high := make([]int64, n), make([]int64, n)
	low[n-1], high[n-1] = max(-off, 0), max(off, 0)
	rows := op.Pad.Make(c.b, op.PadAttr{Low: low, High: high, Interior: make([]int64, n)}, x, zero(c.b, x.Type.DType))
	size := rows.Type.Dims[n-1]
	full := append(slices.Clone(rows.Type.Dims), size)
	y := op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: full, Dims: iotaInts(n)}, rows)
	plane := []int64{size, size}
	diff := op.Sub.Make(c.b, counting(c.b, tensor.I64, plane, 1), counting(c.b, tensor.I64, plane, 0))
	on := op.BroadcastTo(c.b, compare(c.b, op.EQ, diff, like(c.b, diff, intScalar(off))), full)
	return op.Select.Make(c.b, on, y, likeF(c.b, y, 0))
}

// diagEmbed is the batched diagonal with the two new dimensions at dim1 and dim2.
func diagEmbed(c *call) *ir.Value {
	x := c.val("self")
	rank := x.Type.Rank() + 1
	d1, d2 := c.wrap("dim1", c.int("dim1"), rank), c.wrap("dim2", c.int("dim2"), rank)
	if d1 == d2 {
		c.failf("dim1 and dim2 are %d, wanted two dimensions", d1)
	}
	y := c.diagEmbed(x, c.int("offset"))
	perm := make([]int64, rank)
	next := int64(0)
	for i := range perm {
		switch i {
		case d1:
			perm[i] = int64(rank - 2)
		case d2:
			perm[i] = int64(rank - 1)
		default:
			perm[i] = next
			next++
		}
	}
	return transpose(c.b, y, perm)
}
