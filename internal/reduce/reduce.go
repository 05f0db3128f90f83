// Package reduce shrinks a module for as long as something stays true of it: that a command fails, as a rule. It owns the order of what is tried
// (delta debugging, Zeller and Hildebrandt 2002) and the running of the command. It knows no operator, and it never evaluates or compiles itself.
package reduce

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"

	"tpuc/internal/plural"
	"tpuc/ir"
	"tpuc/ir/text"
)

// Options steer Module. The zero value reports nothing.
type Options struct {
	Progress func(Stats) // told after every smaller module; may be nil
}

// Size is what a module consists of.
type Size struct {
	Nodes, Weights, Results, Params int // Results: updates too
	Bytes                           int // of the text
}

// Stats say how far a reduction has come.
type Stats struct {
	Before, Now Size
	Checks      int // modules that were checked, the first included
}

// ErrHolds says that there is nothing to reduce: the module as it came does not fail.
var ErrHolds = errors.New("the module as it is does not fail")

// Module makes m smaller while fails holds of its text, and returns the smallest found, which passes ir.Verify. m is not changed. When ctx ends, or
// fails gives an error, the smallest so far comes with the error. Where m itself does not fail the error is ErrHolds.
//
// What is tried, until nothing is left that helps: an earlier end of the body, with all that is unused there as results; fewer results and updates;
// nodes replaced by parameters, in ever smaller groups; nodes replaced by an argument of the same type; weights replaced by parameters; unused
// parameters and weights left out; one parameter for two of a type; no locations and no shardings.
func Module(ctx context.Context, m *ir.Module, fails func(ctx context.Context, text string) (bool, error), o Options) (*ir.Module, Stats, error) {
	r := &reducer{ctx: ctx, fails: fails, o: o, best: m, seen: make(map[[sha256.Size]byte]bool)}
	src := text.Print(m)
	r.stats = Stats{Before: size(m, src), Now: size(m, src), Checks: 1}
	failed, err := fails(ctx, src)
	if err == nil && !failed {
		err = ErrHolds
	}
	if err != nil {
		return m, r.stats, err
	}
	for again := true; again && r.err == nil; {
		before := r.stats.Now
		for _, step := range []func(){r.truncate, r.dropRoots, r.cutNodes, r.bypassNodes, r.liftWeights, r.dropUnused, r.mergeParams, r.strip} {
			step()
		}
		again = r.stats.Now != before
	}
	return r.best, r.stats, r.err
}

// reducer holds the smallest module so far.
type reducer struct {
	ctx   context.Context
	fails func(context.Context, string) (bool, error)
	o     Options
	best  *ir.Module
	stats Stats
	seen  map[[sha256.Size]byte]bool // texts that were checked
	err   error
}

// try makes the edited module the best if it is smaller and fails.
func (r *reducer) try(e edit) bool {
	if r.err != nil {
		return false
	}
	if r.err = r.ctx.Err(); r.err != nil {
		return false
	}
	m := e.apply(r.best)
	if ir.Verify(m) != nil {
		return false
	}
	src := text.Print(m)
	s, key := size(m, src), sha256.Sum256([]byte(src))
	if !s.less(r.stats.Now) || r.seen[key] {
		return false
	}
	r.seen[key] = true
	r.stats.Checks++
	failed, err := r.fails(r.ctx, src)
	if err != nil {
		r.err = err
		return false
	}
	if !failed {
		return false
	}
	r.best, r.stats.Now = m, s
	if r.o.Progress != nil {
		r.o.Progress(r.stats)
	}
	return true
}

// truncate looks for the shortest part of the body that fails, by halving: where a node is at fault every longer part fails too.
func (r *reducer) truncate() {
	for low, high := 0, len(r.best.Func.Body)-1; low <= high && r.err == nil; {
		k := (low + high) / 2
		if r.try(edit{body: k, truncate: true}) {
			high = min(k, len(r.best.Func.Body)) - 1
		} else {
			low = k + 1
		}
	}
}

