package op

import "tpuc/ir"

// Add is x + y (StableHLO add). Integers wrap; on bool it is logical or, as in StableHLO.
var Add = definePlain(Def[None]{
	Name: "add", Doc: "Adds two tensors of one type elementwise.", Args: "x y",
	Traits: ir.Elementwise | ir.Commutative | ir.Exact,
	Infer:  sameTypes(bools | numbers),
	Lower:  lowerTo("stablehlo.add"),
	Eval:   addFn.eval,
})

var addFn = scalar2{
	i: func(x, y int64) int64 { return x + y },
	f: func(x, y float64) float64 { return x + y },
	c: func(x, y complex128) complex128 { return x + y },
}
