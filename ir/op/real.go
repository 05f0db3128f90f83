package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Real is the real part of complex numbers, as floats (StableHLO real, aten::real).
var Real = definePlain(Def[None]{
	Name: "real", Doc: "Takes the real part of every element.", Args: "x",
	Traits: ir.Exact,
	Infer: func(in []tensor.Type, _ None) ([]tensor.Type, error) {
		if !in[0].DType.IsComplex() {
			return nil, fail(1, "dtype %s, wanted complex", in[0].DType)
		}
		return one(in[0].WithDType(in[0].DType.Real()))
	},
	Lower: lowerTo("stablehlo.real"),
	Eval: func(in []*tensor.Tensor, _ None, out []tensor.Type) ([]*tensor.Tensor, error) {
		return result(complexPart(in[0], out[0], 0))
	},
})

// complexPart is every element's half number i: 0 the real, 1 the imaginary part.
func complexPart(x *tensor.Tensor, t tensor.Type, i int) *tensor.Tensor {
	y, size := tensor.Zeros(t), t.DType.Size()
	for k := range int(t.Elements()) {
		copy(y.Data[k*size:(k+1)*size], x.Data[(2*k+i)*size:])
	}
	return y
}
