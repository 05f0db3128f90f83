package op

import (
	"tpuc/ir"
)

// Neg is -x for any numeric dtype (StableHLO negate, aten::neg). Integers wrap: the smallest signed one is its own negative.
var Neg = definePlain(Def[None]{
	Name: "neg", Doc: "Negates every element.", Args: "x",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(numbers),
	Lower:  lowerTo("stablehlo.negate"),
	Eval: scalar1{
		i: func(x int64) int64 { return -x },
		f: func(x float64) float64 { return -x },
		c: func(x complex128) complex128 { return -x },
	}.eval,
})
