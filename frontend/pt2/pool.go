package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// poolRules look at windows of the last dimensions, and resample them.
var poolRules = map[string]rule{
	"max_pool1d":                    value(func(c *call) *ir.Value { return c.maxPool(1) }),
	"max_pool2d":                    value(func(c *call) *ir.Value { return c.maxPool(2) }),
	"max_pool3d":                    value(func(c *call) *ir.Value { return c.maxPool(3) }),
	"max_pool1d_with_indices":       values(func(c *call) []*ir.Value { return c.maxPoolIndices(1) }),
	"max_pool2d_with_indices":       values(func(c *call) []*ir.Value { return c.maxPoolIndices(2) }),
	"max_pool3d_with_indices":       values(func(c *call) []*ir.Value { return c.maxPoolIndices(3) }),
	"avg_pool1d":                    value(func(c *call) *ir.Value { return c.avgPool(1) }),
	"avg_pool2d":                    value(func(c *call) *ir.Value { return c.avgPool(2) }),
	"avg_pool3d":                    value(func(c *call) *ir.Value { return c.avgPool(3) }),
	"adaptive_avg_pool1d":           value(func(c *call) *ir.Value { return c.adaptiveAvg(1) }),
	"adaptive_avg_pool2d":           value(func(c *call) *ir.Value { return c.adaptiveAvg(2) }),
	"adaptive_avg_pool3d":           value(func(c *call) *ir.Value { return c.adaptiveAvg(3) }),
	"_adaptive_avg_pool2d":          value(func(c *call) *ir.Value { return c.adaptiveAvg(2) }),
	"_adaptive_avg_pool3d":          value(func(c *call) *ir.Value { return c.adaptiveAvg(3) }),
	"upsample_nearest1d.vec":        value(func(c *call) *ir.Value { return c.resize(1, op.NearestFilter) }),
	"upsample_nearest2d.vec":        value(func(c *call) *ir.Value { return c.resize(2, op.NearestFilter) }),
	"upsample_nearest3d.vec":        value(func(c *call) *ir.Value { return c.resize(3, op.NearestFilter) }),
	"upsample_nearest1d":            value(func(c *call) *ir.Value { return c.resize(1, op.NearestFilter) }),
	"upsample_nearest2d":            value(func(c *call) *ir.Value { return c.resize(2, op.NearestFilter) }),
	"upsample_nearest3d":            value(func(c *call) *ir.Value { return c.resize(3, op.NearestFilter) }),
	"_upsample_nearest_exact1d.vec": value(func(c *call) *ir.Value { return c.resize(1, op.ExactFilter) }),
	"_upsample_nearest_exact2d.vec": value(func(c *call) *ir.Value { return c.resize(2, op.ExactFilter) }),
	"_upsample_nearest_exact3d.vec": value(func(c *call) *ir.Value { return c.resize(3, op.ExactFilter) }),
	"_upsample_nearest_exact2d":     value(func(c *call) *ir.Value { return c.resize(2, op.ExactFilter) }),
	"upsample_linear1d.vec":         value(func(c *call) *ir.Value { return c.resize(1, op.LinearFilter) }),
	"upsample_bilinear2d.vec":       value(func(c *call) *ir.Value { return c.resize(2, op.LinearFilter) }),
	"upsample_trilinear3d.vec":      value(func(c *call) *ir.Value { return c.resize(3, op.LinearFilter) }),
	"upsample_bicubic2d.vec":        value(func(c *call) *ir.Value { return c.resize(2, op.CubicFilter) }),
	"upsample_linear1d":             value(func(c *call) *ir.Value { return c.resize(1, op.LinearFilter) }),
	"upsample_bilinear2d":           value(func(c *call) *ir.Value { return c.resize(2, op.LinearFilter) }),
	"upsample_trilinear3d":          value(func(c *call) *ir.Value { return c.resize(3, op.LinearFilter) }),
	"upsample_bicubic2d":            value(func(c *call) *ir.Value { return c.resize(2, op.CubicFilter) }),
	"_upsample_bilinear2d_aa.vec":   value(func(c *call) *ir.Value { return c.resize(2, op.LinearAAFilter) }),
	"_upsample_bicubic2d_aa.vec":    value(func(c *call) *ir.Value { return c.resize(2, op.CubicAAFilter) }),
	"_upsample_bilinear2d_aa":       value(func(c *call) *ir.Value { return c.resize(2, op.LinearAAFilter) }),
	"_upsample_bicubic2d_aa":        value(func(c *call) *ir.Value { return c.resize(2, op.CubicAAFilter) }),
}

// maxTaps bounds the slices that one pooling expands to.
const maxTaps = 1 << 10

// window describes a pooling of the last dimensions.
type window struct {
	kernel, stride, pad, dilation []int64
	out                           []int64
}

// poolWindow reads the window of a pooling of x.
func (c *call) poolWindow(x *ir.Value, spatial int) window {
	if x.Type.Rank() < spatial+1 {
		c.failf("self is %s, wanted %d dimensions and channels", x.Type, spatial)
	}
	return c.windowOf(x.Type, spatial, c.resultType().Dims[x.Type.Rank()-spatial:])
}

