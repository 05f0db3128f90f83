package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// lossRules are losses, which models may return beside their outputs. Most are formulas of several operators or of scalars in torch, and so
// each of their steps is rounded to the dtype of the loss.
var lossRules = map[string]rule{
	"mse_loss": value(func(c *call) *ir.Value {
		return c.loss(tensor.Invalid, func(f fb, d *ir.Value) *ir.Value { return f.mul(d, d) })
	}),
	"l1_loss": value(func(c *call) *ir.Value {
		return c.loss(tensor.Invalid, func(f fb, d *ir.Value) *ir.Value { return f.call.magnitude(d) })
	}),
	"smooth_l1_loss":                   value(func(c *call) *ir.Value { return c.loss(tensor.BF16, smoothL1("beta", false)) }),
	"huber_loss":                       value(func(c *call) *ir.Value { return c.loss(tensor.F16, smoothL1("delta", true)) }),
	"binary_cross_entropy":             value(func(c *call) *ir.Value { return c.weighted(binaryCrossEntropy) }),
	"binary_cross_entropy_with_logits": value(func(c *call) *ir.Value { return c.weighted(binaryCrossEntropyLogits) }),
	"kl_div":                           value(klDiv),
	"nll_loss":                         value(func(c *call) *ir.Value { return c.negativeLogLikelihood(c.val("self"), 0) }),
	"nll_loss_nd":                      value(func(c *call) *ir.Value { return c.negativeLogLikelihood(c.val("self"), 0) }),
	"nll_loss2d":                       value(func(c *call) *ir.Value { return c.negativeLogLikelihood(c.val("self"), 0) }),
	"nll_loss_forward":                 values(lossAndWeight),
	"nll_loss2d_forward":               values(lossAndWeight),
	"cross_entropy_loss":               value(func(c *call) *ir.Value { return c.crossEntropy(c.val("self")) }),
	"torch.ops.torch_nn._linear_cross_entropy_batch_chunked":              values(linearCrossEntropy),
	"torch.ops.torch_nn._linear_cross_entropy_batch_chunked_no_reduction": values(linearCrossEntropy),
}

// Reductions of losses.
const (
	reduceNone = 0
	reduceMean = 1
	reduceSum  = 2
)

// reduction is the argument of that name, a number or a word; where the operator lacks it, none.
func (c *call) reduction() int64 {
	if !c.has("reduction") {
		return reduceNone
	}
	if !c.isString("reduction") {
		return c.int("reduction")
	}
	kind, ok := map[string]int64{"none": reduceNone, "mean": reduceMean, "sum": reduceSum}[c.str("reduction")]
	if !ok {
		c.failf("reduction is %q, wanted none, mean or sum", clip(c.str("reduction")))
	}
	return kind
}

// reduced applies the argument reduction, in f32 at least and rounded once.
func (c *call) reduced(l *ir.Value) *ir.Value {
	d, all := l.Type.DType, iotaInts(l.Type.Rank())
	switch c.reduction() {
	case reduceMean:
		return c.cast(c.meanOf(c.cast(l, wide(d)), all, false), d)
	case reduceSum:
		return reduce(c.b, op.Sum, l, all, false)
	}
	return l
}

// loss reduces a function of self - target. Of the dtype once, torch computes the function in f32; which one that is differs from loss to loss.
func (c *call) loss(once tensor.DType, of func(f fb, diff *ir.Value) *ir.Value) *ir.Value {
	x, y := tensorOperand(c.val("self")), tensorOperand(c.val("target"))
	d := resultType(x, y)
	each := c.elementwise
	if d == once {
		each = c.inF32
	}
	return c.reduced(each(d, func(b *ir.Builder, v []*ir.Value) *ir.Value { return of(fb{b, c}, op.Sub.Make(b, v...)) }, x, y))
}

// smoothL1 is quadratic below a limit and linear above; huber scales it by the limit.
func smoothL1(limit string, huber bool) func(f fb, diff *ir.Value) *ir.Value {
	return func(f fb, diff *ir.Value) *ir.Value {
		beta := f.call.float(limit)
		a := op.Abs.Make(f.b, diff)
		if beta == 0 {
			return a
		}
		sq := f.mul(f.half(a), a)
		lin := f.sub(a, f.c(a, beta/2))
		if huber {
			lin = f.scale(lin, beta)
		} else {
			sq = op.Div.Make(f.b, sq, f.c(sq, beta))
		}
		return f.where(op.LT, a, beta, sq, lin)
	}
}

