package op

import (
	"tpuc/ir"
	"tpuc/ir/tensor"
)

// Select takes on_true where pred holds, on_false elsewhere (StableHLO select, aten::where). pred is bool of the others' shape; they
// and the result are of one type.
var Select = definePlain(Def[None]{
	Name: "select", Doc: "Chooses between two tensors elementwise.", Args: "pred on_true on_false",
	Traits: ir.Elementwise | ir.Exact,
	Infer: func(in []tensor.Type, _ None) ([]tensor.Type, error) {
		switch p, t, f := in[0], in[1], in[2]; {
		case !f.Equal(t):
			return nil, fail(1, "on_false is %s, wanted %s as on_true", f, t)
		case !p.Equal(t.WithDType(tensor.Bool)):
			return nil, fail(2, "pred is %s, wanted %s", p, t.WithDType(tensor.Bool))
		}
		return one(in[1])
	},
	Lower: lowerTo("stablehlo.select"),
	Eval: func(in []*tensor.Tensor, _ None, out []tensor.Type) ([]*tensor.Tensor, error) {
		y := tensor.Zeros(out[0])
		size := y.DType.Size()
		for i, p := range in[0].Data {
			from := in[2].Data
			if p != 0 {
				from = in[1].Data
			}
			copy(y.Data[i*size:(i+1)*size], from[i*size:])
		}
		return result(y)
	},
})
