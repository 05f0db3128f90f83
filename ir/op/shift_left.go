package op

import "tpuc/ir"

// ShiftLeft is x times 2 to the y for integers, bits shifted out are lost (StableHLO shift_left, aten::__lshift__).
// An amount that is negative or at least the dtype's width gives 0.
var ShiftLeft = definePlain(Def[None]{
	Name: "shift_left", Doc: "Shifts bits left elementwise.", Args: "x y",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(ints),
	Lower:  lowerTo("stablehlo.shift_left"),
	Eval:   scalar2{i: func(x, y int64) int64 { return x << uint64(y) }}.eval,
})
