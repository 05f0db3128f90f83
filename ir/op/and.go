package op

import "tpuc/ir"

// And is the bitwise and of integers, the logical one of bools (StableHLO and, aten::bitwise_and).
var And = definePlain(Def[None]{
	Name: "and", Doc: "Combines two tensors by bitwise and elementwise.", Args: "x y",
	Traits: ir.Elementwise | ir.Commutative | ir.Exact,
	Infer:  sameTypes(bools | ints),
	Lower:  lowerTo("stablehlo.and"),
	Eval:   andFn.eval,
})

var andFn = scalar2{i: func(x, y int64) int64 { return x & y }}
