package op

import (
	"math"

	"tpuc/ir"
)

// Round rounds floats to the nearest integer, ties to even (StableHLO round_nearest_even, aten::round).
var Round = definePlain(Def[None]{
	Name: "round", Doc: "Rounds every element to the nearest integer, ties to even.", Args: "x",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(floats),
	Lower:  lowerTo("stablehlo.round_nearest_even"),
	Eval: scalar1{
		f: math.RoundToEven,
	}.eval,
})
