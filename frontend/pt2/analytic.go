package pt2

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/op"
)

// analyticRules are the functions of real and complex numbers that the IR has for real ones alone. The inverse functions of complex
// numbers are Kahan's (Branch Cuts for Complex Elementary Functions, 1987), whose cuts and signs of zeros torch shares.
var analyticRules = map[string]rule{
	"expm1":         analytic(floating(op.Expm1), parts.expm1),
	"special_expm1": analytic(floating(op.Expm1), parts.expm1),
	"log1p":         analytic(floating(op.Log1p), parts.log1p),
	"special_log1p": analytic(floating(op.Log1p), parts.log1p),
	"sqrt":          analytic(floating(op.Sqrt), parts.sqrt),
	"rsqrt":         analytic(floating(op.Rsqrt), parts.rsqrt),
	"sigmoid":       analytic(floating(op.Sigmoid), parts.sigmoid),
	"special_expit": analytic(floating(op.Sigmoid), parts.sigmoid),
	"log2":          analytic(formula(func(f fb, x *ir.Value) *ir.Value { return f.scale(op.Log.Make(f.b, x), 1/math.Ln2) }), logTo(math.Ln2)),
	"log10":         analytic(formula(func(f fb, x *ir.Value) *ir.Value { return f.scale(op.Log.Make(f.b, x), 1/math.Ln10) }), logTo(math.Ln10)),
	"silu":          analytic(same(op.Silu), parts.silu),
	"asin":          analytic(formula(func(f fb, x *ir.Value) *ir.Value { return op.Atan2.Make(f.b, x, f.leg(x)) }), parts.asin),
	"acos":          analytic(formula(func(f fb, x *ir.Value) *ir.Value { return op.Atan2.Make(f.b, f.leg(x), x) }), parts.acos),
	"atan":          analytic(formula(func(f fb, x *ir.Value) *ir.Value { return op.Atan2.Make(f.b, x, f.c(x, 1)) }), parts.atan),
	"asinh":         analytic(formula(fb.asinh), parts.asinh),
	"acosh":         analytic(formula(fb.acosh), parts.acosh),
	"atanh":         analytic(formula(fb.atanh), parts.atanh),
}

// analytic is a rule for real tensors with another form for complex ones.
func analytic(real rule, complex func(z parts) parts) rule {
	return func(c *call) []*ref {
		if x := c.val("self"); x.Type.DType.IsComplex() {
			return []*ref{fresh(complex(partsOf(fb{c.b, c}, x)).join())}
		}
		return real(c)
	}
}

// asinh keeps precision near 0: sign(x) log1p(|x| + x^2 / (1 + sqrt(1 + x^2))).
func (f fb) asinh(x *ir.Value) *ir.Value {
	a := op.Abs.Make(f.b, x)
	sq := f.mul(x, x)
	root := op.Sqrt.Make(f.b, f.add(sq, f.c(x, 1)))
	y := op.Log1p.Make(f.b, f.add(a, op.Div.Make(f.b, sq, f.add(root, f.c(x, 1)))))
	y = f.where(op.GT, a, hugeRoot, f.logTwice(a), y)
	return f.mul(op.Sign.Make(f.b, x), y)
}

func (f fb) acosh(x *ir.Value) *ir.Value {
	root := op.Sqrt.Make(f.b, f.mul(f.sub(x, f.c(x, 1)), f.add(x, f.c(x, 1))))
	return f.where(op.GT, x, hugeRoot, f.logTwice(x), op.Log.Make(f.b, f.add(x, root)))
}

// hugeRoot is so large that 1 is lost beside its square, which is not infinite yet.
const hugeRoot = 1e10

// logTwice is log(2x).
func (f fb) logTwice(x *ir.Value) *ir.Value {
	return f.add(op.Log.Make(f.b, x), f.c(x, math.Ln2))
}

