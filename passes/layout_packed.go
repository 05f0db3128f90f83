package passes

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/weight"
)

// layoutPackedRules names what packWeights counts.
var layoutPackedRules = []Rule{
	{Name: "weight_packed", Doc: "A weight [out, in] that only products over its last dimension read lies as [in, out], where weights are packed for a CPU."},
}

// packWeights permutes the weights of products that are written into an artifact anyway, so that the one who loads them need not. A product that reads
// [out, in] over its last dimension makes XLA's CPU library prepare a transposing kernel at the first call, at three times the cost
// of a plain one, and it is no faster afterwards. The weights of a file that is used as it lies are worth more in place.
func packWeights(c *Context, m *ir.Module) {
	products := soleReaders(m, func(n *ir.Node, arg int) bool { return arg == 1 && overLast(n) && n.Args[0] != n.Args[1] })
	repl := make(map[*ir.Value]*ir.Value)
	for i, w := range m.Weights {
		if len(products[w]) == 0 || w.Class != ir.Parameter || w.Mutable || w.Source == nil || w.Value.Sharding != nil {
			continue
		}
		source, err := weight.Permute(w.Source, []int64{1, 0})
		if err != nil {
			continue // its source is as deep as sources may be
		}
		p := &ir.Weight{Sym: w.Sym, Names: w.Names, Class: w.Class, Source: source}
		p.Value = &ir.Value{Type: source.Type(), Weight: p}
		m.Weights[i], repl[w.Value] = p, p.Value
	}
	if len(repl) == 0 {
		return
	}
	for _, f := range m.Functions() {
		f.Rewrite(func(b *ir.Builder, n *ir.Node) []*ir.Value {
			if len(n.Args) != 2 || repl[n.Args[1]] == nil {
				return nil
			}
			c.At(n)
			c.Hit("weight_packed")
			s := sides(n)
			s[1].contract = []int64{0}
			return one(makeDot(b, n, s, n.Args[0], repl[n.Args[1]]))
		})
	}
}

// overLast reports a product without batch dimensions over the last dimension of a matrix of whole bytes, its second argument.
func overLast(n *ir.Node) bool {
	if !op.Dot.Is(n) || sharded(n) || n.Args[1].Type.Rank() != 2 || n.Args[1].Type.DType.Bits() < 8 {
		return false
	}
	s := sides(n)
	return len(s[0].batch) == 0 && slices.Equal(s[1].contract, []int64{1})
}
