package op

import (
	"math/bits"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Popcnt counts the bits of every integer that are one (StableHLO popcnt).
var Popcnt = definePlain(Def[None]{
	Name: "popcnt", Doc: "Counts the one bits of every element.", Args: "x",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(ints),
	Lower:  lowerTo("stablehlo.popcnt"),
	Eval: func(in []*tensor.Tensor, _ None, out []tensor.Type) ([]*tensor.Tensor, error) {
		v := in[0].Ints()
		mask := ^uint64(0) >> (64 - out[0].DType.Bits())
		for i := range v {
			v[i] = int64(bits.OnesCount64(uint64(v[i]) & mask))
		}
		return result(tensor.FromInts(out[0], v))
	},
})
