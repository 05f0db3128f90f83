// Package op is the operator table: every operator is defined in one file of its own, as a value, and listed in All.
// It owns names, attributes, shape rules, evaluation, lowering or decomposition, and cost. It never imports lower or a front end.
package op

import (
	"fmt"
	"reflect"
	"strings"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Def is what an operator's file states. A is its attribute struct, whose fields carry `ir:"name"` tags; None without attributes.
// A primitive sets Lower and Eval; a composite sets Decompose and, optionally, Eval.
type Def[A any] struct {
	Name   string
	Doc    string
	Args   string // names separated by blanks; "b?" is optional, "xs..." takes any number; both only at the end
	Traits ir.Traits

	Infer     func(in []tensor.Type, a A) ([]tensor.Type, error)
	Lower     func(e ir.Emitter, n *ir.Node, a A) []ir.Ref
	Decompose func(b *ir.Builder, n *ir.Node, a A) []*ir.Value
	Eval      func(in []*tensor.Tensor, a A, out []tensor.Type) ([]*tensor.Tensor, error)
	Control   func(run ir.Runner, in []*tensor.Tensor, a A) ([]*tensor.Tensor, error) // in place of Eval where A names functions
	Cost      func(n *ir.Node, a A) ir.Cost
}

// None is the attribute struct of operators without attributes.
type None struct{}

// Kind is a typed handle of an operator with attributes A.
type Kind[A any] struct{ *ir.Op }

// Is reports whether n applies the operator.
func (k Kind[A]) Is(n *ir.Node) bool { return n != nil && n.Op == k.Op }

// Attr gives n's attributes, where Is(n).
func (k Kind[A]) Attr(n *ir.Node) A { return n.Attr.(A) }

// Make builds the operator and returns its first result.
func (k Kind[A]) Make(b *ir.Builder, a A, args ...*ir.Value) *ir.Value {
	return b.Build(k.Op, a, args...)[0]
}

// MakeAll builds the operator and returns all results.
func (k Kind[A]) MakeAll(b *ir.Builder, a A, args ...*ir.Value) []*ir.Value {
	return b.Build(k.Op, a, args...)
}

// Plain is a handle of an operator without attributes.
type Plain struct{ *ir.Op }

// Is reports whether n applies the operator.
func (p Plain) Is(n *ir.Node) bool { return n != nil && n.Op == p.Op }

// Make builds the operator and returns its first result.
func (p Plain) Make(b *ir.Builder, args ...*ir.Value) *ir.Value {
	return b.Build(p.Op, nil, args...)[0]
}

// Lookup finds an operator by name.
func Lookup(name string) (*ir.Op, bool) {
	for _, o := range All {
		if o.Name == name {
			return o, true
		}
	}
	return nil, false
}

// define makes the operator of an attribute struct.
func define[A any](d Def[A]) Kind[A] {
	return Kind[A]{newOp(d, reflect.TypeFor[A](), func(attr any) A { return attr.(A) })}
}

// definePlain makes an operator without attributes: its nodes carry a nil Attr.
func definePlain(d Def[None]) Plain {
	return Plain{newOp(d, nil, func(any) None { return None{} })}
}

// newOp wraps the typed rules in untyped ones.
func newOp[A any](d Def[A], attr reflect.Type, cast func(any) A) *ir.Op {
	o := &ir.Op{Name: d.Name, Doc: d.Doc, Args: parseArgs(d.Args), Traits: d.Traits, Attr: attr}
	o.Infer = func(in []tensor.Type, a any) ([]tensor.Type, error) { return d.Infer(in, cast(a)) }
	if d.Lower != nil {
		o.Lower = func(e ir.Emitter, n *ir.Node, a any) []ir.Ref { return d.Lower(e, n, cast(a)) }
	}
	if d.Decompose != nil {
		o.Decompose = func(b *ir.Builder, n *ir.Node, a any) []*ir.Value { return d.Decompose(b, n, cast(a)) }
	}
	if d.Eval != nil {
		o.Eval = func(in []*tensor.Tensor, a any, out []tensor.Type) ([]*tensor.Tensor, error) {
			return d.Eval(in, cast(a), out)
		}
	}
	if d.Control != nil {
		o.Control = func(run ir.Runner, in []*tensor.Tensor, a any) ([]*tensor.Tensor, error) {
			return d.Control(run, in, cast(a))
		}
	}
	for i := 0; attr != nil && i < attr.NumField(); i++ {
		if attr.Field(i).Type == reflect.TypeFor[*ir.Func]() {
			o.Funcs = append(o.Funcs, i)
		}
	}
	if d.Cost != nil {
		o.Cost = func(n *ir.Node, a any) ir.Cost { return d.Cost(n, cast(a)) }
	}
	return o
}

// parseArgs reads Def.Args.
func parseArgs(s string) []ir.Arg {
	var out []ir.Arg
	for _, f := range strings.Fields(s) {
		a := ir.Arg{Name: f}
		a.Name, a.Optional = strings.CutSuffix(a.Name, "?")
		a.Name, a.Variadic = strings.CutSuffix(a.Name, "...")
		out = append(out, a)
	}
	return out
}

// fail is check id of the operator whose rule calls it; the name is filled in by the caller.
func fail(id int, format string, args ...any) error {
	return &ir.ShapeError{ID: id, Msg: fmt.Sprintf(format, args...)}
}

// one wraps a single result type.
func one(t tensor.Type) ([]tensor.Type, error) { return []tensor.Type{t}, nil }
