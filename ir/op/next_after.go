package op

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// NextAfter is the number next to x towards y in x's own format, for f16, bf16, f32 and f64 (CHLO next_after, aten::nextafter). Where they are equal it
// is y; NaN if one of them is.
var NextAfter = definePlain(Def[None]{
	Name: "next_after", Doc: "Takes the next representable number in a direction.", Args: "x y",
	Traits: ir.Elementwise | ir.Exact,
	Infer: func(in []tensor.Type, a None) ([]tensor.Type, error) {
		if d := in[0].DType; !d.IsFloat() || d.Bits() < 16 {
			return nil, fail(2, "dtype %s, wanted a float of 16 bits or more", d)
		}
		return sameTypes(floats)(in, a)
	},
	Lower: lowerTo("chlo.next_after"),
	Eval:  evalNextAfter,
})

// evalNextAfter steps through bit patterns: the magnitudes of IEEE formats are ordered as integers.
func evalNextAfter(in []*tensor.Tensor, _ None, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, t := in[0], out[0]
	kind := map[int]tensor.DType{16: tensor.I16, 32: tensor.I32, 64: tensor.I64}[t.DType.Bits()]
	bits := (&tensor.Tensor{Type: t.WithDType(kind), Data: x.Data}).Ints()
	least, _ := kind.IntRange() // the sign bit
	a, b := x.Floats(), in[1].Floats()
	target := (&tensor.Tensor{Type: t.WithDType(kind), Data: in[1].Data}).Ints()
	nan := (&tensor.Tensor{Type: tensor.Make(kind), Data: tensor.Scalar(t.DType, math.NaN()).Data}).Ints()[0]
	for i := range bits {
		switch {
		case a[i] != a[i] || b[i] != b[i]:
			bits[i] = nan
		case a[i] == b[i]:
			bits[i] = target[i]
		case a[i] == 0: // the least subnormal with the sign of y
			bits[i] = target[i]&least | 1
		case (a[i] < b[i]) == (a[i] > 0): // away from zero
			bits[i]++
		default:
			bits[i]--
		}
	}
	y := tensor.FromInts(t.WithDType(kind), bits)
	return result(&tensor.Tensor{Type: t, Data: y.Data})
}
