package passes

import (
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Rules of raise for attention.

// rope matches either order of the products and of their factors.
func rope(b *ir.Builder, n *ir.Node, u uses) []*ir.Value {
	if !n.Outs[0].Type.DType.IsFloat() {
		return nil
	}
	for _, p := range pairs(n) {
		if !op.Mul.Is(p[0].Def) || !op.Mul.Is(p[1].Def) || !u.sole(p[0], p[1]) {
			continue
		}
		for _, turned := range pairs(p[1].Def) {
			for _, straight := range pairs(p[0].Def) {
				x := straight[0]
				if interleaved, ok := rotated(turned[0], x); ok {
					cos, sin := unbroadcast(b, straight[1]), unbroadcast(b, turned[1])
					return one(op.Rope.Make(b, op.RopeAttr{Interleaved: interleaved}, x, cos, sin))
				}
			}
		}
	}
	return nil
}

// rotated matches r = concat(-x2, x1) of the halves of x's last dimension, or of its odd and even elements joined pair by pair.
func rotated(r, x *ir.Value) (interleaved, ok bool) {
	c := r.Def
	if op.Reshape.Is(c) {
		c, interleaved = c.Args[0].Def, true
	}
	if !x.Type.Equal(r.Type) || !op.Concat.Is(c) || len(c.Args) != 2 || op.Concat.Attr(c).Axis != int64(c.Outs[0].Type.Rank()-1) {
		return false, false
	}
	second, first := c.Args[0], c.Args[1]
	if last := c.Outs[0].Type.Rank() - 1; interleaved {
		if last != r.Type.Rank() || c.Outs[0].Type.Dims[last] != 2 || first.Type.Dims[last] != 1 {
			return false, false
		}
		second, first = unkeep(second), unkeep(first)
	}
	if !op.Neg.Is(second.Def) {
		return false, false
	}
	if second = second.Def.Args[0]; interleaved {
		second = unkeep(second)
	}
	return interleaved, isPart(first, x, 0, interleaved) && isPart(second, x, 1, interleaved)
}

// isPart matches the slice v of x that takes element i of every pair. Where x is a slice itself, as in a partial rotation, simplify has made
// v one of what x is of.
func isPart(v, x *ir.Value, i int64, interleaved bool) bool {
	if !op.Slice.Is(v.Def) {
		return false
	}
	a, dims := op.Slice.Attr(v.Def), x.Type.Dims
	offset := make([]int64, len(dims))
	if base := v.Def.Args[0]; base != x {
		if !op.Slice.Is(x.Def) || x.Def.Args[0] != base || slices.ContainsFunc(op.Slice.Attr(x.Def).Stride, func(s int64) bool { return s != 1 }) {
			return false
		}
		offset = op.Slice.Attr(x.Def).Start
	}
	last := len(dims) - 1
	for d := range dims[:last] {
		if a.Start[d] != offset[d] || a.Limit[d] != offset[d]+dims[d] || a.Stride[d] != 1 {
			return false
		}
	}
	half := dims[last] / 2
	if v.Type.Dims[last] != half || dims[last]%2 != 0 || half == 0 {
		return false
	}
	if interleaved {
		return a.Start[last] == offset[last]+i && (a.Stride[last] == 2 || half == 1)
	}
	return a.Start[last] == offset[last]+i*half && a.Stride[last] == 1
}

// attention matches from the second product backwards, in f32 and f64: below, models round scores and probabilities where the composite does
// not. Products have batch and heads as two dimensions or as one.
func attention(b *ir.Builder, n *ir.Node, u uses) []*ir.Value {
	p, v := n.Args[0], n.Args[1]
	nb := p.Type.Rank() - 2
	if !wide(n.Outs[0]) || n.Outs[0].Type.DType != p.Type.DType || !isBatched(n, nb, nb) || n.Outs[0].Type.Elements() == 0 {
		return nil
	}
	l, keys, ev := p.Type.Dims[nb], p.Type.Dims[nb+1], v.Type.Dims[nb+1]
	if !u.sole(p) {
		return nil
	}
	if op.Reshape.Is(p.Def) {
		if p = p.Def.Args[0]; !u.sole(p) {
			return nil
		}
	}
	p, plain := unsafe(p, u)
	rank := p.Type.Rank()
	if rank != 3 && rank != 4 || p.Type.Dims[rank-2] != l || p.Type.Dims[rank-1] != keys {
		return nil
	}
	x, sinks := normalised(b, p, u)
	if x == nil || u[x] != 1 && (plain || u[x] != 2) {
		return nil // no softmax, or something else reads the scores
	}
	s := scores{batch: p.Type.Dims[:rank-2], l: l, keys: keys, scale: 1}
	if !s.follow(x, u, true) {
		return nil
	}
	batch := s.batch // batch and heads
	if len(batch) == 1 {
		batch = []int64{1, s.batch[0]}
	}
	q, k := s.product.Args[0], s.product.Args[1]
	e := q.Type.Dims[q.Type.Rank()-1]
	four := func(x *ir.Value, last ...int64) *ir.Value { return reshapeTo(b, x, slices.Concat(batch, last)) }
	if s.crossed {
		k = unscale(k, &s.scale)
		if !endsIn(k, e, keys) {
			k = four(k, e, keys)
		}
		for op.Reshape.Is(k.Def) && endsIn(k.Def.Args[0], e, keys) {
			k = k.Def.Args[0] // where the transpose is that takes the swap in
		}
		k = swapped(b, k)
	}
	args := []*ir.Value{four(unscale(q, &s.scale), l, e), four(unscale(k, &s.scale), keys, e), four(v, keys, ev)}
	if len(s.masks) > 0 {
		args = append(args, s.mask(b, batch))
	}
	if sinks != nil {
		args = append(args, sinks)
	}
	y := op.Attention.Make(b, op.AttentionAttr{Scale: s.scale, Softcap: s.softcap, Plain: plain, Sinks: sinks != nil}, args...)
	return one(reshapeTo(b, y, n.Outs[0].Type.Dims))
}

// isBatched matches a dot of the first nb dimensions on both sides as batch and lhs's last one with dimension rc of rhs.
func isBatched(n *ir.Node, nb, rc int) bool {
	s, all := sides(n), upTo(0, int64(nb))
	return nb >= 1 && nb <= 2 && n.Args[0].Type.Rank() == nb+2 && n.Args[1].Type.Rank() == nb+2 &&
		slices.Equal(s[0].batch, all) && slices.Equal(s[1].batch, all) &&
		slices.Equal(s[0].contract, []int64{int64(nb + 1)}) && slices.Equal(s[1].contract, []int64{int64(rc)})
}

// unsafe matches select(not any(x != -inf), 0, softmax(x)), which gives 0 for a row of -inf, and gives the softmax; plain is true where p is
// no such select and so the softmax itself.
func unsafe(p *ir.Value, u uses) (y *ir.Value, plain bool) {
	if !op.Select.Is(p.Def) {
		return p, true
	}
	y = p.Def.Args[2]
	none, dims := spread(p.Def.Args[0])
	if none = unkeep(none); !is(p.Def.Args[1], 0) || !op.Not.Is(none.Def) || !op.Softmax.Is(y.Def) || !u.sole(y) {
		return p, true
	}
	differs, axes := reduced(none.Def.Args[0], op.AnyTrue, dims)
	if differs == nil || !op.Compare.Is(differs.Def) || op.Compare.Attr(differs.Def).Dir != op.NE || differs.Def.Args[0] != y.Def.Args[0] ||
		!is(differs.Def.Args[1], math.Inf(-1)) || !slices.Equal(axes, []int64{op.Softmax.Attr(y.Def).Axis}) {
		return p, true
	}
	return y, false
}

// normalised matches p = softmax(x) along the last dimension, or the part over x of softmax(concat(x, s)), where s is one sink a head.
func normalised(b *ir.Builder, p *ir.Value, u uses) (x, sinks *ir.Value) {
	last := p.Type.Rank() - 1
	softmax := func(v *ir.Value) bool { return op.Softmax.Is(v.Def) && op.Softmax.Attr(v.Def).Axis == int64(last) }
	if softmax(p) {
		return p.Def.Args[0], nil
	}
	if !op.Slice.Is(p.Def) || last != 3 {
		return nil, nil
	}
	y := p.Def.Args[0]
	if !softmax(y) || !u.sole(y, y.Def.Args[0]) {
		return nil, nil
	}
	c := y.Def.Args[0].Def
	if !op.Concat.Is(c) || len(c.Args) != 2 || op.Concat.Attr(c).Axis != int64(last) || c.Args[1].Type.Dims[last] != 1 ||
		!p.Type.Equal(c.Args[0].Type) || slices.Max(op.Slice.Attr(p.Def).Start) != 0 {
		return nil, nil
	}
	heads := p.Type.Dims[1]
	s, dims := spread(c.Args[1])
	if s.Type.Elements() != heads || heads > 1 && !slices.Equal(dims, []int64{1}) {
		return nil, nil
	}
	return c.Args[0], reshapeTo(b, s, []int64{heads})
}

// scores is the way from attention's first product to its softmax.
type scores struct {
	batch   []int64 // extents of batch and heads at the softmax, or of both as one
	l, keys int64

	product *ir.Node
	crossed bool        // the product's second argument is [..., e, keys]
	masks   []*ir.Value // of the scores' shape: floats that are added, or one bool; none: no mask
	masked  bool        // the bool holds where a key does not take part
	scale   float64
	softcap float64
}

// mask is the masks as one [B|1, Hq|1, L|1, S|1].
func (s *scores) mask(b *ir.Builder, batch []int64) (sum *ir.Value) {
	for _, m := range s.masks {
		m = unbroadcast(b, m)
		lead := batch
		if product(m.Type.Dims[:m.Type.Rank()-2]) == 1 {
			lead = []int64{1, 1}
		} else if m.Type.Rank() == 4 {
			lead = m.Type.Dims[:2]
		}
		m = reshapeTo(b, m, slices.Concat(lead, m.Type.Dims[m.Type.Rank()-2:]))
		if sum == nil {
			sum = m
			continue
		}
		dims := slices.Clone(sum.Type.Dims)
		for d := range dims {
			dims[d] = max(dims[d], m.Type.Dims[d])
		}
		sum = op.Add.Make(b, op.Stretch(b, m, dims), op.Stretch(b, sum, dims))
	}
	if s.masked {
		return op.Not.Make(b, sum)
	}
	return sum
}

// follow goes back from x: a mask, which comes last, a soft cap, factors, reshapes that keep queries and keys, the product. outer is true
// as long as a mask and a cap may come.
func (s *scores) follow(x *ir.Value, u uses, outer bool) bool {
	n, rank := x.Def, x.Type.Rank()
	if n == nil || rank < 3 || x.Type.Dims[rank-2] != s.l || x.Type.Dims[rank-1] != s.keys {
		return false
	}
	inner := func(y *ir.Value, outer bool) bool { return u.sole(y) && s.follow(y, u, outer) }
	// A mask has the softmax's dimensions, or batch and heads apart where the softmax has them as one, so that it can be the composite's.
	if outer && len(s.batch) == 1 && rank == 4 && product(x.Type.Dims[:2]) == s.batch[0] {
		s.batch = x.Type.Dims[:2]
	}
	whole := slices.Equal(x.Type.Dims[:rank-2], s.batch) || len(s.batch) == 2 && rank == 3
	switch {
	case op.Dot.Is(n):
		nb := rank - 2
		s.product, s.crossed = n, isBatched(n, nb, nb)
		return n.Args[0].Type.DType == x.Type.DType && (s.crossed || isBatched(n, nb, nb+1))
	case op.Reshape.Is(n):
		return inner(n.Args[0], outer)
	case op.Add.Is(n) && outer && whole && (len(s.masks) == 0 || s.masks[0].Type.DType != tensor.Bool):
		for _, p := range pairs(n) {
			try := *s
			try.masks = append(slices.Clip(s.masks), p[1])
			if u.sole(p[0]) && try.follow(p[0], u, outer) {
				*s = try
				return true
			}
		}
	case op.Select.Is(n) && outer && whole && len(s.masks) == 0:
		s.masks = []*ir.Value{n.Args[0]}
		if is(n.Args[2], math.Inf(-1)) {
			return inner(n.Args[1], outer)
		}
		s.masked = true
		return is(n.Args[1], math.Inf(-1)) && inner(n.Args[2], outer)
	case op.Mul.Is(n):
		y, w, ok := withSplat(n)
		if !ok {
			return false
		}
		if op.Tanh.Is(y.Def) && outer && w > 0 && u.sole(y) {
			if t := y.Def.Args[0]; op.Div.Is(t.Def) && is(t.Def.Args[1], w) && u.sole(t) {
				s.softcap = w
				return inner(t.Def.Args[0], false)
			}
		}
		s.scale *= w
		return inner(y, false)
	case op.Div.Is(n):
		w, ok := splatOf(n.Args[1])
		s.scale /= w
		return ok && inner(n.Args[0], false)
	}
	return false
}

// unscale takes a factor out of v, below a reshape or not, and multiplies scale by it.
func unscale(v *ir.Value, scale *float64) *ir.Value {
	x := v
	for op.Reshape.Is(x.Def) {
		x = x.Def.Args[0]
	}
	if op.Mul.Is(x.Def) {
		if y, w, ok := withSplat(x.Def); ok {
			*scale *= w
			return unscale(y, scale)
		}
	}
	return v
}

// endsIn reports the extents of x's last two dimensions.
func endsIn(x *ir.Value, rows, cols int64) bool {
	d := x.Type.Dims
	return len(d) >= 2 && d[len(d)-2] == rows && d[len(d)-1] == cols
}

// swapped is the transpose of x's last two dimensions, as one transpose with that which x may be.
func swapped(b *ir.Builder, x *ir.Value) *ir.Value {
	perm := upTo(0, int64(x.Type.Rank()))
	perm[len(perm)-2], perm[len(perm)-1] = perm[len(perm)-1], perm[len(perm)-2]
	if op.Transpose.Is(x.Def) {
		perm = at(op.Transpose.Attr(x.Def).Perm, perm)
		x = x.Def.Args[0]
	}
	if slices.IsSorted(perm) {
		return x
	}
	return op.Transpose.Make(b, op.TransposeAttr{Perm: perm}, x)
}

// softmaxShift matches softmax(x - max(x)), which subtracts what softmax subtracts by itself.
func softmaxShift(b *ir.Builder, n *ir.Node) []*ir.Value {
	a, d := op.Softmax.Attr(n), n.Args[0].Def
	if !wide(n.Args[0]) || !op.Sub.Is(d) {
		return nil
	}
	m, dims := spread(d.Args[1])
	if x, axes := reduced(m, op.Max, dims); x == d.Args[0] && slices.Equal(axes, []int64{a.Axis}) {
		return one(op.Softmax.Make(b, a, x))
	}
	return nil
}

// repeatKV drops the repetition of key and value heads before attention, as in transformers' repeat_kv: attention shares each of Hk
// heads among G query heads by itself, and a repeated cache would be G times the memory traffic.
func repeatKV(b *ir.Builder, n *ir.Node) []*ir.Value {
	k, g := unrepeat(n.Args[1])
	v, h := unrepeat(n.Args[2])
	if k == nil || v == nil || g != h {
		return nil
	}
	args := slices.Clone(n.Args)
	args[1], args[2] = headsOf(b, k, n.Args[1], g), headsOf(b, v, n.Args[2], g)
	return one(op.Attention.Make(b, op.Attention.Attr(n), args...))
}

// unrepeat matches x [B, Hk*G, S, E] = reshape(broadcast(y) : [B, Hk, G, S, E]), where y is [B, Hk, S, E] or [B, Hk, 1, S, E] and only
// G is new. It gives y, nil where x is something else, and G.
func unrepeat(x *ir.Value) (y *ir.Value, g int64) {
	if !op.Reshape.Is(x.Def) || x.Type.Rank() != 4 {
		return nil, 0
	}
	wide := x.Def.Args[0]
	if !op.Broadcast.Is(wide.Def) || wide.Type.Rank() != 5 {
		return nil, 0
	}
	w, d := wide.Type.Dims, x.Type.Dims
	if d[0] != w[0] || d[1] != w[1]*w[2] || d[2] != w[3] || d[3] != w[4] {
		return nil, 0
	}
	y = wide.Def.Args[0]
	a := op.Broadcast.Attr(wide.Def)
	switch {
	case slices.Equal(a.Dims, []int64{0, 1, 3, 4}) && slices.Equal(y.Type.Dims, []int64{w[0], w[1], w[3], w[4]}):
	case slices.Equal(a.Dims, []int64{0, 1, 2, 3, 4}) && slices.Equal(y.Type.Dims, []int64{w[0], w[1], 1, w[3], w[4]}):
	default:
		return nil, 0
	}
	return y, w[2]
}

// headsOf gives y as [B, Hk, S, E], where repeated is [B, Hk*g, S, E].
func headsOf(b *ir.Builder, y, repeated *ir.Value, g int64) *ir.Value {
	if y.Type.Rank() == 4 {
		return y
	}
	shape := slices.Clone(repeated.Type.Dims)
	shape[1] /= g
	if op.Reshape.Is(y.Def) && slices.Equal(y.Def.Args[0].Type.Dims, shape) {
		return y.Def.Args[0]
	}
	return op.Reshape.Make(b, op.ReshapeAttr{Shape: shape}, y)
}
