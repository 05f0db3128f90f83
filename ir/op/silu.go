package op

import "tpuc/ir"

// Silu is x times the logistic function of x, floats, in f32 at least and rounded once (aten::silu).
var Silu = definePlain(Def[None]{
	Name: "silu", Doc: "Applies the sigmoid linear unit.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats),
	Decompose: func(b *ir.Builder, n *ir.Node, _ None) []*ir.Value {
		x := widen(b, n.Args[0])
		return []*ir.Value{Cast(b, Mul.Make(b, x, Sigmoid.Make(b, x)), n.Outs[0].Type.DType)}
	},
	Eval: scalar1{f: func(x float64) float64 { return x * logistic(x) }}.eval,
	Cost: func(n *ir.Node, _ None) ir.Cost { return ir.Cost{Flops: 4 * n.Outs[0].Type.Elements()} },
})
