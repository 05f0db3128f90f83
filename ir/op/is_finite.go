package op

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// IsFinite tells whether floats are neither infinite nor NaN (StableHLO is_finite, aten::isfinite). The result is bool of x's shape.
var IsFinite = definePlain(Def[None]{
	Name: "is_finite", Doc: "Tells whether every element is neither infinite nor NaN.", Args: "x",
	Traits: ir.Elementwise | ir.Exact,
	Infer: func(in []tensor.Type, _ None) ([]tensor.Type, error) {
		if !in[0].DType.IsFloat() {
			return nil, fail(1, "dtype %s, wanted float", in[0].DType)
		}
		return one(in[0].WithDType(tensor.Bool))
	},
	Lower: lowerTo("stablehlo.is_finite"),
	Eval: func(in []*tensor.Tensor, _ None, out []tensor.Type) ([]*tensor.Tensor, error) {
		y := tensor.Zeros(out[0])
		for i, x := range in[0].Floats() {
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				y.Data[i] = 1
			}
		}
		return result(y)
	},
})
