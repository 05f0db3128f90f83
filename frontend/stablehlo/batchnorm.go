package stablehlo

import (
	"slices"

	"tpuc/ir"
	"tpuc/ir/op"
	"tpuc/ir/tensor"
)

// batchNormRules normalise the features of a batch, which torch_xla exports as they are. They are computed in f32 at least and rounded at the end.
var batchNormRules = map[string]rule{
	"stablehlo.batch_norm_inference": batchNormInference,
	"stablehlo.batch_norm_training":  batchNormTraining,
	"stablehlo.batch_norm_grad":      batchNormGrad,
}

// features is an operation on a batch and on vectors with an element for each feature.
type features struct {
	*call
	args    []*ir.Value // widened
	axis    int64
	rest    []int64 // all axes but the features'
	count   float64 // elements of a feature
	epsilon *ir.Value
	dims    []int64
}

// features widens the operands; nil where they are no floats.
func (c *call) features(operands int) *features {
	c.arity(operands)
	x := c.args[0].Type
	axis := c.int("feature_index", -1)
	if axis < 0 || axis >= int64(x.Rank()) {
		c.fail("feature_index is %d, wanted one of rank %d", axis, x.Rank())
	}
	f := &features{call: c, args: make([]*ir.Value, len(c.args)), axis: axis, dims: x.Dims, count: 1}
	wide := tensor.F32
	if x.DType == tensor.F64 {
		wide = tensor.F64
	}
	for i, a := range c.args {
		if !a.Type.DType.IsFloat() {
			return nil
		}
		if t := a.Type; !slices.Equal(t.Dims, x.Dims) && !slices.Equal(t.Dims, []int64{x.Dims[axis]}) {
			c.fail("operand %d is %s, wanted %d features", i, t, x.Dims[axis])
		}
		f.args[i] = c.cast(a, wide)
	}
	for d, n := range x.Dims {
		if int64(d) != axis {
			f.rest, f.count = append(f.rest, int64(d)), f.count*float64(n)
		}
	}
	f.epsilon = op.Splat(c.b, tensor.Make(wide, x.Dims[axis]), c.float("epsilon"))
	return f
}

// all repeats an element for each feature over the batch.
func (f *features) all(v *ir.Value) *ir.Value {
	return op.Broadcast.Make(f.b, op.BroadcastAttr{Shape: f.dims, Dims: []int64{f.axis}}, v)
}

// sum adds up each feature.
func (f *features) sum(v *ir.Value) *ir.Value {
	return op.Reduce.Make(f.b, op.ReduceAttr{Kind: op.Sum, Axes: f.rest}, v)
}

func (f *features) mean(v *ir.Value) *ir.Value {
	s := f.sum(v)
	return op.Div.Make(f.b, s, op.Splat(f.b, s.Type, f.count))
}

func (f *features) mul(x, y *ir.Value) *ir.Value { return op.Mul.Make(f.b, x, y) }

// inverse is 1 / sqrt(variance + epsilon).
func (f *features) inverse(variance *ir.Value) *ir.Value {
	return op.Rsqrt.Make(f.b, op.Add.Make(f.b, variance, f.epsilon))
}

// normalised is (x - mean) * inverse * scale + offset.
func (f *features) normalised(x, scale, offset, mean, variance *ir.Value) *ir.Value {
	centred := op.Sub.Make(f.b, x, f.all(mean))
	return op.Add.Make(f.b, f.mul(centred, f.all(f.mul(f.inverse(variance), scale))), f.all(offset))
}

// results rounds to the declared types.
func (f *features) results(out ...*ir.Value) []*ir.Value {
	if len(out) != len(f.o.out) {
		f.fail("%d results, wanted %d", len(f.o.out), len(out))
	}
	for i, v := range out {
		out[i] = f.cast(v, f.o.out[i].DType)
	}
	return out
}

// batchNormInference takes x, scale, offset, mean and variance.
func batchNormInference(c *call) []*ir.Value {
	f := c.features(5)
	if f == nil {
		return nil
	}
	return f.results(f.normalised(f.args[0], f.args[1], f.args[2], f.args[3], f.args[4]))
}

// batchNormTraining takes x, scale and offset, and gives mean and variance of the batch too.
func batchNormTraining(c *call) []*ir.Value {
	f := c.features(3)
	if f == nil {
		return nil
	}
	x := f.args[0]
	mean := f.mean(x)
	centred := op.Sub.Make(c.b, x, f.all(mean))
	variance := f.mean(f.mul(centred, centred))
	return f.results(f.normalised(x, f.args[1], f.args[2], mean, variance), mean, variance)
}

// batchNormGrad takes x, scale, mean, variance and the gradient of the result, and gives those of x, scale and offset:
// dx = scale * inverse * (dy - mean(dy) - normalised * mean(dy * normalised)).
func batchNormGrad(c *call) []*ir.Value {
	f := c.features(5)
	if f == nil {
		return nil
	}
	x, scale, mean, variance, dy := f.args[0], f.args[1], f.args[2], f.args[3], f.args[4]
	inverse := f.inverse(variance)
	normalised := f.mul(op.Sub.Make(c.b, x, f.all(mean)), f.all(inverse))
	product := f.mul(dy, normalised)
	rest := op.Sub.Make(c.b, op.Sub.Make(c.b, dy, f.all(f.mean(dy))), f.mul(normalised, f.all(f.mean(product))))
	return f.results(f.mul(f.all(f.mul(scale, inverse)), rest), f.sum(product), f.sum(dy))
}
