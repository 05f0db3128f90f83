package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// sampleRules look at places of an image: on a grid of coordinates, or in windows.
var sampleRules = map[string]rule{
	"grid_sampler":    value(gridSampler),
	"grid_sampler_2d": value(gridSampler),
	"grid_sampler_3d": value(gridSampler),
	"im2col":          value(im2col),
	"col2im":          value(col2im),

	"affine_grid_generator": value(affineGrid),
}

// Torch's numbers of interpolation modes and of what is beyond the edges (aten/src/ATen/native/GridSamplerUtils.h).
const (
	gridLinear  = 0
	gridNearest = 1
	gridCubic   = 2

	beyondZeros   = 0
	beyondBorder  = 1
	beyondReflect = 2
)

// gridSampler reads input [N, C, spatial...] at grid [N, places..., d], whose d coordinates, that of the last dimension first, run from -1 to
// 1, by linear or cubic interpolation, or the nearest pixel. Beyond the edges are zeros, or the edge goes on, or the image is reflected.
func gridSampler(c *call) *ir.Value {
	x, grid := c.val("input"), c.val("grid")
	mode, beyond, align := c.int("interpolation_mode"), c.int("padding_mode"), c.bool("align_corners")
	rank := x.Type.Rank()
	if rank != 4 && rank != 5 || grid.Type.Rank() != rank || grid.Type.Dims[rank-1] != int64(rank-2) || grid.Type.Dims[0] != x.Type.Dims[0] {
		c.failf("an input of %s with a grid of %s", x.Type, grid.Type)
	}
	if mode < 0 || mode > gridCubic || beyond < 0 || beyond > beyondReflect {
		c.failf("interpolation mode %d with padding mode %d", mode, beyond)
	}
	sizes, places := x.Type.Dims[2:], grid.Type.Dims[1:rank-1]
	out := slices.Concat(x.Type.Dims[:2], places)
	if x.Type.Elements() == 0 || grid.Type.Elements() == 0 {
		return splat(c.b, x.Type.DType, intScalar(0), out)
	}
	d := x.Type.DType
	g := gridder{c: c, f: fb{c.b, c}, n: x.Type.Dims[0], points: grid.Type.WithDims(places...).Elements(), sizes: sizes, beyond: beyond, align: align}
	// All is computed and rounded in the input's own type, as torch does.
	grid = reshape(c.b, c.cast(grid, d), []int64{g.n, g.points, int64(len(sizes))})
	g.image = reshape(c.b, x, []int64{g.n, x.Type.Dims[1], x.Type.WithDims(sizes...).Elements()})
	at := make([]*ir.Value, len(sizes))
	for i := range at {
		at[i] = g.pixel(grid, i)
	}
	var y *ir.Value
	switch mode {
	case gridNearest:
		for i, v := range at {
			at[i] = op.Round.Make(c.b, g.inside(v, i))
		}
		y = g.at(at, nil)
	case gridCubic:
		y = g.cubic(at)
	default:
		for i, v := range at {
			at[i] = g.inside(v, i)
		}
		y = g.linear(at)
	}
	return c.cast(reshape(c.b, y, out), d)
}

// gridder samples an image [n, channels, elements] of sizes at points.
type gridder struct {
	c         *call
	f         fb
	image     *ir.Value
	n, points int64
	sizes     []int64
	beyond    int64
	align     bool
}

// pixel is the coordinate of a dimension of the image, [n, points], in pixels.
func (g gridder) pixel(grid *ir.Value, dim int) *ir.Value {
	axis, size := int64(len(g.sizes)-1-dim), float64(g.sizes[dim])
	v := reshape(g.c.b, slice(g.c.b, grid, 2, axis, axis+1, 1), []int64{g.n, g.points})
	v = g.f.add(v, g.f.c(v, 1))
	if g.align {
		return g.f.scale(v, (size-1)/2)
	}
	return g.f.scale(g.f.sub(g.f.scale(v, size), g.f.c(v, 1)), 0.5)
}

