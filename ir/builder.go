package ir

import (
	"fmt"

	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

// Builder appends nodes. A violated shape rule is a panic with a *ShapeError: the caller that builds from a user's input
// recovers it with Recover and locates it; in a pass it is a bug, which the driver reports.
type Builder struct {
	Loc  *diag.Loc // given to every node made
	Body []*Node
}

// Build appends op applied to args and returns its results.
func (b *Builder) Build(op *Op, attr any, args ...*Value) []*Value {
	types := make([]tensor.Type, len(args))
	for i, a := range args {
		if a == nil {
			panic(&ShapeError{op.Name, 0, fmt.Sprintf("argument %d is missing", i)})
		}
		types[i] = a.Type
	}
	out, err := op.InferTypes(types, attr)
	if err != nil {
		panic(err)
	}
	n := &Node{Op: op, Args: args, Attr: attr, Loc: b.Loc}
	for i, t := range out {
		n.Outs = append(n.Outs, &Value{Type: t, Def: n, Index: i})
	}
	b.Body = append(b.Body, n)
	return n.Outs
}

// Recover turns the panic of a violated shape rule into an error at loc; other panics go on. Use: defer ir.Recover(loc, &err).
func Recover(loc *diag.Loc, err *error) {
	switch r := recover().(type) {
	case nil:
	case *ShapeError:
		*err = r.Diag(loc)
	default:
		panic(r)
	}
}

// Rewrite rebuilds f's body in order. visit sees each node with its arguments already replaced and returns replacements for its
// results, built with b, or nil to keep the node. It reports whether anything was replaced.
func (f *Func) Rewrite(visit func(b *Builder, n *Node) []*Value) bool {
	b := &Builder{Body: make([]*Node, 0, len(f.Body))}
	repl := make(map[*Value]*Value)
	changed := false
	for _, n := range f.Body {
		for i, a := range n.Args {
			if r, ok := repl[a]; ok {
				n.Args[i] = r
			}
		}
		b.Loc = n.Loc
		out := visit(b, n)
		if out == nil {
			b.Body = append(b.Body, n)
			continue
		}
		changed = true
		if len(out) != len(n.Outs) {
			panic(fmt.Sprintf("rewriting %s: %d replacements for %d results", n.Op.Name, len(out), len(n.Outs)))
		}
		for i, o := range n.Outs {
			if !o.Type.Equal(out[i].Type) {
				panic(fmt.Sprintf("rewriting %s: result %d is %s, wanted %s", n.Op.Name, i, out[i].Type, o.Type))
			}
			repl[o] = out[i]
		}
	}
	f.Body = b.Body
	f.Roots(func(v **Value) {
		if r, ok := repl[*v]; ok {
			*v = r
		}
	})
	return changed
}
