package op

import "tpuc/ir"

// All is the operator table, sorted by name within each group.
var All = []*ir.Op{
	// Primitives.
	Abs.Op, Add.Op, And.Op, Atan2.Op, Barrier.Op, Broadcast.Op, Ceil.Op, Compare.Op, Concat.Op, Cond.Op, Constant.Op, Conv.Op, Convert.Op, Cos.Op, Div.Op,
	Dot.Op, DynamicUpdateSlice.Op, Erf.Op, Exp.Op, Expm1.Op, Floor.Op, Gather.Op, Iota.Op, IsFinite.Op, Log.Op, Log1p.Op, Maximum.Op,
	Minimum.Op, Mul.Op, Neg.Op, Not.Op, Or.Op, Pad.Op, Pow.Op, Reduce.Op, Rem.Op, Reshape.Op, Reverse.Op, Round.Op, Rsqrt.Op,
	Scatter.Op, Select.Op, ShiftLeft.Op, ShiftRight.Op, Sigmoid.Op, Sign.Op, Sin.Op, Slice.Op, Sort.Op, Sqrt.Op, Sub.Op, Tan.Op,
	Tanh.Op, Transpose.Op, While.Op, Xor.Op,
	// Composites.
	Attention.Op, CumSum.Op, Embedding.Op, Gelu.Op, GroupNorm.Op, LayerNorm.Op, Linear.Op, LogSoftmax.Op, RMSNorm.Op, Silu.Op,
	Softmax.Op, Take.Op, TopK.Op,
}
