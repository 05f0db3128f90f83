package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// maxUnrolled is the number of steps up to which a scan is written out. A short loop costs a plugin more than its steps: nothing is
// fused across them, and every step slices its inputs and updates its outputs.
const maxUnrolled = 8

// maxUnrolledNodes bounds what is written out, since scans may stand in scans.
const maxUnrolledNodes = 4096

// steps is a function that is called for every element along dimension 0 of tensors of one length.
type steps struct {
	c          *call
	f          *function
	length     int64
	xs         []*ir.Value // whole
	more       []passed    // the same in every step
	moreSlots  []slot
	extraParam []*ir.Value // of more, the values that f takes
}

// importSteps imports the graph in argument graphAt, whose inputs are carried, one element of each of xs, and what is the same in
// every step.
func (c *call) importSteps(graphAt int, carried []*ref, xs []*ref, more []passed) *steps {
	s := &steps{c: c, more: more, moreSlots: c.slots(more)}
	if len(xs) == 0 {
		c.unsupported("nothing to go over, wanted one tensor or more")
	}
	var slots []slot
	for _, r := range carried {
		slots = append(slots, slot{typ: r.typ, strides: r.strides})
	}
	for i, r := range xs {
		if r.typ.Rank() == 0 || i > 0 && r.typ.Dims[0] != s.length {
			c.failf("argument %d to go over is %s, wanted a first dimension of %d", i, r.typ, s.length)
		}
		s.length = r.typ.Dims[0]
		s.xs = append(s.xs, r.read(c.b))
		slots = append(slots, slot{typ: r.typ.WithDims(r.typ.Dims[1:]...), strides: tail(r.strides)})
	}
	slots = append(slots, s.moreSlots...)
	s.f = c.tensorsOnly(c.importFunc(c.position(graphAt), slots))
	if s.f.writes() {
		c.unsupported("its graph writes to an argument in place, wanted new tensors")
	}
	s.extraParam = c.params(more, s.moreSlots)
	return s
}

func tail(v []int64) []int64 {
	if len(v) == 0 {
		return v
	}
	return v[1:]
}

// element is x[i] for a known i.
func element(b *ir.Builder, x *ir.Value, i int64) *ir.Value {
	return reshape(b, slice(b, x, 0, i, i+1, 1), x.Type.Dims[1:])
}

// elementAt is x[i] for an i32 i within x.
func elementAt(b *ir.Builder, x, i *ir.Value) *ir.Value {
	row := slices.Concat([]int64{1}, x.Type.Dims[1:])
	y := op.DynamicSlice.Make(b, op.DynamicSliceAttr{Sizes: row}, slices.Concat([]*ir.Value{x}, rowStart(b, x, i))...)
	return reshape(b, y, row[1:])
}

// rowStart is where x[i] starts.
func rowStart(b *ir.Builder, x, i *ir.Value) []*ir.Value {
	at := []*ir.Value{i}
	for range x.Type.Dims[1:] {
		at = append(at, intConst(b, tensor.I32, 0))
	}
	return at
}

// scan calls f with carry and the elements, in order; its first results are the next carry, the others are stacked. It is written out
// where it is short, and a loop otherwise.
func (s *steps) scan(carry []*ir.Value) (last, stacked []*ir.Value) {
	c, k := s.c, len(carry)
	if len(s.f.Results) < k {
		c.failf("the graph gives %d tensors, wanted the %d that go from step to step", len(s.f.Results), k)
	}
	for i, v := range carry {
		if r := s.f.Results[i].Type; !r.Equal(v.Type) {
			c.failf("tensor %d that goes from step to step is %s at first and %s then", i, v.Type, r)
		}
	}
	if s.length > maxUnrolled || s.length*int64(len(s.f.Body)) > maxUnrolledNodes {
		return s.loop(carry)
	}
	ys := make([][]*ir.Value, len(s.f.Results)-k)
	for i := range s.length {
		args := slices.Clone(carry)
		for _, x := range s.xs {
			args = append(args, element(c.b, x, i))
		}
		out := c.b.Inline(s.f.Func, append(args, s.extraParam...)...)
		carry = out[:k]
		for j, y := range out[k:] {
			ys[j] = append(ys[j], reshape(c.b, y, slices.Concat([]int64{1}, y.Type.Dims)))
		}
	}
	for j, parts := range ys {
		if s.length == 0 {
			t := s.f.Results[k+j].Type
			stacked = append(stacked, splat(c.b, t.DType, intScalar(0), slices.Concat([]int64{0}, t.Dims)))
			continue
		}
		stacked = append(stacked, concat(c.b, 0, parts...))
	}
	return carry, stacked
}

