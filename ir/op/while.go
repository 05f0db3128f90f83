package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// WhileAttr is the attribute struct of While.
type WhileAttr struct {
	Cond *ir.Func `ir:"cond"`
	Body *ir.Func `ir:"body"`
}

// While replaces its state, xs at first, by Body's results as long as Cond gives true, and gives the last state (StableHLO while). Both
// functions take the state; what a loop only reads is state that Body returns as it is, and costs nothing.
var While = define(Def[WhileAttr]{
	Name: "while", Doc: "Calls a function on its own results while another says so.", Args: "xs...",
	Infer: inferWhile, Lower: lowerWhile, Control: runWhile,
	Cost: func(n *ir.Node, _ WhileAttr) ir.Cost { return ir.Cost{Flops: controlFlops(n)} },
})

// inferWhile checks what the functions take and give in 1 to 4, and that there is state in 5.
func inferWhile(in []tensor.Type, a WhileAttr) ([]tensor.Type, error) {
	if err := checkFunc(1, "cond", a.Cond, in, []tensor.Type{tensor.Make(tensor.Bool)}); err != nil {
		return nil, err
	}
	if err := checkFunc(3, "body", a.Body, in, in); err != nil {
		return nil, err
	}
	if len(in) == 0 {
		return nil, fail(5, "no state, wanted one or more values")
	}
	return in, nil
}

// lowerWhile carries what changes; the regions read the rest from around them.
func lowerWhile(e ir.Emitter, n *ir.Node, a WhileAttr) []ir.Ref {
	all := refs(e, n)
	var at []int // places of what is carried
	var init []ir.Ref
	var carried []tensor.Type
	for i, p := range a.Body.Params {
		if a.Body.Results[i] != p {
			at = append(at, i)
			init = append(init, all[i])
			carried = append(carried, p.Type)
		}
	}
	if len(at) == 0 { // nothing changes: the loop has no step or no end, and a program needs some state
		at, init, carried = []int{0}, all[:1], []tensor.Type{all[0].Type}
	}
	// state is all of it, with vals in the carried places.
	state := func(vals []ir.Ref) []ir.Ref {
		out := append([]ir.Ref{}, all...)
		for i, p := range at {
			out[p] = vals[i]
		}
		return out
	}
	cond := ir.Region{Args: carried, Body: func(e ir.Emitter, vals []ir.Ref) []ir.Ref { return e.Call(a.Cond, state(vals)) }}
	body := ir.Region{Args: carried, Body: func(e ir.Emitter, vals []ir.Ref) []ir.Ref {
		next := e.Call(a.Body, state(vals))
		out := make([]ir.Ref, len(at))
		for i, p := range at {
			out[i] = next[p]
		}
		return out
	}}
	return state(e.Emit(ir.HLO{Name: "stablehlo.while", Args: init, Regions: []ir.Region{cond, body}, Out: carried}))
}

func runWhile(run ir.Runner, in []*tensor.Tensor, a WhileAttr) ([]*tensor.Tensor, error) {
	state := in
	for range maxSteps {
		more, err := run(a.Cond, state)
		if err != nil || !truth(more[0]) {
			return state, err
		}
		if state, err = run(a.Body, state); err != nil {
			return nil, err
		}
	}
	return nil, stepLimit()
}
