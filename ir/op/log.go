package op

import (
	"math"
	"math/cmplx"

	"tpuc/ir"
)

// Log is the natural logarithm of floats and complex numbers (StableHLO log, aten::log): -inf at 0, NaN below.
var Log = definePlain(Def[None]{
	Name: "log", Doc: "Takes the natural logarithm of every element.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats | complexes),
	Lower:  lowerTo("stablehlo.log"),
	Eval: scalar1{
		f: math.Log,
		c: cmplx.Log,
	}.eval,
})
