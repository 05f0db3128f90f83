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
	"im2col":          value(im2col),
}

// gridSampler reads input [N, C, H, W] at grid [N, h, w, 2], whose coordinates x and y run from -1 to 1, by linear interpolation or the
// nearest pixel. Beyond the edges are zeros, or the edge goes on.
func gridSampler(c *call) *ir.Value {
	x, grid := c.val("input"), c.val("grid")
	mode, padding, align := c.int("interpolation_mode"), c.int("padding_mode"), c.bool("align_corners")
	if x.Type.Rank() != 4 || grid.Type.Rank() != 4 || grid.Type.Dims[3] != 2 || x.Type.Elements() == 0 {
		c.unsupported("an input of %s with a grid of %s", x.Type, grid.Type)
	}
	if mode > 1 || padding > 1 {
		c.unsupported("interpolation mode %d with padding mode %d", mode, padding)
	}
	d := x.Type.DType
	g := gridder{c: c, f: fb{c.b, c}, n: grid.Type.Dims[0], points: grid.Type.Dims[1] * grid.Type.Dims[2], border: padding == 1}
	g.h, g.w = x.Type.Dims[2], x.Type.Dims[3]
	// All is computed and rounded in the input's own type, as torch does.
	grid = reshape(c.b, c.cast(grid, d), []int64{g.n, g.points, 2})
	g.image = reshape(c.b, x, []int64{g.n, x.Type.Dims[1], g.h * g.w})
	px, py := g.pixel(grid, 0, g.w, align), g.pixel(grid, 1, g.h, align)
	var y *ir.Value
	if mode == 1 {
		y = g.at(op.Round.Make(c.b, px), op.Round.Make(c.b, py), nil)
	} else {
		x0, y0 := op.Floor.Make(c.b, px), op.Floor.Make(c.b, py)
		x1, y1 := g.f.add(x0, g.f.c(x0, 1)), g.f.add(y0, g.f.c(y0, 1))
		tx, ty := g.f.sub(px, x0), g.f.sub(py, y0)
		sx, sy := g.f.sub(x1, px), g.f.sub(y1, py)
		y = g.at(x0, y0, g.f.mul(sx, sy))
		y = g.f.add(y, g.at(x1, y0, g.f.mul(tx, sy)))
		y = g.f.add(y, g.at(x0, y1, g.f.mul(sx, ty)))
		y = g.f.add(y, g.at(x1, y1, g.f.mul(tx, ty)))
	}
	return c.cast(reshape(c.b, y, []int64{g.n, x.Type.Dims[1], c.ref("grid").typ.Dims[1], c.ref("grid").typ.Dims[2]}), d)
}

// gridder samples an image [n, channels, h*w] at points.
type gridder struct {
	c         *call
	f         fb
	image     *ir.Value
	n, points int64
	h, w      int64
	border    bool
}

// pixel is a coordinate, [n, points], in pixels.
func (g gridder) pixel(grid *ir.Value, axis int64, size int64, align bool) *ir.Value {
	v := reshape(g.c.b, slice(g.c.b, grid, 2, axis, axis+1, 1), []int64{g.n, g.points})
	v = g.f.add(v, g.f.c(v, 1))
	if align {
		v = g.f.scale(v, float64(size-1)/2)
	} else {
		v = g.f.scale(g.f.sub(g.f.scale(v, float64(size)), g.f.c(v, 1)), 0.5)
	}
	if g.border {
		v = g.f.min(g.f.max(v, 0), float64(size-1))
	}
	return v
}

// at is the pixels at whole coordinates times weight, [n, channels, points]; zero outside.
func (g gridder) at(x, y, weight *ir.Value) *ir.Value {
	b := g.c.b
	cx, cy := g.f.min(g.f.max(x, 0), float64(g.w-1)), g.f.min(g.f.max(y, 0), float64(g.h-1))
	inside := op.And.Make(b, compare(b, op.EQ, cx, x), compare(b, op.EQ, cy, y))
	col, row := g.c.cast(cx, wide(cx.Type.DType)), g.c.cast(cy, wide(cy.Type.DType))
	ids := g.f.add(g.f.scale(row, float64(g.w)), col)
	if g.h*g.w >= 1<<24 { // whole numbers end there in f32
		g.c.unsupported("an image of %d x %d", g.h, g.w)
	}
	v := op.Gather.Make(b, op.GatherAttr{OffsetDims: []int64{1}, CollapsedSliceDims: []int64{2}, OperandBatchingDims: []int64{0},
		StartIndicesBatchingDims: []int64{0}, StartIndexMap: []int64{2}, IndexVectorDim: 2,
		SliceSizes: []int64{1, g.image.Type.Dims[1], 1}}, g.image, g.c.cast(ids, tensor.I32))
	spread := func(s *ir.Value) *ir.Value {
		return op.Broadcast.Make(b, op.BroadcastAttr{Shape: v.Type.Dims, Dims: []int64{0, 2}}, s)
	}
	if weight != nil {
		v = g.f.mul(v, spread(weight))
	}
	return op.Select.Make(b, spread(inside), v, g.f.c(v, 0))
}

// im2col lays the windows of [N, C, H, W] out as columns, [N, C*window, places].
func im2col(c *call) *ir.Value {
	x := c.val("self")
	batched := x.Type.Rank() == 4
	if !batched {
		if x.Type.Rank() != 3 {
			c.failf("self is %s, wanted rank 3 or 4", x.Type)
		}
		x = reshape(c.b, x, slices.Concat([]int64{1}, x.Type.Dims))
	}
	w := window{kernel: c.pair("kernel_size", 2), stride: c.pair("stride", 2), pad: c.pair("padding", 2), dilation: c.pair("dilation", 2)}
	places := int64(1)
	for i := range 2 {
		if w.kernel[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1 || w.pad[i] < 0 || w.kernel[i] > maxTaps || w.kernel[0]*w.kernel[1] > maxTaps {
			c.unsupported("windows of %v", w.kernel)
		}
		n := (x.Type.Dims[2+i]+2*w.pad[i]-w.dilation[i]*(w.kernel[i]-1)-1)/w.stride[i] + 1
		if n < 1 {
			c.failf("windows of %v do not fit %s", w.kernel, x.Type)
		}
		w.out = append(w.out, n)
		places *= n
	}
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
