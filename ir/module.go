// Package ir owns the program representation: typed, static-shape SSA with weights and state, its builder, verifier and rewriter.
// It knows no operator; those are values of Op made in ir/op. It never reads files and never lowers.
package ir

import (
	"tpuc/ir/diag"
	"tpuc/ir/tensor"
	"tpuc/ir/weight"
)

// Module is a whole program: one entry function over inputs, weights and state, and the functions that it reaches (Functions).
type Module struct {
	Func    *Func     // the entry, named "main"
	Weights []*Weight // in order of declaration; symbols are unique
	Mesh    *Mesh     // nil without sharding
}

// Func is a pure function: a topologically ordered body over parameters and the module's weights. The comments are about the entry.
type Func struct {
	Name    string   // without the @; printing makes equal names unique
	Params  []*Value // user inputs in flattened order
	Body    []*Node
	Results []*Value // user outputs in flattened order
	Updates []Update // new contents of mutated state and inputs, at most one a target; of the entry alone
}

// Update says that after a call Target, a parameter or a mutable weight, holds New. Lowering aliases the two.
type Update struct {
	Target *Value
	New    *Value
}

// Node applies an operator. Outs carry the result types.
type Node struct {
	Op   *Op
	Args []*Value
	Attr any // the operator's attribute struct by value, or nil
	Outs []*Value
	Loc  *diag.Loc // may be nil
}

// Value is one SSA value: a node's result, a parameter, or a weight. Exactly one of Def and Weight is set for the first and last kind.
type Value struct {
	Type     tensor.Type
	Sharding *Sharding // nil: not sharded
	Name     string    // parameters: the input's name; others: empty
	Def      *Node     // the node that makes it, or nil
	Index    int       // its place among Def.Outs, or among the parameters
	Weight   *Weight   // the weight that it reads, or nil
}

// IsParam reports a function parameter.
func (v *Value) IsParam() bool { return v.Def == nil && v.Weight == nil }

// Class says what may be assumed of a weight's contents.
type Class uint8

// Weight classes. Programs are shared between checkpoints of one model, so only a Constant's contents may be read while compiling.
const (
	Parameter Class = iota // learned; differs between checkpoints
	Buffer                 // persistent buffer; saved with the checkpoint
	Constant               // lifted constant or non-persistent buffer; part of the program
)

// String is the class's word in the textual IR.
func (c Class) String() string { return [...]string{"weight", "buffer", "constant"}[c] }

// Weight is a tensor that the program reads but does not get as an input.
type Weight struct {
	Sym     string   // unique symbol, without the @
	Names   []string // all names in the checkpoint (tied weights have several), the first is Source's
	Class   Class
	Mutable bool           // state: kept on the device from call to call, and the Target of an Update
	Source  weight.Expr    // where its elements, or its initial elements, come from
	Data    *tensor.Tensor // the contents of a Constant, where at hand; nil otherwise
	Value   *Value
}

// AddWeight declares w and makes its Value of type t.
func (m *Module) AddWeight(w *Weight, t tensor.Type) *Value {
	w.Value = &Value{Type: t, Weight: w}
	m.Weights = append(m.Weights, w)
	return w.Value
}

// AddParam appends a parameter.
func (f *Func) AddParam(name string, t tensor.Type) *Value {
	v := &Value{Type: t, Name: name, Index: len(f.Params)}
	f.Params = append(f.Params, v)
	return v
}

// Roots calls visit with the address of every value that leaves the function: results first, then updates.
func (f *Func) Roots(visit func(v **Value)) {
	for i := range f.Results {
		visit(&f.Results[i])
	}
	for i := range f.Updates {
		visit(&f.Updates[i].New)
	}
}

// Uses counts, for every value, the arguments and roots that read it.
func (f *Func) Uses() map[*Value]int {
	uses := make(map[*Value]int)
	for _, n := range f.Body {
		for _, a := range n.Args {
			uses[a]++
		}
	}
	f.Roots(func(v **Value) { uses[*v]++ })
	return uses
}

// Mesh names the axes of a device grid. The product of the sizes is the number of devices.
type Mesh struct {
	Axes []Axis
}

// Axis is one named dimension of a Mesh.
type Axis struct {
	Name string
	Size int64
}

// Sharding names, for every dimension of a value, the mesh axes that split it, major first. No names: not split.
type Sharding struct {
	Dims [][]string
}
