package passes

import (
	"fmt"

	"tpuc/ir"
)

// Rule is a peephole rewrite of one operator's nodes. Rules are directional and never make a program costlier; what they match is
// visible in their function. Every rule fires in some golden, and in a model of the test cases.
type Rule struct {
	Name, Doc string
	Op        *ir.Op
	// apply gives replacements for n's results, of the same types, or nil where it does not match. It may build nodes.
	apply   func(b *ir.Builder, n *ir.Node, u uses) []*ir.Value
	counted bool // apply asks for uses
}

// rule makes a Rule that holds whatever else reads what it matches.
func rule(name, doc string, o *ir.Op, apply func(b *ir.Builder, n *ir.Node) []*ir.Value) Rule {
	return Rule{name, doc, o, func(b *ir.Builder, n *ir.Node, _ uses) []*ir.Value { return apply(b, n) }, false}
}

// counted makes a Rule whose replacement does the work of inner nodes again, which pays only where nothing else reads those.
func counted(name, doc string, o *ir.Op, apply func(b *ir.Builder, n *ir.Node, u uses) []*ir.Value) Rule {
	return Rule{name, doc, o, apply, true}
}

// uses counts the reads of every value at the start of a round, dead nodes left out.
type uses map[*ir.Value]int

// sole reports values that are read once. A value made in this round is none: the next round counts it.
func (u uses) sole(values ...*ir.Value) bool {
	for _, v := range values {
		if u[v] != 1 {
			return false
		}
	}
	return true
}

// maxRounds bounds the rounds of a peephole pass; rules that undo each other would never end. Real programs need two or three.
const maxRounds = 64

// applyRules rewrites to a fixed point. Each round is one walk over the body; results of a rule are looked at in the next round.
func applyRules(c *Context, m *ir.Module, rules []Rule) error {
	byOp := make(map[*ir.Op][]Rule)
	count := false
	for _, r := range rules {
		byOp[r.Op] = append(byOp[r.Op], r)
		count = count || r.counted
	}
	for range maxRounds {
		changed := false
		for _, f := range m.Functions() {
			changed = applyOnce(c, f, byOp, count) || changed
		}
		if !changed {
			return nil
		}
	}
	panic(fmt.Sprintf("no fixed point after %d rounds: two rules undo each other", maxRounds))
}

// applyOnce is one round over f. It reports whether anything was replaced.
func applyOnce(c *Context, f *ir.Func, byOp map[*ir.Op][]Rule, count bool) bool {
	var u uses
	if count {
		sweep(f)
		u = f.Uses()
	}
	return f.Rewrite(func(b *ir.Builder, n *ir.Node) []*ir.Value {
		c.At(n)
		for _, r := range byOp[n.Op] {
			if sharded(n) {
				break // a replacement would lose the sharding
			}
			if out := r.apply(b, n, u); out != nil {
				c.Hit(r.Name)
				return out
			}
		}
		return nil
	})
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
