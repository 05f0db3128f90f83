package op

import (
	"math"
	"math/cmplx"

	"tpuc/ir"
)

// Tanh is the hyperbolic tangent of floats and complex numbers (StableHLO tanh, aten::tanh).
var Tanh = definePlain(Def[None]{
	Name: "tanh", Doc: "Takes the hyperbolic tangent of every element.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats | complexes),
	Lower:  lowerTo("stablehlo.tanh"),
	Eval: scalar1{
		f: math.Tanh,
		c: cmplx.Tanh,
	}.eval,
})
