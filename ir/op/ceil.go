package op

import (
	"math"

	"tpuc/ir"
)

// Ceil rounds floats towards +inf (StableHLO ceil, aten::ceil).
var Ceil = definePlain(Def[None]{
	Name: "ceil", Doc: "Rounds every element up.", Args: "x",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(floats),
	Lower:  lowerTo("stablehlo.ceil"),
	Eval: scalar1{
		f: math.Ceil,
	}.eval,
})
