package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// visionRules are operators of torchvision (torchvision/csrc/ops/cpu). Its nms has no rule: how many boxes are left depends on the data.
var visionRules = map[string]rule{
	"torch.ops.torchvision.deform_conv2d": value(deformConv),
	"torch.ops.torchvision.roi_align":     value(roiAlign),
	"torch.ops.torchvision.roi_pool":      roiPool,
}

// deformConv is a convolution whose taps are moved by offset [N, 2*offset_groups*kh*kw, oh, ow], y before x, and scaled by mask. Taps between
// pixels are interpolated, with zeros beyond the edges.
func deformConv(c *call) *ir.Value {
	x, w, offset := c.val("input"), c.val("weight"), c.val("offset")
	og, g := c.int("offset_groups"), c.int("groups")
	if x.Type.Rank() != 4 || w.Type.Rank() != 4 || offset.Type.Rank() != 4 || og < 1 || g < 1 || x.Type.Elements() == 0 || x.Type.Dims[1]%og != 0 {
		c.failf("input is %s, weight %s, offset %s, with %d offset groups", x.Type, w.Type, offset.Type, og)
	}
	n, ch, kh, kw := x.Type.Dims[0], x.Type.Dims[1], w.Type.Dims[2], w.Type.Dims[3]
	oh, ow := offset.Type.Dims[2], offset.Type.Dims[3]
	taps, out := kh*kw, oh*ow
	if kh > maxTaps || kw > maxTaps || taps > maxTaps || taps*out > maxViewed || offset.Type.Dims[1] != 2*og*taps {
		c.unsupported("windows of [%d %d] with offset %s", kh, kw, offset.Type)
	}
	d := wide(x.Type.DType)
	g2 := gridder{c: c, f: fb{c.b, c}, n: n * og, points: taps * out, sizes: x.Type.Dims[2:]}
	g2.image = reshape(c.b, c.cast(x, d), []int64{n * og, ch / og, x.Type.Dims[2] * x.Type.Dims[3]})
	moved := reshape(c.b, c.cast(offset, d), []int64{n * og, taps, 2, out})
	at := func(k int64, stride, pad, dilation string) *ir.Value {
		v := make([]float64, 0, taps*out)
		for t := range taps {
			for o := range out {
				tap, place := []int64{t / kw, t % kw}[k], []int64{o / ow, o % ow}[k]
				v = append(v, float64(place*c.int(stride)-c.int(pad)+tap*c.int(dilation)))
			}
		}
		base := op.Constant.Make(c.b, op.ConstantAttr{Value: tensor.FromFloats(tensor.Make(d, taps*out), v)})
		return g2.f.add(op.BroadcastTo(c.b, base, []int64{n * og, taps * out}), reshape(c.b, slice(c.b, moved, 2, k, k+1, 1), []int64{n * og, taps * out}))
	}
	y := g2.linear([]*ir.Value{at(0, "stride_h", "pad_h", "dilation_h"), at(1, "stride_w", "pad_w", "dilation_w")})
	if c.bool("use_mask") {
		m := reshape(c.b, c.cast(c.val("mask"), d), []int64{n * og, taps * out})
		y = g2.f.mul(y, op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: y.Type.Dims, Dims: []int64{0, 2}}, m))
	}
	// What remains is a convolution of 1 by 1 over a channel for each tap.
	cols := reshape(c.b, y, []int64{n, ch * taps, oh, ow})
	k := reshape(c.b, c.cast(w, d), []int64{w.Type.Dims[0], w.Type.Dims[1] * taps, 1, 1})
	one := []int64{1, 1}
	z := c.convolve(cols, k, c.opt("bias"), op.ConvAttr{Strides: one, Padding: [][]int64{{0, 0}, {0, 0}}, LhsDilation: one, RhsDilation: one, Groups: g})
	return c.cast(z, x.Type.DType)
}

// regions are boxes [K, 5] of image number, x1, y1, x2, y2, in f32.
type regions struct {
	c     *call
	f     fb
	boxes *ir.Value
	k     int64
}

func (c *call) regions(x *ir.Value) regions {
	boxes := c.val("rois")
	if x.Type.Rank() != 4 || boxes.Type.Rank() != 2 || boxes.Type.Dims[1] != 5 || x.Type.Elements() == 0 || boxes.Type.Dims[0] == 0 {
		c.unsupported("input %s with rois %s", x.Type, boxes.Type)
	}
	return regions{c, fb{c.b, c}, c.cast(boxes, wide(boxes.Type.DType)), boxes.Type.Dims[0]}
}

