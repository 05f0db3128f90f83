package pt2

import (
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// fourierRules are Fourier transforms: torch.fft, and the forms that it decomposes to.
var fourierRules = map[string]rule{
	"fft_fft":       value(func(c *call) *ir.Value { return c.fourier(op.FFTForward, c.fourierAxes(1)) }),
	"fft_fft2":      value(func(c *call) *ir.Value { return c.fourier(op.FFTForward, c.fourierAxes(0)) }),
	"fft_fftn":      value(func(c *call) *ir.Value { return c.fourier(op.FFTForward, c.fourierAxes(0)) }),
	"fft_ifft":      value(func(c *call) *ir.Value { return c.fourier(op.FFTInverse, c.fourierAxes(1)) }),
	"fft_ifft2":     value(func(c *call) *ir.Value { return c.fourier(op.FFTInverse, c.fourierAxes(0)) }),
	"fft_ifftn":     value(func(c *call) *ir.Value { return c.fourier(op.FFTInverse, c.fourierAxes(0)) }),
	"fft_rfft":      value(func(c *call) *ir.Value { return c.fourier(op.FFTReal, c.fourierAxes(1)) }),
	"fft_rfft2":     value(func(c *call) *ir.Value { return c.fourier(op.FFTReal, c.fourierAxes(0)) }),
	"fft_rfftn":     value(func(c *call) *ir.Value { return c.fourier(op.FFTReal, c.fourierAxes(0)) }),
	"fft_irfft":     value(func(c *call) *ir.Value { return c.fourier(op.FFTRealInverse, c.fourierAxes(1)) }),
	"fft_irfft2":    value(func(c *call) *ir.Value { return c.fourier(op.FFTRealInverse, c.fourierAxes(0)) }),
	"fft_irfftn":    value(func(c *call) *ir.Value { return c.fourier(op.FFTRealInverse, c.fourierAxes(0)) }),
	"fft_hfft":      value(func(c *call) *ir.Value { return c.hermitian(c.fourierAxes(1)) }),
	"fft_hfft2":     value(func(c *call) *ir.Value { return c.hermitian(c.fourierAxes(0)) }),
	"fft_hfftn":     value(func(c *call) *ir.Value { return c.hermitian(c.fourierAxes(0)) }),
	"fft_ihfft":     value(func(c *call) *ir.Value { return c.inverseHermitian(c.fourierAxes(1)) }),
	"fft_ihfft2":    value(func(c *call) *ir.Value { return c.inverseHermitian(c.fourierAxes(0)) }),
	"fft_ihfftn":    value(func(c *call) *ir.Value { return c.inverseHermitian(c.fourierAxes(0)) }),
	"_fft_c2c":      value(fourierC2C),
	"_fft_r2c":      value(fourierR2C),
	"_fft_c2r":      value(fourierC2R),
	"fft_fftshift":  value(func(c *call) *ir.Value { return c.fourierShift(func(n int64) int64 { return n / 2 }) }),
	"fft_ifftshift": value(func(c *call) *ir.Value { return c.fourierShift(func(n int64) int64 { return (n + 1) / 2 }) }),
	"fft_fftfreq": value(func(c *call) *ir.Value {
		return c.frequencies(func(i, n int64) int64 {
			if i >= (n+1)/2 {
				return i - n
			}
			return i
		}, c.int("n"))
	}),
	"fft_rfftfreq": value(func(c *call) *ir.Value { return c.frequencies(func(i, _ int64) int64 { return i }, c.int("n")/2+1) }),
	"stft":         value(stft),
	"stft.center":  value(stft),
	"istft":        value(istft),
}

// spectrum describes a transform: dimensions in order, the last of them first halved by a real transform; their lengths in the signal,
// 0 for what the input has; and the factor that scales the result of a forward or inverse transform.
type spectrum struct {
	axes  []int
	sizes []int64
	norm  string
}

// fourierAxes reads n and dim, or the lists s and dim: without dim the last dimensions, as many as s has, or all of them.
func (c *call) fourierAxes(one int) spectrum {
	rank := c.ref("self").typ.Rank()
	f := spectrum{norm: c.str("norm")}
	if one == 1 {
		f.axes, f.sizes = []int{c.axis("dim", rank)}, []int64{c.intOr("n", 0)}
	} else {
		sizes, dims := c.ints("s"), c.ints("dim")
		if !c.has("dim") {
			n := rank
			if c.has("s") {
				n = len(sizes)
			}
			for d := max(rank-n, 0); d < rank; d++ {
				dims = append(dims, int64(d))
			}
		}
		for _, d := range dims {
			a := c.wrap("dim", d, rank)
			if slices.Contains(f.axes, a) {
				c.failf("argument dim names dimension %d twice", a)
			}
			f.axes = append(f.axes, a)
		}
		f.sizes = sizes
		if !c.has("s") {
			f.sizes = make([]int64, len(f.axes))
		}
	}
	if len(f.sizes) != len(f.axes) || rank == 0 {
		c.failf("%d sizes for %d dimensions of rank %d", len(f.sizes), len(f.axes), rank)
	}
	for i, n := range f.sizes {
		if n == -1 {
			f.sizes[i] = 0
		}
		if f.sizes[i] < 0 {
			c.failf("a transform of length %d, wanted 1 or more", n)
		}
	}
	return f
}

// fourier transforms self. Real numbers become complex, integers f32 ones, before a complex transform.
func (c *call) fourier(kind op.FFTKind, f spectrum) *ir.Value {
	x := c.val("self")
	d := floatResult(x.Type.DType)
	switch {
	case kind == op.FFTReal && d.IsComplex():
		c.failf("self is %s, wanted real numbers", x.Type)
	case kind != op.FFTReal && !d.IsComplex():
		d = complexOf(d)
	}
	if d.IsFloat() && d.Bits() < 32 {
		c.unsupported("a transform of %s", x.Type)
	}
	return c.transform(kind, c.cast(x, d), f)
}

// transform runs kind over f's dimensions, moved to the end, three at a time: the real one is the last, done first or last.
func (c *call) transform(kind op.FFTKind, x *ir.Value, f spectrum) *ir.Value {
	n := 1.0
	for i, a := range f.axes {
		want := f.sizes[i]
		last := i == len(f.axes)-1
		switch {
		case kind == op.FFTRealInverse && last:
			if want == 0 {
				want = 2 * (x.Type.Dims[a] - 1)
			}
			f.sizes[i] = want
			x = c.fit(x, a, want/2+1)
		default:
			if want == 0 {
				want = x.Type.Dims[a]
			}
			f.sizes[i] = want
			x = c.fit(x, a, want)
		}
		if want < 1 {
			c.failf("a transform of length %d, wanted 1 or more", want)
		}
		n *= float64(want)
	}
	if len(f.axes) == 0 {
		return x
	}
	rank := x.Type.Rank()
	var perm []int64
	for d := range rank {
		if !slices.Contains(f.axes, d) {
			perm = append(perm, int64(d))
		}
	}
	for _, a := range f.axes {
		perm = append(perm, int64(a))
	}
	y := transpose(c.b, x, perm)
	// A complex transform of the dimensions at the places [from, to) of f, which must stand last.
	inverse := kind == op.FFTInverse || kind == op.FFTRealInverse
	plain := op.FFTForward
	if inverse {
		plain = op.FFTInverse
	}
	others := func(v *ir.Value, count int) *ir.Value {
		first := rank - len(f.axes)
		for from := 0; from < count; from += 3 {
			k := min(count-from, 3)
			// Bring these to the end, and back.
			order := iotaInts(rank)
			part := slices.Clone(order[first+from : first+from+k])
			order = append(slices.Delete(order, first+from, first+from+k), part...)
			v = transpose(c.b, v, order)
			v = op.FFT.Make(c.b, op.FFTAttr{Kind: plain, Length: f.sizes[from : from+k]}, v)
			v = transpose(c.b, v, inversePerm(order))
		}
		return v
	}
	half := f.sizes[len(f.sizes)-1:]
	switch {
	case y.Type.Elements() == 0:
		c.unsupported("a transform of no elements, %s", x.Type)
	case kind == op.FFTReal:
		y = others(op.FFT.Make(c.b, op.FFTAttr{Kind: kind, Length: half}, y), len(f.axes)-1)
	case kind == op.FFTRealInverse:
		y = op.FFT.Make(c.b, op.FFTAttr{Kind: kind, Length: half}, others(y, len(f.axes)-1))
	default:
		y = others(y, len(f.axes))
	}
	y = transpose(c.b, y, inversePerm(perm))
	return c.scaled(y, c.fourierScale(f.norm, inverse, n))
}

// fourierScale is what remains to multiply with, for the operator divides inverse transforms by n.
func (c *call) fourierScale(norm string, inverse bool, n float64) float64 {
	switch norm {
	case "", "backward":
		return 1
	case "ortho":
		if inverse {
			return math.Sqrt(n)
		}
		return 1 / math.Sqrt(n)
	case "forward":
		if inverse {
			return n
		}
		return 1 / n
	}
	c.failf("norm is %q, wanted backward, ortho or forward", clip(norm))
	return 0
}

// scaled is x times a real number.
func (c *call) scaled(x *ir.Value, by float64) *ir.Value {
	if by == 1 {
		return x
	}
	return op.Mul.Make(c.b, x, c.cast(splat(c.b, x.Type.DType.Real(), floatScalar(by), x.Type.Dims), x.Type.DType))
}

// fit cuts or fills dimension a with zeros to n.
func (c *call) fit(x *ir.Value, a int, n int64) *ir.Value {
	have := x.Type.Dims[a]
	if n <= have {
		return slice(c.b, x, a, 0, n, 1)
	}
	high := make([]int64, x.Type.Rank())
	high[a] = n - have
	return op.Pad.Make(c.b, op.PadAttr{Low: make([]int64, len(high)), High: high, Interior: make([]int64, len(high))}, x, c.cast(zero(c.b, x.Type.DType.Real()), x.Type.DType))
}

// inversePerm undoes a permutation.
func inversePerm(perm []int64) []int64 {
	out := make([]int64, len(perm))
	for i, p := range perm {
		out[p] = int64(i)
	}
	return out
}

// hermitian is the transform of half a signal whose other half is its conjugate: real. Directions and their scales are exchanged.
func (c *call) hermitian(f spectrum) *ir.Value {
	x := c.val("self")
	d := floatResult(x.Type.DType)
	if !d.IsComplex() {
		d = complexOf(d)
	}
	f.norm = opposite(f.norm)
	return c.transform(op.FFTRealInverse, conjugate(c.b, c.cast(x, d)), f)
}

// inverseHermitian is half of the transform of a real signal.
func (c *call) inverseHermitian(f spectrum) *ir.Value {
	x := c.val("self")
	d := floatResult(x.Type.DType)
	if d.IsComplex() {
		c.failf("self is %s, wanted real numbers", x.Type)
	}
	f.norm = opposite(f.norm)
	return conjugate(c.b, c.transform(op.FFTReal, c.cast(x, d), f))
}

// opposite is the norm of the transform in the other direction.
func opposite(norm string) string {
	switch norm {
	case "", "backward":
		return "forward"
	case "forward":
		return "backward"
	}
	return norm
}

// decomposed reads dim and normalization of a decomposed transform: 0 scales nothing, 1 by 1/sqrt(n), 2 by 1/n.
func (c *call) decomposed(inverse bool) spectrum {
	f := spectrum{}
	rank := c.ref("self").typ.Rank()
	for _, d := range c.ints("dim") {
		f.axes = append(f.axes, c.wrap("dim", d, rank))
	}
	f.sizes = make([]int64, len(f.axes))
	names := []string{"backward", "ortho", "forward"}
	if inverse {
		names = []string{"forward", "ortho", "backward"}
	}
	n := c.int("normalization")
	if n < 0 || n > 2 {
		c.failf("normalization is %d, wanted 0, 1 or 2", n)
	}
	f.norm = names[n]
	return f
}

func fourierC2C(c *call) *ir.Value {
	if c.bool("forward") {
		return c.transform(op.FFTForward, c.val("self"), c.decomposed(false))
	}
	return c.transform(op.FFTInverse, c.val("self"), c.decomposed(true))
}

// fourierR2C gives half a spectrum, or a whole one.
func fourierR2C(c *call) *ir.Value {
	x, f := c.val("self"), c.decomposed(false)
	if c.bool("onesided") {
		return c.transform(op.FFTReal, x, f)
	}
	return c.transform(op.FFTForward, c.cast(x, complexOf(x.Type.DType)), f)
}

func fourierC2R(c *call) *ir.Value {
	f := c.decomposed(true)
	if len(f.sizes) == 0 {
		c.failf("no dimensions, wanted one or more")
	}
	f.sizes[len(f.sizes)-1] = c.int("last_dim_size")
	return c.transform(op.FFTRealInverse, c.val("self"), f)
}

// fourierShift rotates dimensions by a function of their extent.
func (c *call) fourierShift(by func(n int64) int64) *ir.Value {
	x := c.val("self")
	rank := x.Type.Rank()
	axes := iotaInts(rank)
	if c.has("dim") {
		axes = nil
		for _, d := range c.ints("dim") {
			axes = append(axes, int64(c.wrap("dim", d, rank)))
		}
	}
	for _, a := range axes {
		if rank == 0 {
			break
		}
		n := x.Type.Dims[a]
		if k := by(n); n > 0 && k%n != 0 {
			x = concat(c.b, int(a), slice(c.b, x, int(a), n-k, n, 1), slice(c.b, x, int(a), 0, n-k, 1))
		}
	}
	return x
}

// frequencies are count sample frequencies index(i, n) / (n d).
func (c *call) frequencies(index func(i, n int64) int64, count int64) *ir.Value {
	n, t := c.int("n"), c.resultType()
	if n < 1 || count > maxMatrix {
		c.unsupported("%d frequencies", n)
	}
	v := make([]float64, count)
	for i := range v {
		v[i] = float64(index(int64(i), n)) / (float64(n) * c.float("d"))
	}
	return op.Constant.Make(c.b, op.ConstantAttr{Value: tensor.FromFloats(t, v)})
}
