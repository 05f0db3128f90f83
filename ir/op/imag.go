package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Imag is the imaginary part of complex numbers, as floats (StableHLO imag, aten::imag).
var Imag = definePlain(Def[None]{
	Name: "imag", Doc: "Takes the imaginary part of every element.", Args: "x",
	Traits: ir.Exact,
	Infer: func(in []tensor.Type, _ None) ([]tensor.Type, error) {
		if !in[0].DType.IsComplex() {
			return nil, fail(1, "dtype %s, wanted complex", in[0].DType)
		}
		return one(in[0].WithDType(in[0].DType.Real()))
	},
	Lower: lowerTo("stablehlo.imag"),
	Eval: func(in []*tensor.Tensor, _ None, out []tensor.Type) ([]*tensor.Tensor, error) {
		return result(complexPart(in[0], out[0], 1))
	},
})
