package passes

import "tpuc/ir"

// dce removes what no result and no update needs. Parameters stay: they are the program's signature.
var dce = Pass{
	Name: "dce", Doc: "Removes nodes and weights that nothing uses.",
	Run: func(c *Context, m *ir.Module) error {
		for range sweep(m.Func) {
			c.Hit("node")
		}
		used := make(map[*ir.Value]bool)
		for _, n := range m.Func.Body {
			for _, a := range n.Args {
				used[a] = true
			}
		}
		for _, u := range m.Func.Updates {
			used[u.Target] = true
		}
		m.Func.Roots(func(v **ir.Value) { used[*v] = true })
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
		if n := f.Body[i]; used[n] {
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
