package op

import (
	"math"

	"tpuc/ir"
)

// Cbrt is the cube root of floats, negative for negative ones (StableHLO cbrt).
var Cbrt = definePlain(Def[None]{
	Name: "cbrt", Doc: "Takes the cube root of every element.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats),
	Lower:  lowerTo("stablehlo.cbrt"),
	Eval: scalar1{
		f: math.Cbrt,
	}.eval,
})
