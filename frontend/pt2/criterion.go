package pt2

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/op"
)

// criterionRules are losses of pairs and margins.
var criterionRules = map[string]rule{
	"cosine_embedding_loss": value(cosineEmbedding),
	"poisson_nll_loss":      value(poissonLoss),
	"margin_ranking_loss": value(func(c *call) *ir.Value { // max(0, margin - target (x1 - x2))
		x, y, t := tensorOperand(c.val("input1")), tensorOperand(c.val("input2")), tensorOperand(c.val("target"))
		// Integers wrap until the margin, a float, is added.
		apart := tensorOperand(c.arith(op.Sub, x, y))
		l := c.arith(op.Mul, tensorOperand(op.Neg.Make(c.b, t.x)), apart)
		l = c.arith(op.Add, tensorOperand(l), operand{s: floatScalar(c.float("margin"))})
		return c.reduced(fb{c.b, c}.max(l, 0))
	}),
	"hinge_embedding_loss": value(func(c *call) *ir.Value { // x where target is 1, max(0, margin - x) where it is -1
		x, t := tensorOperand(c.val("self")), tensorOperand(c.val("target"))
		return c.reduced(c.elementwise(floatResult(resultType(x, t)), func(b *ir.Builder, v []*ir.Value) *ir.Value {
			f := fb{b, c}
			zero := f.c(v[0], 0)
			far := op.Maximum.Make(b, f.sub(like(b, v[0], c.scalar("margin")), v[0]), zero)
			// Elements of other targets count in both terms.
			return f.add(f.where(op.NE, v[1], 1, far, zero), f.where(op.NE, v[1], -1, v[0], zero))
		}, x, t))
	}),
	"soft_margin_loss": value(func(c *call) *ir.Value { // log(1 + exp(-target x))
		x, t := tensorOperand(c.val("self")), tensorOperand(c.val("target"))
		d := resultType(x, t)
		return c.reduced(c.elementwise(d, func(b *ir.Builder, v []*ir.Value) *ir.Value {
			f := fb{b, c}
			e := f.exp(f.mul(f.neg(v[1]), v[0])) // which may overflow, as in torch
			return op.Log1p.Make(b, e)
		}, x, t))
	}),
}

// cosineEmbedding is 1 - cos where target is 1, and max(0, cos - margin) where it is -1 (aten/src/ATen/native/Loss.cpp).
func cosineEmbedding(c *call) *ir.Value {
	x, y, t := c.val("input1"), c.val("input2"), c.val("target")
	const eps = 1e-12
	d := floatResult(resultType(tensorOperand(x), tensorOperand(y)))
	a, e := c.cast(x, d), c.cast(y, d)
	axis := []int64{int64(t.Type.Rank())}
	dims := c.broadcastDims(tensorOperand(a), tensorOperand(e))
	if len(dims) != t.Type.Rank()+1 {
		c.failf("input is %s with target %s, wanted one rank more", x.Type, t.Type)
	}
	a, e = op.BroadcastTo(c.b, a, dims), op.BroadcastTo(c.b, e, dims)
	f := fb{c.b, c}
	sum := func(p, q *ir.Value) *ir.Value { return reduce(c.b, op.Sum, f.mul(p, q), axis, false) }
	size := func(v *ir.Value) *ir.Value { s := sum(v, v); return f.add(s, f.c(s, eps)) }
	cos := op.Div.Make(c.b, sum(a, e), op.Sqrt.Make(c.b, f.mul(size(a), size(e))))
	near := f.sub(f.c(cos, 1), cos)
	far := f.max(f.sub(cos, f.c(cos, c.float("margin"))), 0)
	at := func(v float64, l *ir.Value) *ir.Value {
		hit := compare(c.b, op.EQ, t, like(c.b, t, floatScalar(v)))
		return op.Select.Make(c.b, op.BroadcastTo(c.b, hit, l.Type.Dims), l, f.c(l, 0))
	}
	return c.reduced(f.add(at(1, near), at(-1, far)))
}

// poissonLoss is exp(x) - t x, or x - t log(x + eps), with Stirling's approximation of log t! where full is set and t is above 1.
func poissonLoss(c *call) *ir.Value {
	x, t := tensorOperand(c.val("input")), tensorOperand(c.val("target"))
	d := floatResult(resultType(x, t))
	return c.reduced(c.elementwise(d, func(b *ir.Builder, v []*ir.Value) *ir.Value {
		f := fb{b, c}
		x, t := v[0], v[1]
		var l *ir.Value
		if c.bool("log_input") {
			l = f.sub(f.exp(x), f.mul(t, x))
		} else {
			l = f.sub(x, f.mul(t, op.Log.Make(b, f.add(x, f.c(x, c.float("eps"))))))
		}
		if c.bool("full") {
			circle := c.arith(op.Mul, tensorOperand(t), operand{s: floatScalar(2 * math.Pi)})
			s := f.add(f.sub(f.mul(t, op.Log.Make(b, t)), t), f.half(op.Log.Make(b, circle)))
			l = f.add(l, f.where(op.LE, t, 1, f.c(t, 0), s))
		}
		return l
	}, x, t))
}
