package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
)

// maxApart is the batch up to which an operator that cannot take all places at once is applied to one after another.
const maxApart = 16

// maxVectorized bounds the nodes made: regions within regions, each applied to one element after another, would have no end.
const maxVectorized = 1 << 20

// vectorizer applies nodes to all places of a batch at once, as torch.vmap does: a value that differs between the places is lifted to one
// with a new first dimension of the batch's extent, in which every operator keeps its meaning for the others.
type vectorizer struct {
	b      *ir.Builder
	n      int64
	copies bool                 // nodes stay where they are: what does not vary is made anew
	values map[*ir.Value]lifted // of values that are not themselves
}

// lifted stands for a value: the same at all places, or with a place a row.
type lifted struct {
	v       *ir.Value
	batched bool
}

func newVectorizer(b *ir.Builder, n int64) *vectorizer {
	return &vectorizer{b: b, n: n, values: make(map[*ir.Value]lifted)}
}

func (t *vectorizer) at(v *ir.Value) lifted {
	if l, ok := t.values[v]; ok {
		return l
	}
	return lifted{v, false}
}

// whole is v with a place a row, whether its rows differ or not.
func (t *vectorizer) whole(v *ir.Value) *ir.Value {
	l := t.at(v)
	if l.batched {
		return l.v
	}
	return op.BroadcastTo(t.b, l.v, t.dims(l.v.Type.Dims))
}

// dims is dims of a lifted value.
func (t *vectorizer) dims(dims []int64) []int64 { return slices.Concat([]int64{t.n}, dims) }

// node applies n. It is false where n's operator cannot be applied, after which the vectorizer is of no use.
func (t *vectorizer) node(n *ir.Node) bool {
	if len(t.b.Body) > maxVectorized {
		return false
	}
	varies, same := false, !t.copies
	for _, a := range n.Args {
		l := t.at(a)
		varies = varies || l.batched
		same = same && l.v == a
	}
	switch {
	case !varies && same:
		t.b.Body = append(t.b.Body, n)
		return true
	case !varies:
		args := make([]*ir.Value, len(n.Args))
		for i, a := range n.Args {
			args[i] = t.at(a).v
		}
		t.b.Loc = n.Loc
		for i, v := range t.b.Build(n.Op, n.Attr, args...) {
			t.values[n.Outs[i]] = lifted{v, false}
		}
		return true
	}
	t.b.Loc = n.Loc
	outs := t.apply(n)
	if outs == nil {
		outs = t.apart(n)
	}
	for i, v := range outs {
		t.values[n.Outs[i]] = lifted{v, true}
	}
	return outs != nil
}

// apply is n with a place a row, or nil where no rule says how.
func (t *vectorizer) apply(n *ir.Node) []*ir.Value {
	all := func(args []*ir.Value) []*ir.Value {
		out := make([]*ir.Value, len(args))
		for i, a := range args {
			out[i] = t.whole(a)
		}
		return out
	}
	one := func(o *ir.Op, attr any) []*ir.Value { return t.b.Build(o, attr, all(n.Args)...) }
	switch {
	case n.Op.Traits&ir.Elementwise != 0:
		return one(n.Op, n.Attr)
	case op.Broadcast.Is(n):
		a := op.Broadcast.Attr(n)
		return one(n.Op, op.BroadcastAttr{Shape: t.dims(a.Shape), Dims: front(0, a.Dims)})
	case op.Reshape.Is(n):
		return one(n.Op, op.ReshapeAttr{Shape: t.dims(op.Reshape.Attr(n).Shape)})
	case op.Transpose.Is(n):
		return one(n.Op, op.TransposeAttr{Perm: front(0, op.Transpose.Attr(n).Perm)})
	case op.Reverse.Is(n):
		return one(n.Op, op.ReverseAttr{Axes: shift(op.Reverse.Attr(n).Axes)})
	case op.Slice.Is(n):
		a := op.Slice.Attr(n)
		return one(n.Op, op.SliceAttr{Start: slices.Concat([]int64{0}, a.Start), Limit: t.dims(a.Limit), Stride: slices.Concat([]int64{1}, a.Stride)})
	case op.Concat.Is(n):
		return one(n.Op, op.ConcatAttr{Axis: op.Concat.Attr(n).Axis + 1})
	case op.Reduce.Is(n):
		a := op.Reduce.Attr(n)
		return one(n.Op, op.ReduceAttr{Kind: a.Kind, Axes: shift(a.Axes)})
	case op.Sort.Is(n):
		a := op.Sort.Attr(n)
		a.Axis++
		return one(n.Op, a)
	case op.Pad.Is(n):
		return t.pad(n)
	case op.Dot.Is(n):
		return t.dot(n)
	case op.Gather.Is(n):
		return t.gather(n)
	case n.Op.Composite():
		return t.decomposed(n)
	}
	return nil
}

// shift are dimensions behind the new first one.
func shift(dims []int64) []int64 {
	out := make([]int64, len(dims))
	for i, d := range dims {
		out[i] = d + 1
	}
	return out
}

