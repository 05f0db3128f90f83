// Package eval is the reference evaluator: it runs a module on host tensors, one node after another, with the operators' own rules.
// It is the oracle of tests, folding and tpuc eval: clear before fast. It never changes its inputs and keeps nothing between runs.
package eval

import (
	"fmt"
	"maps"

	"tpuc/ir"
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

// MaxBytes is the size of a value from which on the evaluator refuses: it holds values whole, and for a while in float64.
const MaxBytes = 16 << 30

// Options configures a run. The zero value reads the module's own constants and probes nothing.
type Options struct {
	// Weights gives the contents of a weight, of its value's type, when the first node reads it. Where it is nil or gives nil, the
	// weight's own Data is taken.
	Weights func(w *ir.Weight) (*tensor.Tensor, error)
	// Probe sees every node of the entry with its results, which it must not change. Nodes of decompositions and of called functions are
	// not shown.
	Probe func(n *ir.Node, outs []*tensor.Tensor)
}

// Result is what a run gives.
type Result struct {
	Outputs []*tensor.Tensor // one a result of the entry function
	Updates []*tensor.Tensor // one an update of the entry function: the new contents of its target
}

// Run evaluates the entry function of a verified module. inputs are one a parameter, of its type. A value is dropped after its last
// use, so that memory stays near that of the live values. An error is about inputs or weights, or an operator's, and located.
func Run(m *ir.Module, inputs []*tensor.Tensor, opt Options) (*Result, error) {
	f := m.Func
	if len(inputs) != len(f.Params) {
		return nil, fmt.Errorf("%d inputs, wanted %d as the parameters of %s", len(inputs), len(f.Params), f.Name)
	}
	e := &env{session: newSession(opt), values: make(map[*ir.Value]*tensor.Tensor), uses: f.Uses()}
	for i, p := range f.Params {
		switch x := inputs[i]; {
		case x == nil:
			return nil, fmt.Errorf("input %d %q is missing, wanted %s", i, p.Name, p.Type)
		case !x.Type.Equal(p.Type):
			return nil, fmt.Errorf("input %d %q is %s, wanted %s", i, p.Name, x.Type, p.Type)
		case !fits(x.Type):
			return nil, fmt.Errorf("input %d %q is %s, wanted at most %d GiB to evaluate", i, p.Name, x.Type, MaxBytes>>30)
		case int64(len(x.Data)) != x.Bytes():
			return nil, fmt.Errorf("input %d %q has %d bytes, wanted %d for %s", i, p.Name, len(x.Data), x.Bytes(), x.Type)
		}
		if e.uses[p] > 0 {
			e.values[p] = inputs[i]
		}
	}
	for _, n := range f.Body {
		outs, err := e.node(n)
		if err != nil {
			return nil, err
		}
		if opt.Probe != nil {
			opt.Probe(n, outs)
		}
	}
	res := &Result{}
	for _, v := range f.Results {
		x, err := e.read(v)
		if err != nil {
			return nil, err
		}
		res.Outputs = append(res.Outputs, x)
	}
	for _, u := range f.Updates {
		x, err := e.read(u.New)
		if err != nil {
			return nil, err
		}
		res.Updates = append(res.Updates, x)
	}
	return res, nil
}

// Node evaluates one node on the tensors of its arguments, composites included, whatever the module. Functions that it names read
// the weights' own Data.
func Node(n *ir.Node, args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	return newSession(Options{}).apply(n, args)
}

// session is what the functions of one run share.
type session struct {
	opt  Options
	uses map[*ir.Func]map[*ir.Value]int // of called functions, counted once
	kept map[*ir.Weight]*tensor.Tensor  // weights that called functions read, perhaps many times
}

func newSession(opt Options) *session {
	return &session{opt: opt, uses: make(map[*ir.Func]map[*ir.Value]int), kept: make(map[*ir.Weight]*tensor.Tensor)}
}

// apply evaluates one node.
func (s *session) apply(n *ir.Node, args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	for _, v := range n.Outs {
		if !fits(v.Type) {
			return nil, fail(n, "a result is %s, wanted at most %d GiB to evaluate", v.Type, MaxBytes>>30)
		}
	}
	if n.Op.Eval != nil {
		types := make([]tensor.Type, len(n.Outs))
		for i, o := range n.Outs {
			types[i] = o.Type
		}
		outs, err := n.Op.Eval(args, n.Attr, types)
		if err != nil {
			return nil, fail(n, "%w", err)
		}
		return outs, check(n, outs)
	}
	if n.Op.Control != nil {
		outs, err := n.Op.Control(s.run, args, n.Attr)
		if err != nil {
			return nil, fail(n, "%w", err)
		}
		return outs, check(n, outs)
	}
	if n.Op.Decompose == nil {
		return nil, fail(n, "the operator has no evaluator and no decomposition, wanted one")
	}
	// The decomposition reads the node's own argument values: bind them, and run its nodes.
	b := &ir.Builder{Loc: n.Loc}
	roots := n.Op.Decompose(b, n, n.Attr)
	f := &ir.Func{Body: b.Body, Results: roots}
	e := &env{session: s, values: make(map[*ir.Value]*tensor.Tensor), uses: f.Uses()}
	for i, a := range n.Args {
		e.values[a] = args[i]
	}
	outs, err := e.body(f)
	if err != nil {
		return nil, err
	}
	return outs, check(n, outs)
}

// run evaluates a called function. It is the ir.Runner of control flow.
func (s *session) run(f *ir.Func, args []*tensor.Tensor) ([]*tensor.Tensor, error) {
	if s.uses[f] == nil {
		s.uses[f] = f.Uses()
	}
	e := &env{session: s, called: true, values: make(map[*ir.Value]*tensor.Tensor), uses: maps.Clone(s.uses[f])}
	for i, p := range f.Params {
		if e.uses[p] > 0 {
			e.values[p] = args[i]
		}
	}
	return e.body(f)
}

// env holds the live values of one call of a function.
type env struct {
	*session
	called bool // by control flow
	values map[*ir.Value]*tensor.Tensor
	uses   map[*ir.Value]int // reads still to come
}

// body evaluates f's nodes and reads its results.
func (e *env) body(f *ir.Func) ([]*tensor.Tensor, error) {
	for _, n := range f.Body {
		if _, err := e.node(n); err != nil {
			return nil, err
		}
	}
	var outs []*tensor.Tensor
	for _, v := range f.Results {
		x, err := e.read(v)
		if err != nil {
			return nil, err
		}
		outs = append(outs, x)
	}
	return outs, nil
}

func (e *env) node(n *ir.Node) ([]*tensor.Tensor, error) {
	args := make([]*tensor.Tensor, len(n.Args))
	for i, a := range n.Args {
		x, err := e.read(a)
		if err != nil {
			return nil, err
		}
		args[i] = x
	}
	outs, err := e.apply(n, args)
	if err != nil {
		return nil, err
	}
	for i, o := range n.Outs {
		if e.uses[o] > 0 {
			e.values[o] = outs[i]
		}
	}
	return outs, nil
}

// read gives a value's tensor for one of its uses, and drops it at the last.
func (e *env) read(v *ir.Value) (*tensor.Tensor, error) {
	x, ok := e.values[v]
	if !ok {
		if v.Weight == nil {
			return nil, fmt.Errorf("a value of type %s is read but was not computed, wanted a verified module", v.Type)
		}
		w, kept := e.kept[v.Weight]
		if !kept {
			var err error
			if w, err = e.weight(v.Weight); err != nil {
				return nil, err
			}
		}
		if e.called {
			e.kept[v.Weight] = w
		}
		x, e.values[v] = w, w
	}
	if e.uses[v]--; e.uses[v] <= 0 {
		delete(e.values, v)
	}
	return x, nil
}

func (e *env) weight(w *ir.Weight) (*tensor.Tensor, error) {
	var x *tensor.Tensor
	if e.opt.Weights != nil {
		got, err := e.opt.Weights(w)
		if err != nil {
			return nil, fmt.Errorf("weight @%s: %w", w.Sym, err)
		}
		x = got
	}
	if x == nil {
		x = w.Data
	}
	switch {
	case x == nil:
		return nil, fmt.Errorf("weight @%s has no contents here, wanted %s; name the file that holds the weights", w.Sym, w.Value.Type)
	case !x.Type.Equal(w.Value.Type):
		return nil, fmt.Errorf("weight @%s is %s, wanted %s", w.Sym, x.Type, w.Value.Type)
	case !fits(x.Type):
		return nil, fmt.Errorf("weight @%s is %s, wanted at most %d GiB to evaluate", w.Sym, x.Type, MaxBytes>>30)
	case int64(len(x.Data)) != x.Bytes():
		return nil, fmt.Errorf("weight @%s has %d bytes, wanted %d for %s", w.Sym, len(x.Data), x.Bytes(), x.Type)
	}
	return x, nil
}

// fits bounds what evaluating takes. Extents of 0 count as 1: operators walk the other dimensions of an empty tensor too.
func fits(t tensor.Type) bool {
	n := int64(t.DType.Size())
	for _, d := range t.Dims {
		if d > 0 && n > MaxBytes/d {
			return false
		}
		n *= max(d, 1)
	}
	return true
}

// check holds an operator to its shape rule: a difference is a bug of the operator.
func check(n *ir.Node, outs []*tensor.Tensor) error {
	if len(outs) != len(n.Outs) {
		return fail(n, "the evaluator gave %d results, wanted %d", len(outs), len(n.Outs))
	}
	for i, o := range n.Outs {
		if !outs[i].Type.Equal(o.Type) {
			return fail(n, "the evaluator gave %s as result %d, wanted %s", outs[i].Type, i, o.Type)
		}
	}
	return nil
}

// fail is an error of a node at its place in the model. %w keeps its cause.
func fail(n *ir.Node, format string, args ...any) error {
	cause := fmt.Errorf(format, args...)
	return &diag.Error{Code: "eval/" + n.Op.Name, Loc: n.Loc, Msg: n.Op.Name + ": " + cause.Error(), Cause: cause}
}
