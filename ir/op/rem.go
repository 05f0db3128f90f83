package op

import (
	"math"

	"tpuc/ir"
)

// Rem is the remainder of truncated division for integers and floats, with the sign of x (StableHLO remainder, aten::fmod).
// An integer's remainder by zero is x, as XLA gives; a float's is NaN.
var Rem = definePlain(Def[None]{
	Name: "rem", Doc: "Takes the remainder of truncated division elementwise, with the sign of the dividend.", Args: "x y",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(ints | floats),
	Lower:  lowerTo("stablehlo.remainder"),
	Eval: scalar2{
		i: func(x, y int64) int64 {
			if y == 0 {
				return x
			}
			return x % y
		},
		u: func(x, y uint64) uint64 {
			if y == 0 {
				return x
			}
			return x % y
		},
		f: math.Mod,
	}.eval,
})
