package op

import (
	"math"

	"tpuc/ir"
)

// Log1p is log(1 + x) for floats, exact for small x (StableHLO log_plus_one, aten::log1p).
var Log1p = definePlain(Def[None]{
	Name: "log1p", Doc: "Takes the natural logarithm of one plus every element.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats),
	Lower:  lowerTo("stablehlo.log_plus_one"),
	Eval: scalar1{
		f: math.Log1p,
	}.eval,
})