// weighted reduces a function of self and target, times weight where it is given.
func (c *call) weighted(of func(f fb, x, t *ir.Value) *ir.Value) *ir.Value {
	x, t := tensorOperand(c.val("self")), tensorOperand(c.val("target"))
	d := x.x.Type.DType
	dims := c.broadcastDims(x, t)
	l := of(fb{c.b, c}, c.materialize(x, d, dims), c.materialize(t, d, dims))
	if w := c.opt("weight"); w != nil {
		l = op.Mul.Make(c.b, l, c.materialize(tensorOperand(w), d, dims))
	}
	return c.reduced(l)
}

// binaryCrossEntropy bounds logarithms by -100, as torch does.
func binaryCrossEntropy(f fb, x, t *ir.Value) *ir.Value {
	yes := f.max(op.Log.Make(f.b, x), -100)
	no := f.max(op.Log1p.Make(f.b, f.neg(x)), -100)
	return f.neg(f.add(f.mul(t, yes), f.mul(f.sub(f.c(t, 1), t), no)))
}

// binaryCrossEntropyLogits is the loss of sigmoid(x), by softplus so that nothing overflows; pos_weight scales the term of t = 1.
func binaryCrossEntropyLogits(f fb, x, t *ir.Value) *ir.Value {
	l := f.call.cast(f.softplus(f.neg(f.call.cast(x, wide(x.Type.DType)))), x.Type.DType)
	if p := f.call.opt("pos_weight"); p != nil {
		w := f.call.materialize(tensorOperand(p), x.Type.DType, x.Type.Dims)
		l = f.mul(l, f.add(f.mul(f.sub(w, f.c(w, 1)), t), f.c(t, 1)))
	}
	return f.add(f.mul(f.sub(f.c(t, 1), t), x), l)
}

// klDiv is t (log t - x), with target or its logarithm given.
func klDiv(c *call) *ir.Value {
	x, t := tensorOperand(c.val("self")), tensorOperand(c.val("target"))
	d := resultType(x, t)
	return c.reduced(c.elementwise(d, func(b *ir.Builder, v []*ir.Value) *ir.Value {
		f := fb{b, c}
		if c.bool("log_target") {
			return f.mul(f.exp(v[1]), f.sub(v[1], v[0]))
		}
		return f.sub(xlogy(b, []*ir.Value{v[1], v[1]}), f.mul(v[1], v[0]))
	}, x, t))
}

// linearCrossEntropy is the cross entropy of a linear layer's results, which torch computes by chunks of rows. Its gradients, further results,
// are empty where they are not asked for.
func linearCrossEntropy(c *call) []*ir.Value {
	x, w, b := c.val("input"), c.val("linear_weight"), c.opt("linear_bias")
	if x.Type.Rank() != 2 || w.Type.Rank() != 2 {
		c.failf("input is %s, linear_weight %s, wanted rank 2", x.Type, w.Type)
	}
	for _, arg := range []string{"compute_input_grad", "compute_linear_weight_grad", "compute_linear_bias_grad"} {
		if c.has(arg) && c.bool(arg) {
			c.unsupported("%s=True; export the model without gradients", arg)
		}
	}
	d := x.Type.DType
	x, w = c.cast(x, wide(d)), c.cast(w, wide(d))
	if b != nil {
		b = c.cast(b, wide(d))
	}
	out := []*ir.Value{c.cast(c.crossEntropy(c.linear(x, w, b)), d)}
	if len(outputNames(c.node)) > 1 {
		none := splat(c.b, d, intScalar(0), []int64{0, 0})
		out = append(out, none, none, splat(c.b, d, intScalar(0), []int64{0}))
	}
	return out
}

