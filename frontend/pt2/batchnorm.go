package pt2

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// batchNormRules normalise channels by the statistics of the batch, which move the running ones, or by the running ones
// (aten/src/ATen/native/Normalization.cpp). Results that only a gradient needs follow the archive's record: they are empty in some of torch's
// implementations.
var batchNormRules = map[string]rule{
	"batch_norm":             func(c *call) []*ref { return c.batchNormResults(c.bool("training"), 1) },
	"instance_norm":          value(instanceNorm),
	"native_batch_norm":      func(c *call) []*ref { return c.batchNormResults(c.bool("training"), 3) },
	"_batch_norm_impl_index": func(c *call) []*ref { return c.batchNormResults(c.bool("training"), 4) },

	"_native_batch_norm_legit":             func(c *call) []*ref { return c.batchNormResults(c.bool("training"), 3) },
	"_native_batch_norm_legit.no_stats":    func(c *call) []*ref { return c.batchNormResults(true, 3) },
	"_native_batch_norm_legit_no_training": func(c *call) []*ref { return c.batchNormResults(false, 3) },
	"_native_batch_norm_legit_functional":  func(c *call) []*ref { return c.batchNormFunctional(c.bool("training"), 3) },
	"_batch_norm_with_update":              func(c *call) []*ref { return c.batchNormResults(true, 4) },
	"_batch_norm_with_update_functional":   func(c *call) []*ref { return c.batchNormFunctional(true, 4) },
	"_batch_norm_no_update":                func(c *call) []*ref { return c.batchNormResults(false, 4) },
}

// batchStats are statistics of channels, [C], in f32 at least. Without batch statistics moved are the running ones.
type batchStats struct {
	mean, rstd          *ir.Value // what to normalise by
	movedMean, movedVar *ir.Value // running statistics after the call; nil where there are none
}

// batchStats computes or reads the statistics of the channels of the argument input.
func (c *call) batchStats(training bool) batchStats {
	x := c.val("input")
	if x.Type.Rank() < 2 {
		c.failf("input is %s, wanted rank 2 or more", x.Type)
	}
	var mean, variance *ir.Value // running
	if c.schema.param("running_mean") != nil {
		mean, variance = c.opt("running_mean"), c.opt("running_var")
	}
	w := wide(x.Type.DType)
	s := batchStats{movedMean: mean, movedVar: variance}
	v := variance
	if training {
		s.mean, v = c.channelMoments(x)
		s.movedMean, s.movedVar = c.moved(mean, s.mean), c.moved(variance, c.unbiased(v, x.Type.Elements()/max(x.Type.Dims[1], 1)))
	} else if s.mean = mean; mean == nil || v == nil {
		c.failf("neither batch statistics nor running ones are given")
	}
	s.mean, v = c.cast(s.mean, w), c.cast(v, w)
	s.rstd = op.Rsqrt.Make(c.b, op.Add.Make(c.b, v, likeF(c.b, v, c.float("eps"))))
	if training && !c.mixedNorm(x.Type.DType) { // torch keeps them for the gradient, and computes with what it keeps
		s.mean, s.rstd = c.cast(c.cast(s.mean, x.Type.DType), w), c.cast(c.cast(s.rstd, x.Type.DType), w)
	}
	return s
}

// mixedNorm reports a parameter of a batch norm that is more precise than its input's dtype d. Statistics of the batch are as precise.
func (c *call) mixedNorm(d tensor.DType) bool {
	return slices.ContainsFunc([]string{"weight", "bias", "running_mean", "running_var"}, func(name string) bool {
		if c.schema.param(name) == nil {
			return false
		}
		v := c.opt(name)
		return v != nil && v.Type.DType != d
	})
}

// channelMoments is mean and variance of x by channel, [C].
func (c *call) channelMoments(x *ir.Value) (mean, variance *ir.Value) {
	x = c.cast(x, wide(x.Type.DType))
	axes := slices.Delete(iotaInts(x.Type.Rank()), 1, 2)
	mean = c.meanOf(x, axes, false)
	dev := op.Sub.Make(c.b, x, along(c.b, mean, x.Type.Dims, 1))
	return mean, c.meanOf(op.Mul.Make(c.b, dev, dev), axes, false)
}

// unbiased is the variance over n elements with n-1 in the place of n.
func (c *call) unbiased(v *ir.Value, n int64) *ir.Value {
	f := fb{c.b, c}
	return op.Div.Make(c.b, f.scale(v, float64(n)), f.c(v, float64(n-1)))
}

