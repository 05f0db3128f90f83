package passes

import (
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Rules of raise for norms and activations.

// rootOf matches v = root(m + eps) spread to the shape of what it scales, and gives m, eps and the long dimensions that m has of it.
func rootOf(root op.Plain, v *ir.Value) (m *ir.Value, eps float64, dims []int64) {
	s, dims := spread(v)
	if s = unkeep(s); !root.Is(s.Def) {
		return nil, 0, nil
	}
	sum := unkeep(s.Def.Args[0])
	if !op.Add.Is(sum.Def) {
		return nil, 0, nil
	}
	m, eps, ok := withSplat(sum.Def)
	if !ok {
		return nil, 0, nil
	}
	return m, shortest(sum, eps), dims
}

// square matches y = x * x.
func square(y *ir.Value) *ir.Value {
	if y == nil || !op.Mul.Is(y.Def) || y.Def.Args[0] != y.Def.Args[1] {
		return nil
	}
	return y.Def.Args[0]
}

// rmsNorm matches transformers' LlamaRMSNorm and its kin, without the weight.
func rmsNorm(b *ir.Builder, n *ir.Node, u uses) []*ir.Value {
	if !wide(n.Outs[0]) {
		return nil
	}
	for _, p := range pairs(n) {
		x, r := p[0], p[1]
		m, eps, dims := rootOf(op.Rsqrt, r)
		if m == nil || !u.sole(r) {
			continue
		}
		y, axes := meanOf(m, dims)
		if rank := lastRank(x, axes); square(y) == x && rank > 0 {
			return one(op.RMSNorm.Make(b, op.RMSNormAttr{Eps: eps, Rank: rank}, x))
		}
	}
	return nil
}

// rmsNormWeight takes in a weight; below f32 the norm is rounded before it is multiplied.
func rmsNormWeight(b *ir.Builder, n *ir.Node, u uses) []*ir.Value {
	for _, p := range pairs(n) {
		if y := p[0].Def; op.RMSNorm.Is(y) && len(y.Args) == 1 && wide(p[0]) && u.sole(p[0]) {
			a := op.RMSNorm.Attr(y)
			if w := alongLast(b, p[1], a.Rank); w != nil {
				return one(op.RMSNorm.Make(b, a, y.Args[0], w))
			}
		}
	}
	return nil
}

// centred matches d = x - mean(x) over axes.
func centred(d *ir.Value) (x *ir.Value, axes []int64) {
	if d == nil || !op.Sub.Is(d.Def) {
		return nil, nil
	}
	x = d.Def.Args[0]
	m, dims := spread(d.Def.Args[1])
	if y, axes := meanOf(m, dims); y == x {
		return x, axes
	}
	return nil, nil
}

// layerNorm matches the centred d divided by the root r of its variance.
func layerNorm(b *ir.Builder, n *ir.Node, u uses) []*ir.Value {
	d, r := n.Args[0], n.Args[1]
	if !wide(d) || !u.sole(r) {
		return nil
	}
	x, axes := centred(d)
	if x == nil {
		return nil
	}
	m, eps, dims := rootOf(op.Sqrt, r)
	if m == nil {
		return nil
	}
	y, again := meanOf(m, dims)
	rank := lastRank(x, axes)
	if y == nil || rank == 0 || !slices.Equal(axes, again) {
		return nil
	}
	if e := square(y); e != d {
		if c, same := centred(e); c != x || !slices.Equal(axes, same) {
			return nil
		}
	}
	return one(op.LayerNorm.Make(b, op.LayerNormAttr{Eps: eps, Rank: rank}, x))
}

func layerNormWeight(b *ir.Builder, n *ir.Node, u uses) []*ir.Value {
	for _, p := range pairs(n) {
		if y := p[0].Def; op.LayerNorm.Is(y) && len(y.Args) == 1 && wide(p[0]) && u.sole(p[0]) {
			a := op.LayerNorm.Attr(y)
			if w := alongLast(b, p[1], a.Rank); w != nil {
				return one(op.LayerNorm.Make(b, a, y.Args[0], w))
			}
		}
	}
	return nil
}

func layerNormBias(b *ir.Builder, n *ir.Node, u uses) []*ir.Value {
	for _, p := range pairs(n) {
		if y := p[0].Def; op.LayerNorm.Is(y) && len(y.Args) == 2 && wide(p[0]) && u.sole(p[0]) {
			a := op.LayerNorm.Attr(y)
			if w := alongLast(b, p[1], a.Rank); w != nil {
				return one(op.LayerNorm.Make(b, a, y.Args[0], y.Args[1], w))
			}
		}
	}
	return nil
}

// factors splits a product of at most two levels into its known and its other factors.
func factors(v *ir.Value, depth int, known float64, others []*ir.Value) (float64, []*ir.Value) {
	if w, ok := splatOf(v); ok {
		return known * w, others
	}
	if depth == 0 || !op.Mul.Is(v.Def) {
		return known, append(others, v)
	}
	for _, a := range v.Def.Args {
		known, others = factors(a, depth-1, known, others)
	}
	return known, others
}

// gelu matches products of 1/2, x and 1 + g(x) in any order.
func gelu(b *ir.Builder, n *ir.Node, u uses) []*ir.Value {
	if !wide(n.Outs[0]) {
		return nil
	}
	half, rest := factors(n.Outs[0], 2, 1, nil)
	if half != 0.5 || len(rest) != 2 {
		return nil
	}
	for i, f := range rest {
		x := rest[1-i]
		if !op.Add.Is(f.Def) || !u.sole(f) {
			continue
		}
		g, w, ok := withSplat(f.Def)
		switch {
		case !ok || w != 1:
		case op.Erf.Is(g.Def) && scaled(g.Def.Args[0], x, 1/math.Sqrt2):
			return one(op.Gelu.Make(b, op.GeluAttr{}, x))
		case op.Tanh.Is(g.Def) && cubic(g.Def.Args[0], x):
			return one(op.Gelu.Make(b, op.GeluAttr{Tanh: true}, x))
		}
	}
	return nil
}

// scaled matches v = c x, or x / (1/c).
func scaled(v, x *ir.Value, c float64) bool {
	n := v.Def
	if op.Div.Is(n) && n.Args[0] == x {
		return is(n.Args[1], 1/c)
	}
	if !op.Mul.Is(n) {
		return false
	}
	y, _, ok := withSplat(n)
	return ok && y == x && (is(n.Args[0], c) || is(n.Args[1], c))
}

// cubic matches v = sqrt(2/pi) (x + 0.044715 x^3).
func cubic(v, x *ir.Value) bool {
	slope := math.Sqrt(2 / math.Pi)
	if !op.Mul.Is(v.Def) {
		return false
	}
	sum, w, ok := withSplat(v.Def)
	if !ok || !near32(w, slope) || !op.Add.Is(sum.Def) {
		return false
	}
	for _, p := range pairs(sum.Def) {
		c, powers := factors(p[1], 3, 1, nil)
		if p[0] == x && near32(c, 0.044715) && len(powers) == 3 && !slices.ContainsFunc(powers, func(f *ir.Value) bool { return f != x }) {
			return true
		}
	}
	return false
}

// near32 reports equality after rounding to f32.
func near32(x, y float64) bool { return float32(x) == float32(y) }

func silu(b *ir.Builder, n *ir.Node, u uses) []*ir.Value {
	for _, p := range pairs(n) {
		if wide(p[0]) && op.Sigmoid.Is(p[1].Def) && u.sole(p[1]) && p[1].Def.Args[0] == p[0] {
			return one(op.Silu.Make(b, p[0]))
		}
	}
	return nil
}

// inF32 matches composites whose definition computes floats below f32 in f32 and rounds once.
func inF32(b *ir.Builder, n *ir.Node, u uses) []*ir.Value {
	y, d := n.Args[0], n.Outs[0].Type.DType
	f := y.Def
	switch {
	case y.Type.DType != tensor.F32 || !d.IsFloat() || d.Bits() >= 32 || f == nil || !u.sole(y):
		return nil
	case !slices.Contains(onceRounded, f.Op) || !op.Convert.Is(f.Args[0].Def) || f.Args[0].Def.Args[0].Type.DType != d:
		return nil
	}
	args := slices.Clone(f.Args)
	args[0] = f.Args[0].Def.Args[0]
	return b.Build(f.Op, f.Attr, args...)
}

// onceRounded are composites of one data argument that keep its dtype.
var onceRounded = []*ir.Op{op.RMSNorm.Op, op.LayerNorm.Op, op.Softmax.Op, op.LogSoftmax.Op, op.Gelu.Op, op.Silu.Op}
