package ir

import (
	"reflect"
	"slices"

	"tpuc/ir/tensor"
)

// Control flow has no nested regions: an operator such as while names functions in its attributes (fields of type *Func) and says what
// they get and give. A module's functions are the ones that its entry reaches; nothing else holds them, so one that is no longer
// called is gone. They read their parameters and the module's weights, never values of their caller, and update nothing.

// Functions are the functions of m, each once: callees before their callers, in order of first use, the entry last.
func (m *Module) Functions() []*Func {
	if m.Func == nil {
		return nil
	}
	var out []*Func
	seen := make(map[*Func]bool)
	var visit func(f *Func)
	visit = func(f *Func) {
		if seen[f] {
			return
		}
		seen[f] = true
		for _, n := range f.Body {
			for _, g := range n.Funcs() {
				visit(g)
			}
		}
		out = append(out, f)
	}
	visit(m.Func)
	return out
}

// Funcs are the functions that n's attributes name, in the struct's order; those that are missing are left out.
func (n *Node) Funcs() []*Func {
	if len(n.Op.Funcs) == 0 || reflect.TypeOf(n.Attr) != n.Op.Attr {
		return nil
	}
	var out []*Func
	v := reflect.ValueOf(n.Attr)
	for _, i := range n.Op.Funcs {
		if f := v.Field(i).Interface().(*Func); f != nil {
			out = append(out, f)
		}
	}
	return out
}

// HasEffect reports a node that does more than give results, itself or in a function that it reaches.
func (n *Node) HasEffect() bool {
	if len(n.Op.Funcs) == 0 {
		return n.Op.Traits&Effect != 0
	}
	seen := make(map[*Func]bool)
	var effect func(n *Node) bool
	effect = func(n *Node) bool {
		if n.Op.Traits&Effect != 0 {
			return true
		}
		for _, f := range n.Funcs() {
			if !seen[f] {
				seen[f] = true
				if slices.ContainsFunc(f.Body, effect) {
					return true
				}
			}
		}
		return false
	}
	return effect(n)
}

// MapFuncs gives n attributes that name repl(f) in place of each f.
func (n *Node) MapFuncs(repl func(f *Func) *Func) {
	if len(n.Funcs()) == 0 {
		return
	}
	v := reflect.New(n.Op.Attr).Elem()
	v.Set(reflect.ValueOf(n.Attr))
	for _, i := range n.Op.Funcs {
		if f := v.Field(i).Interface().(*Func); f != nil {
			v.Field(i).Set(reflect.ValueOf(repl(f)))
		}
	}
	n.Attr = v.Interface()
}

// Inline appends a copy of f's body that reads args, one a parameter and of its type, and returns f's results.
func (b *Builder) Inline(f *Func, args ...*Value) []*Value {
	values := make(map[*Value]*Value, len(f.Params)+len(f.Body))
	at := func(v *Value) *Value {
		if c, ok := values[v]; ok {
			return c
		}
		return v // a weight
	}
	for i, p := range f.Params {
		values[p] = args[i]
	}
	for _, n := range f.Body {
		c := &Node{Op: n.Op, Attr: n.Attr, Loc: n.Loc, Args: make([]*Value, len(n.Args)), Outs: make([]*Value, len(n.Outs))}
		for i, a := range n.Args {
			c.Args[i] = at(a)
		}
		for i, o := range n.Outs {
			c.Outs[i] = &Value{Type: o.Type, Sharding: o.Sharding, Def: c, Index: i}
			values[o] = c.Outs[i]
		}
		b.Body = append(b.Body, c)
	}
	out := slices.Clone(f.Results)
	for i, r := range out {
		out[i] = at(r)
	}
	return out
}

// ParamTypes are the types of f's parameters.
func (f *Func) ParamTypes() []tensor.Type { return typesOf(f.Params) }

// ResultTypes are the types of f's results.
func (f *Func) ResultTypes() []tensor.Type { return typesOf(f.Results) }

func typesOf(vs []*Value) []tensor.Type {
	out := make([]tensor.Type, len(vs))
	for i, v := range vs {
		if v != nil {
			out[i] = v.Type
		}
	}
	return out
}
