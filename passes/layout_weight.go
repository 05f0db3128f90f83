package passes

import (
	"fmt"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
	"tpuc/ir/weight"
)

// layoutWeightRules names what foldWeights counts.
var layoutWeightRules = []Rule{
	{Name: "weight_transpose", Doc: "transpose(w) of a weight that nothing else reads is a weight whose source is permuted."},
	{Name: "weight_reshape", Doc: "reshape(w) of a weight that nothing else reads is a weight whose source is reshaped."},
	{Name: "weight_slice", Doc: "slices of a weight that nothing else reads, together no larger, are weights whose sources are sliced."},
}

// foldWeights moves what only moves a weight's elements into the weight's source expression: it is done once, when the weight is loaded. A weight is
// replaced where all that reads it are such nodes and their results, each counted once, take no more memory than it does; so one that is read
// in two ways, as a tied embedding is, stays. It runs after the products took the transposes that cost them nothing, because a permuted
// weight is a copy of what its file holds, and others are used in place. Contents of constants move as well; state is written and stays.
func foldWeights(c *Context, m *ir.Module) {
	for {
		repl := make(map[*ir.Value]*ir.Value)
		syms := make(map[string]bool, len(m.Weights))
		for _, w := range m.Weights {
			syms[w.Sym] = true
		}
		moves := weightMoves(m)
		var list []*ir.Weight
		for _, w := range m.Weights {
			parts := movedWeights(w, moves[w])
			if parts == nil {
				list = append(list, w)
				continue
			}
			made := make(map[*ir.Weight]bool)
			for i, n := range moves[w] {
				c.At(n)
				c.Hit("weight_" + n.Op.Name)
				p := parts[i]
				repl[n.Outs[0]] = p.Value
				if made[p] {
					continue
				}
				if len(made) > 0 {
					p.Sym = freshSym(syms, w.Sym)
				}
				made[p] = true
				list = append(list, p)
			}
		}
		if len(repl) == 0 {
			return
		}
		m.Weights = list
		for _, f := range m.Functions() {
			f.Rewrite(func(_ *ir.Builder, n *ir.Node) []*ir.Value {
				if len(n.Outs) == 1 && repl[n.Outs[0]] != nil {
					return one(repl[n.Outs[0]])
				}
				return nil
			})
		}
	}
}

// weightMoves lists, for every weight that is read by nothing but nodes that move its elements, those nodes.
func weightMoves(m *ir.Module) map[*ir.Weight][]*ir.Node {
	return soleReaders(m, func(n *ir.Node, _ int) bool {
		return (op.Transpose.Is(n) || op.Reshape.Is(n) || op.Slice.Is(n)) && !sharded(n)
	})
}

// soleReaders lists, for every weight that is read by nothing but arguments of nodes that are accepted, those nodes. Nodes that nothing reads are gone first.
func soleReaders(m *ir.Module, accepts func(n *ir.Node, arg int) bool) map[*ir.Weight][]*ir.Node {
	readers := make(map[*ir.Weight][]*ir.Node)
	fixed := make(map[*ir.Weight]bool)
	for _, f := range m.Functions() {
		sweep(f)
		for _, n := range f.Body {
			for i, a := range n.Args {
				switch w := a.Weight; {
				case w == nil:
				case accepts(n, i):
					readers[w] = append(readers[w], n)
				default:
					fixed[w] = true
				}
			}
		}
		for _, u := range f.Updates {
			fixed[u.Target.Weight] = true
		}
		f.Roots(func(v **ir.Value) { fixed[(*v).Weight] = true })
	}
	for w := range fixed {
		delete(readers, w)
	}
	return readers
}

// movedWeights are the weights that take the place of w and of the nodes that read it, one for each node and the same for equal ones; nil where w stays.
func movedWeights(w *ir.Weight, nodes []*ir.Node) []*ir.Weight {
	if w.Mutable || w.Source == nil || w.Value.Sharding != nil || len(nodes) == 0 {
		return nil
	}
	bySource := make(map[string]*ir.Weight)
	bytes := int64(0)
	out := make([]*ir.Weight, len(nodes))
	for i, n := range nodes {
		e := movedSource(w.Source, n)
		if e == nil {
			return nil
		}
		p := bySource[e.String()]
		if p == nil {
			if bytes += e.Type().Bytes(); bytes > w.Value.Type.Bytes() {
				return nil
			}
			p = &ir.Weight{Sym: w.Sym, Names: w.Names, Class: w.Class, Source: e, Data: movedData(w, n)}
			p.Value = &ir.Value{Type: e.Type(), Weight: p}
			bySource[e.String()] = p
		}
		out[i] = p
	}
	return out
}

// movedData is what n gives of the contents of w, where they are at hand.
func movedData(w *ir.Weight, n *ir.Node) *tensor.Tensor {
	if w.Data == nil {
		return nil
	}
	x, err := weight.Eval(movedSource(weight.Const{T: w.Data.Type}, n), w.Data)
	if err != nil {
		panic(fmt.Sprintf("moving constant @%s: %v", w.Sym, err))
	}
	return x
}

// movedSource is what n, a transpose, reshape or slice, makes of e; nil where that would be too deep.
func movedSource(e weight.Expr, n *ir.Node) (out weight.Expr) {
	var err error
	switch {
	case op.Transpose.Is(n):
		out, err = weight.Permute(e, op.Transpose.Attr(n).Perm)
	case op.Reshape.Is(n):
		out, err = weight.Reshape(e, op.Reshape.Attr(n).Shape)
	default:
		a := op.Slice.Attr(n)
		out, err = weight.Slice(e, a.Start, a.Limit, a.Stride)
	}
	if err != nil {
		return nil
	}
	return out
}

// freshSym is base with the first number behind it that makes a new symbol, which it takes.
func freshSym(syms map[string]bool, base string) string {
	for i := 1; ; i++ {
		if s := fmt.Sprintf("%s_%d", base, i); !syms[s] {
			syms[s] = true
			return s
		}
	}
}
