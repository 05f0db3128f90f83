package op

import "tpuc/ir"

// All is the operator table, sorted by name within each group.
var All = []*ir.Op{
	// Primitives.
	Abs.Op, Add.Op, And.Op, Atan2.Op, Barrier.Op, Bitcast.Op, Broadcast.Op, Cbrt.Op, Ceil.Op, Compare.Op, Complex.Op, Concat.Op, Cond.Op,
	Constant.Op, Conv.Op, Convert.Op, Cos.Op, CountLeadingZeros.Op, Digamma.Op, Div.Op, Dot.Op, DynamicSlice.Op, DynamicUpdateSlice.Op,
	Erf.Op, ErfInv.Op, Exp.Op, Expm1.Op, FFT.Op, Floor.Op, Gather.Op, Imag.Op, Iota.Op, IsFinite.Op, Lgamma.Op, Log.Op, Log1p.Op, Maximum.Op, Minimum.Op, Mul.Op, Neg.Op,
	NextAfter.Op, Not.Op, Opaque.Op, OpaqueEffect.Op, Or.Op, Pad.Op, Popcnt.Op, Pow.Op, Real.Op, Reduce.Op, ReduceBy.Op, ReducePrecision.Op, ReduceWindow.Op, Rem.Op,
	Reshape.Op, Reverse.Op, Round.Op, Rsqrt.Op, Scatter.Op, Select.Op, ShiftLeft.Op, ShiftRight.Op, Sigmoid.Op, Sign.Op, Sin.Op, Slice.Op,
	Sort.Op, Sqrt.Op, Sub.Op, Tan.Op, Tanh.Op, Transpose.Op, While.Op, Xor.Op,
	// Composites.
	Attention.Op, CumMax.Op, CumProd.Op, CumSum.Op, Embedding.Op, Gelu.Op, GroupNorm.Op, GroupedDot.Op, LayerNorm.Op, Linear.Op,
	LogSoftmax.Op, LogCumSumExp.Op, Resize.Op, RMSNorm.Op, Rope.Op, Silu.Op, Softmax.Op, Take.Op, TopK.Op,
}
