package op

import (
	"math"
	"math/cmplx"

	"tpuc/ir"
)

// Cos is the cosine of floats and complex numbers in radians (StableHLO cosine, aten::cos).
var Cos = definePlain(Def[None]{
	Name: "cos", Doc: "Takes the cosine of every element.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats | complexes),
	Lower:  lowerTo("stablehlo.cosine"),
	Eval: scalar1{
		f: math.Cos,
		c: cmplx.Cos,
	}.eval,
})