// crossEntropy of scores x takes targets as class indices, or as probabilities of all classes. It rounds once, where torch rounds
// sums of exponentials and their logarithms too and is less exact.
func (c *call) crossEntropy(x *ir.Value) *ir.Value {
	d := x.Type.DType
	axis := int64(min(1, x.Type.Rank()-1))
	if axis < 0 {
		c.failf("self is %s, wanted rank 1 or more", x.Type)
	}
	smoothing := 0.0
	if c.has("label_smoothing") {
		smoothing = c.float("label_smoothing")
	}
	logp := op.LogSoftmax.Make(c.b, op.LogSoftmaxAttr{Axis: axis}, c.cast(x, wide(d)))
	t := c.val("target")
	if t.Type.DType.IsInt() {
		return c.cast(c.negativeLogLikelihood(logp, smoothing), d)
	}
	f := fb{c.b, c}
	p := c.cast(t, logp.Type.DType)
	if smoothing != 0 { // the rest goes to all classes alike
		p = f.add(f.scale(p, 1-smoothing), f.c(p, smoothing/float64(x.Type.Dims[axis])))
	}
	l := f.mul(logp, p)
	if w := c.opt("weight"); w != nil {
		l = f.mul(l, along(c.b, c.cast(w, l.Type.DType), l.Type.Dims, int(axis)))
	}
	l = f.neg(reduce(c.b, op.Sum, l, []int64{axis}, false))
	if c.reduction() == reduceMean { // the mean over everything but classes
		s := reduce(c.b, op.Sum, l, iotaInts(l.Type.Rank()), false)
		return c.cast(op.Div.Make(c.b, s, f.c(s, float64(l.Type.Elements()))), d)
	}
	return c.cast(c.reduced(l), d)
}

// negativeLogLikelihood picks the target class from logp [N, C, ...] or [C]; ignore_index counts for nothing, and the mean is over the
// weights of the classes picked. The part smoothing of the target is shared by all classes.
func (c *call) negativeLogLikelihood(logp *ir.Value, smoothing float64) *ir.Value {
	l, _ := c.weightedLikelihood(logp, smoothing)
	return l
}

// lossAndWeight is negativeLogLikelihood and the weights of the classes picked in sum, 0 where there is no reduction.
func lossAndWeight(c *call) []*ir.Value {
	l, w := c.weightedLikelihood(c.val("self"), 0)
	total := zero(c.b, w.Type.DType)
	if c.reduction() != reduceNone {
		total = reduce(c.b, op.Sum, w, iotaInts(w.Type.Rank()), false)
	}
	return []*ir.Value{l, c.cast(total, l.Type.DType)}
}

// weightedLikelihood is negativeLogLikelihood, and the weight of the class picked for each target.
func (c *call) weightedLikelihood(logp *ir.Value, smoothing float64) (loss, w *ir.Value) {
	d := logp.Type.DType
	x, t := c.cast(logp, wide(d)), c.val("target")
	axis := min(1, x.Type.Rank()-1)
	if axis < 0 || t.Type.Rank() != x.Type.Rank()-1 {
		c.failf("self is %s, target %s, wanted one rank less", logp.Type, t.Type)
	}
	classes := x.Type.Dims[axis]
	ignored := compare(c.b, op.EQ, t, like(c.b, t, intScalar(c.int("ignore_index"))))
	ids := op.Select.Make(c.b, ignored, like(c.b, t, intScalar(0)), t)
	f := fb{c.b, c}
	// One class of each row, by a mask: the number of classes is small beside the work on them.
	at := op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: x.Type.Dims,
		Dims: slices.DeleteFunc(iotaInts(x.Type.Rank()), func(a int64) bool { return a == int64(axis) })}, ids)
	hit := compare(c.b, op.EQ, at, counting(c.b, ids.Type.DType, x.Type.Dims, axis))
	picked := reduce(c.b, op.Sum, op.Select.Make(c.b, hit, x, f.c(x, 0)), []int64{int64(axis)}, false)
	w = f.c(picked, 1)
	if given := c.opt("weight"); given != nil {
		if given.Type.Rank() != 1 || given.Type.Dims[0] != classes {
			c.failf("weight is %s, wanted %d classes", given.Type, classes)
		}
		w = op.Take.Make(c.b, op.TakeAttr{Axis: 0}, c.cast(given, x.Type.DType), ids)
	}
	w = op.Select.Make(c.b, ignored, f.c(w, 0), w)
	l := f.mul(f.neg(picked), w)
	if smoothing != 0 {
		each := x
		if given := c.opt("weight"); given != nil {
			each = f.mul(x, along(c.b, c.cast(given, x.Type.DType), x.Type.Dims, axis))
		}
		all := f.neg(reduce(c.b, op.Sum, each, []int64{int64(axis)}, false))
		all = op.Select.Make(c.b, ignored, f.c(all, 0), all)
		l = f.add(f.scale(l, 1-smoothing), f.scale(all, smoothing/float64(classes)))
	}
	if c.reduction() == reduceMean {
		all := iotaInts(l.Type.Rank())
		return c.cast(op.Div.Make(c.b, reduce(c.b, op.Sum, l, all, false), reduce(c.b, op.Sum, w, all, false)), d), w
	}
	return c.cast(c.reduced(l), d), w
}
