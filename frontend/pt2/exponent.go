package pt2

import (
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
	least, _ := bits.IntRange() // the sign bit
	raw := op.Bitcast.Make(c.b, op.BitcastAttr{To: bits}, w)
	k := func(v int64) *ir.Value { return like(c.b, raw, intScalar(v)) }
	and := func(x *ir.Value, mask int64) *ir.Value { return op.And.Make(c.b, x, k(mask)) }
	field := 2*bias + 3 // all ones
	power := func(x *ir.Value) *ir.Value { return and(op.ShiftRight.Make(c.b, x, k(width)), field) }
	// A subnormal number is its low bits, as an integer, times a power of two: processors may take it for 0 in arithmetic.
	low := and(raw, 1<<width-1)
	small := compare(c.b, op.EQ, power(raw), k(0))
	normal := op.Select.Make(c.b, small, op.Bitcast.Make(c.b, op.BitcastAttr{To: bits}, c.cast(low, w.Type.DType)), raw)
	exponent := op.Sub.Make(c.b, power(normal), op.Select.Make(c.b, small, k(2*bias+width), k(bias)))
	sign := and(raw, least)
	mantissa := op.Or.Make(c.b, op.Or.Make(c.b, sign, and(normal, 1<<width-1)), k(bias<<width))
	mantissa = op.Bitcast.Make(c.b, op.BitcastAttr{To: w.Type.DType}, mantissa)
	zero := op.And.Make(c.b, small, compare(c.b, op.EQ, low, k(0)))
	plain := op.And.Make(c.b, op.IsFinite.Make(c.b, w), op.Not.Make(c.b, zero))
	return []*ir.Value{c.cast(op.Select.Make(c.b, plain, mantissa, w), d), c.cast(op.Select.Make(c.b, plain, exponent, k(0)), tensor.I32)}
}
