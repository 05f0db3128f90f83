package op

import (
	"fmt"
	"math"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// ReducePrecisionAttr is the attribute struct of ReducePrecision.
type ReducePrecisionAttr struct {
	Exponent int64 `ir:"exponent"` // bits, 1 or more
	Mantissa int64 `ir:"mantissa"` // bits without the implicit one
}

// ReducePrecision rounds x, f64 to f16 or bf16, to what a float of so many bits would hold, nearest with ties to even, and keeps its dtype
// (StableHLO reduce_precision). Beyond the exponents is an infinity, below them a zero: the narrow float has no denormals. NaN stays. Bits
// beyond the dtype's own change nothing.
var ReducePrecision = define(Def[ReducePrecisionAttr]{
	Name: "reduce_precision", Doc: "Rounds every element to fewer bits, keeping the type.", Args: "x",
	Traits: ir.Elementwise | ir.Exact,
	Infer: func(in []tensor.Type, a ReducePrecisionAttr) ([]tensor.Type, error) {
		switch d := in[0].DType; {
		case !d.IsFloat() || d.Bits() < 16:
			return nil, fail(1, "dtype %s, wanted a float of 16 bits or more", d)
		case a.Exponent < 1 || a.Mantissa < 0 || max(a.Exponent, a.Mantissa) > math.MaxInt32:
			return nil, fail(2, "%d bits of exponent and %d of mantissa, wanted 1 and 0 or more, that an i32 holds", a.Exponent, a.Mantissa)
		}
		return one(in[0])
	},
	Lower: func(e ir.Emitter, n *ir.Node, a ReducePrecisionAttr) []ir.Ref {
		return e.Emit(ir.HLO{Name: "stablehlo.reduce_precision", Args: refs(e, n), Out: []tensor.Type{n.Outs[0].Type},
			Attrs: []string{fmt.Sprintf("exponent_bits = %d : i32", a.Exponent), fmt.Sprintf("mantissa_bits = %d : i32", a.Mantissa)}})
	},
	Eval: func(in []*tensor.Tensor, a ReducePrecisionAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
		t := out[0]
		bits := t.WithDType(map[int]tensor.DType{2: tensor.U16, 4: tensor.U32, 8: tensor.U64}[t.DType.Size()])
		v := (&tensor.Tensor{Type: bits, Data: in[0].Data}).Ints()
		for i := range v {
			v[i] = int64(a.round(uint64(v[i]), t.DType))
		}
		return result(&tensor.Tensor{Type: t, Data: tensor.FromInts(bits, v).Data})
	},
})

// round is one element of dtype d by its bits, as XLA computes it (xla/hlo/evaluator, HandleReducePrecision).
func (a ReducePrecisionAttr) round(x uint64, d tensor.DType) uint64 {
	exponent, mantissa := d.FloatBits()
	infinity := (uint64(1)<<exponent - 1) << mantissa
	sign := x & (1 << (exponent + mantissa))
	if x&^sign > infinity { // NaN
		return x
	}
	if drop := int64(mantissa) - a.Mantissa; drop > 0 {
		unit := uint64(1) << drop
		x += unit>>1 - 1 + x>>drop&1
		x &^= unit - 1
	}
	if a.Exponent < int64(exponent) {
		middle := uint64(1)<<(exponent-1) - 1
		most := uint64(1)<<(a.Exponent-1) - 1
		switch field := (x &^ sign) >> mantissa; {
		case field > middle+most:
			return sign | infinity
		case field <= middle-most:
			return sign
		}
	}
	return x
}