// loop is scan as a while over the step, carry, the stacked results so far, xs and the rest of f's arguments.
func (s *steps) loop(carry []*ir.Value) (last, stacked []*ir.Value) {
	c, k := s.c, len(carry)
	state := slices.Concat([]*ir.Value{intConst(c.b, tensor.I32, 0)}, carry)
	for _, y := range s.f.Results[k:] {
		state = append(state, splat(c.b, y.Type.DType, intScalar(0), slices.Concat([]int64{s.length}, y.Type.Dims)))
	}
	sum := len(state)
	state = slices.Concat(state, s.xs, s.extraParam)

	more := &ir.Func{Name: c.im.funcName(s.f.Name + "_cond")}
	next := &ir.Func{Name: c.im.funcName(s.f.Name + "_body")}
	for i, v := range state {
		name := ""
		if i == 0 {
			name = "step"
		}
		more.AddParam(name, v.Type)
		next.AddParam(name, v.Type)
	}
	b := &ir.Builder{Loc: c.b.Loc}
	more.Results = []*ir.Value{compare(b, op.LT, more.Params[0], intConst(b, tensor.I32, s.length))}
	more.Body = b.Body

	b = &ir.Builder{Loc: c.b.Loc}
	step, p := next.Params[0], next.Params
	args := slices.Clone(p[1 : 1+k])
	for _, x := range p[sum : sum+len(s.xs)] {
		args = append(args, elementAt(b, x, step))
	}
	out := b.Inline(s.f.Func, append(args, p[sum+len(s.xs):]...)...)
	next.Results = slices.Concat([]*ir.Value{op.Add.Make(b, step, intConst(b, tensor.I32, 1))}, out[:k])
	for j, y := range out[k:] {
		row := reshape(b, y, slices.Concat([]int64{1}, y.Type.Dims))
		next.Results = append(next.Results, op.DynamicUpdateSlice.Make(b, slices.Concat([]*ir.Value{p[1+k+j], row}, rowStart(b, p[1+k+j], step))...))
	}
	next.Results = append(next.Results, p[sum:]...)
	next.Body = b.Body

	outs := op.While.MakeAll(c.b, op.WhileAttr{Cond: more, Body: next}, state...)
	return outs[1 : 1+k], outs[1+k : sum]
}

// importScan imports scan(combine_graph, init, xs, additional): the carry, then the stacked results.
func importScan(c *call) []*ref {
	init := c.tensorsAt(1)
	s := c.importSteps(0, init, c.tensorsAt(2), c.passedAt(c.position(3)))
	var carry []*ir.Value
	for _, r := range init {
		carry = append(carry, r.read(c.b))
	}
	last, stacked := s.scan(carry)
	return freshAll(slices.Concat(last, stacked))
}

// importMap imports map_impl(graph, xs, additional): the graph's results for every element of xs, stacked. All are computed at once where
// every operator of the graph can, otherwise one after another.
func importMap(c *call) []*ref {
	s := c.importSteps(0, nil, c.tensorsAt(1), c.passedAt(c.position(2)))
	if s.length > 0 {
		if outs, ok := s.atOnce(s.xs); ok {
			return freshAll(outs)
		}
	}
	_, stacked := s.scan(nil)
	return freshAll(stacked)
}

// atOnce is f on all elements of xs, which have the same length and come first among f's parameters.
func (s *steps) atOnce(xs []*ir.Value) ([]*ir.Value, bool) {
	b := &ir.Builder{Loc: s.c.b.Loc}
	v := newVectorizer(b, xs[0].Type.Dims[0])
	v.copies = true
	for i, p := range s.f.Params {
		if i < len(xs) {
			v.values[p] = lifted{xs[i], true}
		} else {
			v.values[p] = lifted{s.extraParam[i-len(xs)], false}
		}
	}
	for _, n := range s.f.Body {
		if !v.node(n) {
			return nil, false
		}
	}
	var outs []*ir.Value
	for _, r := range s.f.Results {
		outs = append(outs, v.whole(r))
	}
	s.c.b.Body = append(s.c.b.Body, b.Body...)
	return outs, true
}

// importAssociativeScan imports associative_scan(combine_graph, xs, additional): running combinations along dimension 0, in as many rounds as
// the length has binary digits. After the round with distance d an element combines the 2d elements up to its own.
func importAssociativeScan(c *call) []*ref {
	xs := c.tensorsAt(1)
	s := c.importSteps(0, xsElements(c, xs), xs, c.passedAt(c.position(2)))
	k := len(xs)
	if len(s.f.Results) != k {
		c.failf("the graph gives %d tensors, wanted %d", len(s.f.Results), k)
	}
	cur := s.xs
	for d := int64(1); d < s.length; d *= 2 {
		var both []*ir.Value
		for _, x := range cur {
			both = append(both, slice(c.b, x, 0, 0, s.length-d, 1))
		}
		for _, x := range cur {
			both = append(both, slice(c.b, x, 0, d, s.length, 1))
		}
		outs, ok := s.atOnce(both)
		if !ok {
			c.unsupported("its graph holds operators that cannot be applied to all elements at once")
		}
		next := make([]*ir.Value, k)
		for i, x := range cur {
			next[i] = concat(c.b, 0, slice(c.b, x, 0, 0, d, 1), outs[i])
		}
		cur = next
	}
	return freshAll(cur)
}

// xsElements describes one element of each of xs, for the graph's left side.
func xsElements(c *call, xs []*ref) []*ref {
	var out []*ref
	for _, r := range xs {
		if r.typ.Rank() == 0 {
			c.failf("an argument to go over is %s, wanted a dimension", r.typ)
		}
		out = append(out, &ref{typ: r.typ.WithDims(r.typ.Dims[1:]...), strides: tail(r.strides)})
	}
	return out
}