// moved is running statistics, or nil, moved by momentum to those of a batch, in their own dtype.
func (c *call) moved(running, batch *ir.Value) *ir.Value {
	if running == nil {
		return nil
	}
	f, m := fb{c.b, c}, c.float("momentum")
	r := c.cast(running, batch.Type.DType)
	return c.cast(f.add(f.scale(r, 1-m), f.scale(batch, m)), running.Type.DType)
}

// normalised is the argument input by statistics of its channels, scaled and shifted.
func (c *call) normalised(s batchStats) *ir.Value {
	x := c.val("input")
	w := wide(x.Type.DType)
	spread := func(s *ir.Value) *ir.Value { return along(c.b, s, x.Type.Dims, 1) }
	scale := s.rstd
	if g := c.opt("weight"); g != nil {
		scale = op.Mul.Make(c.b, scale, c.cast(g, w))
	}
	y := op.Mul.Make(c.b, op.Sub.Make(c.b, c.cast(x, w), spread(s.mean)), spread(scale))
	if b := c.opt("bias"); b != nil {
		y = op.Add.Make(c.b, y, spread(c.cast(b, w)))
	}
	return c.cast(y, x.Type.DType)
}

// batchNormResults gives the first of: the normalised input, mean and 1/deviation, and memory that a gradient needs; and writes the running
// statistics.
func (c *call) batchNormResults(training bool, count int) []*ref {
	if x := c.ref("input").typ; x.Rank() == 1 && x.Elements() == 0 && count == 1 {
		return []*ref{fresh(c.val("input"))}
	}
	s := c.batchStats(training)
	out := c.saved(s, count)
	if training {
		c.store("running_mean", s.movedMean)
		c.store("running_var", s.movedVar)
	}
	return out
}

// batchNormFunctional gives the running statistics as results.
func (c *call) batchNormFunctional(training bool, count int) []*ref {
	s := c.batchStats(training)
	return append(c.saved(s, count), fresh(s.movedMean), fresh(s.movedVar))
}

// saved are the results but for the running statistics.
func (c *call) saved(s batchStats, count int) []*ref {
	names := outputNames(c.node)
	out := []*ref{fresh(c.normalised(s))}
	for i := 1; i < count; i++ {
		v := splat(c.b, tensor.U8, intScalar(0), []int64{0})
		if i < 3 {
			v = []*ir.Value{nil, s.mean, s.rstd}[i]
		}
		if i < len(names) {
			if meta, ok := c.im.g.TensorValues[names[i]]; ok {
				if t, _, err := c.im.typeOf(&meta); err == nil && t.Elements() == 0 {
					v = splat(c.b, t.DType, intScalar(0), t.Dims)
				} else if i < 3 {
					v = c.cast(v, t.DType)
				}
			}
		}
		out = append(out, fresh(v))
	}
	return out
}

// store writes v, or nothing for nil, to a tensor argument.
func (c *call) store(name string, v *ir.Value) {
	if v != nil {
		c.ref(name).write(c.b, v)
	}
}

// instanceNorm is group normalisation with one channel a group, whose statistics move the running ones by their mean over the batch, or batch
// normalisation with running statistics.
func instanceNorm(c *call) *ir.Value {
	x := c.val("input")
	if x.Type.Rank() < 3 {
		c.failf("input is %s, wanted rank 3 or more", x.Type)
	}
	if !c.bool("use_input_stats") {
		return c.normalised(c.batchStats(false))
	}
	y := op.GroupNorm.Make(c.b, op.GroupNormAttr{Groups: x.Type.Dims[1], Eps: c.float("eps")}, c.affineArgs(x)...)
	mean, variance := c.opt("running_mean"), c.opt("running_var")
	if mean == nil && variance == nil {
		return y
	}
	n, ch := x.Type.Dims[0], x.Type.Dims[1]
	m, v := c.channelMoments(reshape(c.b, x, slices.Concat([]int64{1, n * ch}, x.Type.Dims[2:])))
	over := func(s *ir.Value) *ir.Value { return c.meanOf(reshape(c.b, s, []int64{n, ch}), []int64{0}, false) }
	each := x.Type.Elements() / max(n*ch, 1)
	c.store("running_mean", c.moved(mean, over(m)))
	c.store("running_var", c.moved(variance, over(c.unbiased(v, each))))
	return y
}
