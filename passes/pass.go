// Package passes owns the transformations of the IR between a front end and lowering: their list, the one driver that runs them, and
// a file a pass. A pass takes a verified module to a verified module that computes the same; it never reads files, and of weights it
// reads only the contents of constants, so that programs are shared between checkpoints.
package passes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"tpuc/ir"
	"tpuc/tpu/chip"
)

// Pass is one transformation. Its name is also its file's name and the folder of its goldens under testdata/pass.
type Pass struct {
	Name, Doc string
	Run       func(c *Context, m *ir.Module) error
	Required  bool     // a program cannot be lowered without it
	After     []string // passes that must have run before, where they run at all
	Leaves    Stage    // what holds from here on
	Rules     []Rule   // of a peephole pass, for listings and tests
}

// Stage says what the verifier may assume of a module beyond ir.Verify.
type Stage uint8

// Stages, in the order in which a compile reaches them.
const (
	Imported Stage = iota // any operator
	Expanded              // no composite operators
)

// List is the order of a compile. A pass may stand in it more than once.
var List = []Pass{
	order, // what follows does the same in whatever order a model writes independent statements
	fold,
	simplify,
	cse,   // equal values are one, so that raise may compare them
	raise, // needs simplify's normal forms
	dce,
	expand, // everything above sees whole composites
	fold,
	simplify, // decompositions meet each other: casts there and back, reshapes of reshapes
	narrow,
	simplify, // what narrow decided, and its conversions there and back
	layout,   // needs simplify's single transposes
	fold,
	cse, // attention layers build equal masks
	dce,
	order, // the program's text is the cache's key
	guard, // last: it reads who reads what, and adds at fixed places alone
}

// All are the passes of List, each once, in its order.
func All() []Pass {
	var out []Pass
	for _, p := range List {
		if !slices.ContainsFunc(out, func(q Pass) bool { return q.Name == p.Name }) {
			out = append(out, p)
		}
	}
	return out
}

// Lookup finds a pass by name. The error lists all names.
func Lookup(name string) (Pass, error) {
	var names []string
	for _, p := range All() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Pass{}, fmt.Errorf("pass %q is unknown, wanted one of %s", name, strings.Join(names, ", "))
}

// Context is what a running pass gets beside the module.
type Context struct {
	context.Context
	target chip.Target
	packed bool // Options.Packed
	hits   map[string]int
	node   *ir.Node
}

// Hit counts one application of a named rule, for the report.
func (c *Context) Hit(rule string) { c.hits[rule]++ }

// At notes the node in work, for the report of a crash.
func (c *Context) At(n *ir.Node) { c.node = n }

// checkOrder reports a pass that stands before one it must come after. Passes that are not in the list are no reason.
func checkOrder(list []Pass) error {
	for i, p := range list {
		if !ready(p, list[:i], list) {
			return fmt.Errorf("pass %s is place %d of the list, wanted it after all of %q", p.Name, i, p.After)
		}
	}
	return nil
}

// shuffle is a random order of list that checkOrder accepts, the same for the same seed.
func shuffle(list []Pass, seed uint64) []Pass {
	rest, out := slices.Clone(list), make([]Pass, 0, len(list))
	rng := rand.New(rand.NewPCG(seed, 0))
	for len(rest) > 0 {
		i := rng.IntN(len(rest))
		if ready(rest[i], out, list) {
			out = append(out, rest[i])
			rest = slices.Delete(rest, i, i+1)
		}
	}
	return out
}

// ready reports whether all of all that p must come after are done.
func ready(p Pass, done, all []Pass) bool {
	for _, a := range p.After {
		named := func(q Pass) bool { return q.Name == a }
		if slices.ContainsFunc(all, named) && !slices.ContainsFunc(done, named) {
			return false
		}
	}
	return true
}
