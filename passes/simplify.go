package passes

import (
	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// simplify applies peephole rules that hold for every bit: what moves elements twice or to where they are, and arithmetic that changes
// nothing. A rule of floats holds for -0, infinities and NaN too, so x + 0 stays (it makes -0 positive) and x * 1 goes.
var simplify = Pass{
	Name: "simplify", Doc: "Removes and joins operators by exact peephole rules.",
	Rules: simplifyRules,
	Run:   func(c *Context, m *ir.Module) error { return applyRules(c, m, simplifyRules) },
}

var simplifyRules = []Rule{
	rule("identity_reshape", "reshape(x) to x's shape is x.", op.Reshape.Op, identity),
	rule("identity_broadcast", "broadcast(x) to x's shape is x.", op.Broadcast.Op, identity),
	rule("identity_slice", "slice(x) of everything is x.", op.Slice.Op, identity),
	rule("identity_transpose", "transpose(x) in x's order is x.", op.Transpose.Op, identityTranspose),
	rule("identity_pad", "pad(x) by nothing is x.", op.Pad.Op, identityPad),
	rule("reshape_reshape", "reshape(reshape(x)) is reshape(x).", op.Reshape.Op, reshapeReshape),
	rule("transpose_transpose", "transpose(transpose(x)) is one transpose.", op.Transpose.Op, transposeTranspose),
	rule("unit_transpose", "transpose(x) that moves only dimensions of extent 1 is reshape(x).", op.Transpose.Op, unitTranspose),
	rule("broadcast_broadcast", "broadcast(broadcast(x)) is broadcast(x).", op.Broadcast.Op, broadcastBroadcast),
	rule("unit_broadcast", "broadcast(x) that repeats nothing is reshape(x), but of literals.", op.Broadcast.Op, unitBroadcast),
	rule("broadcast_reshape", "broadcast(reshape(x)) that inserts dimensions of extent 1 is broadcast(x).", op.Broadcast.Op, broadcastReshape),
	rule("slice_slice", "slice(slice(x)) is one slice.", op.Slice.Op, sliceSlice),
	rule("slice_concat", "slice(concat(x, y)) within x is slice(x).", op.Slice.Op, sliceConcat),
	rule("concat_slices", "concat of slices of x that lie side by side is one slice(x).", op.Concat.Op, concatSlices),
	rule("splat_reshape", "reshape of equal elements is a broadcast of one.", op.Reshape.Op, moveSplat),
	rule("splat_gather", "gather of equal elements is a broadcast of one.", op.Gather.Op, moveSplat),
	rule("gather_slice", "gather at evenly spaced known places is slice.", op.Gather.Op, gatherSlice),
	rule("unit_iota", "iota along an extent of 1 is 0.", op.Iota.Op, unitIota),
	rule("unit_reduce", "reduce over extents of 1 is reshape, of floats where it does not add.", op.Reduce.Op, unitReduce),

	rule("convert_convert", "convert(convert(x)) is convert(x) where the dtype between holds every value of x's.", op.Convert.Op, convertConvert),
	rule("add_zero", "x + 0 is x for integers, x + -0 for floats.", op.Add.Op, addZero),
	rule("mul_one", "x * 1 is x.", op.Mul.Op, mulOne),
	rule("div_one", "x / 1 is x.", op.Div.Op, divOne),
	rule("not_not", "not not x is x.", op.Not.Op, notNot),
	rule("not_compare", "not (x < y) is x >= y for integers, not (x == y) is x != y for all.", op.Not.Op, notCompare),
	rule("and_const", "x and true is x, x and false is false.", op.And.Op, andConst),
	rule("compare_same", "x == x is true, x < x false, for integers.", op.Compare.Op, compareSame),
	rule("select_const", "select(true, x, y) is x, select(false, x, y) is y.", op.Select.Op, selectConst),
	rule("select_not", "select(not p, x, y) is select(p, y, x).", op.Select.Op, selectNot),
}

// holds reports whether every value of narrow is one of wide, so that converting there and back changes nothing.
func holds(wide, narrow tensor.DType) bool {
	w, n := precision(wide), precision(narrow)
	switch {
	case narrow == tensor.Bool:
		return true
	case wide.IsFloat() && narrow.IsFloat():
		return w.digits >= n.digits && w.exponent >= n.exponent
	case wide.IsFloat() && narrow.IsInt():
		return w.digits >= n.digits && w.exponent >= 8 // 64-bit integers stay below 2^127
	case wide.IsInt() && narrow.IsInt():
		return w.digits >= n.digits && (wide.IsSigned() || narrow.IsUnsigned())
	}
	return false
}

// precision gives the significant bits, the implicit one counted and a sign not, and the exponent bits of a real dtype.
func precision(d tensor.DType) (p struct{ digits, exponent int }) {
	if exponent, mantissa := d.FloatBits(); d.IsFloat() {
		p.digits, p.exponent = mantissa+1, exponent
		return p
	}
	if p.digits = d.Bits(); d.IsSigned() {
		p.digits--
	}
	return p
}
