package passes

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
)

// raise finds what models spell out in small operators and states it in the operator that means it.
var raise = Pass{
	Name: "raise", Doc: "Recognises what models spell out in small operators.",
	After: []string{"simplify"}, // identity slices, casts and doubled reshapes are gone
	Rules: raiseRules,
	Run:   func(c *Context, m *ir.Module) error { return applyRules(c, m, raiseRules) },
}

var raiseRules = []Rule{
	{"repeat_kv", "Attention over repeated key and value heads reads the heads before the repetition.", op.Attention.Op, false, repeatKV},
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
