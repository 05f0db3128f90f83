package op

import (
	"math"

	"tpuc/ir"
)

// Abs is |x| for integers and floats (StableHLO abs, aten::abs). The smallest signed integer wraps to itself; unsigned integers are
// their own magnitude.
var Abs = definePlain(Def[None]{
	Name: "abs", Doc: "Takes the magnitude of every element.", Args: "x",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(ints | floats),
	Lower: func(e ir.Emitter, n *ir.Node, a None) []ir.Ref {
		if n.Outs[0].Type.DType.IsUnsigned() { // StableHLO has abs of signed numbers only
			return refs(e, n)
		}
		return lowerTo("stablehlo.abs")(e, n, a)
	},
	Eval: scalar1{
		i: func(x int64) int64 {
			if x < 0 {
				return -x
			}
			return x
		},
		u: func(x uint64) uint64 { return x },
		f: math.Abs,
	}.eval,
})
