package op

import (
	"math"

	"tpuc/ir"
)

// Expm1 is exp(x) - 1 for floats, exact for small x (StableHLO exponential_minus_one, aten::expm1).
var Expm1 = definePlain(Def[None]{
	Name: "expm1", Doc: "Raises e to every element and subtracts one.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats),
	Lower:  lowerTo("stablehlo.exponential_minus_one"),
	Eval: scalar1{
		f: math.Expm1,
	}.eval,
})
