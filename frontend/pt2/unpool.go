package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// unpoolRules undo pooling: elements go back to the places that indices name, and gradients to the elements that were looked at.
var unpoolRules = map[string]rule{
	"max_unpool2d":                     value(func(c *call) *ir.Value { return c.maxUnpool(2) }),
	"max_unpool3d":                     value(func(c *call) *ir.Value { return c.maxUnpool(3) }),
	"max_pool2d_with_indices_backward": value(func(c *call) *ir.Value { return c.maxPoolBackward(2) }),
	"max_pool3d_with_indices_backward": value(func(c *call) *ir.Value { return c.maxPoolBackward(3) }),
	"adaptive_max_pool2d_backward":     value(func(c *call) *ir.Value { return c.maxPoolBackward(2) }),
	"adaptive_max_pool3d_backward":     value(func(c *call) *ir.Value { return c.maxPoolBackward(3) }),
	"avg_pool2d_backward":              value(func(c *call) *ir.Value { return c.avgPoolBackward(2) }),
	"avg_pool3d_backward":              value(func(c *call) *ir.Value { return c.avgPoolBackward(3) }),
	"_adaptive_avg_pool2d_backward":    value(func(c *call) *ir.Value { return c.adaptiveAvgBackward(2) }),
	"_adaptive_avg_pool3d_backward":    value(func(c *call) *ir.Value { return c.adaptiveAvgBackward(3) }),
}

// maxUnpool puts elements at indices into the flattened last dimensions of zeros of output_size.
func (c *call) maxUnpool(spatial int) *ir.Value {
	x := c.val("self")
	if x.Type.Rank() < spatial+1 {
		c.failf("self is %s, wanted %d dimensions and channels", x.Type, spatial)
	}
	dims := slices.Concat(x.Type.Dims[:x.Type.Rank()-spatial], c.pair("output_size", spatial))
	return c.placed(op.Set, x, dims, spatial)
}

// maxPoolBackward adds gradients up at the indices of the maxima.
func (c *call) maxPoolBackward(spatial int) *ir.Value {
	x := c.ref("self").typ
	if x.Rank() < spatial+1 {
		c.failf("self is %s, wanted %d dimensions and channels", x, spatial)
	}
	return c.placed(op.Sum, c.val("grad_output"), x.Dims, spatial)
}

// placed combines v into zeros of dims at the argument indices, which count in the flattened last spatial dimensions.
func (c *call) placed(kind op.Reducer, v *ir.Value, dims []int64, spatial int) *ir.Value {
	ids := c.val("indices")
	t := v.Type.WithDims(dims...)
	if err := t.Check(); err != nil {
		c.failf("%v", err)
	}
	if !slices.Equal(ids.Type.Dims, v.Type.Dims) || len(dims) != v.Type.Rank() {
		c.failf("indices are %s for %s", ids.Type, v.Type)
	}
	lead := len(dims) - spatial
	flat := func(dims []int64) []int64 {
		return slices.Concat(dims[:lead], []int64{v.Type.WithDims(dims[lead:]...).Elements()})
	}
	zeros := splat(c.b, wide(v.Type.DType), intScalar(0), flat(dims))
	y := c.scatterAlong(kind, zeros, reshape(c.b, ids, flat(ids.Type.Dims)), reshape(c.b, c.cast(v, zeros.Type.DType), flat(v.Type.Dims)), lead)
	return reshape(c.b, c.cast(y, v.Type.DType), dims)
}

// avgPoolBackward gives every element the gradients of the windows that hold it, each divided as avgPool divides.
func (c *call) avgPoolBackward(spatial int) *ir.Value {
	x, g := c.ref("self").typ, c.val("grad_output")
	if g.Type.Rank() != x.Rank() {
		c.failf("grad_output is %s for %s", g.Type, x)
	}
	w := c.windowOf(x, spatial, g.Type.Dims[x.Rank()-spatial:])
	g = c.cast(g, wide(x.DType))
	if c.has("divisor_override") {
		g = op.Div.Make(c.b, g, likeF(c.b, g, c.float("divisor_override")))
	} else {
		g = op.Div.Make(c.b, g, c.poolCounts(g, w, x.Dims, c.bool("count_include_pad")))
	}
	return c.cast(c.spread(g, x, spatial, func(axis int) (from, to func(o int64) int64) {
		i := axis - (x.Rank() - spatial)
		start := func(o int64) int64 { return o*w.stride[i] - w.pad[i] }
		return start, func(o int64) int64 { return start(o) + w.kernel[i] }
	}, false), x.DType)
}

// adaptiveAvgBackward is the gradient of adaptiveAvg.
func (c *call) adaptiveAvgBackward(spatial int) *ir.Value {
	x, g := c.ref("self").typ, c.val("grad_output")
	if g.Type.Rank() != x.Rank() || x.Rank() < spatial {
		c.failf("grad_output is %s for %s", g.Type, x)
	}
	g = c.cast(g, wide(x.DType))
	return c.cast(c.spread(g, x, spatial, func(axis int) (from, to func(o int64) int64) {
		n, k := x.Dims[axis], g.Type.Dims[axis]
		return func(o int64) int64 { return o * n / k }, func(o int64) int64 { return ((o+1)*n + k - 1) / k }
	}, true), x.DType)
}

// spread adds each element of g to all elements of x in its window, from and to along each of the last dimensions, or its part for each of
// them where share is set.
func (c *call) spread(g *ir.Value, x tensor.Type, spatial int, window func(axis int) (from, to func(o int64) int64), share bool) *ir.Value {
	for axis := x.Rank() - spatial; axis < x.Rank(); axis++ {
		n, o := x.Dims[axis], g.Type.Dims[axis]
		if n*o > maxMatrix {
			c.unsupported("pooling %d to %d", n, o)
		}
		rows := make([][]float64, n)
		for i := range rows {
			rows[i] = make([]float64, o)
		}
		from, to := window(axis)
		for k := range o {
			lo, hi := from(k), to(k)
			part := 1.0
			if share {
				part = 1 / float64(hi-lo)
			}
			for i := max(lo, 0); i < min(hi, n); i++ {
				rows[i][k] = part
			}
		}
		g = op.MulAlong(c.b, g, axis, rows)
	}
	return g
}
