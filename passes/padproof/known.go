package padproof

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/eval"
	"tpuc/ir/tensor"
)

// maxKnown bounds the elements of a value that is computed while proving.
const maxKnown = 1 << 22

// compute reports whether a value of the large program and its partner depend on no input and are small enough to be known, and gives the
// state that they have: nil where the partner is not the beginning.
func (p *prover) compute(large, small *ir.Value) (known bool, s state) {
	l, m := p.value(large), p.value(small)
	switch {
	case l == nil || m == nil:
		return false, nil
	case !begins(l, m):
		return true, nil
	}
	s = make(state, l.Rank())
	for d := range s {
		s[d] = prefix(l.Dims[d], m.Dims[d])
	}
	return true, s
}

// value is the contents of a value of either program that depends on no input, or nil.
func (p *prover) value(v *ir.Value) *tensor.Tensor {
	if x, ok := p.known[v]; ok {
		return x
	}
	p.known[v] = nil
	switch n := v.Def; {
	case v.Weight != nil:
		if v.Weight.Class == ir.Constant && !v.Weight.Mutable {
			p.known[v] = v.Weight.Data
		}
	case n == nil || len(n.Op.Funcs) > 0 || n.Op.Traits&ir.Effect != 0:
	case slices.ContainsFunc(n.Outs, func(o *ir.Value) bool { return o.Type.Elements() > maxKnown }):
	default:
		var args []*tensor.Tensor
		for _, a := range n.Args {
			x := p.value(a)
			if x == nil {
				return nil
			}
			args = append(args, x)
		}
		outs, err := eval.Node(n, args)
		if err != nil {
			return nil
		}
		for i, o := range n.Outs {
			p.known[o] = outs[i]
		}
	}
	return p.known[v]
}
