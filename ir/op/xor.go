package op

import "tpuc/ir"

// Xor is the bitwise exclusive or of integers, the logical one of bools (StableHLO xor, aten::bitwise_xor).
var Xor = definePlain(Def[None]{
	Name: "xor", Doc: "Combines two tensors by bitwise exclusive or elementwise.", Args: "x y",
	Traits: ir.Elementwise | ir.Commutative | ir.Exact,
	Infer:  sameTypes(bools | ints),
	Lower:  lowerTo("stablehlo.xor"),
	Eval:   xorFn.eval,
})

var xorFn = scalar2{i: func(x, y int64) int64 { return x ^ y }}
