package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// shapeRules move elements without computing. Those that torch defines as views share memory.
var shapeRules = map[string]rule{
	"view":                       seen(func(c *call, x *ref) view { return reshapeView(x.typ.Dims, c.sizes("size", x.typ)) }),
	"_unsafe_view":               seen(func(c *call, x *ref) view { return reshapeView(x.typ.Dims, c.sizes("size", x.typ)) }),
	"view_as":                    seen(func(c *call, x *ref) view { return reshapeView(x.typ.Dims, c.ref("other").typ.Dims) }),
	"reshape":                    func(c *call) []*ref { x := c.ref("self"); return c.reshaped(x, c.sizes("shape", x.typ)) },
	"_reshape_copy":              value(func(c *call) *ir.Value { x := c.ref("self"); return reshape(c.b, x.read(c.b), c.sizes("size", x.typ)) }),
	"reshape_as":                 func(c *call) []*ref { return c.reshaped(c.ref("self"), c.ref("other").typ.Dims) },
	"flatten.using_ints":         func(c *call) []*ref { x := c.ref("self"); return c.reshaped(x, c.flattened(x.typ)) },
	"ravel":                      func(c *call) []*ref { x := c.ref("self"); return c.reshaped(x, []int64{x.typ.Elements()}) },
	"unflatten.int":              seen(unflatten),
	"unsqueeze":                  seen(unsqueeze),
	"squeeze":                    seen(func(_ *call, x *ref) view { return squeeze(x, iotaInts(x.typ.Rank())) }),
	"squeeze.dim":                seen(func(c *call, x *ref) view { return squeeze(x, c.axes("dim", x.typ.Rank())) }),
	"squeeze.dims":               seen(func(c *call, x *ref) view { return squeeze(x, c.axesOrNone("dim", x.typ.Rank())) }),
	"expand":                     seen(func(c *call, x *ref) view { return expandView(x.typ.Dims, c.expanded("size", x.typ.Dims)) }),
	"broadcast_to":               seen(func(c *call, x *ref) view { return expandView(x.typ.Dims, c.expanded("size", x.typ.Dims)) }),
	"expand_as":                  seen(func(c *call, x *ref) view { return expandView(x.typ.Dims, c.ref("other").typ.Dims) }),
	"transpose.int":              seen(func(c *call, x *ref) view { return c.swapped(x, "dim0", "dim1") }),
	"swapaxes":                   seen(func(c *call, x *ref) view { return c.swapped(x, "axis0", "axis1") }),
	"swapdims":                   seen(func(c *call, x *ref) view { return c.swapped(x, "dim0", "dim1") }),
	"t":                          seen(func(_ *call, x *ref) view { return reversedView(x) }),
	"numpy_T":                    seen(func(_ *call, x *ref) view { return reversedView(x) }),
	"mT":                         seen(func(c *call, x *ref) view { return lastTwo(c, x) }),
	"adjoint":                    realOnly(seen(func(c *call, x *ref) view { return lastTwo(c, x) })),
	"permute":                    seen(func(c *call, x *ref) view { return permuteView(c.axesOrNone("dims", x.typ.Rank())) }),
	"movedim.int":                seen(movedim),
	"movedim.intlist":            seen(movedim),
	"moveaxis.int":               seen(movedim),
	"moveaxis.intlist":           seen(movedim),
	"slice.Tensor":               seen(sliced),
	"narrow":                     seen(narrow),
	"select.int":                 func(c *call) []*ref { return []*ref{c.selected()} },
	"unbind.int":                 unbind,
	"split.Tensor":               func(c *call) []*ref { return c.split(repeatedSizes(c, "split_size")) },
	"split_with_sizes":           func(c *call) []*ref { return c.split(c.ints("split_sizes")) },
	"split.sizes":                func(c *call) []*ref { return c.split(c.ints("split_size")) },
	"unsafe_split.Tensor":        func(c *call) []*ref { return c.split(repeatedSizes(c, "split_size")) },
	"unsafe_split_with_sizes":    func(c *call) []*ref { return c.split(c.ints("split_sizes")) },
	"chunk":                      func(c *call) []*ref { return c.split(chunkSizes(c)) },
	"unsafe_chunk":               func(c *call) []*ref { return c.split(chunkSizes(c)) },
	"tensor_split.sections":      func(c *call) []*ref { return c.split(sectionSizes(c)) },
	"unfold":                     seen(unfold),
	"diagonal":                   seen(diagonal),
	"as_strided":                 seen(asStrided),
	"cat":                        value(func(c *call) *ir.Value { return c.cat(c.int("dim")) }),
	"concat":                     value(func(c *call) *ir.Value { return c.cat(c.int("dim")) }),
	"concatenate":                value(func(c *call) *ir.Value { return c.cat(c.int("dim")) }),
	"stack":                      value(stack),
	"repeat":                     value(repeat("repeats")),
	"tile":                       value(repeat("dims")),
	"repeat_interleave.self_int": value(repeatInterleave),
	"flip": value(func(c *call) *ir.Value {
		x := c.val("self")
		return reverse(c.b, x, c.axesOrNone("dims", x.Type.Rank()))
	}),
	"roll":              value(roll),
	"tril":              value(func(c *call) *ir.Value { return triangle(c, op.LE) }),
	"triu":              value(func(c *call) *ir.Value { return triangle(c, op.GE) }),
	"pixel_shuffle":     value(pixelShuffle),
	"pixel_unshuffle":   value(pixelUnshuffle),
	"channel_shuffle":   value(channelShuffle),
	"meshgrid":          meshgrid,
	"meshgrid.indexing": meshgrid,
	"broadcast_tensors": broadcastTensors,
	"pad":               value(pad),
	"constant_pad_nd":   value(func(c *call) *ir.Value { return c.constantPad(c.val("self"), c.ints("pad"), c.scalar("value")) }),
	"reflection_pad1d":  value(func(c *call) *ir.Value { return c.edgePad(c.val("self"), c.ints("padding"), "reflect") }),
	"reflection_pad2d":  value(func(c *call) *ir.Value { return c.edgePad(c.val("self"), c.ints("padding"), "reflect") }),
	"reflection_pad3d":  value(func(c *call) *ir.Value { return c.edgePad(c.val("self"), c.ints("padding"), "reflect") }),
	"replication_pad1d": value(func(c *call) *ir.Value { return c.edgePad(c.val("self"), c.ints("padding"), "replicate") }),
	"replication_pad2d": value(func(c *call) *ir.Value { return c.edgePad(c.val("self"), c.ints("padding"), "replicate") }),
	"replication_pad3d": value(func(c *call) *ir.Value { return c.edgePad(c.val("self"), c.ints("padding"), "replicate") }),
	"atleast_1d":        func(c *call) []*ref { return c.atLeast(1) },
	"slice_scatter":     value(sliceScatter),
	"select_scatter":    value(selectScatter),
}

