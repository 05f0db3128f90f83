package pt2

import (
	"tpuc/ir"
	"tpuc/ir/op"
)

// gradientRules are gradients that have operators of their own.
var gradientRules = map[string]rule{
	"native_dropout_backward": value(func(c *call) *ir.Value {
		g, m := c.val("grad_output"), tensorOperand(c.val("mask"))
		scaled := c.arith(op.Mul, tensorOperand(g), operand{s: c.scalar("scale")})
		return c.arith(op.Mul, tensorOperand(scaled), m)
	}),
	"_softmax_backward_data": value(func(c *call) *ir.Value { // y (g - sum(g y))
		return c.softmaxGradient(func(f fb, g, y *ir.Value, sum func(x *ir.Value) *ir.Value) *ir.Value {
			p := f.mul(g, y)
			return f.sub(p, f.mul(y, sum(p)))
		})
	}),
	"_log_softmax_backward_data": value(func(c *call) *ir.Value { // g - exp(y) sum(g)
		return c.softmaxGradient(func(f fb, g, y *ir.Value, sum func(x *ir.Value) *ir.Value) *ir.Value {
			return f.sub(g, f.mul(f.exp(y), sum(g)))
		})
	}),
	"sigmoid_backward": gradientOf("output", func(f fb, g, y *ir.Value) *ir.Value { return f.mul(g, f.mul(f.sub(f.c(y, 1), y), y)) }),
	"tanh_backward":    gradientOf("output", func(f fb, g, y *ir.Value) *ir.Value { return f.mul(g, f.sub(f.c(y, 1), f.mul(y, y))) }),
	"threshold_backward": gradientOf("self", func(f fb, g, x *ir.Value) *ir.Value {
		return f.where(op.LE, x, f.call.float("threshold"), f.c(g, 0), g)
	}),
}

// softmaxGradient computes from the gradient and the result of a softmax, in f32 at least; sum adds along dim and repeats.
func (c *call) softmaxGradient(of func(f fb, g, y *ir.Value, sum func(x *ir.Value) *ir.Value) *ir.Value) *ir.Value {
	g, y := c.val("grad_output"), c.val("output")
	axis := c.axis("dim", y.Type.Rank())
	if !y.Type.DType.IsFloat() || !g.Type.Equal(g.Type.WithDims(y.Type.Dims...)) {
		c.failf("grad_output is %s, output %s, wanted floats of one shape", g.Type, y.Type)
	}
	w := wide(y.Type.DType)
	sum := func(x *ir.Value) *ir.Value {
		if x.Type.Rank() == 0 {
			return x
		}
		return op.BroadcastTo(c.b, reduce(c.b, op.Sum, x, []int64{int64(axis)}, true), x.Type.Dims)
	}
	return c.cast(of(fb{c.b, c}, c.cast(g, w), c.cast(y, w), sum), c.dtype("input_dtype", g.Type.DType))
}

// gradientOf is a rule of a function of the gradient and another tensor, computed in f32 at least and rounded once.
func gradientOf(other string, of func(f fb, g, x *ir.Value) *ir.Value) rule {
	return value(func(c *call) *ir.Value {
		g, x := tensorOperand(c.val("grad_output")), tensorOperand(c.val(other))
		d := resultType(g, x)
		return c.inF32(d, func(b *ir.Builder, v []*ir.Value) *ir.Value { return of(fb{b, c}, v[0], v[1]) }, g, x)
	})
}
