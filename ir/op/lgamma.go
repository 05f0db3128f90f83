package op

import (
	"math"

	"tpuc/ir"
)

// Lgamma is log |gamma(x)| of floats, +inf at 0, the negative integers and both infinities (CHLO lgamma, aten::lgamma).
var Lgamma = definePlain(Def[None]{
	Name: "lgamma", Doc: "Takes the logarithm of the magnitude of the gamma function.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats),
	Lower:  lowerTo("chlo.lgamma"),
	Eval: scalar1{
		f: func(x float64) float64 {
			if math.IsInf(x, -1) { // where Go gives -inf
				return math.Inf(1)
			}
			v, _ := math.Lgamma(x)
			return v
		},
	}.eval,
})
