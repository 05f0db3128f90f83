package ir

import (
	"fmt"

	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

// Verify checks what every pass may assume: unique symbols, values defined before use and by the function that uses them, arities,
// attributes and result types as the shape rules give them, updates of the target's type with each target once and in the entry alone,
// functions that do not call themselves. All violations come in one list.
func Verify(m *Module) error {
	v := verifier{owner: make(map[*Value]*Func)}
	syms := make(map[string]bool)
	for _, w := range m.Weights {
		if syms[w.Sym] {
			v.errs.Addf(nil, "verify/symbol", "weight @%s is declared twice", w.Sym)
		}
		syms[w.Sym] = true
		switch {
		case w.Value == nil || w.Value.Weight != w:
			v.errs.Addf(nil, "verify/weight", "weight @%s has no value of its own", w.Sym)
			continue
		case w.Source != nil && !w.Source.Type().Equal(w.Value.Type):
			v.errs.Addf(nil, "verify/weight", "weight @%s is %s, its source gives %s", w.Sym, w.Value.Type, w.Source.Type())
		case w.Data != nil && !w.Data.Type.Equal(w.Value.Type):
			v.errs.Addf(nil, "verify/weight", "weight @%s is %s, its data is %s", w.Sym, w.Value.Type, w.Data.Type)
		}
		v.sharding(m.Mesh, w.Value)
		v.owner[w.Value] = nil
	}
	if m.Func == nil {
		v.errs.Addf(nil, "verify/main", "module without a function, wanted main")
		return v.errs.Err()
	}
	if f := recursive(m.Func, make(map[*Func]int)); f != nil {
		v.errs.Addf(nil, "verify/recursion", "function @%s calls itself", f.Name)
		return v.errs.Err()
	}
	for _, f := range m.Functions() {
		v.function(m, f)
	}
	return v.errs.Err()
}

// recursive finds a function that f reaches and that reaches itself.
func recursive(f *Func, state map[*Func]int) *Func {
	const open, done = 1, 2
	switch state[f] {
	case open:
		return f
	case done:
		return nil
	}
	state[f] = open
	for _, n := range f.Body {
		for _, g := range n.Funcs() {
			if r := recursive(g, state); r != nil {
				return r
			}
		}
	}
	state[f] = done
	return nil
}

type verifier struct {
	owner map[*Value]*Func // of defined values; nil for weights, which every function may read
	cur   *Func
	errs  diag.List
}

// defined reports a value that the current function may read.
func (v *verifier) defined(x *Value) bool {
	f, ok := v.owner[x]
	return x != nil && ok && (f == nil || f == v.cur)
}

func (v *verifier) function(m *Module, f *Func) {
	v.cur = f
	for i, p := range f.Params {
		if _, twice := v.owner[p]; twice || p == nil || !p.IsParam() || p.Index != i {
			v.errs.Addf(nil, "verify/param", "parameter %d of %s is not a parameter value of its own with that index", i, f.Name)
			continue
		}
		v.sharding(m.Mesh, p)
		v.owner[p] = f
	}
	for _, n := range f.Body {
		v.node(m, n)
	}
	f.Roots(func(p **Value) {
		if !v.defined(*p) {
			v.errs.Addf(nil, "verify/root", "a result of %s is not defined", f.Name)
		}
	})
	if f != m.Func && len(f.Updates) > 0 {
		v.errs.Addf(nil, "verify/update", "function @%s updates state, which only the entry may", f.Name)
	}
	targets := make(map[*Value]bool)
	for _, u := range f.Updates {
		switch {
		case !v.defined(u.Target) || u.Target.Def != nil:
			v.errs.Addf(nil, "verify/update", "an update's target is neither a parameter nor a weight of the module")
		case u.Target.Weight != nil && !u.Target.Weight.Mutable:
			v.errs.Addf(nil, "verify/update", "weight @%s is updated but not declared as state", u.Target.Weight.Sym)
		case targets[u.Target]:
			v.errs.Addf(nil, "verify/update", "one target is updated twice")
		case u.New != nil && !u.New.Type.Equal(u.Target.Type):
			v.errs.Addf(nil, "verify/update", "an update of type %s for a target of type %s", u.New.Type, u.Target.Type)
		}
		targets[u.Target] = true
	}
}

func (v *verifier) node(m *Module, n *Node) {
	types := make([]tensor.Type, len(n.Args))
	for i, a := range n.Args {
		if !v.defined(a) {
			v.errs.Addf(n.Loc, "verify/use", "%s: argument %d is not defined before its use", n.Op.Name, i)
			return
		}
		types[i] = a.Type
	}
	out, err := n.Op.InferTypes(types, n.Attr)
	switch s, ok := err.(*ShapeError); {
	case ok:
		v.errs.Add(s.Diag(n.Loc))
	case err != nil:
		v.errs.Addf(n.Loc, "verify/infer", "%s: %v", n.Op.Name, err)
	case len(out) != len(n.Outs):
		v.errs.Addf(n.Loc, "verify/results", "%s: %d results, wanted %d", n.Op.Name, len(n.Outs), len(out))
	}
	for i, o := range n.Outs {
		if err == nil && i < len(out) && !o.Type.Equal(out[i]) {
			v.errs.Addf(n.Loc, "verify/type", "%s: result %d is %s, its shape rule gives %s", n.Op.Name, i, o.Type, out[i])
		}
		if _, twice := v.owner[o]; twice || o.Def != n || o.Index != i {
			v.errs.Addf(n.Loc, "verify/def", "%s: result %d does not know its node, or stands in two places", n.Op.Name, i)
		}
		v.sharding(m.Mesh, o)
		v.owner[o] = v.cur
	}
}

func (v *verifier) sharding(mesh *Mesh, x *Value) {
	if x.Sharding == nil {
		return
	}
	if err := x.Sharding.Check(mesh, x.Type); err != nil {
		v.errs.Addf(nil, "verify/sharding", "sharding of a value of type %s: %v", x.Type, err)
	}
}

// Check refuses a sharding that does not fit the mesh or a value of type t.
func (s *Sharding) Check(mesh *Mesh, t tensor.Type) error {
	if mesh == nil {
		return fmt.Errorf("the module has no mesh")
	}
	if len(s.Dims) != t.Rank() {
		return fmt.Errorf("%d dimensions, wanted %d", len(s.Dims), t.Rank())
	}
	used := make(map[string]bool)
	for _, axes := range s.Dims {
		for _, a := range axes {
			known := false
			for _, m := range mesh.Axes {
				known = known || m.Name == a
			}
			if !known || used[a] {
				return fmt.Errorf("axis %q is not in the mesh or named twice", a)
			}
			used[a] = true
		}
	}
	return nil
}
