package op

import (
	"math"
	"math/cmplx"

	"tpuc/ir"
)

// Sqrt is the square root of floats and complex numbers (StableHLO sqrt, aten::sqrt): NaN below 0.
var Sqrt = definePlain(Def[None]{
	Name: "sqrt", Doc: "Takes the square root of every element.", Args: "x",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(floats | complexes),
	Lower:  lowerTo("stablehlo.sqrt"),
	Eval: scalar1{
		f: math.Sqrt,
		c: cmplx.Sqrt,
	}.eval,
})
