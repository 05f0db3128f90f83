package pt2

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// exponentRules take floats apart.
var exponentRules = map[string]rule{
	"frexp.Tensor": values(frexp),
}

// frexp gives mantissas of 1/2 or more and below 1, and i32 exponents of two; zeros, infinities and NaN are their own mantissa, with exponent 0.
func frexp(c *call) []*ir.Value {
	x := c.val("self")
	d := x.Type.DType
	if !d.IsFloat() {
		c.failf("self is %s, wanted floats", x.Type)
	}
	w := c.cast(x, wide(d))
	bits, width, bias := tensor.I32, int64(23), int64(126)
	if w.Type.DType == tensor.F64 {
		bits, width, bias = tensor.I64, 52, 1022
	}
	f := fb{c.b, c}
	// Subnormal numbers are brought into the range of normal ones first.
	small := compare(c.b, op.LT, op.Abs.Make(c.b, w), f.c(w, math.Ldexp(1, int(2-bias))))
	scaled := op.Select.Make(c.b, small, f.scale(w, math.Ldexp(1, int(width))), w)
	raw := op.Bitcast.Make(c.b, op.BitcastAttr{To: bits}, scaled)
	k := func(v int64) *ir.Value { return like(c.b, raw, intScalar(v)) }
	exponent := op.And.Make(c.b, op.ShiftRight.Make(c.b, raw, k(width)), k(2*bias+3))
	exponent = op.Sub.Make(c.b, exponent, op.Select.Make(c.b, small, k(bias+width), k(bias)))
	rest := op.And.Make(c.b, raw, k(^((2*bias + 3) << width)))
	mantissa := op.Bitcast.Make(c.b, op.BitcastAttr{To: w.Type.DType}, op.Or.Make(c.b, rest, k(bias<<width)))
	plain := op.And.Make(c.b, op.IsFinite.Make(c.b, w), compare(c.b, op.NE, w, f.c(w, 0)))
	return []*ir.Value{c.cast(op.Select.Make(c.b, plain, mantissa, w), d), c.cast(op.Select.Make(c.b, plain, exponent, k(0)), tensor.I32)}
}
