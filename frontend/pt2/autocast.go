package pt2

import (
	"strings"

	"tpuc/ir/tensor"
)

// autocast is the state of a region of torch.autocast that is on: some operators get their floats in its dtype, some in f32
// (ATen/autocast_mode.h). The dtypes that the archive records for the results hold the lists to account.
type autocast struct {
	device string
	dtype  tensor.DType
}

// importAutocast imports wrap_with_autocast(device, dtype, enabled, cache_enabled, graph, arguments...).
func importAutocast(c *call) []*ref {
	cast := c.im.autocast
	device := c.position(0)
	if device.String == nil {
		c.failf("argument 0 is a %s, wanted a device", device.kind())
	}
	dtype, enabled := c.position(1), c.number("enabled", *c.position(2)).i != 0
	switch {
	case !enabled && (cast == nil || cast.device == *device.String):
		cast = nil
	case !enabled: // another device's
	case dtype.ScalarType == nil:
		c.unsupported("autocast to the device's default dtype, wanted one that is named")
	case cast != nil && cast.device != *device.String:
		c.unsupported("autocast on two devices at once")
	default:
		cast = &autocast{*device.String, c.torchDType(*dtype.ScalarType)}
	}
	return c.inlineGraph(c.position(4), c.passedFrom(5), cast)
}

// underAutocast lets the node's rule see its tensors in the dtype that autocast gives the operator. The function that it returns undoes that.
func (c *call) underAutocast() (undo func()) {
	a := c.im.autocast
	undo = func() {}
	if a == nil || c.schema == nil {
		return undo
	}
	base, _, _ := strings.Cut(c.op, ".")
	to := tensor.Invalid
	switch {
	case autocastLow[base]:
		to = a.dtype
	case autocastF32[base] && (a.device != "cpu" || autocastF32CPU[base]):
		to = tensor.F32
	default:
		return undo
	}
	before := make(map[string]*ref)
	for i := range c.node.Inputs {
		c.node.Inputs[i].Arg.visit(func(name string) {
			r, meta := c.im.tensors[name], c.im.g.TensorValues[name]
			on := meta.Device == nil || meta.Device.Type == a.device
			if r == nil || r.poison || before[name] != nil || !on || !r.typ.DType.IsFloat() || r.typ.DType == tensor.F64 || r.typ.DType == to {
				return
			}
			before[name] = r
			cast := fresh(c.cast(r.read(c.b), to))
			cast.strides = r.strides
			c.im.tensors[name] = cast
		}, func(string) {})
	}
	return func() {
		for name, r := range before {
			c.im.tensors[name] = r
		}
	}
}

// autocastLow lists what autocast computes in its dtype, by operator without overload; what is made of such operators is among them.
var autocastLow = words(`_convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution prelu
	addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm bmm chain_matmul linalg_multi_dot lstm_cell gru_cell
	rnn_tanh_cell rnn_relu_cell scaled_dot_product_attention`)

// autocastF32 lists what autocast computes in f32, on most devices.
var autocastF32 = words(`acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm
	native_layer_norm rms_norm group_norm frobenius_norm nuclear_norm cosine_similarity poisson_nll_loss cosine_embedding_loss nll_loss
	nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss multilabel_margin_loss
	soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp
	upsample_nearest1d _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d
	_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d upsample_bicubic2d
	_upsample_bicubic2d_aa prod softmax log_softmax cumprod cumsum linalg_vector_norm linalg_matrix_norm sum norm
	avg_pool3d binary_cross_entropy grid_sampler`)

// autocastF32CPU lists those of autocastF32 for which that holds on CPUs.
var autocastF32CPU = words(`avg_pool3d binary_cross_entropy grid_sampler prod cdist mse_loss cosine_embedding_loss nll_loss nll_loss2d
	hinge_embedding_loss poisson_nll_loss smooth_l1_loss l1_loss huber_loss margin_ranking_loss soft_margin_loss triplet_margin_loss
	multi_margin_loss kl_div multilabel_margin_loss binary_cross_entropy_with_logits`)

// words are the blank-separated words of s as a set.
func words(s string) map[string]bool {
	out := make(map[string]bool)
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}
