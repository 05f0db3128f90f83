package op

import "tpuc/ir"

// Sub is x - y for any numeric dtype (StableHLO subtract, aten::sub with alpha 1). Integers wrap.
var Sub = definePlain(Def[None]{
	Name: "sub", Doc: "Subtracts two tensors of one type elementwise.", Args: "x y",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(numbers),
	Lower:  lowerTo("stablehlo.subtract"),
	Eval: scalar2{
		i: func(x, y int64) int64 { return x - y },
		f: func(x, y float64) float64 { return x - y },
		c: func(x, y complex128) complex128 { return x - y },
	}.eval,
})