// sizes is a shape argument with one -1 computed.
func (c *call) sizes(name string, t tensor.Type) []int64 {
	return c.infer(name, c.ints(name), t.Elements())
}

func (c *call) infer(name string, dims []int64, elements int64) []int64 {
	out := slices.Clone(dims)
	n, at := int64(1), -1
	for i, d := range out {
		switch {
		case d == -1 && at < 0:
			at = i
		case d < 0 || d > 0 && n > (1<<62)/d:
			c.failf("argument %s is %v, wanted sizes with at most one -1", name, dims)
		default:
			n *= d
		}
	}
	if at >= 0 {
		if n == 0 || elements%n != 0 {
			c.failf("argument %s is %v, which does not divide %d elements", name, dims, elements)
		}
		out[at] = elements / n
	}
	return out
}

// axesOrNone is axes with an empty list meaning no axis.
func (c *call) axesOrNone(name string, rank int) []int64 {
	if len(c.ints(name)) == 0 {
		return nil
	}
	return c.axes(name, rank)
}

// reshaped shares memory where torch would: where the strides allow the new shape.
func (c *call) reshaped(x *ref, dims []int64) []*ref {
	if viewable(x.typ.Dims, x.strides, dims) {
		return []*ref{x.through(c.b, reshapeView(x.typ.Dims, dims))}
	}
	return []*ref{fresh(reshape(c.b, x.read(c.b), dims))}
}