// inside brings coordinates beyond the edges back into the image, where they are not zeros.
func (g gridder) inside(v *ir.Value, dim int) *ir.Value {
	f, size := g.f, float64(g.sizes[dim])
	switch g.beyond {
	case beyondZeros:
		return v
	case beyondReflect:
		low, span := -0.5, size // the edges of the outer pixels
		if g.align {
			low, span = 0, size-1
		}
		if span == 0 {
			return f.c(v, 0)
		}
		v = op.Abs.Make(g.c.b, f.sub(v, f.c(v, low)))
		flips := op.Floor.Make(g.c.b, op.Div.Make(g.c.b, v, f.c(v, span)))
		rest := op.Rem.Make(g.c.b, v, f.c(v, span))
		odd := compare(g.c.b, op.NE, op.Rem.Make(g.c.b, flips, f.c(v, 2)), f.c(v, 0))
		v = op.Select.Make(g.c.b, odd, f.add(f.sub(f.c(v, span), rest), f.c(v, low)), f.add(rest, f.c(v, low)))
	}
	return f.min(f.max(v, 0), size-1)
}

// linear is the image between the 2^d pixels around each place, zero beyond its edges.
func (g gridder) linear(at []*ir.Value) *ir.Value {
	low, high := make([]*ir.Value, len(at)), make([]*ir.Value, len(at))
	toLow, toHigh := make([]*ir.Value, len(at)), make([]*ir.Value, len(at)) // weights of the two
	for i, v := range at {
		low[i] = op.Floor.Make(g.c.b, v)
		high[i] = g.f.add(low[i], g.f.c(v, 1))
		toLow[i], toHigh[i] = g.f.sub(high[i], v), g.f.sub(v, low[i])
	}
	var y *ir.Value
	for corner := range 1 << len(at) { // the last dimension first
		places := make([]*ir.Value, len(at))
		var weight *ir.Value
		for i := range slices.Backward(at) {
			w := toLow[i]
			if places[i] = low[i]; corner>>(len(at)-1-i)&1 == 1 {
				places[i], w = high[i], toHigh[i]
			}
			if weight == nil {
				weight = w
			} else {
				weight = g.f.mul(weight, w)
			}
		}
		v := g.at(places, weight)
		if y == nil {
			y = v
		} else {
			y = g.f.add(y, v)
		}
	}
	return y
}

// cubic is Keys' interpolation of 4 pixels along each dimension, each brought into the image for itself.
func (g gridder) cubic(at []*ir.Value) *ir.Value {
	type tap struct{ place, weight *ir.Value }
	taps := make([][]tap, len(at))
	for i, v := range at {
		low := op.Floor.Make(g.c.b, v)
		t := g.f.sub(v, low)
		for k := -1.0; k <= 2; k++ {
			x := g.f.sub(t, g.f.c(t, k)) // from the pixel to the place
			if k > 0 {
				x = g.f.neg(x)
			}
			taps[i] = append(taps[i], tap{g.inside(g.f.add(low, g.f.c(low, k)), i), g.keys(x, k == -1 || k == 2)})
		}
	}
	// A line along a dimension is summed before it is weighted along the one before.
	var sum func(places []*ir.Value) *ir.Value
	sum = func(places []*ir.Value) *ir.Value {
		if len(places) == len(at) {
			return g.at(places, nil)
		}
		var y *ir.Value
		for _, t := range taps[len(places)] {
			v := sum(append(slices.Clone(places), t.place))
			if v = g.f.mul(v, g.channels(v, t.weight)); y == nil {
				y = v
			} else {
				y = g.f.add(y, v)
			}
		}
		return y
	}
	return sum(nil)
}

// keys is Keys' kernel with a = -0.75 at distances x: of the outer pixels, between 1 and 2, or of the inner ones, up to 1.
func (g gridder) keys(x *ir.Value, outer bool) *ir.Value {
	const a = -0.75
	f := g.f
	if outer { // ((a x - 5 a) x + 8 a) x - 4 a
		v := f.mul(f.sub(f.scale(x, a), f.c(x, 5*a)), x)
		return f.sub(f.mul(f.add(v, f.c(x, 8*a)), x), f.c(x, 4*a))
	}
	v := f.mul(f.mul(f.sub(f.scale(x, a+2), f.c(x, a+3)), x), x) // ((a + 2) x - (a + 3)) x x + 1
	return f.add(v, f.c(x, 1))
}