// windowOf reads the window of a pooling of x with results of out; an empty stride is the kernel.
func (c *call) windowOf(x tensor.Type, spatial int, out []int64) window {
	w := window{out: out, kernel: c.pair("kernel_size", spatial), pad: c.pair("padding", spatial), dilation: slices.Repeat([]int64{1}, spatial)}
	w.stride = w.kernel
	if len(c.ints("stride")) > 0 {
		w.stride = c.pair("stride", spatial)
	}
	if c.schema.param("dilation") != nil {
		w.dilation = c.pair("dilation", spatial)
	}
	if x.Rank() < spatial+1 {
		c.failf("self is %s, wanted %d dimensions and channels", x, spatial)
	}
	for i := range spatial {
		if w.kernel[i] < 1 || w.stride[i] < 1 || w.dilation[i] < 1 || w.pad[i] < 0 {
			c.failf("kernel %v, stride %v, padding %v", w.kernel, w.stride, w.pad)
		}
	}
	return w
}

// pads are the elements beyond the edges that the windows reach, [low, high] for each dimension of x.
func (w window) pads(x tensor.Type) [][]int64 {
	lead := x.Rank() - len(w.kernel)
	pads := slices.Repeat([][]int64{{0, 0}}, lead)
	for i := range w.kernel {
		reach := (w.out[i]-1)*w.stride[i] + (w.kernel[i]-1)*w.dilation[i] + 1
		pads = append(pads, []int64{w.pad[i], max(reach-x.Dims[lead+i]-w.pad[i], 0)})
	}
	return pads
}

// pool combines the elements under the window at each place.
func (c *call) pool(kind op.Reducer, x *ir.Value, w window) *ir.Value {
	lead := slices.Repeat([]int64{1}, x.Type.Rank()-len(w.kernel))
	return op.ReduceWindow.Make(c.b, op.ReduceWindowAttr{Kind: kind, Window: slices.Concat(lead, w.kernel), Strides: slices.Concat(lead, w.stride),
		Dilation: slices.Concat(lead, w.dilation), Padding: w.pads(x.Type)}, x)
}

// taps calls visit with the elements of x under every place of the window; beyond the edges is fill.
func (c *call) taps(x *ir.Value, w window, fill scalar, visit func(*ir.Value)) {
	all := int64(1)
	for _, k := range w.kernel {
		if all *= min(k, maxTaps+1); all > maxTaps {
			c.unsupported("windows of %v", w.kernel)
		}
	}
	lead := x.Type.Rank() - len(w.kernel)
	low, high := make([]int64, x.Type.Rank()), make([]int64, x.Type.Rank())
	for d, p := range w.pads(x.Type) {
		low[d], high[d] = p[0], p[1]
	}
	if slices.Max(low) > 0 || slices.Max(high) > 0 {
		x = op.Pad.Make(c.b, op.PadAttr{Low: low, High: high, Interior: make([]int64, len(low))}, x, constant(c.b, x.Type.DType, fill))
	}
	var walk func(v *ir.Value, i int)
	walk = func(v *ir.Value, i int) {
		if i == len(w.kernel) {
			visit(v)
			return
		}
		for k := range w.kernel[i] {
			from := k * w.dilation[i]
			walk(slice(c.b, v, lead+i, from, from+(w.out[i]-1)*w.stride[i]+1, w.stride[i]), i+1)
		}
	}
	walk(x, 0)
}

// maxPool is the maximum over the window at each place; beyond the edges is the lowest value.
func (c *call) maxPool(spatial int) *ir.Value {
	x := c.val("self")
	return c.pool(op.Max, x, c.poolWindow(x, spatial))
}

// maxPoolIndices also gives the place of each maximum in the flattened last dimensions.
func (c *call) maxPoolIndices(spatial int) []*ir.Value {
	x := c.val("self")
	w := c.poolWindow(x, spatial)
	lead := x.Type.Rank() - spatial
	plane := x.Type.Dims[lead:]
	places := counting(c.b, tensor.I64, []int64{x.Type.WithDims(plane...).Elements()}, 0)
	places = op.BroadcastTo(c.b, reshape(c.b, places, plane), x.Type.Dims)
	var ids []*ir.Value
	c.taps(places, w, intScalar(0), func(v *ir.Value) { ids = append(ids, v) })
	var y, at *ir.Value
	c.taps(x, w, lowest(x.Type.DType), func(v *ir.Value) {
		id := ids[0]
		ids = ids[1:]
		if y == nil {
			y, at = v, id
			return
		}
		higher := compare(c.b, op.GT, v, y)
		if v.Type.DType.IsFloat() {
			higher = op.Or.Make(c.b, higher, compare(c.b, op.NE, v, v))
		}
		y, at = op.Select.Make(c.b, higher, v, y), op.Select.Make(c.b, higher, id, at)
	})
	return []*ir.Value{y, at}
}