// viewable follows at::detail::computeStride: it reports whether a tensor can be seen with other dims without a copy.
func viewable(dims, strides, to []int64) bool {
	if len(dims) == 0 || slices.Contains(dims, 0) || len(strides) != len(dims) {
		return true
	}
	v := len(to) - 1
	base := strides[len(dims)-1]
	have, want := int64(1), int64(1)
	for d := len(dims) - 1; d >= 0; d-- {
		have *= dims[d]
		if d > 0 && (dims[d-1] == 1 || strides[d-1] == have*base) {
			continue // one block of memory with the next dimension
		}
		for v >= 0 && (want < have || to[v] == 1) {
			want *= to[v]
			v--
		}
		if want != have {
			return false
		}
		if d > 0 {
			base, have, want = strides[d-1], 1, 1
		}
	}
	return v == -1
}

// flattened is t's shape with start_dim to end_dim as one.
func (c *call) flattened(t tensor.Type) []int64 {
	from, to := c.axis("start_dim", t.Rank()), c.axis("end_dim", t.Rank())
	if t.Rank() == 0 {
		return []int64{1}
	}
	if from > to {
		c.failf("start_dim is %d, wanted at most end_dim %d", from, to)
	}
	n := int64(1)
	for _, d := range t.Dims[from : to+1] {
		n *= d
	}
	return slices.Concat(t.Dims[:from], []int64{n}, t.Dims[to+1:])
}

func unflatten(c *call, x *ref) view {
	axis := c.axis("dim", x.typ.Rank())
	if x.typ.Rank() == 0 {
		c.failf("self has rank 0, wanted 1 or more")
	}
	parts := c.infer("sizes", c.ints("sizes"), x.typ.Dims[axis])
	return reshapeView(x.typ.Dims, slices.Concat(x.typ.Dims[:axis], parts, x.typ.Dims[axis+1:]))
}

func unsqueeze(c *call, x *ref) view {
	at := c.wrap("dim", c.int("dim"), x.typ.Rank()+1)
	return reshapeView(x.typ.Dims, slices.Insert(slices.Clone(x.typ.Dims), at, 1))
}

func squeeze(x *ref, axes []int64) view {
	dims := []int64{}
	for d, n := range x.typ.Dims {
		if n != 1 || !slices.Contains(axes, int64(d)) {
			dims = append(dims, n)
		}
	}
	return reshapeView(x.typ.Dims, dims)
}

// expanded is the shape that expand gives: -1 keeps a dimension.
func (c *call) expanded(name string, from []int64) []int64 {
	to := slices.Clone(c.ints(name))
	lead := len(to) - len(from)
	if lead < 0 {
		c.failf("argument %s has %d sizes, wanted at least the rank %d", name, len(to), len(from))
	}
	for d := range to {
		switch {
		case to[d] == -1 && d >= lead:
			to[d] = from[d-lead]
		case to[d] < 0:
			c.failf("argument %s is %v, wanted sizes; -1 stands for an existing dimension only", name, to)
		}
	}
	return to
}

func (c *call) swapped(x *ref, a, b string) view {
	i, j := c.axis(a, x.typ.Rank()), c.axis(b, x.typ.Rank())
	perm := iotaInts(x.typ.Rank())
	if len(perm) > 0 {
		perm[i], perm[j] = perm[j], perm[i]
	}
	return permuteView(perm)
}

func reversedView(x *ref) view {
	perm := iotaInts(x.typ.Rank())
	slices.Reverse(perm)
	return permuteView(perm)
}

