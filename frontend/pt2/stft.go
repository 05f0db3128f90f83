package pt2

import (
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// shortTimeRules are Fourier transforms of windows along a signal.
var shortTimeRules = map[string]rule{
	"stft":        value(stft),
	"stft.center": value(stft),
	"istft":       value(istft),
}

// frames describes the windows of a short-time transform.
type frames struct {
	size, hop int64
	window    *ir.Value // [size]; nil: ones
}

// frameArgs reads sizes and window, which is set into the middle of n_fft elements.
func (c *call) frameArgs() frames {
	f := frames{size: c.int("n_fft")}
	f.hop = c.intOr("hop_length", f.size/4)
	width := c.intOr("win_length", f.size)
	if f.size < 1 || f.hop < 1 || width < 1 || width > f.size {
		c.failf("n_fft=%d, hop_length=%d, win_length=%d", f.size, f.hop, width)
	}
	w := c.opt("window")
	if w == nil && width < f.size {
		w = splat(c.b, c.ref("self").typ.DType.Real(), intScalar(1), []int64{width})
	}
	if w != nil {
		if w.Type.Rank() != 1 || w.Type.Dims[0] != width || w.Type.DType.IsComplex() {
			c.unsupported("a window of %s for win_length=%d", w.Type, width)
		}
		low := (f.size - width) / 2
		f.window = op.Pad.Make(c.b, op.PadAttr{Low: []int64{low}, High: []int64{f.size - width - low}, Interior: []int64{0}}, w, zero(c.b, w.Type.DType))
	}
	return f
}

// starts are the first elements of n frames, as a literal.
func (f frames) starts(c *call, n int64) *ir.Value {
	if n > maxMatrix {
		c.unsupported("%d frames", n)
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(i) * f.hop
	}
	return literal(c.b, tensor.I32, []int64{n}, v)
}

// stft is the spectrum [.., frequency, frame] of windows of self [.., length].
func stft(c *call) *ir.Value {
	x, f := c.val("self"), c.frameArgs()
	d := x.Type.DType
	if c.schema.param("align_to_window") != nil && c.has("align_to_window") && c.bool("align_to_window") {
		c.unsupported("align_to_window=True")
	}
	if x.Type.Rank() < 1 || x.Type.Rank() > 2 || !d.IsComplex() && floatResult(d) != d {
		c.failf("self is %s, wanted floats of rank 1 or 2", x.Type)
	}
	lead := x.Type.Dims[:x.Type.Rank()-1]
	x = reshape(c.b, x, []int64{x.Type.WithDims(lead...).Elements(), x.Type.Dims[x.Type.Rank()-1]})
	if c.schema.param("center") != nil && c.bool("center") {
		x = c.edgePad(x, []int64{f.size / 2, f.size / 2}, c.str("pad_mode"))
	}
	batch, n := x.Type.Dims[0], (x.Type.Dims[1]-f.size)/f.hop+1
	if x.Type.Dims[1] < f.size || x.Type.Elements() == 0 {
		c.failf("frames of %d for %s", f.size, x.Type)
	}
	y := op.Gather.Make(c.b, op.GatherAttr{OffsetDims: []int64{0, 2}, StartIndexMap: []int64{1}, IndexVectorDim: 1,
		SliceSizes: []int64{batch, f.size}}, x, f.starts(c, n)) // [batch, frame, n_fft]
	if f.window != nil {
		y = op.Mul.Make(c.b, y, c.cast(along(c.b, f.window, y.Type.Dims, 2), d))
	}
	half := !d.IsComplex()
	if c.has("onesided") {
		half = c.bool("onesided")
	}
	if half {
		y = c.alongLast(y, 2, op.FFTAttr{Kind: op.FFTReal, Length: []int64{f.size}})
	} else {
		y = c.transformed(c.cast(y, complexOf(d.Real())), 2, false, f.size)
	}
	if c.bool("normalized") {
		y = c.scaled(y, 1/math.Sqrt(float64(f.size)))
	}
	y = swap(c.b, y, 1, 2)
	y = reshape(c.b, y, slices.Concat(lead, y.Type.Dims[1:]))
	if c.resultType().DType.IsComplex() {
		return y
	}
	dims := append(slices.Clone(y.Type.Dims), 1)
	return concat(c.b, len(dims)-1, reshape(c.b, realPart(c.b, y), dims), reshape(c.b, imagPart(c.b, y), dims))
}

// istft puts the signal together again: windows added where they overlap, divided by the sum of their squares.
func istft(c *call) *ir.Value {
	x, f := c.val("self"), c.frameArgs()
	rank := x.Type.Rank()
	if !x.Type.DType.IsComplex() || rank < 2 || rank > 3 || x.Type.Elements() == 0 {
		c.unsupported("a spectrum of %s", x.Type)
	}
	lead := x.Type.Dims[:rank-2]
	x = reshape(c.b, x, slices.Concat([]int64{x.Type.WithDims(lead...).Elements()}, x.Type.Dims[rank-2:]))
	x = swap(c.b, x, 1, 2) // [batch, frame, frequency]
	var y *ir.Value
	if c.bool("return_complex") {
		y = c.alongLast(c.fitTo(x, 2, f.size), 2, op.FFTAttr{Kind: op.FFTInverse, Length: []int64{f.size}})
	} else { // of a whole spectrum too: it takes the first half
		y = c.alongLast(c.fitTo(x, 2, f.size/2+1), 2, op.FFTAttr{Kind: op.FFTRealInverse, Length: []int64{f.size}})
	}
	if c.bool("normalized") {
		y = c.scaled(y, math.Sqrt(float64(f.size)))
	}
	n := y.Type.Dims[1]
	total := f.size + (n-1)*f.hop
	at := f.starts(c, n)
	overlap := func(v *ir.Value) *ir.Value { // [rows, frame, n_fft] to [rows, total]
		rows := v.Type.Dims[0]
		base := c.cast(splat(c.b, v.Type.DType.Real(), intScalar(0), []int64{rows, total}), v.Type.DType)
		return op.Scatter.Make(c.b, op.ScatterAttr{UpdateWindowDims: []int64{0, 2}, ScatterDimsToOperandDims: []int64{1}, IndexVectorDim: 1,
			Kind: op.Sum}, base, at, v)
	}
	w := f.window
	if w == nil {
		w = splat(c.b, y.Type.DType.Real(), intScalar(1), []int64{f.size})
	}
	y = overlap(op.Mul.Make(c.b, y, c.cast(along(c.b, w, y.Type.Dims, 2), y.Type.DType)))
	weight := overlap(along(c.b, op.Mul.Make(c.b, w, w), []int64{1, n, f.size}, 2))
	from, to := int64(0), total
	if c.bool("center") {
		from, to = f.size/2, total-f.size/2
	}
	if c.has("length") {
		to = from + c.int("length")
	}
	end := min(to, total)
	if from >= end {
		c.failf("%d frames of %d give nothing", n, f.size)
	}
	y, weight = slice(c.b, y, 1, from, end, 1), slice(c.b, weight, 1, from, end, 1)
	y = op.Div.Make(c.b, y, c.cast(op.BroadcastTo(c.b, reshape(c.b, weight, weight.Type.Dims[1:]), y.Type.Dims), y.Type.DType))
	y = c.fitTo(y, 1, to-from)
	return reshape(c.b, y, slices.Concat(lead, []int64{to - from}))
}
