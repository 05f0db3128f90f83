package op

import (
	"math/bits"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// CountLeadingZeros counts the zero bits of every integer before its highest one, which is the dtype's width for 0 and none for negative
// numbers (StableHLO count_leading_zeros). Every width; the count has x's dtype.
var CountLeadingZeros = definePlain(Def[None]{
	Name: "count_leading_zeros", Doc: "Counts the zero bits of every element before its highest one bit.", Args: "x",
	Traits: ir.Elementwise | ir.Exact,
	Infer:  sameTypes(ints),
	Lower:  lowerTo("stablehlo.count_leading_zeros"),
	Eval: func(in []*tensor.Tensor, _ None, out []tensor.Type) ([]*tensor.Tensor, error) {
		v := in[0].Ints()
		width := out[0].DType.Bits()
		for i := range v {
			v[i] = int64(min(width, bits.LeadingZeros64(uint64(v[i])<<(64-width))))
		}
		return result(tensor.FromInts(out[0], v))
	},
})
