package op

import "tpuc/ir"

// Or is the bitwise or of integers, the logical one of bools (StableHLO or, aten::bitwise_or).
var Or = definePlain(Def[None]{
	Name: "or", Doc: "Combines two tensors by bitwise or elementwise.", Args: "x y",
	Traits: ir.Elementwise | ir.Commutative | ir.Exact,
	Infer:  sameTypes(bools | ints),
	Lower:  lowerTo("stablehlo.or"),
	Eval:   orFn.eval,
})

var orFn = scalar2{i: func(x, y int64) int64 { return x | y }}
