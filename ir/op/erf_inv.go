package op

import (
	"math"

	"tpuc/ir"
)

// ErfInv is the inverse of the error function of floats: infinite at -1 and 1, NaN beyond (CHLO erf_inv, aten::erfinv).
var ErfInv = definePlain(Def[None]{
	Name: "erf_inv", Doc: "Takes the inverse error function of every element.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats),
	Lower:  lowerTo("chlo.erf_inv"),
	Eval: scalar1{
		f: math.Erfinv,
	}.eval,
})
