package op

import (
	"math"

	"tpuc/ir"
)

// Erf is the error function of floats (CHLO erf, aten::erf).
var Erf = definePlain(Def[None]{
	Name: "erf", Doc: "Takes the error function of every element.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats),
	Lower:  lowerTo("chlo.erf"),
	Eval: scalar1{
		f: math.Erf,
	}.eval,
})
