package op

import (
	"math"

	"tpuc/ir"
)

// Floor rounds floats towards -inf (StableHLO floor, aten::floor).
var Floor = definePlain(Def[None]{
	Name: "floor", Doc: "Rounds every element down.", Args: "x",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(floats),
	Lower:  lowerTo("stablehlo.floor"),
	Eval: scalar1{
		f: math.Floor,
	}.eval,
})
