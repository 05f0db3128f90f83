package pt2

import (
	"math"
	"math/big"
	"sync"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// gammaRules are functions of two tensors around the gamma function: the incomplete ones and Hurwitz's zeta.
var gammaRules = map[string]rule{
	"igamma":                    wideFormula(func(f fb, a, x *ir.Value) *ir.Value { return f.incompleteGamma(a, x, false) }),
	"igammac":                   wideFormula(func(f fb, a, x *ir.Value) *ir.Value { return f.incompleteGamma(a, x, true) }),
	"special_gammainc":          wideFormula(func(f fb, a, x *ir.Value) *ir.Value { return f.incompleteGamma(a, x, false) }),
	"special_gammaincc":         wideFormula(func(f fb, a, x *ir.Value) *ir.Value { return f.incompleteGamma(a, x, true) }),
	"special_zeta":              wideFormula(fb.hurwitz),
	"special_zeta.other_scalar": wideFormula(fb.hurwitz),
	"special_zeta.self_scalar":  wideFormula(fb.hurwitz),
}

// wideFormula is a rule of self and other in their common type, integers as f32, computed in f32 at least and rounded once.
func wideFormula(g func(f fb, x, y *ir.Value) *ir.Value) rule {
	return value(func(c *call) *ir.Value {
		x, y := c.operand("self"), c.operand("other")
		return c.inF32(floatResult(resultType(x, y)), func(b *ir.Builder, v []*ir.Value) *ir.Value { return g(fb{b, c}, v[0], v[1]) }, x, y)
	})
}

// zeta is Hurwitz's zeta function of s > 1 and x > 0, by the Euler-Maclaurin formula after ten terms.
func (f fb) zeta(s, x *ir.Value) *ir.Value {
	const terms = 10
	pow := func(v *ir.Value) *ir.Value { return op.Pow.Make(f.b, v, f.neg(s)) }
	a := f.add(x, f.c(x, terms))
	last := pow(a)
	y := f.add(f.mul(last, op.Div.Make(f.b, a, f.sub(s, f.c(s, 1)))), f.half(last))
	// B_2k / (2k)! s (s+1) ... (s+2k-2) a^(-s-2k+1)
	rise := f.mul(last, op.Div.Make(f.b, s, a))
	sq := f.mul(a, a)
	for k, b := range []float64{1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691 / 1.307674368e12} {
		y = f.add(y, f.scale(rise, b))
		step := f.mul(f.add(s, f.c(s, float64(2*k+1))), f.add(s, f.c(s, float64(2*k+2))))
		rise = f.mul(rise, op.Div.Make(f.b, step, sq))
	}
	for k := terms - 1; k > 0; k-- { // small ones first
		y = f.add(y, pow(f.add(x, f.c(x, float64(k)))))
	}
	first := pow(x)
	// Where s is so large that the second term is lost beside the first, products above may be infinite.
	alone := compare(f.b, op.LT, pow(f.add(x, f.c(x, 1))), f.scale(first, 1e-20))
	return op.Select.Make(f.b, alone, first, f.add(y, first))
}

// hurwitz is the zeta function of any s and x: infinite at s = 1 and at the poles 0, -1, ... of x, NaN below s = 1 and, unless s is whole,
// below x = 0. For negative x with the fraction p above its floor, the terms up to p - 1 are those of zeta(s, 1-p) less zeta(s, 1-x), by (-1)^s.
func (f fb) hurwitz(s, x *ir.Value) *ir.Value {
	whole := op.Floor.Make(f.b, x)
	low := compare(f.b, op.LE, x, f.c(x, 0))
	p := f.sub(x, whole)
	rest := f.sub(f.zeta(s, f.sub(f.c(x, 1), p)), f.zeta(s, f.sub(f.c(x, 1), op.Minimum.Make(f.b, x, f.c(x, 0)))))
	odd := compare(f.b, op.NE, op.Rem.Make(f.b, s, f.c(s, 2)), f.c(s, 0))
	y := f.zeta(s, op.Select.Make(f.b, low, p, x))
	y = op.Select.Make(f.b, low, f.add(y, op.Select.Make(f.b, odd, f.neg(rest), rest)), y)
	y = op.Select.Make(f.b, op.And.Make(f.b, low, compare(f.b, op.NE, s, op.Floor.Make(f.b, s))), f.c(x, math.NaN()), y)
	y = op.Select.Make(f.b, op.And.Make(f.b, low, compare(f.b, op.EQ, x, whole)), f.c(x, math.Inf(1)), y)
	return f.where(op.EQ, s, 1, f.c(x, math.Inf(1)), f.where(op.LT, s, 1, f.c(x, math.NaN()), y))
}

// incompleteGamma is P(a, x), or with upper Q(a, x) = 1 - P, in the regions of Cephes and SciPy that torch has (aten/src/ATen/native/Math.h):
// a power series or a continued fraction, and Temme's uniform expansion where a is large and x near it.
func (f fb) incompleteGamma(a, x *ir.Value, upper bool) *ir.Value {
	b, one, zero := f.b, f.c(x, 1), f.c(x, 0)
	and := func(p, q *ir.Value) *ir.Value { return op.And.Make(b, p, q) }
	choose := func(p, then, otherwise *ir.Value) *ir.Value { return op.Select.Make(b, p, then, otherwise) }
	above := func(x *ir.Value, v float64) *ir.Value { return compare(b, op.GT, x, f.c(x, v)) }
	delta := op.Div.Make(b, f.sub(x, a), a)
	phi := f.logDistance(delta)
	width := f.where(op.LT, a, 200, f.c(a, 0.3), op.Div.Make(b, f.c(a, 4.5), op.Sqrt.Make(b, a)))
	near := and(above(a, 20), compare(b, op.LT, op.Abs.Make(b, delta), width))
	beyond := and(above(x, 1.1), compare(b, op.GE, x, a))
	below := op.Not.Make(b, op.Or.Make(b, near, beyond))

	front := f.gammaFront(a, x, phi)
	series := op.Div.Make(b, f.mul(front, f.gammaSeries(choose(below, a, one), choose(below, x, zero))), a)
	fraction := f.mul(front, f.gammaFraction(choose(beyond, a, one), choose(beyond, x, f.c(x, 2))))
	uniform := f.gammaUniform(a, delta, phi, upper)
	var y *ir.Value
	if upper {
		// Where x is small and Q is not, 1 - P would lose it.
		limit := f.where(op.LE, x, 0.5, op.Div.Make(b, f.c(x, -0.4), op.Log.Make(b, x)), f.scale(x, 1.1))
		small := and(op.Not.Make(b, above(x, 1.1)), compare(b, op.GE, limit, a))
		y = choose(beyond, fraction, choose(small, f.gammaSmall(a, x), f.sub(one, series)))
	} else {
		y = choose(beyond, f.sub(one, fraction), series)
	}
	y = choose(near, uniform, y)

	start, end := zero, one // at x = 0 and for x that is infinite
	if upper {
		start, end = one, zero
	}
	inf, nan := math.Inf(1), f.c(x, math.NaN())
	y = f.where(op.EQ, x, inf, end, y)
	y = f.where(op.EQ, a, inf, f.where(op.EQ, x, inf, nan, start), y)
	y = f.where(op.EQ, x, 0, start, y)
	y = f.where(op.EQ, a, 0, f.where(op.GT, x, 0, end, nan), y)
	return f.where(op.LT, a, 0, nan, f.where(op.LT, x, 0, nan, y))
}

// precise says how many terms of a series are needed in x's type.
func precise(x *ir.Value, f32, f64 int) int {
	if x.Type.DType == tensor.F64 {
		return f64
	}
	return f32
}

// logDistance is d - log(1 + d), 0 or more, without cancellation near 0.
func (f fb) logDistance(d *ir.Value) *ir.Value {
	n := precise(d, 9, 18)
	a := make([]float64, n) // d^2 (1/2 - d/3 + d^2/4 - ...)
	for k := range a {
		a[n-1-k] = 1 / float64(k+2)
		if k%2 == 1 {
			a[n-1-k] = -a[n-1-k]
		}
	}
	return f.where(op.LT, op.Abs.Make(f.b, d), 0.125, f.mul(f.mul(d, d), f.horner(d, a)), f.sub(d, op.Log1p.Make(f.b, d)))
}

// gammaFront is x^a exp(-x) / gamma(a); phi is logDistance((x-a)/a).
func (f fb) gammaFront(a, x, phi *ir.Value) *ir.Value {
	direct := f.exp(f.sub(f.sub(f.mul(a, op.Log.Make(f.b, x)), x), lgamma(f, a)))
	// Stirling's formula; the logarithm of its error is 1/12a - 1/360a^3 + ...
	r := op.Div.Make(f.b, f.c(a, 1), a)
	rest := f.mul(r, f.horner(f.mul(r, r), []float64{-691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12}))
	large := f.mul(op.Sqrt.Make(f.b, f.scale(a, 1/(2*math.Pi))), f.exp(f.neg(f.add(f.mul(a, phi), rest))))
	return f.where(op.LT, a, 10, direct, large)
}

// gammaSeries is 1 + x/(a+1) + x^2/((a+1)(a+2)) + ...; x is a bound away from a where a is large, so about sqrt(a) terms count.
func (f fb) gammaSeries(a, x *ir.Value) *ir.Value {
	known := f.where(op.LT, a, 1e7, a, f.c(a, 0)) // not NaN
	top := reduce(f.b, op.Max, f.max(known, 0), iotaInts(a.Type.Rank()), false)
	steps := f.add(f.scale(op.Sqrt.Make(f.b, top), float64(precise(x, 3, 6))), f.c(top, float64(precise(x, 56, 110))))
	state := []*ir.Value{f.c(x, 1), f.c(x, 1), a, x}
	return f.call.loop(0, f.call.cast(steps, tensor.I32), state, func(_ *ir.Value, v []*ir.Value) []*ir.Value {
		g := fb{f.call.b, f.call}
		r := g.add(v[2], g.c(v[2], 1))
		term := g.mul(v[1], op.Div.Make(g.b, v[3], r))
		return []*ir.Value{g.add(v[0], term), term, r, v[3]}
	})[0]
}

// gammaFraction is the continued fraction 1/(x+1-a - 1(1-a)/(x+3-a - ...)) for x of 1.1 or more and at least a, by Lentz's method.
func (f fb) gammaFraction(a, x *ir.Value) *ir.Value {
	const far = 1e30
	base := f.add(f.sub(x, a), f.c(x, 1))
	first := op.Div.Make(f.b, f.c(x, 1), base)
	state := []*ir.Value{first, first, f.c(x, far), base, f.c(x, 0), a}
	return f.call.loop(int64(precise(x, 24, 96)), nil, state, func(_ *ir.Value, v []*ir.Value) []*ir.Value {
		g := fb{f.call.b, f.call}
		h, d, c, base, i, a := v[0], v[1], v[2], v[3], v[4], v[5]
		i = g.add(i, g.c(i, 1))
		num := g.mul(i, g.sub(a, i))
		base = g.add(base, g.c(base, 2))
		d = op.Div.Make(g.b, g.c(d, 1), g.add(g.mul(num, d), base))
		c = g.add(base, op.Div.Make(g.b, num, c))
		return []*ir.Value{g.mul(h, g.mul(c, d)), d, c, base, i, a}
	})[0]
}

// gammaSmall is Q(a, x) for small x: -expm1(a log x - log gamma(a+1)) less x^a/gamma(a) times the sum of (-x)^n / (n! (a+n)).
func (f fb) gammaSmall(a, x *ir.Value) *ir.Value {
	log := f.mul(a, op.Log.Make(f.b, x))
	sum, factor := f.c(x, 0), f.c(x, 1)
	for n := 1; n <= precise(x, 12, 20); n++ {
		factor = f.mul(factor, f.scale(x, -1/float64(n)))
		sum = f.add(sum, op.Div.Make(f.b, factor, f.add(a, f.c(a, float64(n)))))
	}
	head := f.neg(op.Expm1.Make(f.b, f.sub(log, lgamma(f, f.add(a, f.c(a, 1))))))
	return f.sub(head, f.mul(f.exp(f.sub(log, lgamma(f, a))), sum))
}

// gammaUniform is Temme's expansion: erfc(eta sqrt(a/2)) / 2 and a correction in powers of eta and 1/a, with eta^2/2 = phi and the sign of x - a.
func (f fb) gammaUniform(a, delta, phi *ir.Value, upper bool) *ir.Value {
	eta := op.Sqrt.Make(f.b, f.scale(phi, 2))
	eta = f.where(op.LT, delta, 0, f.neg(eta), eta)
	sign := -1.0
	if upper {
		sign = 1
	}
	orders, powers := precise(a, 5, 12), precise(a, 9, 20)
	sum, r := f.c(a, 0), op.Div.Make(f.b, f.c(a, 1), a)
	for k := orders - 1; k >= 0; k-- {
		row := temme()[k][:powers]
		rev := make([]float64, powers)
		for n, v := range row {
			rev[powers-1-n] = v
		}
		sum = f.add(f.mul(sum, r), f.horner(eta, rev))
	}
	e := f.exp(f.neg(f.mul(a, phi)))
	sum = op.Div.Make(f.b, f.mul(e, sum), op.Sqrt.Make(f.b, f.scale(a, 2*math.Pi)))
	head := f.half(f.erfc(f.scale(f.mul(eta, op.Sqrt.Make(f.b, f.half(a))), sign)))
	return f.add(head, f.scale(sum, sign))
}

// temme is the coefficients d[k][n] of eta^n / a^k in Temme's expansion, by the recurrences of DiDonato and Morris (Computation of the incomplete
// gamma function ratios and their inverse, 1986, section 4), exactly.
var temme = sync.OnceValue(func() [][]float64 {
	const orders, powers = 12, 20
	const size = powers + 2*orders + 3
	// x/a - 1 is the sum of alpha[n] eta^n.
	alpha := make([]*big.Rat, size+1)
	alpha[1], alpha[2] = big.NewRat(1, 1), big.NewRat(1, 3)
	for n := 3; n <= size; n++ {
		s := new(big.Rat).Set(alpha[n-1])
		for j := 2; j <= n-1; j++ {
			t := new(big.Rat).Mul(alpha[j], alpha[n-j+1])
			s.Sub(s, t.Mul(t, big.NewRat(int64(j), 1)))
		}
		alpha[n] = s.Mul(s, big.NewRat(1, int64(n+1)))
	}
	stirling := func(k int) *big.Rat { // of the series of gamma(a), with the sign (-1)^k
		g := new(big.Rat).Set(alpha[2*k+1])
		if k%2 == 1 {
			g.Neg(g)
		}
		for m := int64(3); m <= int64(2*k+1); m += 2 {
			g.Mul(g, big.NewRat(m, 1))
		}
		return g
	}
	d := make([][]*big.Rat, orders)
	out := make([][]float64, orders)
	for k := range d {
		n := powers + 2*(orders-k)
		d[k] = make([]*big.Rat, n)
		for i := range d[k] {
			v := new(big.Rat).Mul(big.NewRat(int64(i+2), 1), alpha[i+2])
			if k > 0 {
				v.Mul(stirling(k), d[0][i])
				v.Add(v, new(big.Rat).Mul(big.NewRat(int64(i+2), 1), d[k-1][i+2]))
			}
			if k == 0 && i == 0 {
				v.Sub(v, big.NewRat(1, 1))
			}
			d[k][i] = v
		}
		for _, v := range d[k][:powers] {
			x, _ := v.Float64()
			out[k] = append(out[k], x)
		}
	}
	return out
})