func lastTwo(c *call, x *ref) view {
	perm := iotaInts(x.typ.Rank())
	n := len(perm)
	if n < 2 {
		c.failf("self has rank %d, wanted 2 or more", n)
	}
	perm[n-1], perm[n-2] = perm[n-2], perm[n-1]
	return permuteView(perm)
}

func movedim(c *call, x *ref) view {
	from, to := c.axesOrNone("source", x.typ.Rank()), c.axesOrNone("destination", x.typ.Rank())
	if len(from) != len(to) {
		c.failf("%d sources for %d destinations", len(from), len(to))
	}
	perm := make([]int64, x.typ.Rank())
	for i := range perm {
		perm[i] = -1
	}
	for i := range from {
		perm[to[i]] = from[i]
	}
	next := int64(0)
	for i := range perm {
		if perm[i] >= 0 {
			continue
		}
		for slices.Contains(from, next) {
			next++
		}
		perm[i] = next
		next++
	}
	return permuteView(perm)
}

// bounds clamps a Python slice to an extent.
func bounds(start, end, n int64) (from, to int64) {
	wrap := func(i int64) int64 {
		if i < 0 {
			i += n
		}
		return min(max(i, 0), n)
	}
	from, to = wrap(start), wrap(end)
	return from, max(from, to)
}

// sliceArgs reads dim, start, end and step of slice and slice_scatter.
func (c *call) sliceArgs(t tensor.Type) (axis int, from, to, step int64) {
	axis = c.axis("dim", t.Rank())
	if t.Rank() == 0 {
		c.failf("self has rank 0, wanted 1 or more")
	}
	n := t.Dims[axis]
	from, to = bounds(c.intOr("start", 0), c.intOr("end", n), n)
	if step = c.int("step"); step < 1 {
		c.failf("step is %d, wanted 1 or more", step)
	}
	return axis, from, to, step
}

func sliced(c *call, x *ref) view { return sliceView(c.sliceArgs(x.typ)) }

func narrow(c *call, x *ref) view {
	axis := c.axis("dim", x.typ.Rank())
	if x.typ.Rank() == 0 {
		c.failf("self has rank 0, wanted 1 or more")
	}
	n := x.typ.Dims[axis]
	start, length := c.int("start"), c.int("length")
	if start < 0 {
		start += n
	}
	if start < 0 || length < 0 || start > n || length > n-start {
		c.failf("start is %d with length %d, wanted within %d", start, length, n)
	}
	return sliceView(axis, start, start+length, 1)
}

// selected is x at one index of a dimension, without the dimension.
func (c *call) selected() *ref {
	x := c.ref("self")
	axis := c.axis("dim", x.typ.Rank())
	return c.at(x, axis, c.index(x.typ, axis))
}

// index is the index argument counted from the front.
func (c *call) index(t tensor.Type, axis int) int64 {
	if t.Rank() == 0 {
		c.failf("self has rank 0, wanted 1 or more")
	}
	i, n := c.int("index"), t.Dims[axis]
	if i < -n || i >= n {
		c.failf("index is %d, wanted one of %d", i, n)
	}
	if i < 0 {
		i += n
	}
	return i
}

func (c *call) at(x *ref, axis int, i int64) *ref {
	one := x.through(c.b, sliceView(axis, i, i+1, 1))
	return one.through(c.b, reshapeView(one.typ.Dims, slices.Delete(slices.Clone(one.typ.Dims), axis, axis+1)))
}

// maxParts bounds the number of tensors that one operator gives.
const maxParts = 1 << 16

func unbind(c *call) []*ref {
	x := c.ref("self")
	axis := c.axis("dim", x.typ.Rank())
	if x.typ.Rank() == 0 || x.typ.Dims[axis] > maxParts {
		c.failf("self is %s, wanted a dimension %d of at most %d", x.typ, axis, maxParts)
	}
	var out []*ref
	for i := range x.typ.Dims[axis] {
		out = append(out, c.at(x, axis, i))
	}
	return out
}

