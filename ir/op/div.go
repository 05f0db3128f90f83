package op

import "tpuc/ir"

// Div is x / y (StableHLO divide): true division of floats and complex numbers; of integers, truncated towards zero
// (aten::div with rounding_mode "trunc"). An integer divided by zero gives -1, all bits set, as XLA does.
var Div = definePlain(Def[None]{
	Name: "div", Doc: "Divides two tensors of one type elementwise; integers truncate towards zero.", Args: "x y",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(numbers),
	Lower:  lowerTo("stablehlo.divide"),
	Eval: scalar2{
		i: func(x, y int64) int64 {
			if y == 0 {
				return -1
			}
			return x / y
		},
		u: func(x, y uint64) uint64 {
			if y == 0 {
				return ^uint64(0)
			}
			return x / y
		},
		f: func(x, y float64) float64 { return x / y },
		c: func(x, y complex128) complex128 { return x / y },
	}.eval,
})