// column is one of the five numbers of every box, [K].
func (r regions) column(i int64) *ir.Value {
	return reshape(r.c.b, slice(r.c.b, r.boxes, 1, i, i+1, 1), []int64{r.k})
}

// numbers is the same list for every box, [K, len].
func (r regions) numbers(v []float64) *ir.Value {
	t := op.Constant.Make(r.c.b, op.ConstantAttr{Value: tensor.FromFloats(tensor.Make(r.boxes.Type.DType, int64(len(v))), v)})
	return op.BroadcastTo(r.c.b, t, []int64{r.k, int64(len(v))})
}

// repeated is one number a box, n times: [K, n].
func (r regions) repeated(v *ir.Value, n int) *ir.Value {
	return along(r.c.b, v, []int64{r.k, int64(n)}, 0)
}

// roiAlign averages samples between pixels in pooled_height by pooled_width bins of every box, sampling_ratio squared in a bin.
func roiAlign(c *call) *ir.Value {
	x := c.val("input")
	r := c.regions(x)
	ph, pw, s := c.int("pooled_height"), c.int("pooled_width"), c.int("sampling_ratio")
	if s <= 0 {
		c.unsupported("sampling_ratio %d, which makes the number of samples depend on the data", s)
	}
	n, ch, h, w := x.Type.Dims[0], x.Type.Dims[1], x.Type.Dims[2], x.Type.Dims[3]
	if ph < 1 || pw < 1 || ph > maxTaps || pw > maxTaps || s > maxTaps || r.k*ph*pw*s*s > maxViewed || n*h*w > maxViewed {
		c.unsupported("%d boxes of %d by %d bins with %d samples", r.k, ph, pw, s*s)
	}
	ys, insideY := r.samples(2, 4, ph, s, h)
	xs, insideX := r.samples(1, 3, pw, s, w)
	// All samples as one list of places in all images.
	pixels := reshape(c.b, swap(c.b, c.cast(x, r.boxes.Type.DType), 0, 1), []int64{1, ch, n * h * w})
	g := gridder{c: c, f: r.f, n: 1, points: r.k * ph * s * pw * s, sizes: []int64{n * h * w}, image: pixels}
	grid := []int64{r.k, ph * s, pw * s}
	spread := func(v *ir.Value, dims ...int64) *ir.Value {
		return op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: grid, Dims: dims}, v)
	}
	image := spread(r.f.scale(r.column(0), float64(h*w)), 0)
	var sum *ir.Value
	for _, ty := range ys {
		for _, tx := range xs {
			at := r.f.add(image, r.f.add(spread(r.f.scale(ty.at, float64(w)), 0, 1), spread(tx.at, 0, 2)))
			weight := r.f.mul(spread(ty.weight, 0, 1), spread(tx.weight, 0, 2))
			flat := func(v *ir.Value) *ir.Value { return reshape(c.b, v, []int64{1, g.points}) }
			v := g.at([]*ir.Value{flat(at)}, flat(weight))
			if sum == nil {
				sum = v
			} else {
				sum = r.f.add(sum, v)
			}
		}
	}
	inside := op.And.Make(c.b, spread(insideY, 0, 1), spread(insideX, 0, 2))
	y := reshape(c.b, sum, slices.Concat([]int64{ch}, grid))
	y = op.Select.Make(c.b, op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: y.Type.Dims, Dims: []int64{1, 2, 3}}, inside), y, r.f.c(y, 0))
	y = reduce(c.b, op.Sum, reshape(c.b, y, []int64{ch, r.k, ph, s, pw, s}), []int64{3, 5}, false)
	return c.cast(swap(c.b, r.f.scale(y, 1/float64(s*s)), 0, 1), x.Type.DType)
}

// sample is a neighbour along one dimension of every sample, [K, bins*samples], with its share.
type sample struct{ at, weight *ir.Value }

// samples are the two neighbours of every sample between columns from and to of the boxes, and whether it is at most a pixel outside.
func (r regions) samples(from, to, bins, s, size int64) ([]sample, *ir.Value) {
	f, scale := r.f, r.c.float("spatial_scale")
	start, end := f.scale(r.column(from), scale), f.scale(r.column(to), scale)
	var extent *ir.Value
	if r.c.bool("aligned") {
		start, end = f.sub(start, f.c(start, 0.5)), f.sub(end, f.c(end, 0.5))
		extent = f.sub(end, start)
	} else {
		extent = f.max(f.sub(end, start), 1)
	}
	steps := make([]float64, bins*s) // in bins
	for i := range steps {
		steps[i] = float64(int64(i)/s) + (float64(int64(i)%s)+0.5)/float64(s)
	}
	bin := r.repeated(f.scale(extent, 1/float64(bins)), len(steps))
	v := f.add(r.repeated(start, len(steps)), f.mul(bin, r.numbers(steps)))
	inside := op.And.Make(r.c.b, compare(r.c.b, op.GE, v, f.c(v, -1)), compare(r.c.b, op.LE, v, f.c(v, float64(size))))
	v = f.min(f.max(v, 0), float64(size-1))
	low := op.Floor.Make(r.c.b, v)
	high := f.min(f.add(low, f.c(low, 1)), float64(size-1))
	share := f.sub(v, low)
	return []sample{{low, f.sub(f.c(share, 1), share)}, {high, share}}, inside
}

