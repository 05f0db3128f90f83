package passes

import (
	"fmt"

	"tpuc/ir"
)

// Rule is a peephole rewrite of one operator's nodes. Rules are directional and never make a program costlier; what they match is
// visible in Apply. Every rule fires in some golden.
type Rule struct {
	Name, Doc string
	Op        *ir.Op
	Sole      bool // only where nothing else reads the first argument: the replacement does its work again
	// Apply gives replacements for n's results, of the same types, or nil where it does not match. It may build nodes.
	Apply func(b *ir.Builder, n *ir.Node) []*ir.Value
}

// maxRounds bounds the rounds of a peephole pass; rules that undo each other would never end. Real programs need two or three.
const maxRounds = 64

// applyRules rewrites to a fixed point. Each round is one walk over the body; results of a rule are looked at in the next round.
func applyRules(c *Context, m *ir.Module, rules []Rule) error {
	byOp := make(map[*ir.Op][]Rule)
	sole := false
	for _, r := range rules {
		byOp[r.Op] = append(byOp[r.Op], r)
		sole = sole || r.Sole
	}
	for range maxRounds {
		var uses map[*ir.Value]int // at the start of the round, without dead nodes
		if sole {
			sweep(m.Func)
			uses = m.Func.Uses()
		}
		changed := m.Func.Rewrite(func(b *ir.Builder, n *ir.Node) []*ir.Value {
			c.At(n)
			for _, r := range byOp[n.Op] {
				if sharded(n) {
					break // a replacement would lose the sharding
				}
				if r.Sole && uses[n.Args[0]] != 1 {
					continue // or made in this round: the next one counts
				}
				if out := r.Apply(b, n); out != nil {
					c.Hit(r.Name)
					return out
				}
			}
			return nil
		})
		if !changed {
			return nil
		}
	}
	panic(fmt.Sprintf("no fixed point after %d rounds: two rules undo each other", maxRounds))
}

// sharded reports a node whose result has a sharding.
func sharded(n *ir.Node) bool {
	for _, o := range n.Outs {
		if o.Sharding != nil {
			return true
		}
	}
	return false
}

// one wraps a single replacement.
func one(v *ir.Value) []*ir.Value { return []*ir.Value{v} }