// split gives views of the given sizes along dim.
func (c *call) split(sizes []int64) []*ref {
	x := c.ref("self")
	axis := c.axis("dim", x.typ.Rank())
	var out []*ref
	at := int64(0)
	for _, n := range sizes {
		if n < 0 || x.typ.Rank() == 0 || n > x.typ.Dims[axis]-at {
			c.failf("parts of sizes %v, wanted a sum of dimension %d of %s", sizes, axis, x.typ)
		}
		out = append(out, x.through(c.b, sliceView(axis, at, at+n, 1)))
		at += n
	}
	return out
}

// extent is the size of self along dim.
func (c *call) extent() int64 {
	t := c.ref("self").typ
	axis := c.axis("dim", t.Rank())
	if t.Rank() == 0 {
		c.failf("self has rank 0, wanted 1 or more")
	}
	return t.Dims[axis]
}

func repeatedSizes(c *call, name string) []int64 { return equalParts(c, c.extent(), c.int(name)) }

// equalParts is n in parts of a size; the last may be smaller.
func equalParts(c *call, n, size int64) []int64 {
	if n == 0 {
		return []int64{0}
	}
	if size < 1 || (n+size-1)/size > maxParts {
		c.failf("parts of size %d, wanted 1 or more", size)
	}
	var out []int64
	for n > 0 {
		out = append(out, min(n, size))
		n -= min(n, size)
	}
	return out
}

func chunkSizes(c *call) []int64 {
	n, k := c.extent(), c.int("chunks")
	if k < 1 || k > maxParts {
		c.failf("chunks is %d, wanted 1 or more", k)
	}
	if n == 0 {
		return make([]int64, k)
	}
	return equalParts(c, n, (n+k-1)/k)
}

// sectionSizes differ by at most one, the larger first.
func sectionSizes(c *call) []int64 {
	n, k := c.extent(), c.int("sections")
	if k < 1 || k > maxParts {
		c.failf("sections is %d, wanted 1 or more", k)
	}
	out := make([]int64, k)
	for i := range out {
		out[i] = n/k + btoi64(int64(i) < n%k)
	}
	return out
}

// readOnly is a view that nothing can be written through yet.
func (c *call) readOnly(read func(b *ir.Builder, x *ir.Value) *ir.Value) view {
	target := c.node.Target
	return view{read: read, write: func(*ir.Builder, func() *ir.Value, *ir.Value) *ir.Value {
		panic(&ruleError{unsupported: true, msg: "it writes through the result of " + target})
	}}
}

// unfold shows windows of a size, each step further, in a new last dimension.
func unfold(c *call, x *ref) view {
	rank := x.typ.Rank()
	axis := c.axis("dimension", rank)
	size, step := c.int("size"), c.int("step")
	if rank == 0 && size == 1 && step > 0 {
		return reshapeView(nil, []int64{1})
	}
	if rank == 0 || size < 1 || step < 1 || size > x.typ.Dims[axis] {
		c.failf("windows of %d with step %d of %s", size, step, x.typ)
	}
	n := (x.typ.Dims[axis]-size)/step + 1
	if n > (1<<24)/size {
		c.unsupported("%d windows of %d", n, size)
	}
	return c.readOnly(func(b *ir.Builder, v *ir.Value) *ir.Value {
		if step == size {
			v = slice(b, v, axis, 0, n*size, 1)
			v = reshape(b, v, slices.Concat(v.Type.Dims[:axis], []int64{n, size}, v.Type.Dims[axis+1:]))
		} else {
			ids := make([]int64, 0, n*size)
			for i := range n {
				for j := range size {
					ids = append(ids, i*step+j)
				}
			}
			v = op.Take.Make(b, op.TakeAttr{Axis: int64(axis)}, v, literal(b, tensor.I64, []int64{n, size}, ids))
		}
		perm := iotaInts(rank + 1)
		perm = append(slices.Delete(perm, axis+1, axis+2), int64(axis+1))
		return transpose(b, v, perm)
	})
}