// channels repeats numbers of points for the channels of v.
func (g gridder) channels(v, s *ir.Value) *ir.Value {
	return op.Broadcast.Make(g.c.b, op.BroadcastAttr{Shape: v.Type.Dims, Dims: []int64{0, 2}}, s)
}

// at is the pixels at whole coordinates times weight, [n, channels, points]; zero outside.
func (g gridder) at(places []*ir.Value, weight *ir.Value) *ir.Value {
	b := g.c.b
	if g.image.Type.Dims[2] >= 1<<24 { // whole numbers end there in f32
		g.c.unsupported("an image of %v", g.sizes)
	}
	var inside, ids *ir.Value
	for i, v := range places {
		near := g.f.min(g.f.max(v, 0), float64(g.sizes[i]-1))
		in := compare(b, op.EQ, near, v)
		near = g.c.cast(near, wide(near.Type.DType))
		if i == 0 {
			inside, ids = in, near
			continue
		}
		inside, ids = op.And.Make(b, inside, in), g.f.add(g.f.scale(ids, float64(g.sizes[i])), near)
	}
	v := op.Gather.Make(b, op.GatherAttr{OffsetDims: []int64{1}, CollapsedSliceDims: []int64{2}, OperandBatchingDims: []int64{0},
		StartIndicesBatchingDims: []int64{0}, StartIndexMap: []int64{2}, IndexVectorDim: 2,
		SliceSizes: []int64{1, g.image.Type.Dims[1], 1}}, g.image, g.c.cast(ids, tensor.I32))
	if weight != nil {
		v = g.f.mul(v, g.channels(v, weight))
	}
	return op.Select.Make(b, g.channels(v, inside), v, g.f.c(v, 0))
}

// batchOf is self of that rank, one without its first dimension made a batch of one.
func (c *call) batchOf(rank int) (x *ir.Value, batched bool) {
	x = c.val("self")
	if x.Type.Rank() == rank {
		return x, true
	}
	if x.Type.Rank() != rank-1 {
		c.failf("self is %s, wanted rank %d or %d", x.Type, rank-1, rank)
	}
	return reshape(c.b, x, slices.Concat([]int64{1}, x.Type.Dims)), false
}

// im2col lays the windows of [N, C, H, W] out as columns, [N, C*window, places].
func im2col(c *call) *ir.Value {
	x, batched := c.batchOf(4)
	w := c.columnWindow(x.Type.Dims[2:])
	places := w.out[0] * w.out[1]
	n, ch := x.Type.Dims[0], x.Type.Dims[1]
	var parts []*ir.Value
	c.taps(x, w, intScalar(0), func(v *ir.Value) { parts = append(parts, reshape(c.b, v, []int64{n, ch, 1, places})) })
	y := concat(c.b, 2, parts...)
	dims := []int64{n, ch * int64(len(parts)), places}
	if !batched {
		dims = dims[1:]
	}
	return reshape(c.b, y, dims)
}