// dropRoots leaves out results and updates.
func (r *reducer) dropRoots() {
	r.groups(func() int { return len(r.best.Func.Results) + len(r.best.Func.Updates) }, func(from, to int) bool {
		return r.try(edit{dropRoots: span{from, to}})
	})
}

// cutNodes replaces groups of nodes by parameters, from the end of the body.
func (r *reducer) cutNodes() {
	r.groups(func() int { return len(r.best.Func.Body) }, func(from, to int) bool { return r.try(edit{cut: span{from, to}}) })
}

// bypassNodes replaces single nodes by one of their arguments.
func (r *reducer) bypassNodes() {
	for i := len(r.best.Func.Body) - 1; i >= 0; i-- {
		if i >= len(r.best.Func.Body) { // more than one node went
			continue
		}
		n := r.best.Func.Body[i]
		for _, a := range n.Args {
			if len(n.Outs) == 1 && a.Type.Equal(n.Outs[0].Type) && r.try(edit{bypass: n.Outs[0], by: a}) {
				break
			}
		}
	}
}

// liftWeights makes parameters of weights.
func (r *reducer) liftWeights() {
	r.groups(func() int { return len(r.best.Weights) }, func(from, to int) bool { return r.try(edit{lift: span{from, to}}) })
}

// dropUnused leaves out parameters and weights that nothing reads.
func (r *reducer) dropUnused() {
	if r.try(edit{dropParams: span{0, len(r.best.Func.Params)}, dropWeights: span{0, len(r.best.Weights)}}) {
		return
	}
	r.groups(func() int { return len(r.best.Func.Params) }, func(from, to int) bool { return r.try(edit{dropParams: span{from, to}}) })
	r.groups(func() int { return len(r.best.Weights) }, func(from, to int) bool { return r.try(edit{dropWeights: span{from, to}}) })
}

// mergeParams reads an earlier parameter of the same type instead of a parameter.
func (r *reducer) mergeParams() {
	for j := len(r.best.Func.Params) - 1; j > 0; j-- {
		p := r.best.Func.Params[j]
		for _, q := range r.best.Func.Params[:j] {
			if q.Type.Equal(p.Type) && r.try(edit{bypass: p, by: q, dropParams: span{j, j + 1}}) {
				break
			}
		}
	}
}

// strip leaves out locations and shardings.
func (r *reducer) strip() {
	if !r.try(edit{noLocs: true, noShardings: true}) {
		r.try(edit{noLocs: true})
		r.try(edit{noShardings: true})
	}
}

// groups tries groups of a list's places, from the end: halves, quarters and so on down to single places. count is the list's present length, which
// shrinks when try succeeds.
func (r *reducer) groups(count func() int, try func(from, to int) bool) {
	for chunk := count(); chunk >= 1 && r.err == nil; chunk /= 2 {
		for to := count(); to > 0 && r.err == nil; {
			from := max(0, to-chunk)
			try(from, to)
			to = min(from, count())
		}
	}
}

func size(m *ir.Module, src string) Size {
	f := m.Func
	return Size{Nodes: len(f.Body), Weights: len(m.Weights), Results: len(f.Results) + len(f.Updates), Params: len(f.Params), Bytes: len(src)}
}

// less orders sizes: nodes count most.
func (s Size) less(t Size) bool {
	for _, p := range [][2]int{{s.Nodes, t.Nodes}, {s.Weights, t.Weights}, {s.Results, t.Results}, {s.Params, t.Params}} {
		if p[0] != p[1] {
			return p[0] < p[1]
		}
	}
	return s.Bytes < t.Bytes
}

// String is such as "12 nodes, 3 weights, 2 results, 4 parameters".
func (s Size) String() string {
	return strings.Join([]string{plural.Of(s.Nodes, "node"), plural.Of(s.Weights, "weight"), plural.Of(s.Results, "result"), plural.Of(s.Params, "parameter")}, ", ")
}
