package op

import (
	"math"

	"tpuc/ir"
)

// Atan2 is the angle of the point (y, x) in radians, in [-pi, pi], for floats (StableHLO atan2, aten::atan2).
var Atan2 = definePlain(Def[None]{
	Name: "atan2", Doc: "Takes the angle of the points (y, x) elementwise.", Args: "y x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats),
	Lower:  lowerTo("stablehlo.atan2"),
	Eval:   scalar2{f: math.Atan2}.eval,
})