// diagonal shows the elements whose indices along two dimensions differ by offset, in a new last dimension.
func diagonal(c *call, x *ref) view {
	rank := x.typ.Rank()
	d1, d2, off := c.axis("dim1", rank), c.axis("dim2", rank), c.int("offset")
	if rank < 2 || d1 == d2 {
		c.failf("dimensions %d and %d of %s, wanted two different ones", d1, d2, x.typ)
	}
	rows, cols := x.typ.Dims[d1], x.typ.Dims[d2]
	n := max(min(rows+min(off, 0), cols-max(off, 0)), 0)
	return c.readOnly(func(b *ir.Builder, v *ir.Value) *ir.Value {
		perm := slices.DeleteFunc(iotaInts(rank), func(d int64) bool { return d == int64(d1) || d == int64(d2) })
		v = transpose(b, v, append(perm, int64(d1), int64(d2)))
		lead := v.Type.Dims[:rank-2]
		v = reshape(b, v, slices.Concat(lead, []int64{rows * cols}))
		if n == 0 {
			return slice(b, v, rank-2, 0, 0, 1)
		}
		from := max(-off, 0)*cols + max(off, 0)
		return slice(b, v, rank-2, from, from+(n-1)*(cols+1)+1, cols+1)
	})
}

// asStrided is supported where it describes the tensor as it is.
func asStrided(c *call, x *ref) view {
	size, stride := c.ints("size"), c.ints("stride")
	if x.parent == nil && c.intOr("storage_offset", 0) == 0 && isContiguous(x.typ.Dims, x.strides) && isContiguous(size, stride) &&
		tensor.Make(x.typ.DType, size...).Elements() == x.typ.Elements() {
		return reshapeView(x.typ.Dims, size)
	}
	c.unsupported("sizes %v with strides %v of a tensor with strides %v", size, stride, x.strides)
	return view{}
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
	return concat(c.b, c.wrap("dim", dim, kept[0].Type.Rank()), kept...)
}

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

func reverse(b *ir.Builder, x *ir.Value, axes []int64) *ir.Value {
	if len(axes) == 0 {
		return x
	}
	return op.Reverse.Make(b, op.ReverseAttr{Axes: slices.Sorted(slices.Values(axes))}, x)
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

func channelShuffle(c *call) *ir.Value {
	x, g := c.val("self"), c.int("groups")
	if x.Type.Rank() < 3 || g < 1 || x.Type.Dims[1]%g != 0 {
		c.failf("self is %s with %d groups", x.Type, g)
	}
	dims := x.Type.Dims
	y := reshape(c.b, x, slices.Concat(dims[:1], []int64{g, dims[1] / g}, dims[2:]))
	return reshape(c.b, swap(c.b, y, 1, 2), dims)
}

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

func (c *call) atLeast(rank int) []*ref {
	x := c.ref("self")
	dims := x.typ.Dims
	for len(dims) < rank {
		dims = slices.Concat([]int64{1}, dims)
	}
	return []*ref{x.through(c.b, reshapeView(x.typ.Dims, dims))}
}

// replace gives self with the elements seen through a view replaced by src.
func (c *call) replace(x *ir.Value, v view) *ir.Value {
	src := c.cast(c.val("src"), x.Type.DType)
	seen := v.read(c.b, x).Type
	src = op.BroadcastTo(c.b, src, seen.Dims)
	return v.write(c.b, func() *ir.Value { return x }, src)
}

func sliceScatter(c *call) *ir.Value {
	x := c.val("self")
	return c.replace(x, sliceView(c.sliceArgs(x.Type)))
}

func selectScatter(c *call) *ir.Value {
	x := c.val("self")
	axis := c.axis("dim", x.Type.Rank())
	i := c.index(x.Type, axis)
	src := c.cast(c.val("src"), x.Type.DType)
	src = reshape(c.b, src, slices.Insert(slices.Clone(src.Type.Dims), axis, 1))
	return sliceView(axis, i, i+1, 1).write(c.b, func() *ir.Value { return x }, src)
}
