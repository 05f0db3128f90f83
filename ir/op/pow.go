package op

import (
	"math"
	"math/cmplx"

	"tpuc/ir"
)

// Pow is x to the y for any numeric dtype (StableHLO power, aten::pow). Floats follow C's pow. Integers wrap; a negative integer
// exponent gives 1/x^|y| truncated, which is 0 unless x is 1 or -1.
var Pow = definePlain(Def[None]{
	Name: "pow", Doc: "Raises one tensor to the power of another elementwise.", Args: "x y",
	Traits: ir.Elementwise,
	Infer:  sameTypes(numbers),
	Lower:  lowerTo("stablehlo.power"),
	Eval: scalar2{
		i: func(x, y int64) int64 {
			switch {
			case y >= 0:
				return int64(powUint(uint64(x), uint64(y)))
			case x == 1 || x == -1 && y%2 == 0:
				return 1
			case x == -1:
				return -1
			}
			return 0
		},
		u: powUint,
		f: math.Pow,
		c: cmplx.Pow,
	}.eval,
})

// powUint is x to the y modulo 2^64, by squaring.
func powUint(x, y uint64) uint64 {
	z := uint64(1)
	for ; y > 0; y >>= 1 {
		if y&1 == 1 {
			z *= x
		}
		x *= x
	}
	return z
}
