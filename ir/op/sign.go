package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Sign is -1, 0 or 1 for integers and floats (StableHLO sign, aten::sgn). Zeros keep their sign and NaN stays NaN.
var Sign = definePlain(Def[None]{
	Name: "sign", Doc: "Takes the sign of every element.", Args: "x",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(ints | floats),
	Lower: func(e ir.Emitter, n *ir.Node, a None) []ir.Ref {
		t := n.Outs[0].Type
		if !t.DType.IsUnsigned() {
			return lowerTo("stablehlo.sign")(e, n, a)
		}
		// StableHLO has the sign of signed numbers only.
		ones := emitBroadcast(e, emitConstant(e, tensor.Scalar(t.DType, 1)), t.Dims)
		return e.Emit(ir.HLO{Name: "stablehlo.minimum", Args: []ir.Ref{e.Value(n.Args[0]), ones}, Out: []tensor.Type{t}})
	},
	Eval: scalar1{
		i: func(x int64) int64 { return min(max(x, -1), 1) },
		u: func(x uint64) uint64 { return min(x, 1) },
		f: func(x float64) float64 {
			switch {
			case x > 0:
				return 1
			case x < 0:
				return -1
			}
			return x
		},
	}.eval,
})
