package pt2

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/op"
)

// specialRules are special functions, computed in f32 at least.
var specialRules = map[string]rule{
	"lgamma":                      formula(lgamma),
	"special_gammaln":             formula(lgamma),
	"digamma":                     formula(digamma),
	"special_digamma":             formula(digamma),
	"special_psi":                 formula(digamma),
	"erfinv":                      formula(func(f fb, x *ir.Value) *ir.Value { return op.ErfInv.Make(f.b, x) }),
	"special_erfinv":              formula(func(f fb, x *ir.Value) *ir.Value { return op.ErfInv.Make(f.b, x) }),
	"mvlgamma":                    eachStep(mvlgamma),
	"special_multigammaln":        eachStep(mvlgamma),
	"polygamma":                   formula(polygamma),
	"special_polygamma":           formula(polygamma),
	"special_spherical_bessel_j0": formula(sphericalBessel),
	"special_ndtri": formula(func(f fb, x *ir.Value) *ir.Value {
		return f.scale(op.ErfInv.Make(f.b, f.sub(f.scale(x, 2), f.c(x, 1))), math.Sqrt2)
	}),
	"special_xlog1py":              floatBinary(xlog1py),
	"special_xlog1py.other_scalar": floatBinary(xlog1py),
	"special_xlog1py.self_scalar":  floatBinary(xlog1py),
}

func lgamma(f fb, x *ir.Value) *ir.Value { return op.Lgamma.Make(f.b, x) }

// digamma is an infinity of the other sign at zeros, NaN at the negative integers.
func digamma(f fb, x *ir.Value) *ir.Value {
	return f.where(op.EQ, x, 0, op.Div.Make(f.b, f.c(x, -1), x), op.Digamma.Make(f.b, x))
}

// mvlgamma is the logarithm of the multivariate gamma function: lgamma(x) + lgamma(x - 1/2) + ... of p terms, and p (p-1)/4 log pi.
func mvlgamma(f fb, x *ir.Value) *ir.Value {
	p := f.call.int("p")
	if p < 1 || p > maxTaps {
		f.call.failf("p is %d, wanted 1 to %d", p, maxTaps)
	}
	d := x.Type.DType
	var y *ir.Value
	for j := range p {
		term := f.call.cast(lgamma(f, f.sub(x, f.c(x, float64(j)/2))), wide(d))
		if y == nil {
			y = term
		} else {
			y = f.add(y, term)
		}
	}
	y = f.call.cast(y, d)
	return f.add(y, f.c(y, float64(p*(p-1))/4*math.Log(math.Pi)))
}

// polygamma is the n-th derivative of digamma: (-1)^(n+1) n! zeta(n+1, x).
func polygamma(f fb, x *ir.Value) *ir.Value {
	n := f.call.int("n")
	switch {
	case n < 0:
		f.call.failf("n is %d, wanted 0 or more", n)
	case n == 0:
		return digamma(f, x)
	case n == 1:
		return f.trigamma(x)
	}
	factor := math.Gamma(float64(n + 1))
	if n%2 == 0 {
		factor = -factor
	}
	return f.scale(f.hurwitz(f.c(x, float64(n+1)), x), factor)
}

// trigamma is zeta(2, x), and pi^2 / sin^2(pi x) - zeta(2, 1-x) where x is below 1/2; finite at the poles, as in torch, by rounding of the angle.
func (f fb) trigamma(x *ir.Value) *ir.Value {
	low := compare(f.b, op.LT, x, f.c(x, 0.5))
	z := op.Select.Make(f.b, low, f.sub(f.c(x, 1), x), x)
	y := f.where(op.EQ, z, math.Inf(1), f.c(x, 0), f.zeta(f.c(x, 2), z))
	sin := op.Sin.Make(f.b, f.scale(x, math.Pi))
	return op.Select.Make(f.b, low, f.sub(op.Div.Make(f.b, f.c(x, math.Pi*math.Pi), f.mul(sin, sin)), y), y)
}

// sphericalBessel is sin(x)/x, by its series near 0, and 0 at the infinities.
func sphericalBessel(f fb, x *ir.Value) *ir.Value {
	sq := f.mul(x, x)
	near := f.c(x, 1)
	for _, n := range []float64{156, 110, 72, 42, 20, 6} { // 1 - x^2/6 (1 - x^2/20 (1 - ...))
		near = f.sub(f.c(x, 1), f.mul(f.scale(sq, 1/n), near))
	}
	a := op.Abs.Make(f.b, x)
	y := f.where(op.LT, a, 0.5, near, op.Div.Make(f.b, op.Sin.Make(f.b, x), x))
	return f.where(op.EQ, a, math.Inf(1), f.c(x, 0), y)
}

// xlog1py is x log(1 + y), 0 where x is 0 whatever y is, and NaN where y is.
func xlog1py(b *ir.Builder, v []*ir.Value) *ir.Value {
	y := op.Mul.Make(b, v[0], op.Log1p.Make(b, v[1]))
	y = op.Select.Make(b, compare(b, op.EQ, v[0], likeF(b, v[0], 0)), likeF(b, y, 0), y)
	return op.Select.Make(b, compare(b, op.NE, v[1], v[1]), v[1], y)
}