// columnWindow is the window of im2col and col2im over an image of two dimensions.
func (c *call) columnWindow(image []int64) window {
	w := window{kernel: c.pair("kernel_size", 2), stride: c.pair("stride", 2), pad: c.pair("padding", 2), dilation: c.pair("dilation", 2)}
	for i := range 2 {
		if w.kernel[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1 || w.pad[i] < 0 || w.kernel[i] > maxTaps || w.kernel[0]*w.kernel[1] > maxTaps {
			c.unsupported("windows of %v", w.kernel)
		}
		reach := w.dilation[i]*(w.kernel[i]-1) + 1
		if w.pad[i] > maxViewed || reach > maxViewed || image[i]+2*w.pad[i] < reach {
			c.failf("windows of %v do not fit an image of %v", w.kernel, image)
		}
		w.out = append(w.out, (image[i]+2*w.pad[i]-reach)/w.stride[i]+1)
	}
	return w
}

// col2im adds columns [N, C*window, places] up to the image [N, C, H, W] whose windows they are.
func col2im(c *call) *ir.Value {
	x, batched := c.batchOf(3)
	image := c.pair("output_size", 2)
	for _, n := range image {
		if n < 1 || n > maxViewed {
			c.failf("output_size is %v, wanted 1 to %d", image, maxViewed)
		}
	}
	w := c.columnWindow(image)
	taps := w.kernel[0] * w.kernel[1]
	if n := w.out[0] * w.out[1]; x.Type.Dims[1]%taps != 0 || x.Type.Dims[2] != n {
		c.failf("self is %s, wanted columns of %v at %d places", x.Type, w.kernel, n)
	}
	n, ch := x.Type.Dims[0], x.Type.Dims[1]/taps
	x = reshape(c.b, x, []int64{n, ch, taps, w.out[0], w.out[1]})
	// Each tap's elements stand at their places of the padded image, which is cut at the end.
	var y *ir.Value
	for k := range taps {
		at := []int64{k / w.kernel[1] * w.dilation[0], k % w.kernel[1] * w.dilation[1]}
		part := reshape(c.b, slice(c.b, x, 2, k, k+1, 1), []int64{n, ch, w.out[0], w.out[1]})
		a := op.PadAttr{Low: []int64{0, 0, at[0], at[1]}, High: make([]int64, 4), Interior: []int64{0, 0, w.stride[0] - 1, w.stride[1] - 1}}
		for i := range 2 {
			a.High[2+i] = image[i] + 2*w.pad[i] - at[i] - (w.out[i]-1)*w.stride[i] - 1
		}
		part = op.Pad.Make(c.b, a, part, zero(c.b, x.Type.DType))
		if y == nil {
			y = part
			continue
		}
		y = op.Add.Make(c.b, y, part)
	}
	for i := range 2 {
		y = slice(c.b, y, 2+i, w.pad[i], w.pad[i]+image[i], 1)
	}
	if !batched {
		y = reshape(c.b, y, y.Type.Dims[1:])
	}
	return y
}

// affineGrid is the places in the input of an affine map for every place of an output of size [N, C, H, W] or [N, C, D, H, W].
func affineGrid(c *call) *ir.Value {
	theta, size := c.val("theta"), c.ints("size")
	n := len(size) - 2 // dimensions of the image
	t := theta.Type
	if n < 2 || n > 3 || !slices.Equal(t.Dims, []int64{size[0], int64(n), int64(n + 1)}) || !t.DType.IsFloat() {
		c.failf("theta is %s for a size of %v, wanted [N, 2, 3] or [N, 3, 4]", t, size)
	}
	grid := slices.Concat(size[2:], []int64{int64(n + 1)})
	if err := tensor.Make(t.DType, grid...).Check(); err != nil {
		c.failf("%v", err)
	}
	var cols []*ir.Value
	dims := slices.Concat(size[2:], []int64{1})
	for i := n - 1; i >= 0; i-- { // x comes first
		cols = append(cols, along(c.b, c.fromMinusOne(t.DType, size[2+i], c.bool("align_corners")), dims, i))
	}
	cols = append(cols, splat(c.b, t.DType, intScalar(1), dims))
	base := concat(c.b, n, cols...)
	places := base.Type.Elements() / int64(n+1)
	base = op.BroadcastTo(c.b, reshape(c.b, base, []int64{1, places, int64(n + 1)}), []int64{size[0], places, int64(n + 1)})
	y := c.matmul(base, swap(c.b, theta, 1, 2))
	return reshape(c.b, y, slices.Concat(size[:1], size[2:], []int64{int64(n)}))
}

// fromMinusOne is n places from -1 to 1; without align the edges of the first and of the last are meant.
func (c *call) fromMinusOne(d tensor.DType, n int64, align bool) *ir.Value {
	if n < 1 || n > maxConstant {
		c.unsupported("a grid of %d places", n)
	}
	v := make([]float64, n)
	for i := range v {
		if n > 1 {
			v[i] = 2*float64(i)/float64(n-1) - 1
		}
		if !align {
			v[i] *= float64(n-1) / float64(n)
		}
	}
	return op.Constant.Make(c.b, op.ConstantAttr{Value: tensor.FromFloats(tensor.Make(d, n), v)})
}
