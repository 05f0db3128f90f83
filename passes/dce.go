package passes

import "tpuc/ir"

// dce removes what no result and no update needs. Parameters stay: they are the program's signature. Functions that are no longer called
// are gone with the nodes that named them.
var dce = Pass{
	Name: "dce", Doc: "Removes nodes and weights that nothing uses.",
	Run: func(c *Context, m *ir.Module) error {
		removed := sweep(m.Func)
		functions := m.Functions() // without those that only dead nodes named
		for _, f := range functions[:len(functions)-1] {
			removed += sweep(f)
		}
		for range removed {
			c.Hit("node")
		}
		used := make(map[*ir.Value]bool)
		for _, f := range m.Functions() {
			for _, n := range f.Body {
				for _, a := range n.Args {
					used[a] = true
				}
			}
			for _, u := range f.Updates {
				used[u.Target] = true
			}
			f.Roots(func(v **ir.Value) { used[*v] = true })
		}
		kept := m.Weights[:0]
		for _, w := range m.Weights {
			if used[w.Value] {
				kept = append(kept, w)
			} else {
				c.Hit("weight")
			}
		}
		clear(m.Weights[len(kept):])
		m.Weights = kept
		return nil
	},
}

// sweep removes nodes without a used result and gives their number: one walk from the end, as uses follow definitions.
func sweep(f *ir.Func) int {
	used := make(map[*ir.Node]bool)
	f.Roots(func(v **ir.Value) { used[(*v).Def] = true })
	for i := len(f.Body) - 1; i >= 0; i-- {
		if n := f.Body[i]; used[n] || n.HasEffect() {
			used[n] = true
			for _, a := range n.Args {
				used[a.Def] = true
			}
		}
	}
	kept := make([]*ir.Node, 0, len(f.Body))
	for _, n := range f.Body {
		if used[n] {
			kept = append(kept, n)
		}
	}
	removed := len(f.Body) - len(kept)
	f.Body = kept
	return removed
}
