package ir

import (
	"fmt"
	"reflect"

	"tpuc/ir/diag"
	"tpuc/ir/tensor"
)

// Traits are facts about every application of an operator.
type Traits uint8

// Traits.
const (
	Elementwise Traits = 1 << iota // every output element depends on the elements at its own place only
	Commutative                    // the two arguments may be swapped
	Effect                         // does more than give results: it stays though nothing uses it, and equal ones are not merged
	Exact                          // moves, compares or rounds once: evaluation gives the same bits on every processor, complex arithmetic aside
)

// Op is an operator. Exactly one of Lower and Decompose is set: a primitive has Lower, a composite Decompose.
// Rules receive the attribute struct by value in attr, nil for an operator without attributes.
type Op struct {
	Name   string
	Doc    string // what it computes, as a sentence
	Args   []Arg  // declared arguments
	Traits Traits
	Attr   reflect.Type // the attribute struct's type, nil without attributes
	Funcs  []int        // the fields of Attr that name functions, which makes the operator control flow

	// Infer gives the result types or a *ShapeError. Argument counts are already checked.
	Infer func(args []tensor.Type, attr any) ([]tensor.Type, error)
	// Lower emits StableHLO for n and returns one reference a result.
	Lower func(e Emitter, n *Node, attr any) []Ref
	// Decompose builds the same values from other operators.
	Decompose func(b *Builder, n *Node, attr any) []*Value
	// Eval computes the results, whose types are out. Nil for a composite that is evaluated by its decomposition.
	Eval func(args []*tensor.Tensor, attr any, out []tensor.Type) ([]*tensor.Tensor, error)
	// Control computes the results of control flow, with run for the functions that attr names. It is set instead of Eval.
	Control func(run Runner, args []*tensor.Tensor, attr any) ([]*tensor.Tensor, error)
	// Cost estimates the work of n. Nil means one flop an output element.
	Cost func(n *Node, attr any) Cost
}

// Runner evaluates a function on arguments of its parameters' types.
type Runner func(f *Func, args []*tensor.Tensor) ([]*tensor.Tensor, error)

// Arg declares an argument: a required one, an optional last one, or any number of last ones.
type Arg struct {
	Name     string
	Optional bool
	Variadic bool
}

// Composite reports an operator that is decomposed before lowering.
func (o *Op) Composite() bool { return o.Decompose != nil }

// Cost is the work of a node: floating-point operations and bytes read plus written once.
type Cost struct {
	Flops, Bytes int64
}

// CostOf is the cost of a node by its operator's rule, with the bytes of all arguments and results where the rule gives none.
func CostOf(n *Node) Cost {
	var c Cost
	if n.Op.Cost != nil {
		c = n.Op.Cost(n, n.Attr)
	} else {
		for _, o := range n.Outs {
			c.Flops += o.Type.Elements()
		}
	}
	if c.Bytes == 0 {
		for _, v := range n.Args {
			c.Bytes += v.Type.Bytes()
		}
		for _, v := range n.Outs {
			c.Bytes += v.Type.Bytes()
		}
	}
	return c
}

// IsExact reports that evaluating n gives the same bits on every processor, which a program that is compiled by several must hold to:
// integers and bools always do, and operators with the trait Exact, but for complex arithmetic, whose products and sums may be fused.
// What comes out of a mathematical library, and sums of floats, whose order and fusion are the implementation's, do not. Control flow
// does not either: its functions may hold anything, and a loop may have no end.
func IsExact(n *Node) bool {
	if len(n.Op.Funcs) > 0 {
		return false
	}
	exact, complexes := true, false
	for _, values := range [][]*Value{n.Args, n.Outs} {
		for _, v := range values {
			d := v.Type.DType
			exact = exact && (d.IsInt() || d == tensor.Bool)
			complexes = complexes || d.IsComplex()
		}
	}
	return exact || n.Op.Traits&Exact != 0 && !(complexes && n.Op.Traits&Elementwise != 0)
}

// ShapeError is a violated check of an operator's shape rule. ID is the check's number within the operator, shared by code, goldens and error text.
type ShapeError struct {
	Op  string
	ID  int
	Msg string
}

// Code is such as "dot/2".
func (e *ShapeError) Code() string { return fmt.Sprintf("%s/%d", e.Op, e.ID) }

// Error names the operator, what is wrong and the check.
func (e *ShapeError) Error() string { return fmt.Sprintf("%s: %s [%s]", e.Op, e.Msg, e.Code()) }

// Diag is the error at a place of the model.
func (e *ShapeError) Diag(loc *diag.Loc) *diag.Error {
	return &diag.Error{Code: e.Code(), Loc: loc, Msg: e.Op + ": " + e.Msg, Cause: e}
}

// InferTypes checks the number of arguments and the attribute's type, then runs the shape rule.
// Check 0 of every operator is this one.
func (o *Op) InferTypes(args []tensor.Type, attr any) ([]tensor.Type, error) {
	minArgs, maxArgs := len(o.Args), len(o.Args)
	if maxArgs > 0 {
		switch last := o.Args[maxArgs-1]; {
		case last.Variadic:
			minArgs, maxArgs = minArgs-1, int(^uint(0)>>1)
		default:
			for minArgs > 0 && o.Args[minArgs-1].Optional {
				minArgs--
			}
		}
	}
	if len(args) < minArgs || len(args) > maxArgs {
		return nil, &ShapeError{o.Name, 0, fmt.Sprintf("%d arguments, wanted %s", len(args), o.arity())}
	}
	if reflect.TypeOf(attr) != o.Attr {
		return nil, &ShapeError{o.Name, 0, fmt.Sprintf("attributes are a %T, wanted %v", attr, o.Attr)}
	}
	out, err := o.Infer(args, attr)
	if err != nil {
		if s, ok := err.(*ShapeError); ok {
			s.Op = o.Name
		}
		return nil, err
	}
	for _, t := range out {
		if err := t.Check(); err != nil {
			return nil, &ShapeError{o.Name, 0, "result: " + err.Error()}
		}
	}
	return out, nil
}

func (o *Op) arity() string {
	s := ""
	for i, a := range o.Args {
		if i > 0 {
			s += " "
		}
		s += a.Name
		if a.Optional {
			s += "?"
		}
		if a.Variadic {
			s += "..."
		}
	}
	if s == "" {
		return "none"
	}
	return s
}
