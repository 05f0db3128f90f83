package op

import (
	"math"
	"math/cmplx"

	"tpuc/ir"
)

// Tan is the tangent of floats and complex numbers in radians (StableHLO tan, aten::tan).
var Tan = definePlain(Def[None]{
	Name: "tan", Doc: "Takes the tangent of every element.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats | complexes),
	Lower:  lowerTo("stablehlo.tan"),
	Eval: scalar1{
		f: math.Tan,
		c: cmplx.Tan,
	}.eval,
})
