package pt2

// Functionalisation. Torch programs write to tensors in place and see the writes through every alias; the IR is pure. Every torch
// tensor is therefore a ref: a storage seen through a chain of views. An operator that makes new elements makes a storage; a view
// operator adds a link to the chain. A write through a ref computes, link by link, what the storage holds afterwards, and from
// then on every ref to that storage reads its elements anew through its own chain. docs/functionalisation.md has the details.

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// storage is memory that refs share.
type storage struct {
	cur     *ir.Value // its contents now
	version int       // counts writes
	origin  *origin   // of a parameter, buffer, constant or input; nil for what the program makes
	drawn   bool      // random numbers were written to it: there is no value
}

// ref is one torch tensor.
type ref struct {
	store   *storage
	parent  *ref // nil: the storage itself
	view    view // how parent is seen, where there is one
	typ     tensor.Type
	strides []int64   // in elements, as torch has them; nil if not known
	val     *ir.Value // the elements at version
	version int
	mark    func(b *ir.Builder, v *ir.Value) *ir.Value // gives its elements the extent of its recorded sizes; nil: they are all meant
	poison  bool                                       // made by an operator that could not be imported: there is no value
}

// view is a link of a chain: an invertible choice of elements of a base.
type view struct {
	// read gives the elements of base that are seen.
	read func(b *ir.Builder, base *ir.Value) *ir.Value
	// write gives base with the elements that are seen replaced by v. old computes base where it is needed.
	write func(b *ir.Builder, old func() *ir.Value, v *ir.Value) *ir.Value
}

// fresh is a ref to new memory that holds v.
func fresh(v *ir.Value) *ref {
	return &ref{store: &storage{cur: v}, typ: v.Type, strides: tensor.Strides(v.Type.Dims)}
}

// read gives r's elements now.
func (r *ref) read(b *ir.Builder) *ir.Value {
	v := r.store.cur
	if r.parent != nil {
		if r.val == nil || r.version != r.store.version {
			r.val, r.version = r.view.read(b, r.parent.read(b)), r.store.version
		}
		v = r.val
	}
	if r.mark != nil {
		v = r.mark(b, v)
	}
	return v
}

// write replaces r's elements by v, of r's type, in the storage.
func (r *ref) write(b *ir.Builder, v *ir.Value) {
	s := r.store
	seen := v
	for at := r; at.parent != nil; at = at.parent {
		base := at.parent
		v = at.view.write(b, func() *ir.Value { return base.read(b) }, v)
	}
	s.cur = v
	s.version++
	if r.parent != nil { // reading it back needs no work
		r.val, r.version = seen, s.version
	}
}

// through is r seen through a view that gives dims.
func (r *ref) through(b *ir.Builder, v view) *ref {
	out := &ref{store: r.store, parent: r, view: v}
	out.typ = out.read(b).Type
	return out
}

// reshapeView sees the same elements in row-major order with other dims.
func reshapeView(from, to []int64) view {
	return view{
		read:  func(b *ir.Builder, x *ir.Value) *ir.Value { return reshape(b, x, to) },
		write: func(b *ir.Builder, _ func() *ir.Value, v *ir.Value) *ir.Value { return reshape(b, v, from) },
	}
}

// permuteView sees the dimensions in another order: result dimension i is dimension perm[i].
func permuteView(perm []int64) view {
	inverse := make([]int64, len(perm))
	for i, p := range perm {
		inverse[p] = int64(i)
	}
	return view{
		read:  func(b *ir.Builder, x *ir.Value) *ir.Value { return transpose(b, x, perm) },
		write: func(b *ir.Builder, _ func() *ir.Value, v *ir.Value) *ir.Value { return transpose(b, v, inverse) },
	}
}

// sliceView sees the elements start, start+step, ... below limit along axis.
func sliceView(axis int, start, limit, step int64) view {
	return view{
		read: func(b *ir.Builder, x *ir.Value) *ir.Value { return slice(b, x, axis, start, limit, step) },
		write: func(b *ir.Builder, old func() *ir.Value, v *ir.Value) *ir.Value {
			x := old()
			dims := x.Type.Dims
			if slices.Equal(v.Type.Dims, dims) {
				return v // all elements
			}
			if v.Type.Elements() == 0 {
				return x
			}
			if step == 1 {
				starts := make([]*ir.Value, len(dims))
				for d := range starts {
					starts[d] = intConst(b, tensor.I32, btoi64(d == axis)*start)
				}
				return op.DynamicUpdateSlice.Make(b, slices.Concat([]*ir.Value{x, v}, starts)...)
			}
			// Spread the new elements out to their places and choose them there.
			n := v.Type.Dims[axis]
			low, high, interior := make([]int64, len(dims)), make([]int64, len(dims)), make([]int64, len(dims))
			low[axis], interior[axis] = start, step-1
			high[axis] = dims[axis] - start - (n-1)*step - 1
			pad := op.PadAttr{Low: low, High: high, Interior: interior}
			spread := op.Pad.Make(b, pad, v, zero(b, v.Type.DType))
			at := op.Pad.Make(b, pad, boolSplat(b, v.Type.Dims, true), boolConst(b, false))
			return op.Select.Make(b, at, spread, x)
		},
	}
}

// expandView repeats dimensions of extent 1 and new leading ones. Torch refuses writes through repeated elements.
func expandView(from, to []int64) view {
	return view{
		read: func(b *ir.Builder, x *ir.Value) *ir.Value { return op.BroadcastTo(b, x, to) },
		write: func(b *ir.Builder, _ func() *ir.Value, v *ir.Value) *ir.Value {
			lead := len(to) - len(from)
			x := v
			for d := range to { // one of the repeated elements
				if n := int64(1); d < lead || from[d-lead] == 1 {
					x = slice(b, x, d, 0, min(n, to[d]), 1)
				}
			}
			return reshape(b, x, from)
		},
	}
}

// identityView sees everything, as alias and detach do.
func identityView() view {
	return view{
		read:  func(_ *ir.Builder, x *ir.Value) *ir.Value { return x },
		write: func(_ *ir.Builder, _ func() *ir.Value, v *ir.Value) *ir.Value { return v },
	}
}
