package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Complex joins real and imaginary parts, f32 or f64 of one type (StableHLO complex, aten::complex). Signs of zeros and NaNs are kept.
var Complex = definePlain(Def[None]{
	Name: "complex", Doc: "Joins real and imaginary parts.", Args: "re im",
	Traits: ir.Exact,
	Infer: func(in []tensor.Type, _ None) ([]tensor.Type, error) {
		d := tensor.C64
		switch {
		case in[0].DType == tensor.F64:
			d = tensor.C128
		case in[0].DType != tensor.F32:
			return nil, fail(1, "dtype %s, wanted f32 or f64", in[0].DType)
		}
		if !in[1].Equal(in[0]) {
			return nil, fail(2, "argument 1 is %s, wanted %s as argument 0", in[1], in[0])
		}
		return one(in[0].WithDType(d))
	},
	Lower: lowerTo("stablehlo.complex"),
	Eval: func(in []*tensor.Tensor, _ None, out []tensor.Type) ([]*tensor.Tensor, error) {
		y, size := tensor.Zeros(out[0]), in[0].DType.Size()
		for i, x := range in {
			for k := range int(x.Elements()) {
				copy(y.Data[(2*k+i)*size:], x.Data[k*size:(k+1)*size])
			}
		}
		return result(y)
	},
})
