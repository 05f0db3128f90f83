package passes

import (
	"fmt"
	"slices"

	"tpuc/ir"
)

// expand replaces composites by their decompositions until none is left. The nodes made carry the composite's location.
var expand = Pass{
	Name: "expand", Doc: "Decomposes composite operators into primitives.",
	Required: true,
	After:    []string{"raise"}, // its patterns are composites
	Leaves:   Expanded,
	Run: func(c *Context, m *ir.Module) error {
		for range maxRounds {
			changed := false
			for _, f := range m.Functions() {
				changed = f.Rewrite(func(b *ir.Builder, n *ir.Node) []*ir.Value {
					if !n.Op.Composite() {
						return nil
					}
					c.At(n)
					c.Hit(n.Op.Name)
					start := len(b.Body)
					out := n.Op.Decompose(b, n, n.Attr)
					for i, o := range n.Outs {
						if v := out[i]; o.Sharding != nil && v.Sharding == nil && slices.Contains(b.Body[start:], v.Def) {
							v.Sharding = o.Sharding
						}
					}
					return out
				}) || changed
			}
			if !changed {
				return nil
			}
		}
		panic(fmt.Sprintf("composites left after %d rounds: a decomposition contains itself", maxRounds))
	},
}
