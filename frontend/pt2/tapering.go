package pt2

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// taperRules make the windows of signal processing, in the dtype argument's type and rounded at every step as torch rounds them
// (aten/src/ATen/native/TensorFactories.cpp).
var taperRules = map[string]rule{
	"hann_window":                        taper(hamming(0.5, 0.5)),
	"hann_window.periodic":               taper(hamming(0.5, 0.5)),
	"hamming_window":                     taper(hamming(0.54, 0.46)),
	"hamming_window.periodic":            taper(hamming(0.54, 0.46)),
	"hamming_window.periodic_alpha":      taper(hamming(0.54, 0.46)),
	"hamming_window.periodic_alpha_beta": taper(hamming(0.54, 0.46)),
	"blackman_window":                    taper(blackman),
	"blackman_window.periodic":           taper(blackman),
	"bartlett_window":                    taper(bartlett),
	"bartlett_window.periodic":           taper(bartlett),
	"kaiser_window":                      taper(kaiser),
	"kaiser_window.periodic":             taper(kaiser),
	"kaiser_window.beta":                 taper(kaiser),
}

// taper is a window of window_length elements, one more and without the last where it is periodic. shape computes it of the elements' places,
// of which the last is n-1.
func taper(shape func(s stepwise, places *ir.Value, n int64) *ir.Value) rule {
	return value(func(c *call) *ir.Value {
		n, d := c.int("window_length"), c.dtype("dtype", tensor.F32)
		if n < 0 || n > maxViewed || !d.IsFloat() {
			c.failf("a window of %d elements of %s, wanted 0 to %d floats", n, d, maxViewed)
		}
		if n < 2 {
			return splat(c.b, d, intScalar(1), []int64{n})
		}
		full := n
		if c.schema.param("periodic") == nil || c.bool("periodic") {
			full++
		}
		y := shape(stepwise{c, d}, c.progression(d, full, intScalar(0), intScalar(1)), full)
		return slice(c.b, y, 0, 0, n, 1)
	})
}

// stepwise computes in f32 what is narrower and rounds after every operator.
type stepwise struct {
	c *call
	d tensor.DType
}

// of is one operator on x, or on x and a number.
func (s stepwise) of(x *ir.Value, f func(f fb, x *ir.Value) *ir.Value) *ir.Value {
	return s.c.cast(f(fb{s.c.b, s.c}, s.c.cast(x, wide(s.d))), s.d)
}

func (s stepwise) scale(x *ir.Value, v float64) *ir.Value {
	return s.of(x, func(f fb, x *ir.Value) *ir.Value { return f.scale(x, v) })
}

func (s stepwise) plus(x *ir.Value, v float64) *ir.Value {
	return s.of(x, func(f fb, x *ir.Value) *ir.Value { return f.add(x, f.c(x, v)) })
}

func (s stepwise) cos(x *ir.Value) *ir.Value {
	return s.of(x, func(f fb, x *ir.Value) *ir.Value { return op.Cos.Make(f.b, x) })
}

// hamming is alpha - beta cos(2 pi i/(n-1)); the operator may have arguments of these names.
func hamming(alpha, beta float64) func(s stepwise, places *ir.Value, n int64) *ir.Value {
	return func(s stepwise, places *ir.Value, n int64) *ir.Value {
		a, b := alpha, beta
		if s.c.schema.param("alpha") != nil {
			a = s.c.float("alpha")
		}
		if s.c.schema.param("beta") != nil {
			b = s.c.float("beta")
		}
		return s.plus(s.scale(s.cos(s.scale(places, 2*math.Pi/float64(n-1))), -b), a)
	}
}

// blackman is 0.08 cos(4 t) - 0.5 cos(2 t) + 0.42 for t = pi i/(n-1).
func blackman(s stepwise, places *ir.Value, n int64) *ir.Value {
	t := s.scale(places, math.Pi/float64(n-1))
	fast, slow := s.scale(s.cos(s.scale(t, 4)), 0.08), s.scale(s.cos(s.scale(t, 2)), 0.5)
	f := fb{s.c.b, s.c}
	return s.plus(s.c.cast(f.sub(s.c.cast(fast, wide(s.d)), s.c.cast(slow, wide(s.d))), s.d), 0.42)
}

// bartlett rises from 0 to the middle and falls again.
func bartlett(s stepwise, places *ir.Value, n int64) *ir.Value {
	up := s.scale(places, 2/float64(n-1))
	down := s.plus(s.scale(up, -1), 2)
	half := (n-1)/2 + 1
	return concat(s.c.b, 0, slice(s.c.b, up, 0, 0, half, 1), slice(s.c.b, down, 0, half, n, 1))
}

// kaiser is I_0(beta sqrt(1-y^2)) / I_0(beta) for y from -1 to 1.
func kaiser(s stepwise, places *ir.Value, n int64) *ir.Value {
	beta := 12.0
	if s.c.schema.param("beta") != nil {
		beta = s.c.float("beta")
	}
	return s.of(places, func(f fb, x *ir.Value) *ir.Value {
		x = f.add(f.scale(x, 2/float64(n-1)), f.c(x, -1))
		root := op.Sqrt.Make(f.b, f.max(f.sub(f.c(x, 1), f.mul(x, x)), 0))
		return op.Div.Make(f.b, f.besselI(0, f.scale(root, beta), false), f.besselI(0, f.c(x, beta), false))
	})
}
