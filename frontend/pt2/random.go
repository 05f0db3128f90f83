package pt2

import (
	"strings"

	"tpuc/ir/diag"
)

// Random numbers. A compiled program computes the same every time, so what draws numbers is refused where a result depends on them. Often none does:
// a layer that is made anew within forward fills its weights, and goes unused or gets others.

const drawsReason = "it draws random numbers"

// draws are the operators that draw numbers.
var draws = words(`bernoulli bernoulli_ binomial cauchy_ exponential_ geometric_ log_normal_ multinomial normal normal_ normal_functional poisson
	rand rand_like randint randint_like randn randn_like random random_ randperm uniform uniform_`)

// drawn is a node that draws numbers.
type drawn struct {
	c   *call
	loc *diag.Loc
}

// drawing is the reason to refuse an operator without a rule.
func (c *call) drawing() string {
	if base, _, _ := strings.Cut(c.op, "."); draws[base] {
		return drawsReason
	}
	return ""
}

// draw puts off the refusal of a node that draws numbers until something depends on them. It reports whether it does: not in graphs within graphs, nor
// for memory that outlives the call.
func (im *importer) draw(c *call) bool {
	if c.drawing() == "" || im.nesting > 0 || c.schema == nil {
		return false
	}
	if c.schema.mutates {
		store := c.ref("self").store
		if store.origin != nil {
			return false
		}
		store.drawn = true
	}
	im.drawn = append(im.drawn, drawn{c, c.b.Loc})
	im.spoil(c.node)
	return true
}

// wantDrawn refuses the nodes that drew numbers.
func (im *importer) wantDrawn() {
	for _, d := range im.drawn {
		d.c.b.Loc = d.loc
		im.lacking.add(d.c, drawsReason)
	}
	im.drawn = nil
}

// spoiledWrite looks at a node that could not be imported for what it reads: where it writes to memory that can still be read, random numbers matter.
func (im *importer) spoiledWrite(c *call) {
	if len(im.drawn) == 0 || c.schema != nil && !c.schema.mutates {
		return
	}
	if c.schema != nil {
		if a := c.arg("self"); a.Tensor != nil && im.spoiledTensor(a.Tensor.Name) {
			return
		}
	}
	im.wantDrawn()
}

// spoiledTensor reports a tensor without a value.
func (im *importer) spoiledTensor(name string) bool {
	r := im.tensors[name]
	return r != nil && (r.poison || r.store.drawn)
}

// checkDrawn refuses random numbers that the outputs depend on.
func (im *importer) checkDrawn() {
	for i := range im.g.Outputs {
		im.g.Outputs[i].visit(
			func(name string) {
				if im.spoiledTensor(name) {
					im.wantDrawn()
				}
			},
			func(name string) {
				if im.poison[name] {
					im.wantDrawn()
				}
			})
	}
}
