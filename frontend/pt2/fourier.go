package pt2

import (
	"math"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// fourierRules are discrete Fourier transforms (torch.fft). Several dimensions are transformed one after another.
var fourierRules = map[string]rule{
	"fft_fft":   value(func(c *call) *ir.Value { return c.fourier(fourierKind{}, "n") }),
	"fft_ifft":  value(func(c *call) *ir.Value { return c.fourier(fourierKind{inverse: true}, "n") }),
	"fft_rfft":  value(func(c *call) *ir.Value { return c.fourier(fourierKind{half: true}, "n") }),
	"fft_irfft": value(func(c *call) *ir.Value { return c.fourier(fourierKind{half: true, inverse: true}, "n") }),
	"fft_hfft":  value(func(c *call) *ir.Value { return c.fourier(fourierKind{half: true, hermitian: true}, "n") }),
	"fft_ihfft": value(func(c *call) *ir.Value {
		return c.fourier(fourierKind{half: true, hermitian: true, inverse: true}, "n")
	}),
	"fft_fft2":   value(func(c *call) *ir.Value { return c.fourier(fourierKind{}, "s") }),
	"fft_ifft2":  value(func(c *call) *ir.Value { return c.fourier(fourierKind{inverse: true}, "s") }),
	"fft_rfft2":  value(func(c *call) *ir.Value { return c.fourier(fourierKind{half: true}, "s") }),
	"fft_irfft2": value(func(c *call) *ir.Value { return c.fourier(fourierKind{half: true, inverse: true}, "s") }),
	"fft_hfft2":  value(func(c *call) *ir.Value { return c.fourier(fourierKind{half: true, hermitian: true}, "s") }),
	"fft_ihfft2": value(func(c *call) *ir.Value {
		return c.fourier(fourierKind{half: true, hermitian: true, inverse: true}, "s")
	}),
	"fft_fftn":   value(func(c *call) *ir.Value { return c.fourier(fourierKind{}, "s") }),
	"fft_ifftn":  value(func(c *call) *ir.Value { return c.fourier(fourierKind{inverse: true}, "s") }),
	"fft_rfftn":  value(func(c *call) *ir.Value { return c.fourier(fourierKind{half: true}, "s") }),
	"fft_irfftn": value(func(c *call) *ir.Value { return c.fourier(fourierKind{half: true, inverse: true}, "s") }),
	"fft_hfftn":  value(func(c *call) *ir.Value { return c.fourier(fourierKind{half: true, hermitian: true}, "s") }),
	"fft_ihfftn": value(func(c *call) *ir.Value {
		return c.fourier(fourierKind{half: true, hermitian: true, inverse: true}, "s")
	}),
	"_fft_c2c":      value(fourierC2C),
	"_fft_r2c":      value(fourierR2C),
	"_fft_c2r":      value(fourierC2R),
	"fft_fftshift":  value(func(c *call) *ir.Value { return c.shiftHalf(0) }),
	"fft_ifftshift": value(func(c *call) *ir.Value { return c.shiftHalf(1) }),
	"fft_fftfreq":   value(func(c *call) *ir.Value { n := c.int("n"); return c.frequencies(n, n, (n+1)/2) }),
	"fft_rfftfreq":  value(func(c *call) *ir.Value { n := c.int("n"); return c.frequencies(n, n/2+1, n/2+1) }),
}

// fourierKind says which transform. Of a half one the last dimension holds, on one side, half the spectrum of a real signal; a
// hermitian one takes the spectrum's place for the signal's, so that its forward form gives real numbers.
type fourierKind struct{ inverse, half, hermitian bool }

// toReal reports a transform whose last step gives real numbers.
func (k fourierKind) toReal() bool { return k.half && k.inverse != k.hermitian }

// fourier reads the lengths, n or s, dimensions and norm, and transforms.
func (c *call) fourier(k fourierKind, lengths string) *ir.Value {
	x := c.val("self")
	sizes := c.ints(lengths)
	var axes []int64
	switch rank := x.Type.Rank(); {
	case rank == 0:
		c.failf("self has rank 0, wanted 1 or more")
	case c.has("dim"):
		axes = c.axesOrNone("dim", rank)
	case len(sizes) > rank:
		c.failf("%d lengths for %s", len(sizes), x.Type)
	case c.has(lengths):
		axes = iotaInts(rank)[rank-len(sizes):]
	default:
		axes = iotaInts(rank)
	}
	if len(sizes) > 0 && len(sizes) != len(axes) {
		c.failf("%d lengths for %d dimensions", len(sizes), len(axes))
	}
	d := floatResult(x.Type.DType)
	if k.half && !k.toReal() {
		if d.IsComplex() {
			c.failf("self is %s, wanted real numbers", x.Type)
		}
	} else if !d.IsComplex() {
		d = complexOf(d)
	}
	x = c.cast(x, d)
	if d.Bits() < 32 {
		c.unsupported("a transform of %s", x.Type)
	}
	if len(axes) == 0 {
		if k.half {
			c.failf("no dimensions, wanted one or more")
		}
		return x
	}
	last := len(axes) - 1
	size := func(i int) int64 { // the length of the signal
		if len(sizes) > 0 && sizes[i] != -1 {
			return sizes[i]
		}
		if n := x.Type.Dims[axes[i]]; i == last && k.toReal() {
			return 2 * (n - 1)
		}
		return x.Type.Dims[axes[i]]
	}
	ns := make([]int64, len(axes))
	total := 1.0
	for i, a := range axes {
		ns[i] = size(i)
		if ns[i] < 1 || ns[i] > 1<<30 {
			c.failf("length %d of dimension %d, wanted 1 or more", ns[i], a)
		}
		total *= float64(ns[i])
	}
	for i, a := range axes {
		n := ns[i]
		if i == last && k.toReal() {
			n = n/2 + 1
		}
		x = c.fitTo(x, int(a), n)
	}
	switch {
	case !k.half:
		for i, a := range axes {
			x = c.transformed(x, int(a), k.inverse, ns[i])
		}
	case k.toReal():
		for i, a := range axes[:last] {
			x = c.transformed(x, int(a), k.inverse, ns[i])
		}
		if k.hermitian {
			x = conjugate(c.b, x)
		}
		x = c.alongLast(x, int(axes[last]), op.FFTAttr{Kind: op.FFTRealInverse, Length: ns[last:]})
		x = c.scaled(x, float64(ns[last]))
	default:
		x = c.alongLast(x, int(axes[last]), op.FFTAttr{Kind: op.FFTReal, Length: ns[last:]})
		if k.hermitian {
			x = conjugate(c.b, x)
		}
		for i, a := range axes[:last] {
			x = c.transformed(x, int(a), k.inverse, ns[i])
		}
	}
	return c.scaled(x, normScale(c, k.inverse, total))
}

// normScale is the factor of an unscaled transform by the argument norm.
func normScale(c *call, inverse bool, total float64) float64 {
	switch norm := c.str("norm"); {
	case norm == "ortho":
		return 1 / math.Sqrt(total)
	case norm == "forward" && !inverse, (norm == "" || norm == "backward") && inverse:
		return 1 / total
	case norm == "" || norm == "backward" || norm == "forward":
		return 1
	default:
		c.failf("norm is %q, wanted backward, ortho or forward", clip(norm))
	}
	return 1
}

// scaled is x times a number.
func (c *call) scaled(x *ir.Value, by float64) *ir.Value {
	if by == 1 {
		return x
	}
	return op.Mul.Make(c.b, x, likeF(c.b, x, by))
}

// fitTo cuts a dimension to n, or adds zeros at its end.
func (c *call) fitTo(x *ir.Value, axis int, n int64) *ir.Value {
	have := x.Type.Dims[axis]
	if have >= n {
		return slice(c.b, x, axis, 0, n, 1)
	}
	low, high := make([]int64, x.Type.Rank()), make([]int64, x.Type.Rank())
	high[axis] = n - have
	return op.Pad.Make(c.b, op.PadAttr{Low: low, High: high, Interior: make([]int64, len(low))}, x, zero(c.b, x.Type.DType))
}

// transformed is the transform of complex numbers of n elements along axis without a scale.
func (c *call) transformed(x *ir.Value, axis int, inverse bool, n int64) *ir.Value {
	if !inverse {
		return c.alongLast(x, axis, op.FFTAttr{Kind: op.FFTForward, Length: []int64{n}})
	}
	return c.scaled(c.alongLast(x, axis, op.FFTAttr{Kind: op.FFTInverse, Length: []int64{n}}), float64(n))
}

// alongLast transforms one dimension, in the last place.
func (c *call) alongLast(x *ir.Value, axis int, a op.FFTAttr) *ir.Value {
	last := x.Type.Rank() - 1
	return swap(c.b, op.FFT.Make(c.b, a, swap(c.b, x, axis, last)), axis, last)
}

// fourierC2C is _fft_c2c: normalization 0 is none, 1 by the root of the count, 2 by the count.
func fourierC2C(c *call) *ir.Value {
	x := c.val("self")
	total := 1.0
	for _, a := range c.axesOrNone("dim", x.Type.Rank()) {
		n := x.Type.Dims[a]
		total *= float64(n)
		x = c.transformed(x, int(a), !c.bool("forward"), n)
	}
	return c.scaled(x, c.normalization(total))
}

// normalization is the factor of the argument of that name.
func (c *call) normalization(total float64) float64 {
	switch c.int("normalization") {
	case 1:
		return 1 / math.Sqrt(total)
	case 2:
		return 1 / total
	}
	return 1
}

// fourierR2C is _fft_r2c, onesided.
func fourierR2C(c *call) *ir.Value {
	x := c.val("self")
	axes := c.axesOrNone("dim", x.Type.Rank())
	if len(axes) == 0 {
		c.failf("no dimensions, wanted one or more")
	}
	last := axes[len(axes)-1]
	total := float64(x.Type.Dims[last])
	if c.bool("onesided") {
		x = c.alongLast(x, int(last), op.FFTAttr{Kind: op.FFTReal, Length: []int64{x.Type.Dims[last]}})
	} else {
		x = c.transformed(c.cast(x, complexOf(x.Type.DType)), int(last), false, x.Type.Dims[last])
	}
	for _, a := range axes[:len(axes)-1] {
		total *= float64(x.Type.Dims[a])
		x = c.transformed(x, int(a), false, x.Type.Dims[a])
	}
	return c.scaled(x, c.normalization(total))
}

// fourierC2R is _fft_c2r.
func fourierC2R(c *call) *ir.Value {
	x, n := c.val("self"), c.int("last_dim_size")
	axes := c.axesOrNone("dim", x.Type.Rank())
	if len(axes) == 0 || n < 1 {
		c.failf("%d dimensions with length %d, wanted one or more", len(axes), n)
	}
	last := axes[len(axes)-1]
	total := float64(n)
	for _, a := range axes[:len(axes)-1] {
		total *= float64(x.Type.Dims[a])
		x = c.transformed(x, int(a), true, x.Type.Dims[a])
	}
	x = c.alongLast(c.fitTo(x, int(last), n/2+1), int(last), op.FFTAttr{Kind: op.FFTRealInverse, Length: []int64{n}})
	return c.scaled(c.scaled(x, float64(n)), c.normalization(total))
}

// shiftHalf moves the first half of dimensions behind the second; the middle element of an odd one belongs to the first half where up is 0.
func (c *call) shiftHalf(up int64) *ir.Value {
	x := c.val("self")
	axes := iotaInts(x.Type.Rank())
	if c.has("dim") {
		axes = c.axesOrNone("dim", x.Type.Rank())
	}
	for _, a := range axes {
		n := x.Type.Dims[a]
		if k := n - (n+up)/2; n > 1 && k < n {
			x = concat(c.b, int(a), slice(c.b, x, int(a), k, n, 1), slice(c.b, x, int(a), 0, k, 1))
		}
	}
	return x
}

// frequencies is the first count of 0, 1, ... with those from turn on less n, over n d.
func (c *call) frequencies(n, count, turn int64) *ir.Value {
	if n < 1 || n > maxConstant {
		c.unsupported("%d frequencies", n)
	}
	v := make([]float64, count)
	for i := range v {
		k := int64(i)
		if k >= turn {
			k -= n
		}
		v[i] = float64(k) / (float64(n) * c.float("d"))
	}
	return op.Constant.Make(c.b, op.ConstantAttr{Value: tensor.FromFloats(tensor.Make(c.dtype("dtype", tensor.F32), count), v)})
}
