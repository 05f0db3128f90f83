package op

import (
	"math"

	"tpuc/ir"
)

// Rsqrt is 1 / sqrt(x) for floats (StableHLO rsqrt, aten::rsqrt): infinite at 0, NaN below.
var Rsqrt = definePlain(Def[None]{
	Name: "rsqrt", Doc: "Takes the reciprocal square root of every element.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats),
	Lower:  lowerTo("stablehlo.rsqrt"),
	Eval: scalar1{
		f: func(x float64) float64 { return 1 / math.Sqrt(x) },
	}.eval,
})
