package pt2

import (
	"math"
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// networkRules are the layers that the IR keeps whole where it can: attention, norms and convolutions.
var networkRules = map[string]rule{
	"scaled_dot_product_attention":                value(attention),
	"_scaled_dot_product_flash_attention_for_cpu": values(flashAttention),
	"layer_norm":             value(layerNorm),
	"native_layer_norm":      values(nativeLayerNorm),
	"rms_norm":               value(rmsNorm),
	"group_norm":             value(func(c *call) *ir.Value { return c.groupNorm(c.int("num_groups")) }),
	"native_group_norm":      values(nativeGroupNorm),
	"conv1d":                 value(func(c *call) *ir.Value { return c.conv(1) }),
	"conv2d":                 value(func(c *call) *ir.Value { return c.conv(2) }),
	"conv3d":                 value(func(c *call) *ir.Value { return c.conv(3) }),
	"conv1d.padding":         value(func(c *call) *ir.Value { return c.conv(1) }),
	"conv2d.padding":         value(func(c *call) *ir.Value { return c.conv(2) }),
	"conv3d.padding":         value(func(c *call) *ir.Value { return c.conv(3) }),
	"conv_transpose1d":       value(func(c *call) *ir.Value { return c.convTranspose(1) }),
	"conv_transpose2d.input": value(func(c *call) *ir.Value { return c.convTranspose(2) }),
	"conv_transpose3d.input": value(func(c *call) *ir.Value { return c.convTranspose(3) }),
	"convolution":            value(convolution),
	"_weight_norm":           value(func(c *call) *ir.Value { return weightNorm(c) }),
	"embedding":              value(func(c *call) *ir.Value { return op.Embedding.Make(c.b, c.val("weight"), c.val("indices")) }),
	"cosine_similarity":      value(cosineSimilarity),
	"_grouped_mm":            value(groupedMM),
	"torch.ops.transformers.grouped_mm_fallback": value(groupedFallback),
}

// attention is scaled dot product attention with dropout 0. Ranks other than 4 are brought to [batch, heads, positions, features].
func attention(c *call) *ir.Value {
	q, k, v, mask := c.val("query"), c.val("key"), c.val("value"), c.opt("attn_mask")
	if p := c.float("dropout_p"); p != 0 {
		c.unsupported("dropout_p=%v; export the model in eval mode", p)
	}
	if q.Type.Rank() < 2 || k.Type.Rank() < 2 || v.Type.Rank() < 2 {
		c.failf("query, key and value are %s, %s and %s, wanted rank 2 or more", q.Type, k.Type, v.Type)
	}
	out := c.resultType().Dims
	queries, rowsOpen := c.extentOf(q)
	if rowsOpen = rowsOpen && queries.axis == q.Type.Rank()-2; rowsOpen {
		q = c.wholeAs(q)
	}
	k, v, mask = c.meantKeys(k, v, mask)
	a := op.AttentionAttr{Causal: c.bool("is_causal"), Scale: c.floatOr("scale", 1/math.Sqrt(float64(max(q.Type.Dims[q.Type.Rank()-1], 1))))}
	lead := out[:max(len(out)-2, 0)]
	heads := int64(1)
	batch := lead
	if len(lead) > 0 {
		heads, batch = lead[len(lead)-1], lead[:len(lead)-1]
	}
	rows := tensor.Make(tensor.Bool, batch...).Elements()
	if c.has("enable_gqa") && c.bool("enable_gqa") { // heads of keys and values differ
		heads = -1
	}
	flat := func(x *ir.Value) *ir.Value {
		dims := x.Type.Dims
		h := heads
		if n := len(dims); n >= 3 && (h < 0 || dims[n-3] == 1) {
			h = dims[n-3] // grouped, or one head for all: never repeated
		} else if n < 3 {
			h = 1
		}
		last := dims[len(dims)-2:]
		x = op.BroadcastTo(c.b, x, slices.Concat(batch, headDims(len(lead) > 0, h), last))
		return reshape(c.b, x, slices.Concat([]int64{rows, h}, last))
	}
	args := []*ir.Value{flat(q), flat(k), flat(v)}
	if q4 := args[0].Type.Dims; len(lead) > 0 && q4[1] != lead[len(lead)-1] { // one query head for several key heads
		args[0] = op.BroadcastTo(c.b, args[0], slices.Concat(q4[:1], lead[len(lead)-1:], q4[2:]))
	}
	if args[1].Type.Dims[1] != args[2].Type.Dims[1] {
		h := max(args[1].Type.Dims[1], args[2].Type.Dims[1])
		for i := 1; i <= 2; i++ {
			d := args[i].Type.Dims
			args[i] = op.BroadcastTo(c.b, args[i], slices.Concat(d[:1], []int64{h}, d[2:]))
		}
	}
	if mask != nil {
		args = append(args, c.attentionMask(mask, batch, rows))
	}
	y := reshape(c.b, op.Attention.Make(c.b, a, args...), out)
	if rowsOpen {
		c.im.extents.of[y] = extent{len(out) - 2, queries.scale, queries.count}
	}
	return y
}

// meantKeys leaves keys and values out by the mask whose number depends on the data.
func (c *call) meantKeys(k, v, mask *ir.Value) (keys, values, meant *ir.Value) {
	e, open := c.extentOf(k)
	f, both := c.extentOf(v)
	if !open || !both || e.axis != k.Type.Rank()-2 || f.axis != v.Type.Rank()-2 {
		return k, v, mask
	}
	if k.Type.Dims[e.axis] != v.Type.Dims[f.axis] {
		c.unsupported("the numbers of keys and values depend on the data and may differ: at most %d and %d", k.Type.Dims[e.axis], v.Type.Dims[f.axis])
	}
	n := k.Type.Dims[e.axis : e.axis+1]
	in := c.inside(counting(c.b, tensor.I64, n, 0), extent{0, e.scale, e.count})
	in = reshape(c.b, in, slices.Concat([]int64{1}, n))
	switch {
	case mask == nil:
		mask = in
	case mask.Type.DType == tensor.Bool:
		mask = op.And.Make(c.b, mask, op.BroadcastTo(c.b, in, mask.Type.Dims))
	default:
		mask = op.Select.Make(c.b, op.BroadcastTo(c.b, in, mask.Type.Dims), mask, like(c.b, mask, lowest(mask.Type.DType)))
	}
	return c.covered(k, e, intScalar(0)), c.covered(v, f, intScalar(0)), mask
}

// flashAttention is attention of rank 4 and the logarithms of the sums of the exponentials of its scores, [batch, heads, queries] in f32 at least.
func flashAttention(c *call) []*ir.Value {
	q, k, mask := c.val("query"), c.val("key"), c.opt("attn_mask")
	if q.Type.Rank() != 4 || k.Type.Rank() != 4 {
		c.failf("query and key are %s and %s, wanted rank 4", q.Type, k.Type)
	}
	out := attention(c)
	d := wide(q.Type.DType)
	heads, keys := q.Type.Dims[1], k.Type.Dims[1]
	if keys < 1 || heads%keys != 0 {
		c.failf("%d query heads for %d key heads, wanted a multiple", heads, keys)
	}
	dims := []int64{q.Type.Dims[0], keys, heads / keys, q.Type.Dims[2], k.Type.Dims[2]}
	group := reshape(c.b, c.cast(q, d), []int64{dims[0], keys, dims[2] * dims[3], q.Type.Dims[3]})
	f := fb{c.b, c}
	s := c.matmul(group, swap(c.b, c.cast(k, d), 2, 3))
	s = reshape(c.b, s, []int64{dims[0], heads, dims[3], dims[4]})
	s = f.scale(s, c.floatOr("scale", 1/math.Sqrt(float64(max(q.Type.Dims[3], 1)))))
	low := f.c(s, math.Inf(-1))
	switch {
	case mask == nil:
	case mask.Type.DType == tensor.Bool:
		s = op.Select.Make(c.b, op.BroadcastTo(c.b, mask, s.Type.Dims), s, low)
	default:
		s = f.add(s, op.BroadcastTo(c.b, c.cast(mask, d), s.Type.Dims))
	}
	if c.bool("is_causal") {
		before := compare(c.b, op.GE, counting(c.b, tensor.I32, s.Type.Dims, 2), counting(c.b, tensor.I32, s.Type.Dims, 3))
		s = op.Select.Make(c.b, before, s, low)
	}
	return []*ir.Value{out, c.logSumExp(s, []int64{3}, false)}
}

// headDims is the heads dimension, where the query has one.
func headDims(has bool, h int64) []int64 {
	if !has {
		return nil
	}
	return []int64{h}
}

// attentionMask brings a mask to rank 4, keeping dimensions of extent 1 where the batch is one dimension.
func (c *call) attentionMask(mask *ir.Value, batch []int64, rows int64) *ir.Value {
	dims := mask.Type.Dims
	for len(dims) < len(batch)+3 {
		dims = slices.Concat([]int64{1}, dims)
	}
	m := reshape(c.b, mask, dims)
	lead, rest := dims[:len(dims)-3], dims[len(dims)-3:]
	if tensor.Make(tensor.Bool, lead...).Elements() != 1 {
		m = op.BroadcastTo(c.b, m, slices.Concat(batch, rest))
		return reshape(c.b, m, slices.Concat([]int64{rows}, rest))
	}
	return reshape(c.b, m, slices.Concat([]int64{1}, rest))
}

// affineArgs appends a scale and a shift where they are given.
func (c *call) affineArgs(x *ir.Value) []*ir.Value {
	args := []*ir.Value{x}
	w, b := c.opt("weight"), c.opt("bias")
	if w == nil && b != nil {
		w = splat(c.b, b.Type.DType, intScalar(1), b.Type.Dims)
	}
	for _, v := range []*ir.Value{w, b} {
		if v != nil {
			args = append(args, v)
		}
	}
	return args
}

// layerNorm normalises over as many last dimensions as normalized_shape has.
func layerNorm(c *call) *ir.Value {
	a := op.LayerNormAttr{Eps: c.float("eps"), Rank: int64(len(c.ints("normalized_shape")))}
	return op.LayerNorm.Make(c.b, a, c.affineArgs(c.val("input"))...)
}

// nativeLayerNorm also gives mean and 1/deviation.
func nativeLayerNorm(c *call) []*ir.Value {
	x := c.val("input")
	rank := len(c.ints("normalized_shape"))
	if rank > x.Type.Rank() {
		c.failf("normalized_shape has %d dimensions, the input is %s", rank, x.Type)
	}
	axes := iotaInts(x.Type.Rank())[x.Type.Rank()-rank:]
	mu, rstd := c.moments(x, axes, c.float("eps"))
	return []*ir.Value{layerNorm(c), c.cast(mu, c.recorded(1, mu)), c.cast(rstd, c.recorded(2, rstd))}
}

// recorded is the dtype that the archive records for a result, which depends on the device that the model was exported on.
func (c *call) recorded(i int, v *ir.Value) tensor.DType {
	if names := outputNames(c.node); i < len(names) {
		if meta, ok := c.im.g.TensorValues[names[i]]; ok {
			return c.torchDType(meta.DType)
		}
	}
	return v.Type.DType
}

// moments gives mean and 1/sqrt(variance + eps) along axes, kept with extent 1, in f32 at least.
func (c *call) moments(x *ir.Value, axes []int64, eps float64) (mu, rstd *ir.Value) {
	x = c.cast(x, wide(x.Type.DType))
	mu = c.meanOf(x, axes, true)
	dev := op.Sub.Make(c.b, x, op.BroadcastTo(c.b, mu, x.Type.Dims))
	v := c.meanOf(op.Mul.Make(c.b, dev, dev), axes, true)
	return mu, op.Rsqrt.Make(c.b, op.Add.Make(c.b, v, likeF(c.b, v, eps)))
}

// rmsNorm is without shift; eps is the machine epsilon of the type that is computed in, unless given.
func rmsNorm(c *call) *ir.Value {
	x, w := c.val("input"), c.opt("weight")
	if x.Type.DType.IsComplex() {
		return c.complexRMSNorm(x, w)
	}
	eps := map[tensor.DType]float64{tensor.F32: 0x1p-23, tensor.F64: 0x1p-52, tensor.F16: 0x1p-10, tensor.BF16: 0x1p-7}[wide(x.Type.DType)]
	a := op.RMSNormAttr{Eps: c.floatOr("eps", eps), Rank: int64(len(c.ints("normalized_shape")))}
	args := []*ir.Value{x}
	if w != nil {
		args = append(args, w)
	}
	return op.RMSNorm.Make(c.b, a, args...)
}

// complexRMSNorm divides by the root of the mean of squares, complex as they are in torch.
func (c *call) complexRMSNorm(x, w *ir.Value) *ir.Value {
	rank := len(c.ints("normalized_shape"))
	if rank > x.Type.Rank() {
		c.failf("normalized_shape has %d dimensions, the input is %s", rank, x.Type)
	}
	f := fb{c.b, c}
	eps := map[tensor.DType]float64{tensor.F32: 0x1p-23, tensor.F64: 0x1p-52}[x.Type.DType.Real()]
	v := c.meanOf(f.mul(x, x), iotaInts(x.Type.Rank())[x.Type.Rank()-rank:], true)
	scale := partsOf(f, f.add(v, f.c(v, c.floatOr("eps", eps)))).rsqrt().join()
	y := f.mul(x, op.BroadcastTo(c.b, scale, x.Type.Dims))
	if w != nil {
		y = c.arith(op.Mul, tensorOperand(y), tensorOperand(w))
	}
	return y
}

// groupNorm normalises over groups of channels and all positions.
func (c *call) groupNorm(groups int64) *ir.Value {
	return op.GroupNorm.Make(c.b, op.GroupNormAttr{Groups: groups, Eps: c.float("eps")}, c.affineArgs(c.val("input"))...)
}

// nativeGroupNorm also gives mean and 1/deviation by batch and group.
func nativeGroupNorm(c *call) []*ir.Value {
	x, g := c.val("input"), c.int("group")
	if g < 1 || x.Type.Rank() < 2 || x.Type.Dims[1]%g != 0 {
		c.failf("%d groups of the channels of %s", g, x.Type)
	}
	n, each := x.Type.Dims[0], x.Type.WithDims(x.Type.Dims[1:]...).Elements()/g
	flat := reshape(c.b, x, []int64{n, g, each})
	mu, rstd := c.moments(flat, []int64{2}, c.float("eps"))
	mu, rstd = reshape(c.b, mu, []int64{n, g}), reshape(c.b, rstd, []int64{n, g})
	return []*ir.Value{c.groupNorm(g), c.cast(mu, c.recorded(1, mu)), c.cast(rstd, c.recorded(2, rstd))}
}

// conv is a convolution; padding may be the word same or valid.
func (c *call) conv(spatial int) *ir.Value {
	dilation := c.pair("dilation", spatial)
	w := c.val("weight")
	if w.Type.Rank() != spatial+2 {
		c.failf("weight is %s, wanted rank %d", w.Type, spatial+2)
	}
	padding := make([][]int64, spatial)
	switch word := c.str("padding"); word {
	case "same":
		for i := range padding {
			total := dilation[i] * (w.Type.Dims[2+i] - 1)
			padding[i] = []int64{total / 2, total - total/2}
		}
	case "valid":
		for i := range padding {
			padding[i] = []int64{0, 0}
		}
	case "":
		for i, p := range c.pair("padding", spatial) {
			padding[i] = []int64{p, p}
		}
	default:
		c.failf("padding is %q, wanted same or valid", clip(word))
	}
	return c.convolve(c.val("input"), w, c.opt("bias"), op.ConvAttr{Strides: c.pair("stride", spatial), Padding: padding,
		LhsDilation: slices.Repeat([]int64{1}, spatial), RhsDilation: dilation, Groups: c.int("groups")})
}

// convolve adds the batch dimension where it lacks, and the bias.
func (c *call) convolve(x, w, bias *ir.Value, a op.ConvAttr) *ir.Value {
	batched := x.Type.Rank() == len(a.Strides)+2
	if !batched {
		x = reshape(c.b, x, slices.Concat([]int64{1}, x.Type.Dims))
	}
	d := x.Type.DType
	if w := wide(d); bias != nil && w != d { // the bias is added before the sum is rounded
		a.Out = w
	}
	y := op.Conv.Make(c.b, a, x, w)
	if bias != nil {
		y = c.cast(op.Add.Make(c.b, y, along(c.b, c.cast(bias, y.Type.DType), y.Type.Dims, 1)), d)
	}
	if !batched {
		y = reshape(c.b, y, y.Type.Dims[1:])
	}
	return y
}

// convTranspose is the gradient of a convolution: x is spread by the stride, the kernel mirrored.
func (c *call) convTranspose(spatial int) *ir.Value {
	w := c.val("weight") // [in, out/groups, spatial...]
	g := c.int("groups")
	if w.Type.Rank() != spatial+2 || g < 1 || w.Type.Dims[0]%g != 0 {
		c.failf("weight is %s with %d groups, wanted rank %d", w.Type, g, spatial+2)
	}
	stride, pads := c.pair("stride", spatial), c.pair("padding", spatial)
	extra, dilation := c.pair("output_padding", spatial), c.pair("dilation", spatial)
	in, out, kernel := w.Type.Dims[0], w.Type.Dims[1], w.Type.Dims[2:]
	w = reshape(c.b, w, slices.Concat([]int64{g, in / g, out}, kernel))
	w = swap(c.b, w, 1, 2)
	w = reshape(c.b, w, slices.Concat([]int64{g * out, in / g}, kernel))
	w = reverse(c.b, w, iotaInts(spatial + 2)[2:])
	a := op.ConvAttr{Strides: slices.Repeat([]int64{1}, spatial), LhsDilation: stride, RhsDilation: dilation, Groups: g}
	for i, k := range kernel {
		p := dilation[i]*(k-1) - pads[i]
		a.Padding = append(a.Padding, []int64{p, p + extra[i]})
	}
	return c.convolve(c.val("input"), w, c.opt("bias"), a)
}

// convolution is the one form that decomposed graphs have for all ranks, transposed or not.
func convolution(c *call) *ir.Value {
	spatial := c.val("weight").Type.Rank() - 2
	if spatial < 1 {
		c.failf("weight is %s, wanted rank 3 or more", c.val("weight").Type)
	}
	if c.bool("transposed") {
		return c.convTranspose(spatial)
	}
	return c.conv(spatial)
}

// weightNorm is v scaled to norm g over all dimensions but one.
func weightNorm(c *call) *ir.Value {
	v, g := c.val("v"), c.val("g")
	axis := c.axis("dim", v.Type.Rank())
	d := v.Type.DType
	x := c.cast(v, wide(d))
	axes := slices.DeleteFunc(iotaInts(v.Type.Rank()), func(a int64) bool { return a == int64(axis) })
	n := op.Sqrt.Make(c.b, reduce(c.b, op.Sum, op.Mul.Make(c.b, x, x), axes, true))
	scale := op.Div.Make(c.b, reshape(c.b, c.cast(g, wide(d)), n.Type.Dims), n)
	return c.cast(op.Mul.Make(c.b, x, op.BroadcastTo(c.b, scale, x.Type.Dims)), d)
}

// cosineSimilarity bounds each norm by eps from below, as torch does since 1.12.
func cosineSimilarity(c *call) *ir.Value {
	return c.cosine(c.val("x1"), c.val("x2"), c.int("dim"), c.float("eps"))
}

// cosine is the cosine of the angle between x and y along a dimension, with norms of at least eps.
func (c *call) cosine(u, v *ir.Value, dim int64, eps float64) *ir.Value {
	x, y := tensorOperand(u), tensorOperand(v)
	d, dims := floatResult(resultType(x, y)), c.broadcastDims(x, y)
	a, b := c.materialize(x, d, dims), c.materialize(y, d, dims)
	if len(dims) == 0 {
		a, b = reshape(c.b, a, []int64{1}), reshape(c.b, b, []int64{1})
	}
	axis := []int64{int64(c.wrap("dim", dim, len(dims)))}
	f := fb{c.b, c}
	unit := func(v *ir.Value) *ir.Value {
		return op.Div.Make(c.b, v, op.BroadcastTo(c.b, f.max(c.vectorNorm(v, 2, axis, true), eps), v.Type.Dims))
	}
	return reduce(c.b, op.Sum, f.mul(unit(a), unit(b)), axis, false)
}