func (f fb) atanh(x *ir.Value) *ir.Value {
	return f.half(f.sub(op.Log1p.Make(f.b, x), op.Log1p.Make(f.b, f.neg(x))))
}

// parts are the real and the imaginary part of complex numbers.
type parts struct {
	f      fb
	re, im *ir.Value
}

// partsOf splits z; a real tensor has the imaginary part 0.
func partsOf(f fb, z *ir.Value) parts { return parts{f, realPart(f.b, z), imagPart(f.b, z)} }

func (z parts) of(v *ir.Value) parts            { return partsOf(z.f, v) }
func (z parts) with(re, im *ir.Value) parts     { return parts{z.f, re, im} }
func (z parts) join() *ir.Value                 { return complexOfParts(z.f.b, z.re, z.im) }
func (z parts) plus(v float64) parts            { return z.with(z.f.add(z.re, z.f.c(z.re, v)), z.im) }
func (z parts) minus() parts                    { return z.with(z.f.neg(z.re), z.f.neg(z.im)) }
func (z parts) timesI() parts                   { return z.with(z.f.neg(z.im), z.re) }
func (z parts) overI() parts                    { return z.with(z.im, z.f.neg(z.re)) }
func (z parts) size() *ir.Value                 { return hypot(z.f.b, []*ir.Value{z.re, z.im}) }
func (z parts) signed(x, y *ir.Value) *ir.Value { return copysign(z.f.b, []*ir.Value{x, y}) }

// sqrt is the root with a real part of 0 or more, continuous towards the sign of the imaginary part.
func (z parts) sqrt() parts {
	f := z.f
	t := op.Sqrt.Make(f.b, f.half(f.add(op.Abs.Make(f.b, z.re), z.size())))
	u := f.half(op.Div.Make(f.b, op.Abs.Make(f.b, z.im), t))
	u = f.where(op.EQ, t, 0, t, u)
	u = f.where(op.EQ, op.Abs.Make(f.b, z.im), math.Inf(1), t, u)
	re, im := f.where(op.GE, z.re, 0, t, u), f.where(op.GE, z.re, 0, u, t)
	return z.with(re, z.signed(im, z.im))
}

// expm1 is exp(z) - 1 without cancellation: cos y - 1 is -2 sin^2(y/2).
func (z parts) expm1() parts {
	f := z.f
	s := op.Sin.Make(f.b, f.half(z.im))
	e := op.Expm1.Make(f.b, z.re)
	re := f.sub(f.mul(e, op.Cos.Make(f.b, z.im)), f.scale(f.mul(s, s), 2))
	return z.with(re, f.mul(f.exp(z.re), op.Sin.Make(f.b, z.im)))
}

// log1p is log(1 + z), by log1p(x (2 + x) + y^2) / 2 where 1 + z is not small.
func (z parts) log1p() parts {
	f := z.f
	near := f.add(f.mul(z.re, f.add(z.re, f.c(z.re, 2))), f.mul(z.im, z.im))
	one := z.plus(1)
	re := f.where(op.LT, near, -0.5, op.Log.Make(f.b, one.size()), f.half(op.Log1p.Make(f.b, near)))
	re = f.where(op.GT, near, 1e18, op.Log.Make(f.b, one.size()), re)
	return z.with(re, op.Atan2.Make(f.b, z.im, one.re))
}

// logTo is the logarithm to a base whose natural logarithm is ln.
func logTo(ln float64) func(z parts) parts {
	return func(z parts) parts {
		y := z.of(op.Log.Make(z.f.b, z.join()))
		return z.with(z.f.scale(y.re, 1/ln), z.f.scale(y.im, 1/ln))
	}
}

// sigmoid is 1 / (1 + exp(-z)).
func (z parts) sigmoid() parts {
	e := z.of(z.f.exp(z.minus().join())).plus(1).join()
	return z.of(op.Div.Make(z.f.b, z.f.c(e, 1), e))
}