// avgPool divides by the window's size, or by its elements within x.
func (c *call) avgPool(spatial int) *ir.Value {
	x := c.val("self")
	d := x.Type.DType
	w := c.poolWindow(x, spatial)
	x = c.cast(x, wide(d))
	y := c.pool(op.Sum, x, w)
	switch {
	case c.schema.param("divisor_override") != nil && c.has("divisor_override"):
		y = op.Div.Make(c.b, y, likeF(c.b, y, c.float("divisor_override")))
	default:
		y = op.Div.Make(c.b, y, c.poolCounts(y, w, x.Type.Dims, c.bool("count_include_pad")))
	}
	return c.cast(y, d)
}

// poolCounts is the number of elements under the window at each place, as a literal along each dimension.
func (c *call) poolCounts(y *ir.Value, w window, in []int64, includePad bool) *ir.Value {
	lead := y.Type.Rank() - len(w.kernel)
	n := likeF(c.b, y, 1)
	for i := range w.kernel {
		v := make([]float64, w.out[i])
		size := in[lead+i]
		for o := range v {
			from := int64(o)*w.stride[i] - w.pad[i]
			to := min(from+w.kernel[i], size+w.pad[i])
			if !includePad {
				from, to = max(from, 0), min(to, size)
			}
			v[o] = float64(to - from)
		}
		one := op.Constant.Make(c.b, op.ConstantAttr{Value: tensor.FromFloats(tensor.Make(y.Type.DType, w.out[i]), v)})
		n = op.Mul.Make(c.b, n, along(c.b, one, y.Type.Dims, lead+i))
	}
	return n
}

// maxMatrix bounds the literal matrices of resampling.
const maxMatrix = 1 << 22

// adaptiveAvg averages windows floor(i n/o) to ceil((i+1) n/o), which may overlap, one dimension after another.
func (c *call) adaptiveAvg(spatial int) *ir.Value {
	x := c.val("self")
	d := x.Type.DType
	out := c.resultType().Dims
	if x.Type.Rank() < spatial {
		c.failf("self is %s, wanted %d dimensions", x.Type, spatial)
	}
	x = c.cast(x, wide(d))
	for axis := x.Type.Rank() - spatial; axis < x.Type.Rank(); axis++ {
		n, o := x.Type.Dims[axis], out[axis]
		if n == o {
			continue
		}
		if o > 0 && n%o == 0 { // equal windows
			y := reshape(c.b, x, slices.Concat(x.Type.Dims[:axis], []int64{o, n / o}, x.Type.Dims[axis+1:]))
			x = c.meanOf(y, []int64{int64(axis + 1)}, false)
			continue
		}
		if n*o > maxMatrix {
			c.unsupported("pooling %d to %d", n, o)
		}
		rows := make([][]float64, o)
		for i := range rows {
			rows[i] = make([]float64, n)
			from, to := int64(i)*n/o, (int64(i+1)*n+o-1)/o
			for k := from; k < to; k++ {
				rows[i][k] = 1 / float64(to-from)
			}
		}
		x = op.MulAlong(c.b, x, axis, rows)
	}
	return c.cast(x, d)
}

// scaleOf is torch's ratio of input to output positions: from the given factor where there is one.
func (c *call) scaleOf(i int, n, o int64) float64 {
	if c.schema.param("scale_factors") != nil {
		if f := c.floats("scale_factors"); i < len(f) && f[i] > 0 {
			return float64(float32(1 / f[i]))
		}
	}
	for _, name := range [][]string{{"scales"}, {"scales_d", "scales_h", "scales_w"}, {"scales_h", "scales_w"}} {
		if c.schema.param(name[0]) == nil {
			continue
		}
		if i < len(name) && c.has(name[i]) {
			return float64(float32(1 / c.float(name[i])))
		}
		break
	}
	return float64(float32(n) / float32(o))
}

// input is the first argument, which is self in some overloads.
func (c *call) input() *ir.Value {
	if c.schema.param("input") != nil {
		return c.val("input")
	}
	return c.val("self")
}

// resize samples the last dimensions at the result's sizes.
func (c *call) resize(spatial int, filter op.Filter) *ir.Value {
	x := c.input()
	lead := x.Type.Rank() - spatial
	if lead < 0 {
		c.failf("input is %s, wanted %d dimensions", x.Type, spatial)
	}
	a := op.ResizeAttr{Filter: filter, Sizes: c.resultType().Dims[lead:], Align: c.schema.param("align_corners") != nil && c.bool("align_corners")}
	for i, o := range a.Sizes {
		n := x.Type.Dims[lead+i]
		if n == 0 || a.Weights(n, o) > op.MaxResize {
			c.unsupported("resizing %d to %d", n, o)
		}
		scale := c.scaleOf(i, n, o)
		switch {
		case a.Align && o > 1:
			scale = float64(n-1) / float64(o-1)
		case a.Align:
			scale = 0
		}
		a.Scale = append(a.Scale, scale)
	}
	return op.Resize.Make(c.b, a, x)
}
