package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// shapeRules show the same elements with other dimensions, in memory that is shared where torch shares it.
var shapeRules = map[string]rule{
	"view":                seen(func(c *call, x *ref) view { return reshapeView(x.typ.Dims, c.sizes("size", x.typ)) }),
	"_unsafe_view":        seen(func(c *call, x *ref) view { return reshapeView(x.typ.Dims, c.sizes("size", x.typ)) }),
	"view_as":             seen(func(c *call, x *ref) view { return reshapeView(x.typ.Dims, c.ref("other").typ.Dims) }),
	"reshape":             func(c *call) []*ref { x := c.ref("self"); return c.reshaped(x, c.sizes("shape", x.typ)) },
	"_reshape_copy":       value(func(c *call) *ir.Value { x := c.ref("self"); return reshape(c.b, x.read(c.b), c.sizes("size", x.typ)) }),
	"reshape_as":          func(c *call) []*ref { return c.reshaped(c.ref("self"), c.ref("other").typ.Dims) },
	"flatten.using_ints":  func(c *call) []*ref { x := c.ref("self"); return c.reshaped(x, c.flattened(x.typ)) },
	"ravel":               func(c *call) []*ref { x := c.ref("self"); return c.reshaped(x, []int64{x.typ.Elements()}) },
	"unflatten.int":       seen(unflatten),
	"unsqueeze":           seen(unsqueeze),
	"squeeze":             seen(func(_ *call, x *ref) view { return squeeze(x, iotaInts(x.typ.Rank())) }),
	"squeeze.dim":         seen(func(c *call, x *ref) view { return squeeze(x, c.axes("dim", x.typ.Rank())) }),
	"squeeze.dims":        seen(func(c *call, x *ref) view { return squeeze(x, c.axesOrNone("dim", x.typ.Rank())) }),
	"expand":              seen(func(c *call, x *ref) view { return expandView(x.typ.Dims, c.expanded("size", x.typ.Dims)) }),
	"broadcast_to":        seen(func(c *call, x *ref) view { return expandView(x.typ.Dims, c.expanded("size", x.typ.Dims)) }),
	"expand_as":           seen(func(c *call, x *ref) view { return expandView(x.typ.Dims, c.ref("other").typ.Dims) }),
	"transpose.int":       seen(func(c *call, x *ref) view { return c.swapped(x, "dim0", "dim1") }),
	"transpose_":          seen(func(c *call, x *ref) view { return c.swapped(x, "dim0", "dim1") }),
	"swapaxes":            seen(func(c *call, x *ref) view { return c.swapped(x, "axis0", "axis1") }),
	"swapdims":            seen(func(c *call, x *ref) view { return c.swapped(x, "dim0", "dim1") }),
	"t":                   seen(func(_ *call, x *ref) view { return reversedView(x) }),
	"numpy_T":             seen(func(_ *call, x *ref) view { return reversedView(x) }),
	"mT":                  seen(func(c *call, x *ref) view { return lastTwo(c, x) }),
	"permute":             seen(func(c *call, x *ref) view { return permuteView(c.axesOrNone("dims", x.typ.Rank())) }),
	"movedim.int":         seen(movedim),
	"movedim.intlist":     seen(movedim),
	"moveaxis.int":        seen(movedim),
	"moveaxis.intlist":    seen(movedim),
	"resize_":             func(c *call) []*ref { return c.resized(c.ints("size")) },
	"resize_as_":          func(c *call) []*ref { return c.resized(c.ref("the_template").typ.Dims) },
	"atleast_2d":          func(c *call) []*ref { return c.atLeast(2) },
	"atleast_1d":          func(c *call) []*ref { return c.atLeast(1) },
	"atleast_3d":          func(c *call) []*ref { return c.atLeast(3) },
	"atleast_1d.Sequence": func(c *call) []*ref { return c.atLeast(1) },
	"atleast_2d.Sequence": func(c *call) []*ref { return c.atLeast(2) },
	"atleast_3d.Sequence": func(c *call) []*ref { return c.atLeast(3) },
}

