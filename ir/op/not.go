package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Not flips all bits of integers, and the value of bools (StableHLO not, aten::bitwise_not).
var Not = definePlain(Def[None]{
	Name: "not", Doc: "Flips the bits of every element.", Args: "x",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(bools | ints),
	Lower:  lowerTo("stablehlo.not"),
	Eval: func(in []*tensor.Tensor, _ None, out []tensor.Type) ([]*tensor.Tensor, error) {
		mask := int64(-1)
		if out[0].DType == tensor.Bool {
			mask = 1
		}
		v := in[0].Ints()
		for i := range v {
			v[i] ^= mask
		}
		return result(tensor.FromInts(out[0], v))
	},
})
