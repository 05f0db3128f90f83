package pt2

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/op"
)

// errorRules are the complements of the error function and the normal distribution, precise in the tails too.
var errorRules = map[string]rule{
	"erfc":             formula(fb.erfc),
	"special_erfc":     formula(fb.erfc),
	"special_erfcx":    formula(fb.erfcx),
	"special_ndtr":     eachStep(fb.ndtr),
	"special_log_ndtr": formula(fb.logNdtr),
}

// erfcx is exp(x^2) erfc(x), by the fractions of W. J. Cody (Rational Chebyshev approximations for the error function, 1969), and
// 2 exp(x^2) - erfcx(-x) for negative x.
func (f fb) erfcx(x *ir.Value) *ir.Value {
	a := op.Abs.Make(f.b, x)
	near := f.mul(f.square(a), f.sub(f.c(a, 1), op.Erf.Make(f.b, a)))
	mid := f.fraction(a, codyMidNum, codyMidDen)
	r := op.Div.Make(f.b, f.c(a, 1), a)
	sq := f.mul(r, r)
	far := f.mul(r, f.sub(f.c(a, 1/math.Sqrt(math.Pi)), f.mul(sq, f.fraction(sq, codyFarNum, codyFarDen))))
	y := f.where(op.LT, a, 0.46875, near, f.where(op.LE, a, 4, mid, far))
	return f.where(op.LT, x, 0, f.sub(f.scale(f.square(a), 2), y), y)
}

// square is exp(x^2), with the part of the square that rounding would lose.
func (f fb) square(x *ir.Value) *ir.Value {
	s := f.scale(op.Floor.Make(f.b, f.scale(x, 16)), 1.0/16)
	rest := f.mul(f.sub(x, s), f.add(x, s))
	y := f.mul(f.exp(f.mul(s, s)), f.exp(rest))
	return f.where(op.GT, x, 1e4, f.c(x, math.Inf(1)), y)
}

// erfc is 1 - erf(x), by erfcx where that would cancel.
func (f fb) erfc(x *ir.Value) *ir.Value {
	a := f.min(f.max(x, 0.5), 1e4)
	tail := op.Div.Make(f.b, f.erfcx(a), f.square(a))
	return f.where(op.GT, x, 0.5, tail, f.sub(f.c(x, 1), op.Erf.Make(f.b, x)))
}

// ndtr is the normal distribution function. Below f32 it is what torch's steps make of it.
func (f fb) ndtr(x *ir.Value) *ir.Value {
	if wide(x.Type.DType) == x.Type.DType {
		return f.half(f.erfc(f.scale(x, -math.Sqrt2/2)))
	}
	e := op.Erf.Make(f.b, f.call.over2(tensorOperand(x), operand{s: floatScalar(math.Sqrt2)}))
	return f.half(f.add(f.c(e, 1), e))
}

// logNdtr is the logarithm of the normal distribution function.
func (f fb) logNdtr(x *ir.Value) *ir.Value {
	t := f.scale(x, math.Sqrt2/2)
	low := f.sub(op.Log.Make(f.b, f.half(f.erfcx(f.neg(f.min(t, 0))))), f.mul(t, t))
	return f.where(op.LT, x, -1, low, op.Log1p.Make(f.b, f.scale(f.erfc(t), -0.5)))
}

// Coefficients of Cody's fractions, highest degree first: in x from 0.46875 to 4, in 1/x^2 above.

var codyMidNum = []float64{
	2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1, 2.98635138197400131e2,
	8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3,
}

var codyMidDen = []float64{
	1, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
	3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
}

var codyFarNum = []float64{
	1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4,
}

var codyFarDen = []float64{
	1, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1, 6.05183413124413191e-2, 2.33520497626869185e-3,
}