// sizes is a shape argument with one -1 computed.
func (c *call) sizes(name string, t tensor.Type) []int64 {
	return c.infer(name, c.ints(name), t.Elements())
}

// infer computes the one size that is -1 from the number of elements.
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

// resized shows the first elements of a tensor's memory in another shape, and goes by the tensor's own name from then on. Memory that would have
// to grow is refused: what it would hold is anything.
func (c *call) resized(dims []int64) []*ref {
	x := c.ref("self")
	t := x.typ.WithDims(dims...)
	if err := t.Check(); err != nil {
		c.failf("size %v: %v", dims, err)
	}
	n, from := t.Elements(), x.typ.Elements()
	if n > from || n < from && (x.parent != nil || !isContiguous(x.typ.Dims, x.strides)) || !viewable(x.typ.Dims, x.strides, []int64{from}) {
		c.unsupported("the size %v of %s", dims, x.typ)
	}
	y := x.through(c.b, reshapeView(x.typ.Dims, []int64{from}))
	if n < from {
		y = y.through(c.b, sliceView(0, 0, n, 1))
	}
	y = y.through(c.b, reshapeView([]int64{n}, dims))
	if a := c.arg("self"); a.Tensor != nil {
		c.im.tensors[a.Tensor.Name] = y
	}
	return []*ref{y}
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

// unflatten splits one dimension.
func unflatten(c *call, x *ref) view {
	axis := c.axis("dim", x.typ.Rank())
	if x.typ.Rank() == 0 {
		c.failf("self has rank 0, wanted 1 or more")
	}
	parts := c.infer("sizes", c.ints("sizes"), x.typ.Dims[axis])
	return reshapeView(x.typ.Dims, slices.Concat(x.typ.Dims[:axis], parts, x.typ.Dims[axis+1:]))
}

// unsqueeze inserts a dimension of extent 1.
func unsqueeze(c *call, x *ref) view {
	at := c.wrap("dim", c.int("dim"), x.typ.Rank()+1)
	return reshapeView(x.typ.Dims, slices.Insert(slices.Clone(x.typ.Dims), at, 1))
}

// squeeze drops those of axes that have extent 1.
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

// swapped exchanges the dimensions that two arguments name.
func (c *call) swapped(x *ref, a, b string) view {
	i, j := c.axis(a, x.typ.Rank()), c.axis(b, x.typ.Rank())
	perm := iotaInts(x.typ.Rank())
	if len(perm) > 0 {
		perm[i], perm[j] = perm[j], perm[i]
	}
	return permuteView(perm)
}

// reversedView turns the order of all dimensions; a transpose for a matrix.
func reversedView(x *ref) view {
	perm := iotaInts(x.typ.Rank())
	slices.Reverse(perm)
	return permuteView(perm)
}

// lastTwo exchanges the last two dimensions.
func lastTwo(c *call, x *ref) view {
	perm := iotaInts(x.typ.Rank())
	n := len(perm)
	if n < 2 {
		c.failf("self has rank %d, wanted 2 or more", n)
	}
	perm[n-1], perm[n-2] = perm[n-2], perm[n-1]
	return permuteView(perm)
}

// movedim moves source dimensions to destination places; the others keep their order.
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

// atLeast puts dimensions of extent 1 in front up to a rank; the third one goes to the end.
func (c *call) atLeast(rank int) []*ref {
	xs := []*ref{}
	if c.schema.param("tensors") != nil {
		xs = c.refs("tensors")
	} else {
		xs = append(xs, c.ref("self"))
	}
	var out []*ref
	for _, x := range xs {
		dims := slices.Clone(x.typ.Dims)
		for len(dims) < rank {
			if len(dims) == 2 {
				dims = append(dims, 1)
			} else {
				dims = slices.Concat([]int64{1}, dims)
			}
		}
		out = append(out, x.through(c.b, reshapeView(x.typ.Dims, dims)))
	}
	return out
}
