package op

import "tpuc/ir"

// Minimum is the smaller of x and y for bools, integers and floats (StableHLO minimum, aten::minimum). NaN on either side gives NaN.
var Minimum = definePlain(Def[None]{
	Name: "minimum", Doc: "Takes the smaller of two tensors elementwise; NaN wins.", Args: "x y",
	Traits: ir.Elementwise | ir.Commutative | ir.Exact,
	Infer:  sameTypes(bools | ints | floats),
	Lower:  lowerTo("stablehlo.minimum"),
	Eval:   minFn.eval,
})

var minFn = scalar2{
	i: func(x, y int64) int64 { return min(x, y) },
	u: func(x, y uint64) uint64 { return min(x, y) },
	f: func(x, y float64) float64 { return min(x, y) }, // the builtin gives NaN if either is; math.Min prefers infinities
}
