package pt2

import (
	"cmp"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// sliceRules show a part of a tensor in shared memory, or replace it.
var sliceRules = map[string]rule{
	"slice.Tensor":            slicedTo,
	"narrow":                  seen(narrow),
	"select.int":              func(c *call) []*ref { return []*ref{c.selected()} },
	"unbind.int":              unbind,
	"split.Tensor":            func(c *call) []*ref { return c.split(repeatedSizes(c, "split_size")) },
	"split_with_sizes":        func(c *call) []*ref { return c.splitSizes("split_sizes") },
	"split.sizes":             func(c *call) []*ref { return c.splitSizes("split_size") },
	"unsafe_split.Tensor":     func(c *call) []*ref { return c.split(repeatedSizes(c, "split_size")) },
	"unsafe_split_with_sizes": func(c *call) []*ref { return c.splitSizes("split_sizes") },
	"chunk":                   func(c *call) []*ref { return c.split(chunkSizes(c)) },
	"unsafe_chunk":            func(c *call) []*ref { return c.split(chunkSizes(c)) },
	"tensor_split.sections":   func(c *call) []*ref { return c.split(c.sections(c.int("sections"))) },
	"tensor_split.indices":    func(c *call) []*ref { return c.splitAt(c.ints("indices"), c.axis("dim", c.ref("self").typ.Rank())) },
	"hsplit.array":            func(c *call) []*ref { return c.splitAt(c.ints("indices"), btoi(c.ref("self").typ.Rank() > 1)) },
	"vsplit.array":            func(c *call) []*ref { return c.splitAt(c.ints("indices"), 0) },
	"dsplit.array":            func(c *call) []*ref { return c.splitAt(c.ints("indices"), 2) },
	"hsplit.int":              func(c *call) []*ref { return c.splitEqual(btoi(c.ref("self").typ.Rank() > 1)) },
	"vsplit.int":              func(c *call) []*ref { return c.splitEqual(0) },
	"dsplit.int":              func(c *call) []*ref { return c.splitEqual(2) },
	"unfold":                  seen(unfold),
	"diagonal":                seen(diagonal),
	"linalg_diagonal": func(c *call) []*ref {
		x := c.ref("A")
		return []*ref{x.through(c.b, diagonal(c, x))}
	},
	"as_strided": func(c *call) []*ref {
		all, v := asStrided(c, c.ref("self"))
		return []*ref{all.through(c.b, v)}
	},
	"slice_scatter":  value(sliceScatter),
	"select_scatter": value(selectScatter),
	"as_strided_scatter": value(func(c *call) *ir.Value {
		x := c.ref("self")
		_, v := asStrided(c, &ref{typ: x.typ, strides: x.strides})
		return c.replace(x.read(c.b), v)
	}),
	"fill_diagonal_": inPlace(value(fillDiagonal)),
	"tensor_split.tensor_indices_or_sections": tensorSplit,
	"diagonal_scatter": value(func(c *call) *ir.Value {
		x := c.val("self")
		return c.replace(x, diagonal(c, &ref{typ: x.Type}))
	}),
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

// slicedTo is a slice whose ends the data may decide.
func slicedTo(c *call) []*ref {
	if out, open := c.openSlice(); open {
		return out
	}
	return seen(sliced)(c)
}

// narrow is length elements from start along dim.
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

// at is index i along axis, without the dimension.
func (c *call) at(x *ref, axis int, i int64) *ref {
	one := x.through(c.b, sliceView(axis, i, i+1, 1))
	return one.through(c.b, reshapeView(one.typ.Dims, slices.Delete(slices.Clone(one.typ.Dims), axis, axis+1)))
}

// maxParts bounds the number of tensors that one operator gives.
const maxParts = 1 << 16

// unbind gives all slices along dim, without the dimension.
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

// splitSizes gives views of the sizes that an argument holds, of which the data may decide some.
func (c *call) splitSizes(name string) []*ref {
	if out, open := c.openSplit(name); open {
		return out
	}
	return c.split(c.ints(name))
}

// split gives views of the given sizes along dim.
func (c *call) split(sizes []int64) []*ref {
	return c.splitAlong(sizes, c.axis("dim", c.ref("self").typ.Rank()))
}

// splitAt gives the views between the given places along axis.
func (c *call) splitAt(places []int64, axis int) []*ref {
	x := c.ref("self")
	if axis >= x.typ.Rank() || len(places) > maxParts {
		c.failf("self is %s, wanted a dimension %d", x.typ, axis)
	}
	n := x.typ.Dims[axis]
	var out []*ref
	from := int64(0)
	for _, p := range append(slices.Clone(places), n) {
		lo, hi := bounds(from, p, n)
		out = append(out, x.through(c.b, sliceView(axis, lo, hi, 1)))
		from = p
	}
	return out
}

// splitEqual gives as many equal views along axis as sections says.
func (c *call) splitEqual(axis int) []*ref {
	x, k := c.ref("self"), c.int("sections")
	if axis >= x.typ.Rank() || k < 1 || k > maxParts || x.typ.Dims[axis]%k != 0 {
		c.failf("%d sections of dimension %d of %s", k, axis, x.typ)
	}
	return c.splitAlong(slices.Repeat([]int64{x.typ.Dims[axis] / k}, int(k)), axis)
}

// splitAlong gives consecutive views of the given sizes.
func (c *call) splitAlong(sizes []int64, axis int) []*ref {
	x := c.ref("self")
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

// tensorSplit is by a number of sections or by places, which a constant of the program must give.
func tensorSplit(c *call) []*ref {
	x, by := c.ref("self"), c.knownInts("tensor_indices_or_sections")
	axis := c.axis("dim", x.typ.Rank())
	if c.ref("tensor_indices_or_sections").typ.Rank() == 0 {
		return c.splitAlong(c.sections(by[0]), axis)
	}
	return c.splitAt(by, axis)
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

// chunkSizes are equal parts; there may be fewer than asked for.
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

// sections are the sizes of k parts that differ by at most one, the larger first.
func (c *call) sections(k int64) []int64 {
	n := c.extent()
	if k < 1 || k > maxParts {
		c.failf("sections is %d, wanted 1 or more", k)
	}
	out := make([]int64, k)
	for i := range out {
		out[i] = n/k + btoi64(int64(i) < n%k)
	}
	return out
}

// maxViewed bounds the elements of a view whose places are written out.
const maxViewed = 1 << 24

// strided sees the elements of a contiguous base at offset + the sum of index times stride, in size; read may be a shorter way to them. A write
// goes to their places, each of which must occur once.
func (c *call) strided(base tensor.Type, size, stride []int64, offset int64, read func(b *ir.Builder, x *ir.Value) *ir.Value) view {
	t := tensor.Make(base.DType, size...)
	if err := t.Check(); err != nil {
		c.failf("sizes %v: %v", size, err)
	}
	n, total := t.Elements(), base.Elements()
	if n > maxViewed {
		c.unsupported("%d elements with strides %v", n, stride)
	}
	places := func() []int64 {
		if n == 0 {
			return nil
		}
		ids := []int64{offset}
		for d, extent := range size {
			next := make([]int64, 0, int64(len(ids))*extent)
			for _, at := range ids {
				for i := range extent {
					next = append(next, at+i*stride[d])
				}
			}
			ids = next
		}
		for _, at := range ids {
			if at < 0 || at >= total {
				c.failf("sizes %v with strides %v from %d, wanted places among %d elements", size, stride, offset, total)
			}
		}
		return ids
	}
	if read == nil {
		ids := places()
		read = func(b *ir.Builder, x *ir.Value) *ir.Value {
			return op.Take.Make(b, op.TakeAttr{}, reshape(b, x, []int64{total}), literal(b, tensor.I64, size, ids))
		}
	}
	target := c.node.Target
	return view{read: read, write: func(b *ir.Builder, old func() *ir.Value, v *ir.Value) *ir.Value {
		if n == 0 {
			return old()
		}
		ids := places()
		if len(slices.Compact(slices.Sorted(slices.Values(ids)))) < len(ids) {
			panic(&ruleError{unsupported: true, msg: "it writes through the result of " + target + ", in which elements repeat"})
		}
		a := op.ScatterAttr{InsertedWindowDims: []int64{0}, ScatterDimsToOperandDims: []int64{0}, IndexVectorDim: 1, Kind: op.Set, UniqueIndices: true}
		y := op.Scatter.Make(b, a, reshape(b, old(), []int64{total}), literal(b, tensor.I64, []int64{n}, ids), reshape(b, v, []int64{n}))
		return reshape(b, y, base.Dims)
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
	if n > maxViewed/size {
		c.unsupported("%d windows of %d", n, size)
	}
	dims, stride := append(slices.Clone(x.typ.Dims), size), tensor.Strides(x.typ.Dims)
	stride = append(stride, stride[axis])
	dims[axis], stride[axis] = n, stride[axis]*step
	return c.strided(x.typ, dims, stride, 0, func(b *ir.Builder, v *ir.Value) *ir.Value {
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
	return c.diagonalOf(x, c.axis("dim1", rank), c.axis("dim2", rank), c.int("offset"))
}

// diagonalOf puts the two dimensions last, flattens them, and steps from one row to the next and one column on.
func (c *call) diagonalOf(x *ref, d1, d2 int, off int64) view {
	rank := x.typ.Rank()
	if rank < 2 || d1 == d2 {
		c.failf("dimensions %d and %d of %s, wanted two different ones", d1, d2, x.typ)
	}
	rows, cols := x.typ.Dims[d1], x.typ.Dims[d2]
	n := max(min(rows+min(off, 0), cols-max(off, 0)), 0)
	perm := slices.DeleteFunc(iotaInts(rank), func(d int64) bool { return d == int64(d1) || d == int64(d2) })
	var dims, stride []int64
	each := tensor.Strides(x.typ.Dims)
	for _, d := range perm {
		dims, stride = append(dims, x.typ.Dims[d]), append(stride, each[d])
	}
	dims, stride = append(dims, n), append(stride, each[d1]+each[d2])
	return c.strided(x.typ, dims, stride, max(-off, 0)*each[d1]+max(off, 0)*each[d2], func(b *ir.Builder, v *ir.Value) *ir.Value {
		v = transpose(b, v, append(slices.Clone(perm), int64(d1), int64(d2)))
		lead := v.Type.Dims[:rank-2]
		v = reshape(b, v, slices.Concat(lead, []int64{rows * cols}))
		if n == 0 {
			return slice(b, v, rank-2, 0, 0, 1)
		}
		from := max(-off, 0)*cols + max(off, 0)
		return slice(b, v, rank-2, from, from+(n-1)*(cols+1)+1, cols+1)
	})
}

// asStrided finds the memory that x shows a part of, in its order, and gives a view of places in it. That is supported where a permutation of dimensions
// puts all of the memory in order. Without an offset it is x's own, which is known where x is all of the memory.
func asStrided(c *call, x *ref) (all *ref, v view) {
	size, stride := c.ints("size"), c.ints("stride")
	for all = x; all.parent != nil && all.parent.typ.DType == x.typ.DType; {
		all = all.parent
	}
	if len(size) != len(stride) {
		c.failf("%d sizes with %d strides, wanted as many", len(size), len(stride))
	}
	perm := memoryOrder(all.typ.Dims, all.strides)
	if all.parent != nil || perm == nil || all != x && !c.has("storage_offset") {
		c.unsupported("sizes %v with strides %v of a tensor with strides %v", size, stride, x.strides)
	}
	if !slices.IsSorted(perm) {
		all = all.through(c.b, permuteView(perm))
	}
	offset := c.intOr("storage_offset", 0)
	if t := tensor.Make(x.typ.DType, size...); t.Check() == nil && offset == 0 && isContiguous(size, stride) && t.Elements() == all.typ.Elements() {
		return all, reshapeView(all.typ.Dims, size)
	}
	return all, c.strided(all.typ, size, stride, offset, nil)
}

// memoryOrder is the permutation of dimensions that puts elements in the order of their memory; nil if they do not fill it. Unknown strides count as
// row-major.
func memoryOrder(dims, strides []int64) []int64 {
	perm := iotaInts(len(dims))
	if isContiguous(dims, strides) {
		return perm
	}
	slices.SortStableFunc(perm, func(a, b int64) int { return cmp.Compare(strides[b], strides[a]) })
	sorted := func(v []int64) []int64 {
		out := make([]int64, len(v))
		for i, p := range perm {
			out[i] = v[p]
		}
		return out
	}
	if !isContiguous(sorted(dims), sorted(strides)) {
		return nil
	}
	return perm
}

// replace gives self with the elements seen through a view replaced by src.
func (c *call) replace(x *ir.Value, v view) *ir.Value {
	src := c.cast(c.val("src"), x.Type.DType)
	seen := v.read(c.b, x).Type
	src = op.BroadcastTo(c.b, src, seen.Dims)
	return v.write(c.b, func() *ir.Value { return x }, src)
}

// sliceScatter is self with a slice replaced by src.
func sliceScatter(c *call) *ir.Value {
	x := c.val("self")
	return c.replace(x, sliceView(c.sliceArgs(x.Type)))
}

// selectScatter is self with one index of a dimension replaced by src.
func selectScatter(c *call) *ir.Value {
	x := c.val("self")
	axis := c.axis("dim", x.Type.Rank())
	i := c.index(x.Type, axis)
	src := c.cast(c.val("src"), x.Type.DType)
	src = reshape(c.b, src, slices.Insert(slices.Clone(src.Type.Dims), axis, 1))
	return sliceView(axis, i, i+1, 1).write(c.b, func() *ir.Value { return x }, src)
}

// fillDiagonal replaces the elements of equal indices by a number; of a matrix with more rows than columns, where wrap is set, those of the
// diagonals that follow with a row between them too.
func fillDiagonal(c *call) *ir.Value {
	x, n := c.val("self"), c.scalar("fill_value")
	dims := x.Type.Dims
	if len(dims) < 2 || len(dims) > 2 && slices.Max(dims) != slices.Min(dims) {
		c.failf("self is %s, wanted a matrix or equal dimensions", x.Type)
	}
	at := counting(c.b, tensor.I64, dims, 0)
	if len(dims) == 2 && c.bool("wrap") && dims[1] > 0 {
		at = op.Rem.Make(c.b, at, like(c.b, at, intScalar(dims[1]+1)))
	}
	var on *ir.Value
	for d := 1; d < len(dims); d++ {
		same := compare(c.b, op.EQ, at, counting(c.b, tensor.I64, dims, d))
		if on == nil {
			on = same
			continue
		}
		on = op.And.Make(c.b, on, same)
	}
	return op.Select.Make(c.b, on, like(c.b, x, n), x)
}
