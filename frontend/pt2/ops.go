package pt2

import (
	"cmp"
	"slices"
)

// OpCount is how often an operator occurs in a graph, nested graphs aside.
type OpCount struct {
	Target    string // such as "torch.ops.aten.add.Tensor"
	Count     int
	Supported bool // there is a rule for it, which may refuse single uses
}

// Ops counts the operators, frequent ones first.
func (p *Program) Ops() []OpCount {
	place := make(map[string]int)
	var out []OpCount
	for i := range p.ep.GraphModule.Graph.Nodes {
		target := p.ep.GraphModule.Graph.Nodes[i].Target
		at, ok := place[target]
		if !ok {
			at = len(out)
			place[target] = at
			out = append(out, OpCount{Target: target, Supported: p.supports(target)})
		}
		out[at].Count++
	}
	slices.SortFunc(out, func(a, b OpCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Target, b.Target))
	})
	return out
}
