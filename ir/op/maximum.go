package op

import "tpuc/ir"

// Maximum is the larger of x and y for bools, integers and floats (StableHLO maximum, aten::maximum). NaN on either side gives NaN.
var Maximum = definePlain(Def[None]{
	Name: "maximum", Doc: "Takes the larger of two tensors elementwise; NaN wins.", Args: "x y",
	Traits: ir.Elementwise | ir.Commutative | ir.Exact,
	Infer:  sameTypes(bools | ints | floats),
	Lower:  lowerTo("stablehlo.maximum"),
	Eval:   maxFn.eval,
})

var maxFn = scalar2{
	i: func(x, y int64) int64 { return max(x, y) },
	u: func(x, y uint64) uint64 { return max(x, y) },
	f: func(x, y float64) float64 { return max(x, y) }, // the builtin gives NaN if either is; math.Max prefers infinities
}