// roiPool is the largest pixel in pooled_height by pooled_width bins of every box, 0 in an empty bin. The second result, places for a gradient,
// is not computed.
func roiPool(c *call) []*ref {
	x := c.val("input")
	r := c.regions(x)
	ph, pw := c.int("pooled_height"), c.int("pooled_width")
	ch, h, w := x.Type.Dims[1], x.Type.Dims[2], x.Type.Dims[3]
	if ph < 1 || pw < 1 || ph > maxTaps || pw > maxTaps {
		c.unsupported("%d by %d bins", ph, pw)
	}
	d := r.boxes.Type.DType
	image := op.Take.Make(c.b, op.TakeAttr{}, c.cast(x, d), c.cast(r.column(0), tensor.I32)) // [K, C, h, w]
	low := constant(c.b, d, lowest(d))
	// Rows first, then columns; each bin keeps its own.
	rows := r.within(2, 4, ph, h)
	v := op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: []int64{r.k, ch, ph, h, w}, Dims: []int64{0, 1, 3, 4}}, image)
	keep := op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: v.Type.Dims, Dims: []int64{0, 2, 3}}, rows)
	v = reduce(c.b, op.Max, op.Select.Make(c.b, keep, v, op.BroadcastTo(c.b, low, v.Type.Dims)), []int64{3}, false) // [K, C, ph, w]
	cols := r.within(1, 3, pw, w)
	v = op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: []int64{r.k, ch, ph, pw, w}, Dims: []int64{0, 1, 2, 4}}, v)
	keep = op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: v.Type.Dims, Dims: []int64{0, 3, 4}}, cols)
	v = reduce(c.b, op.Max, op.Select.Make(c.b, keep, v, op.BroadcastTo(c.b, low, v.Type.Dims)), []int64{4}, false)
	some := func(m *ir.Value, axis int64) *ir.Value {
		any := reduce(c.b, op.AnyTrue, m, []int64{2}, false)
		return op.Broadcast.Make(c.b, op.BroadcastAttr{Shape: v.Type.Dims, Dims: []int64{0, axis}}, any)
	}
	filled := op.And.Make(c.b, some(rows, 2), some(cols, 3))
	v = op.Select.Make(c.b, filled, v, r.f.c(v, 0))
	return []*ref{fresh(c.cast(v, x.Type.DType)), nil}
}

// within reports, [K, bins, size], the pixels of every bin between columns from and to of the boxes.
func (r regions) within(from, to, bins, size int64) *ir.Value {
	f, b, scale := r.f, r.c.b, r.c.float("spatial_scale")
	whole := func(v *ir.Value) *ir.Value { // halves away from zero, as std::round
		v = f.scale(v, scale)
		return f.where(op.LT, v, 0, op.Ceil.Make(b, f.sub(v, f.c(v, 0.5))), op.Floor.Make(b, f.add(v, f.c(v, 0.5))))
	}
	start, end := whole(r.column(from)), whole(r.column(to))
	bin := f.scale(f.max(f.add(f.sub(end, start), f.c(start, 1)), 1), 1/float64(bins))
	edge := func(off float64) *ir.Value {
		at := make([]float64, bins)
		for i := range at {
			at[i] = float64(i) + off
		}
		return f.mul(r.repeated(bin, len(at)), r.numbers(at))
	}
	first := f.add(op.Floor.Make(b, edge(0)), r.repeated(start, int(bins)))
	limit := f.add(op.Ceil.Make(b, edge(1)), r.repeated(start, int(bins)))
	dims := []int64{r.k, bins, size}
	at := counting(b, r.boxes.Type.DType, dims, 2)
	spread := func(v *ir.Value) *ir.Value {
		return op.Broadcast.Make(b, op.BroadcastAttr{Shape: dims, Dims: []int64{0, 1}}, v)
	}
	return op.And.Make(b, compare(b, op.GE, at, spread(first)), compare(b, op.LT, at, spread(limit)))
}
