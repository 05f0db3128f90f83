package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// CondAttr is the attribute struct of Cond.
type CondAttr struct {
	Then *ir.Func `ir:"then"`
	Else *ir.Func `ir:"else"`
}

// Cond calls Then on xs where pred, bool[], is true, otherwise Else (StableHLO if). Both take xs and give results of the same types, which
// are the operator's; there is at least one.
var Cond = define(Def[CondAttr]{
	Name: "cond", Doc: "Calls one of two functions.", Args: "pred xs...",
	Infer: inferCond, Lower: lowerCond, Control: runCond,
	Cost: func(n *ir.Node, _ CondAttr) ir.Cost { return ir.Cost{Flops: controlFlops(n)} },
})

// inferCond checks the predicate in 1, what the functions take and give in 2 to 5, and that they give something in 6.
func inferCond(in []tensor.Type, a CondAttr) ([]tensor.Type, error) {
	if !in[0].Equal(tensor.Make(tensor.Bool)) {
		return nil, fail(1, "predicate is %s, wanted bool[]", in[0])
	}
	if err := checkFunc(2, "then", a.Then, in[1:], nil); err != nil {
		return nil, err
	}
	out := a.Then.ResultTypes()
	if err := checkFunc(4, "else", a.Else, in[1:], out); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fail(6, "the functions have no results, wanted one or more")
	}
	return out, nil
}

// lowerCond lets the branches read the arguments where they are: regions see what is around them.
func lowerCond(e ir.Emitter, n *ir.Node, a CondAttr) []ir.Ref {
	args := refs(e, n)
	branch := func(f *ir.Func) ir.Region {
		return ir.Region{Body: func(e ir.Emitter, _ []ir.Ref) []ir.Ref { return e.Call(f, args[1:]) }}
	}
	return e.Emit(ir.HLO{Name: "stablehlo.if", Args: args[:1], Regions: []ir.Region{branch(a.Then), branch(a.Else)}, Out: a.Then.ResultTypes()})
}

func runCond(run ir.Runner, in []*tensor.Tensor, a CondAttr) ([]*tensor.Tensor, error) {
	if truth(in[0]) {
		return run(a.Then, in[1:])
	}
	return run(a.Else, in[1:])
}
