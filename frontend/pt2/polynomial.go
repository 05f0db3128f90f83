package pt2

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// polynomialRules are orthogonal polynomials, whose degree is a tensor: by their recurrences, as far as the highest degree.
var polynomialRules = concatRules(
	polynomialForms("chebyshev_polynomial_t", chebyshev(1, 0)), polynomialForms("chebyshev_polynomial_u", chebyshev(2, 0)),
	polynomialForms("chebyshev_polynomial_v", chebyshev(2, -1)), polynomialForms("chebyshev_polynomial_w", chebyshev(2, 1)),
	polynomialForms("shifted_chebyshev_polynomial_t", shifted(chebyshev(1, 0))), polynomialForms("shifted_chebyshev_polynomial_u", shifted(chebyshev(2, 0))),
	polynomialForms("shifted_chebyshev_polynomial_v", shifted(chebyshev(2, -1))), polynomialForms("shifted_chebyshev_polynomial_w", shifted(chebyshev(2, 1))),
	polynomialForms("hermite_polynomial_h", hermite(2)), polynomialForms("hermite_polynomial_he", hermite(1)),
	polynomialForms("laguerre_polynomial_l", recurrence{
		first: func(f fb, x *ir.Value) *ir.Value { return f.sub(f.c(x, 1), x) },
		next: func(f fb, x, k, q, p *ir.Value) *ir.Value { // ((2k + 1 - x) q - k p) / (k + 1)
			a := f.sub(f.add(f.scale(k, 2), f.c(k, 1)), x)
			return op.Div.Make(f.b, f.sub(f.mul(a, q), f.mul(k, p)), f.add(k, f.c(k, 1)))
		},
	}),
	polynomialForms("legendre_polynomial_p", recurrence{
		first: func(_ fb, x *ir.Value) *ir.Value { return x },
		next: func(f fb, x, k, q, p *ir.Value) *ir.Value { // ((2k + 1) x q - k p) / (k + 1)
			a := f.mul(f.add(f.scale(k, 2), f.c(k, 1)), x)
			return op.Div.Make(f.b, f.sub(f.mul(a, q), f.mul(k, p)), f.add(k, f.c(k, 1)))
		},
	}),
)

// recurrence is a sequence of polynomials that begins with 1 and first(x); the one of degree k+1 follows from those of degree k, q, and
// k-1, p. With limit, higher degrees are NaN.
type recurrence struct {
	first func(f fb, x *ir.Value) *ir.Value
	next  func(f fb, x, k, q, p *ir.Value) *ir.Value
	limit bool
}

// chebyshev is of the kind that begins with 1 and scale x + shift.
func chebyshev(scale, shift float64) recurrence {
	return recurrence{
		first: func(f fb, x *ir.Value) *ir.Value { return f.add(f.scale(x, scale), f.c(x, shift)) },
		next: func(f fb, x, _, q, p *ir.Value) *ir.Value {
			return f.sub(f.mul(f.scale(x, 2), q), p)
		},
	}
}

// shifted is r of 2x - 1.
func shifted(r recurrence) recurrence {
	at := func(f fb, x *ir.Value) *ir.Value { return f.sub(f.scale(x, 2), f.c(x, 1)) }
	return recurrence{
		first: func(f fb, x *ir.Value) *ir.Value { return r.first(f, at(f, x)) },
		next:  func(f fb, x, k, q, p *ir.Value) *ir.Value { return r.next(f, at(f, x), k, q, p) },
	}
}

// hermite is the physicist's kind for scale 2, the probabilist's for 1.
func hermite(scale float64) recurrence {
	return recurrence{
		first: func(f fb, x *ir.Value) *ir.Value { return f.scale(x, scale) },
		next: func(f fb, x, k, q, p *ir.Value) *ir.Value {
			return f.sub(f.mul(f.scale(x, scale), q), f.mul(f.scale(k, scale), p))
		},
		limit: true,
	}
}

// polynomialForms are the overloads with tensors and with a number for x or the degree n.
func polynomialForms(name string, r recurrence) map[string]rule {
	name = "special_" + name
	f := value(func(c *call) *ir.Value { return c.polynomial(r) })
	return map[string]rule{name: f, name + ".x_scalar": f, name + ".n_scalar": f}
}

// polynomial is r's polynomial of degree n, rounded towards zero, at x; 0 for negative degrees.
func (c *call) polynomial(r recurrence) *ir.Value {
	x, n := c.operand("x"), c.operand("n")
	return c.elementwise(floatResult(resultType(x, n)), func(b *ir.Builder, v []*ir.Value) *ir.Value {
		f := fb{b, c}
		x, n := v[0], truncate(b, v[1])
		top := reduce(b, op.Max, c.cast(n, tensor.I32), iotaInts(n.Type.Rank()), false)
		one := f.c(x, 1)
		state := []*ir.Value{f.where(op.GE, n, 1, r.first(f, x), one), one, x, n}
		// Step 0 goes from degree 1 to degree 2.
		last := c.loop(0, op.Sub.Make(b, top, intConst(b, tensor.I32, 1)), state, func(i *ir.Value, s []*ir.Value) []*ir.Value {
			g := fb{c.b, c}
			k := op.BroadcastTo(c.b, c.cast(op.Add.Make(c.b, i, intConst(c.b, tensor.I32, 1)), x.Type.DType), x.Type.Dims)
			q, p := s[0], s[1]
			later := compare(c.b, op.GT, s[3], k)
			return []*ir.Value{op.Select.Make(c.b, later, r.next(g, s[2], k, q, p), q), q, s[2], s[3]}
		})
		y := f.where(op.LT, n, 0, f.c(x, 0), last[0])
		if r.limit { // torch's bound, where the numbers would overflow
			limit := 128.0
			if x.Type.DType == tensor.F64 {
				limit = 512
			}
			y = f.where(op.GT, n, limit, f.c(x, math.NaN()), y)
		}
		return y
	}, x, n)
}
