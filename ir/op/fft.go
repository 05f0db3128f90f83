package op

import (
	"fmt"
	"math"
	"math/bits"
	"math/cmplx"
	"slices"

	"tpuc/ir"
	"tpuc/ir/tensor"
)

// FFTKind names a Fourier transform.
type FFTKind string

// Transforms. The inverse ones divide by the number of elements; rfft keeps half of the last axis, irfft starts from that half.
const (
	FFTForward     FFTKind = "fft"
	FFTInverse     FFTKind = "ifft"
	FFTReal        FFTKind = "rfft"
	FFTRealInverse FFTKind = "irfft"
)

// FFTAttr is the attribute struct of FFT.
type FFTAttr struct {
	Kind   FFTKind `ir:"kind"`
	Length []int64 `ir:"length"` // of the transformed last dimensions, one to three; of irfft those of the result
}

// FFT is the discrete Fourier transform of the last dimensions (StableHLO fft, aten::_fft_c2c, _fft_r2c, _fft_c2r). fft and ifft map complex
// numbers to complex; rfft maps f32 or f64 [..., n] to complex [..., n/2+1], irfft complex [..., n/2+1] to real [..., n], ignoring
// imaginary parts that the symmetry of a real signal's spectrum rules out.
var FFT = define(Def[FFTAttr]{
	Name: "fft", Doc: "Takes the discrete Fourier transform of the last dimensions.", Args: "x",
	Infer: inferFFT,
	Lower: func(e ir.Emitter, n *ir.Node, a FFTAttr) []ir.Ref {
		return e.Emit(ir.HLO{Name: "stablehlo.fft", Args: refs(e, n), Attrs: []string{"fft_length = " + i64Array(a.Length),
			fmt.Sprintf("fft_type = #stablehlo<fft_type %s>", map[FFTKind]string{FFTForward: "FFT", FFTInverse: "IFFT", FFTReal: "RFFT", FFTRealInverse: "IRFFT"}[a.Kind])},
			Out: []tensor.Type{n.Outs[0].Type}})
	},
	Eval: evalFFT,
	Cost: func(n *ir.Node, a FFTAttr) ir.Cost { // 5 n log2 n, the usual count
		all := max(n.Args[0].Type.Elements(), n.Outs[0].Type.Elements())
		return ir.Cost{Flops: 5 * all * int64(bits.Len64(uint64(product(a.Length))))}
	},
})

// inferFFT checks the kind in 1, the number of lengths in 2, the dtype in 3 and the extents in 4.
func inferFFT(in []tensor.Type, a FFTAttr) ([]tensor.Type, error) {
	x, k := in[0], len(a.Length)
	var good bool
	switch a.Kind {
	case FFTForward, FFTInverse, FFTRealInverse:
		good = x.DType.IsComplex()
	case FFTReal:
		good = x.DType == tensor.F32 || x.DType == tensor.F64
	default:
		return nil, fail(1, "kind %q, wanted fft, ifft, rfft or irfft", string(a.Kind))
	}
	if k < 1 || k > 3 || k > x.Rank() {
		return nil, fail(2, "%d lengths for rank %d, wanted one to three of the last dimensions", k, x.Rank())
	}
	if !good {
		return nil, fail(3, "dtype %s, wanted complex, or f32 or f64 for rfft", x.DType)
	}
	dims := slices.Clone(x.Dims)
	for i, n := range a.Length {
		d := x.Rank() - k + i
		want := n
		if a.Kind == FFTRealInverse && i == k-1 {
			want = n/2 + 1
		}
		if n < 1 || x.Dims[d] != want {
			return nil, fail(4, "dimension %d is %d, wanted %d for length %d of 1 or more", d, x.Dims[d], want, n)
		}
	}
	last, out := len(dims)-1, x.DType
	switch a.Kind {
	case FFTReal:
		dims[last], out = a.Length[k-1]/2+1, tensor.C64
		if x.DType == tensor.F64 {
			out = tensor.C128
		}
	case FFTRealInverse:
		dims[last], out = a.Length[k-1], x.DType.Real()
	}
	return one(tensor.Make(out, dims...))
}

