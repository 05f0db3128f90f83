package op

import (
	"math"

	"tpuc/ir"
)

// Sigmoid is 1 / (1 + exp(-x)) for floats (StableHLO logistic, aten::sigmoid).
var Sigmoid = definePlain(Def[None]{
	Name: "sigmoid", Doc: "Takes the logistic function of every element.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats),
	Lower:  lowerTo("stablehlo.logistic"),
	Eval: scalar1{
		f: logistic,
	}.eval,
})

// logistic has no overflow: exp is taken of negative numbers only.
func logistic(x float64) float64 {
	if x < 0 {
		e := math.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}
