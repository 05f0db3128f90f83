package op

import "tpuc/ir"

// Mul is x * y (StableHLO multiply, aten::mul). Integers wrap; on bool it is logical and, as in StableHLO.
var Mul = definePlain(Def[None]{
	Name: "mul", Doc: "Multiplies two tensors of one type elementwise.", Args: "x y",
	Traits: ir.Elementwise | ir.Commutative | ir.Exact,
	Infer:  sameTypes(bools | numbers),
	Lower:  lowerTo("stablehlo.multiply"),
	Eval:   mulFn.eval,
})

var mulFn = scalar2{
	i: func(x, y int64) int64 { return x * y },
	f: func(x, y float64) float64 { return x * y },
	c: func(x, y complex128) complex128 { return x * y },
}