// evalFFT transforms one axis after another in complex128; irfft takes the real axis last.
func evalFFT(in []*tensor.Tensor, a FFTAttr, out []tensor.Type) ([]*tensor.Tensor, error) {
	x, dims := in[0].Complexes(), slices.Clone(in[0].Dims)
	inverse := a.Kind == FFTInverse || a.Kind == FFTRealInverse
	first, last := len(dims)-len(a.Length), len(dims)-1
	if a.Kind == FFTReal {
		x = fftAxis(x, dims, last, false)
		x, dims = cutAxis(x, dims, last, out[0].Dims[last]), out[0].Dims
		last--
	}
	for axis := first; axis <= last; axis++ {
		if a.Kind == FFTRealInverse && axis == last {
			x, dims = mirrorAxis(x, dims, axis, out[0].Dims[axis]), out[0].Dims
		}
		x = fftAxis(x, dims, axis, inverse)
	}
	if out[0].DType.IsComplex() {
		return result(tensor.FromComplexes(out[0], x))
	}
	re := make([]float64, len(x))
	for i, c := range x {
		re[i] = real(c)
	}
	return result(tensor.FromFloats(out[0], re))
}

// fftAxis transforms every line along axis.
func fftAxis(x []complex128, dims []int64, axis int, inverse bool) []complex128 {
	along := []int64{int64(axis)}
	steps := offsets(dims, along)
	line := make([]complex128, len(steps))
	for _, row := range offsets(dims, free(len(dims), along)) {
		for i, s := range steps {
			line[i] = x[row+s]
		}
		for i, v := range fourier(line, inverse) {
			if inverse {
				v /= complex(float64(len(steps)), 0)
			}
			x[row+steps[i]] = v
		}
	}
	return x
}

// fourier sums x[k] exp(-2 pi i j k / n), or +2 pi: by halves as long as n is even, then directly.
func fourier(x []complex128, inverse bool) []complex128 {
	n := len(x)
	turn := func(k int) complex128 {
		angle := -2 * math.Pi * float64(k) / float64(n)
		if inverse {
			angle = -angle
		}
		return cmplx.Rect(1, angle)
	}
	y := make([]complex128, n)
	if n%2 == 1 || n == 0 {
		for j := range y {
			for k, v := range x {
				y[j] += v * turn(j*k%n)
			}
		}
		return y
	}
	even, odd := make([]complex128, n/2), make([]complex128, n/2)
	for i := range even {
		even[i], odd[i] = x[2*i], x[2*i+1]
	}
	even, odd = fourier(even, inverse), fourier(odd, inverse)
	for j := range even {
		t := turn(j) * odd[j]
		y[j], y[j+n/2] = even[j]+t, even[j]-t
	}
	return y
}

// cutAxis keeps the first n along the last axis.
func cutAxis(x []complex128, dims []int64, axis int, n int64) []complex128 {
	var out []complex128
	for i := int64(0); i < int64(len(x)); i += dims[axis] {
		out = append(out, x[i:i+n]...)
	}
	return out
}

// mirrorAxis completes half a spectrum along the last axis to n by conjugates; what must be real is made so.
func mirrorAxis(x []complex128, dims []int64, axis int, n int64) []complex128 {
	half := dims[axis]
	var out []complex128
	for i := int64(0); i < int64(len(x)); i += half {
		for k := range n {
			switch {
			case k == 0 || 2*k == n:
				out = append(out, complex(real(x[i+k]), 0))
			case k < half:
				out = append(out, x[i+k])
			default:
				out = append(out, cmplx.Conj(x[i+n-k]))
			}
		}
	}
	return out
}
