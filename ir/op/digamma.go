package op

import (
	"math"

	"tpuc/ir"
)

// Digamma is the derivative of log gamma(x) of floats: NaN at the negative integers and at 0 (CHLO digamma). Torch gives an infinity at 0.
var Digamma = definePlain(Def[None]{
	Name: "digamma", Doc: "Takes the derivative of the logarithm of the gamma function.", Args: "x",
	Traits: ir.Elementwise,
	Infer:  sameTypes(floats),
	Lower:  lowerTo("chlo.digamma"),
	Eval: scalar1{
		f: digamma,
	}.eval,
})

// digamma goes up by recurrence to where the asymptotic series holds (Abramowitz and Stegun 6.3.5, 6.3.7, 6.3.18).
func digamma(x float64) float64 {
	y := 0.0
	switch {
	case x <= 0 && x == math.Floor(x):
		return math.NaN()
	case x < 0:
		y = -math.Pi / math.Tan(math.Pi*(x-math.Floor(x)))
		x = 1 - x
	}
	for ; x < 10; x++ {
		y -= 1 / x
	}
	if math.IsInf(x, 1) {
		return x
	}
	s := 1 / (x * x)
	series := s * (1.0/12 - s*(1.0/120-s*(1.0/252-s*(1.0/240-s*(1.0/132-s*(691.0/32760-s/12))))))
	return y + math.Log(x) - 0.5/x - series
}
