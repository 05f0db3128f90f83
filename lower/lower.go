// Package lower turns a module of primitives into StableHLO text and the map of its arguments and results.
// The text depends on the module's computation alone: weights and state are ordered by first use, locations are layer paths,
// and no name of a weight, file or machine is in it. It knows no plugin and never compiles.
package lower

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// MaxLiteral is the size in bytes up to which a constant is part of the text; a larger one becomes an argument.
const MaxLiteral = 64 << 10

// ArgKind says who supplies an argument.
type ArgKind string

// Argument kinds.
const (
	Input    ArgKind = "input"    // the caller, each call
	State    ArgKind = "state"    // the session: kept on the device from call to call
	Weight   ArgKind = "weight"   // the checkpoint
	Constant ArgKind = "constant" // the artifact
)

// Arg is one argument of the program's entry.
type Arg struct {
	Kind   ArgKind
	Type   tensor.Type
	Param  int            // Input: place among the module's parameters
	Weight *ir.Weight     // State and Weight; also a Constant that the module declares as a weight
	Value  *tensor.Tensor // Constant: its elements, nil where the module does not hold them
	Alias  int            // the result that reuses this argument's memory, or -1
}

// Program is what a plugin compiles.
type Program struct {
	Text    []byte
	Args    []Arg         // inputs, state, weights, constants
	Results []tensor.Type // distinct values: an output that is also an update stands here once
	Outputs []int         // for each user output its place in Results
	Updates []Update
}

// Update says which result holds an argument's contents after the call.
type Update struct {
	Arg, Result int
}

// Lower emits m, which is verified and holds no composites. Functions stand in the regions of the operators that call them.
func Lower(m *ir.Module) (p *Program, err error) {
	p = &Program{}
	e := newEmitter()
	args := p.collect(m, e)
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *nodeError:
			p, err = nil, r
		default:
			panic(r)
		}
	}()
	e.nodes(m.Func)
	p.results(m, args, e)
	p.Text = e.module(p)
	return p, nil
}

// collect fills p.Args, binds what reads them and returns the value behind each.
func (p *Program) collect(m *ir.Module, e *emitter) []*ir.Value {
	f := m.Func
	var args []*ir.Value
	add := func(v *ir.Value, a Arg) {
		a.Type, a.Alias = v.Type, -1
		p.Args = append(p.Args, a)
		args = append(args, v)
		e.bind(v, arg(len(args)-1, v.Type))
	}
	for i, v := range f.Params {
		add(v, Arg{Kind: Input, Param: i})
	}
	used := usedWeights(m)
	changed := make(map[*ir.Value]bool)
	for _, u := range f.Updates {
		changed[u.Target] = u.New != u.Target
	}
	for _, kind := range []ArgKind{State, Weight, Constant} {
		for _, w := range used {
			if kindOf(w, changed[w.Value]) == kind {
				add(w.Value, Arg{Kind: kind, Weight: w, Value: w.Data})
			}
		}
	}
	seen := make(map[string]int) // large literals by type and contents: their argument
	for _, f := range m.Functions() {
		for _, n := range f.Body {
			if !op.Constant.Is(n) {
				continue
			}
			x := op.Constant.Attr(n).Value
			if int64(len(x.Data)) <= MaxLiteral {
				continue
			}
			sum := sha256.Sum256(x.Data)
			id := x.Type.String() + hex.EncodeToString(sum[:])
			i, ok := seen[id]
			if !ok {
				i = len(p.Args)
				seen[id] = i
				add(n.Outs[0], Arg{Kind: Constant, Value: x})
			}
			e.bind(n.Outs[0], arg(i, x.Type))
			e.lifted[n] = true
		}
	}
	return args
}

func arg(i int, t tensor.Type) ir.Ref { return ir.Ref{Name: fmt.Sprintf("%%arg%d", i), Type: t} }

// usedWeights are the weights that m reads or updates, in order of first use; those of called functions where they are called.
func usedWeights(m *ir.Module) []*ir.Weight {
	var out []*ir.Weight
	seen := make(map[*ir.Weight]bool)
	use := func(v *ir.Value) {
		if v.Weight != nil && !seen[v.Weight] {
			seen[v.Weight] = true
			out = append(out, v.Weight)
		}
	}
	done := make(map[*ir.Func]bool)
	var visit func(f *ir.Func)
	visit = func(f *ir.Func) {
		if done[f] {
			return
		}
		done[f] = true
		for _, n := range f.Body {
			for _, a := range n.Args {
				use(a)
			}
			for _, g := range n.Funcs() {
				visit(g)
			}
		}
		for _, u := range byOrigin(f) {
			use(u.Target)
		}
		f.Roots(func(v **ir.Value) { use(*v) })
	}
	visit(m.Func)
	return out
}

// byOrigin are f's updates in the order in which their new contents are computed, so that targets that nothing reads have an order that
// does not come from their declarations.
func byOrigin(f *ir.Func) []ir.Update {
	place := make(map[*ir.Node]int, len(f.Body))
	for i, n := range f.Body {
		place[n] = i + 1
	}
	out := slices.Clone(f.Updates)
	slices.SortStableFunc(out, func(a, b ir.Update) int {
		return cmp.Or(cmp.Compare(place[a.New.Def], place[b.New.Def]), cmp.Compare(a.New.Index, b.New.Index))
	})
	return out
}

func kindOf(w *ir.Weight, changed bool) ArgKind {
	switch {
	case changed:
		return State
	case w.Class == ir.Constant:
		return Constant
	}
	return Weight
}

// results fills Results, Outputs, Updates and the arguments' aliases. An output and an update of one value share a result; two updates
// do not, for each target keeps memory of its own. Results of updates follow their arguments, whatever the order that
// the module declares them in; Updates are in that order.
func (p *Program) results(m *ir.Module, args []*ir.Value, e *emitter) {
	result := func(v *ir.Value) int {
		p.Results = append(p.Results, v.Type)
		e.returns = append(e.returns, e.Value(v))
		return len(p.Results) - 1
	}
	place := make(map[*ir.Value]int)
	for _, v := range m.Func.Results {
		if _, ok := place[v]; !ok {
			place[v] = result(v)
		}
		p.Outputs = append(p.Outputs, place[v])
	}
	index := make(map[*ir.Value]int)
	for i, v := range args {
		index[v] = i
	}
	updates := slices.DeleteFunc(slices.Clone(m.Func.Updates), func(u ir.Update) bool { return u.New == u.Target })
	sorted := slices.Clone(updates)
	slices.SortFunc(sorted, func(a, b ir.Update) int { return cmp.Compare(index[a.Target], index[b.Target]) })
	taken := make(map[int]bool)
	for _, u := range sorted {
		r, ok := place[u.New]
		if !ok || taken[r] {
			r = result(u.New)
		}
		taken[r] = true
		p.Args[index[u.Target]].Alias = r
	}
	for _, u := range updates {
		p.Updates = append(p.Updates, Update{index[u.Target], p.Args[index[u.Target]].Alias})
	}
}
