package op

import (
	"math"
	"math/cmplx"

	"tpuc/ir"
)

// Sin is the sine of floats and complex numbers in radians (StableHLO sine, aten::sin).
var Sin = definePlain(Def[None]{
	Name: "sin", Doc: "Takes the sine of every element.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats | complexes),
	Lower:  lowerTo("stablehlo.sine"),
	Eval: scalar1{
		f: math.Sin,
		c: cmplx.Sin,
	}.eval,
})