// front is dimension d, then the others shifted.
func front(d int64, dims []int64) []int64 { return slices.Concat([]int64{d}, shift(dims)) }

// pad keeps the new dimension as it is. The value must be one for all.
func (t *vectorizer) pad(n *ir.Node) []*ir.Value {
	a, value := op.Pad.Attr(n), t.at(n.Args[1])
	if value.batched {
		return nil
	}
	a = op.PadAttr{Low: slices.Concat([]int64{0}, a.Low), High: slices.Concat([]int64{0}, a.High), Interior: slices.Concat([]int64{0}, a.Interior)}
	return t.b.Build(n.Op, a, t.whole(n.Args[0]), value.v)
}

// dot makes places a batch dimension of the product where both arguments have them, and otherwise rows of the one that has them.
func (t *vectorizer) dot(n *ir.Node) []*ir.Value {
	a := op.Dot.Attr(n)
	var contract, batch [2][]int64
	if len(a.Contract) == 2 {
		contract = [2][]int64{a.Contract[0], a.Contract[1]}
	}
	if len(a.Batch) == 2 {
		batch = [2][]int64{a.Batch[0], a.Batch[1]}
	}
	x, y := t.at(n.Args[0]), t.at(n.Args[1])
	nb := int64(len(batch[0]))
	at := int64(0) // where the places stand in the result
	switch {
	case x.batched && y.batched:
		batch[0], batch[1] = front(0, batch[0]), front(0, batch[1])
		contract[0], contract[1] = shift(contract[0]), shift(contract[1])
	case x.batched:
		batch[0], contract[0], at = shift(batch[0]), shift(contract[0]), nb
	default:
		at = int64(n.Args[0].Type.Rank()) - int64(len(contract[0]))
		batch[1], contract[1] = shift(batch[1]), shift(contract[1])
	}
	out := op.DotAttr{Out: a.Out}
	if len(contract[0]) > 0 {
		out.Contract = [][]int64{contract[0], contract[1]}
	}
	if len(batch[0]) > 0 {
		out.Batch = [][]int64{batch[0], batch[1]}
	}
	return []*ir.Value{moveAxis(t.b, op.Dot.Make(t.b, out, x.v, y.v), at, 0)}
}

// moveAxis puts a dimension elsewhere; the others keep their order.
func moveAxis(b *ir.Builder, x *ir.Value, from, to int64) *ir.Value {
	perm := slices.Delete(iotaInts(x.Type.Rank()), int(from), int(from)+1)
	return transpose(b, x, slices.Insert(perm, int(to), from))
}

// gather makes places a batching dimension of x and indices. Where only one of them has places, the other is the same at all of them.
func (t *vectorizer) gather(n *ir.Node) []*ir.Value {
	a := op.Gather.Attr(n)
	x, ids := t.at(n.Args[0]), t.at(n.Args[1])
	a.OffsetDims, a.IndexVectorDim = shift(a.OffsetDims), a.IndexVectorDim+1
	a.StartIndicesBatchingDims = shift(a.StartIndicesBatchingDims)
	if x.batched {
		ids = lifted{t.whole(n.Args[1]), true}
		a.CollapsedSliceDims, a.StartIndexMap = shift(a.CollapsedSliceDims), shift(a.StartIndexMap)
		a.OperandBatchingDims, a.StartIndicesBatchingDims = front(0, a.OperandBatchingDims), slices.Concat([]int64{0}, a.StartIndicesBatchingDims)
		a.SliceSizes = slices.Concat([]int64{1}, a.SliceSizes)
	}
	return t.b.Build(n.Op, a, x.v, ids.v)
}

// decomposed applies the nodes of a composite's decomposition.
func (t *vectorizer) decomposed(n *ir.Node) []*ir.Value {
	inner := &ir.Builder{Loc: n.Loc}
	roots := n.Op.Decompose(inner, n, n.Attr)
	for _, d := range inner.Body {
		if !t.node(d) {
			return nil
		}
	}
	outs := make([]*ir.Value, len(roots))
	for i, r := range roots {
		outs[i] = t.whole(r)
	}
	return outs
}

// apart applies n to one place after another.
func (t *vectorizer) apart(n *ir.Node) []*ir.Value {
	if t.n > maxApart {
		return nil
	}
	rows := make([][]*ir.Value, len(n.Outs))
	for i := range t.n {
		args := make([]*ir.Value, len(n.Args))
		for k, a := range n.Args {
			l := t.at(a)
			args[k] = l.v
			if l.batched {
				args[k] = element(t.b, l.v, i)
			}
		}
		for k, v := range t.b.Build(n.Op, n.Attr, args...) {
			rows[k] = append(rows[k], reshape(t.b, v, slices.Concat([]int64{1}, v.Type.Dims)))
		}
	}
	outs := make([]*ir.Value, len(n.Outs))
	for k, o := range n.Outs {
		if t.n == 0 {
			outs[k] = splat(t.b, o.Type.DType, intScalar(0), t.dims(o.Type.Dims))
			continue
		}
		outs[k] = concat(t.b, 0, rows[k]...)
	}
	return outs
}
