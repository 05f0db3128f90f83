package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// ShiftRight is x divided by 2 to the y, rounded down: arithmetic for signed, logical for unsigned integers (StableHLO
// shift_right_arithmetic and shift_right_logical, aten::__rshift__). An amount that is negative or at least the dtype's width
// leaves the sign's bits only.
var ShiftRight = definePlain(Def[None]{
	Name: "shift_right", Doc: "Shifts bits right elementwise, keeping the sign.", Args: "x y",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(ints),
	Lower: func(e ir.Emitter, n *ir.Node, _ None) []ir.Ref {
		name := "stablehlo.shift_right_arithmetic"
		if n.Outs[0].Type.DType.IsUnsigned() {
			name = "stablehlo.shift_right_logical"
		}
		return e.Emit(ir.HLO{Name: name, Args: refs(e, n), Out: []tensor.Type{n.Outs[0].Type}})
	},
	Eval: scalar2{
		i: func(x, y int64) int64 { return x >> uint64(y) },
		u: func(x, y uint64) uint64 { return x >> y },
	}.eval,
})
