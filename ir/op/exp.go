package op

import (
	"math"
	"math/cmplx"

	"tpuc/ir"
)

// Exp is e to the x for floats and complex numbers (StableHLO exponential, aten::exp).
var Exp = definePlain(Def[None]{
	Name: "exp", Doc: "Raises e to every element.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats | complexes),
	Lower:  lowerTo("stablehlo.exponential"),
	Eval: scalar1{
		f: math.Exp,
		c: cmplx.Exp,
	}.eval,
})
