package passes

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// Rules of simplify on elementwise operators.

// isSplat reports that v is known to be w everywhere; the sign of a float's zero counts.
func isSplat(v *ir.Value, w float64) bool {
	d := v.Type.DType
	s := splat(v)
	if s == nil || d.IsComplex() {
		return false
	}
	got := s.Floats()[0]
	return got == w && (!d.IsFloat() || math.Signbit(got) == math.Signbit(w))
}

// other gives the argument beside the one that is w everywhere, nil without such.
func other(n *ir.Node, w float64) *ir.Value {
	for i, x := range n.Args {
		if isSplat(x, w) {
			return n.Args[1-i]
		}
	}
	return nil
}

// keep wraps a replacement that may be nil, which is none.
func keep(v *ir.Value) []*ir.Value {
	if v == nil {
		return nil
	}
	return one(v)
}

// isInt reports integers, for which every identity of arithmetic holds.
func isInt(v *ir.Value) bool { return v.Type.DType.IsInt() }

// addZero: of floats only -0 keeps the sign of -0.
func addZero(_ *ir.Builder, n *ir.Node) []*ir.Value {
	if isInt(n.Outs[0]) {
		return keep(other(n, 0))
	}
	return keep(other(n, math.Copysign(0, -1)))
}

func mulOne(_ *ir.Builder, n *ir.Node) []*ir.Value { return keep(other(n, 1)) }

func divOne(_ *ir.Builder, n *ir.Node) []*ir.Value {
	if isSplat(n.Args[1], 1) {
		return one(n.Args[0])
	}
	return nil
}

func notNot(_ *ir.Builder, n *ir.Node) []*ir.Value {
	if in := n.Args[0].Def; op.Not.Is(in) {
		return one(in.Args[0])
	}
	return nil
}

// opposite are comparisons that hold where the key does not. Of the pairs only eq and ne are opposite for NaN too.
var opposite = map[op.CompareDir]op.CompareDir{op.EQ: op.NE, op.NE: op.EQ, op.LT: op.GE, op.GE: op.LT, op.GT: op.LE, op.LE: op.GT}

func notCompare(b *ir.Builder, n *ir.Node) []*ir.Value {
	in := n.Args[0].Def
	if !op.Compare.Is(in) {
		return nil
	}
	dir := op.Compare.Attr(in).Dir
	if dir != op.EQ && dir != op.NE && !isInt(in.Args[0]) {
		return nil
	}
	return one(op.Compare.Make(b, op.CompareAttr{Dir: opposite[dir]}, in.Args...))
}

// andConst is of bools: an integer's neutral element has all bits set.
func andConst(_ *ir.Builder, n *ir.Node) []*ir.Value {
	if n.Outs[0].Type.DType != tensor.Bool {
		return nil
	}
	if x := other(n, 1); x != nil {
		return one(x)
	}
	if x := other(n, 0); x == n.Args[0] {
		return one(n.Args[1])
	} else if x != nil {
		return one(n.Args[0])
	}
	return nil
}

// compareSame: a NaN differs from itself.
func compareSame(b *ir.Builder, n *ir.Node) []*ir.Value {
	if n.Args[0] != n.Args[1] || !isInt(n.Args[0]) && n.Args[0].Type.DType != tensor.Bool {
		return nil
	}
	holds := 0.0
	switch op.Compare.Attr(n).Dir {
	case op.EQ, op.LE, op.GE:
		holds = 1
	}
	return one(op.Splat(b, n.Outs[0].Type, holds))
}

func selectConst(_ *ir.Builder, n *ir.Node) []*ir.Value {
	switch {
	case isSplat(n.Args[0], 1):
		return one(n.Args[1])
	case isSplat(n.Args[0], 0):
		return one(n.Args[2])
	}
	return nil
}

func selectNot(b *ir.Builder, n *ir.Node) []*ir.Value {
	if p := n.Args[0].Def; op.Not.Is(p) {
		return one(op.Select.Make(b, p.Args[0], n.Args[2], n.Args[1]))
	}
	return nil
}

// convertConvert drops a detour through a dtype that loses nothing, such as bf16 through f32 between two composites. Floats become
// integers by saturation and integers by wrap-around: from integers through floats only where the last dtype holds all.
func convertConvert(b *ir.Builder, n *ir.Node) []*ir.Value {
	in := n.Args[0].Def
	if !op.Convert.Is(in) {
		return nil
	}
	x, wide, to := in.Args[0], in.Outs[0].Type.DType, n.Outs[0].Type.DType
	from := x.Type.DType
	switch {
	case !holds(wide, from):
		return nil
	case from == to:
		return one(x)
	case from.IsInt() && wide.IsFloat() && to.IsInt() && !holds(to, from):
		return nil
	}
	return one(op.Convert.Make(b, op.ConvertAttr{To: to}, x))
}
