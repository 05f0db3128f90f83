package ir

import "tpuc/ir/tensor"

// Ref names a value of the emitted StableHLO text.
type Ref struct {
	Name string // such as "%12"
	Type tensor.Type
}

// Emitter is what an operator's lowering writes to; package lower implements it.
type Emitter interface {
	// Value is the reference of an argument.
	Value(v *Value) Ref
	// Emit appends one operation and returns its results.
	Emit(h HLO) []Ref
	// Call emits f's body where it stands, reading args, and returns the references of f's results.
	Call(f *Func, args []Ref) []Ref
}

// HLO is one StableHLO operation in generic form, or as Verbatim says.
type HLO struct {
	Name    string // such as "stablehlo.add"
	Args    []Ref
	Attrs   []string // such as "dimension = 0 : i64", in the order written
	Regions []Region
	Out     []tensor.Type
	// Verbatim is the whole operation but results and location, in place of all else but Name and Out. %$ begins names that are unique here.
	Verbatim string
}

// Region is a single-block region, such as a reducer. Its body may read references of the region around it.
type Region struct {
	Args []tensor.Type
	Body func(e Emitter, args []Ref) []Ref // what it returns
}