// silu is z sigmoid(z).
func (z parts) silu() parts { return z.of(op.Mul.Make(z.f.b, z.join(), z.sigmoid().join())) }

func (z parts) rsqrt() parts {
	root := z.sqrt().join()
	return z.of(op.Div.Make(z.f.b, z.f.c(root, 1), root))
}

// acos is 2 atan(Re s / Re t) + i asinh(Im(conj(t) s)) with s = sqrt(1-z), t = sqrt(1+z).
func (z parts) acos() parts {
	f := z.f
	s, t := z.minus().plus(1).sqrt(), z.plus(1).sqrt()
	return z.with(f.scale(op.Atan2.Make(f.b, s.re, t.re), 2), f.asinh(f.sub(f.mul(t.re, s.im), f.mul(t.im, s.re))))
}

// acosh is asinh(Re(conj(s) t)) + 2 i atan(Im s / Re t) with s = sqrt(z-1), t = sqrt(z+1).
func (z parts) acosh() parts {
	f := z.f
	s, t := z.plus(-1).sqrt(), z.plus(1).sqrt()
	return z.with(f.asinh(f.add(f.mul(s.re, t.re), f.mul(s.im, t.im))), f.scale(op.Atan2.Make(f.b, s.im, t.re), 2))
}

// asinh is asinh(Im(conj(s) t)) + i atan(y / Re(s t)) with s = sqrt(1-iz), t = sqrt(1+iz).
func (z parts) asinh() parts {
	f := z.f
	s, t := z.overI().plus(1).sqrt(), z.timesI().plus(1).sqrt()
	re := f.asinh(f.sub(f.mul(s.re, t.im), f.mul(t.re, s.im)))
	return z.with(re, op.Atan2.Make(f.b, z.im, f.sub(f.mul(s.re, t.re), f.mul(s.im, t.im))))
}

// asin is -i asinh(iz).
func (z parts) asin() parts { return z.timesI().asinh().overI() }

// atanh is log1p(4x / ((1-x)^2 + y^2)) / 4 + i atan(2y / ((1-x)(1+x) - y^2)) / 2 for x of 0 or more, and odd.
func (z parts) atanh() parts {
	f := z.f
	x, y := op.Abs.Make(f.b, z.re), z.im
	less, more, sq := f.sub(f.c(x, 1), x), f.add(f.c(x, 1), x), f.mul(y, y)
	re := f.scale(op.Log1p.Make(f.b, op.Div.Make(f.b, f.scale(x, 4), f.add(f.mul(less, less), sq))), 0.25)
	im := f.half(op.Atan2.Make(f.b, f.scale(y, 2), f.sub(f.mul(less, more), sq)))
	return z.with(z.signed(re, z.re), im)
}

// atan is -i atanh(iz).
func (z parts) atan() parts { return z.timesI().atanh().overI() }

// finite reports numbers of which no part is infinite or NaN.
func (z parts) finite() *ir.Value {
	return op.And.Make(z.f.b, op.IsFinite.Make(z.f.b, z.re), op.IsFinite.Make(z.f.b, z.im))
}

// infinite reports numbers of which a part is infinite.
func (z parts) infinite() *ir.Value {
	at := func(x *ir.Value) *ir.Value {
		return z.f.where(op.EQ, op.Abs.Make(z.f.b, x), math.Inf(1), boolSplat(z.f.b, x.Type.Dims, true), boolSplat(z.f.b, x.Type.Dims, false))
	}
	return op.Or.Make(z.f.b, at(z.re), at(z.im))
}

// eachPart applies f to x, or to both parts of complex numbers.
func (c *call) eachPart(x *ir.Value, f func(x *ir.Value) *ir.Value) *ir.Value {
	if !x.Type.DType.IsComplex() {
		return f(x)
	}
	return complexOfParts(c.b, f(realPart(c.b, x)), f(imagPart(c.b, x)))
}
