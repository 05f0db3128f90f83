package pt2

import (
	"maps"
	"slices"
	"strings"
)

// Operator is an overload of an operator, and whether archives may hold it. A rule may refuse single forms of its operator.
type Operator struct {
	Name      string // such as "add.Tensor", or with the namespace where that is not aten's
	Supported bool
	Reason    string // why there is no rule
}

// Operators are the aten overloads of torch 2.15 that have to do with tensors, and the operators of other namespaces that there are rules for,
// sorted by name.
func Operators() []Operator {
	var out []Operator
	for name, line := range schemaLines() {
		if !strings.Contains(line, "Tensor") { // of TorchScript's numbers and lists, which no export has
			continue
		}
		o := Operator{Name: name, Supported: Supported("torch.ops.aten." + name)}
		if !o.Supported {
			o.Reason = reasonFor(name)
		}
		out = append(out, o)
	}
	for name := range rules() {
		if _, ok := schemaLines()[name]; !ok && strings.Contains(name, ".") && Supported(name) {
			out = append(out, Operator{Name: strings.TrimPrefix(name, "torch.ops."), Supported: true})
		}
	}
	for _, name := range controlTargets {
		out = append(out, Operator{Name: strings.TrimPrefix(name, "ops."), Supported: Supported("torch." + name)})
	}
	slices.SortFunc(out, func(a, b Operator) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(out)
}

// reasonFor says in a few words why an aten overload has no rule.
func reasonFor(name string) string {
	base, _, _ := strings.Cut(name, ".")
	if dataDependent[base] {
		return "the shape of the result depends on the data"
	}
	if strings.HasSuffix(name, "hacked_twin") {
		return scripted
	}
	for _, reason := range slices.Sorted(maps.Keys(reasonPatterns)) {
		for p := range strings.FieldsSeq(reasonPatterns[reason]) {
			prefix, isPrefix := strings.CutSuffix(p, "*")
			if base == p || strings.TrimSuffix(base, "_") == p || isPrefix && strings.HasPrefix(base, prefix) {
				return reason
			}
		}
	}
	if changesMemory[base] {
		return "gives the tensor object other memory, which exports do not do"
	}
	return "there is no rule"
}

const scripted = "lists and numbers of TorchScript"

// reasonPatterns are names, or beginnings with a star, of operators by the reason why they have no rule.
var reasonPatterns = map[string]string{
	"random numbers": "rand* bernoulli normal* _philox* multinomial poisson uniform exponential cauchy log_normal geometric random binomial gamma feature_alpha_dropout " +
		"rrelu_with_noise* fractional_max_pool* _fill_mem_eff_dropout_mask dropout alpha_dropout feature_dropout _no_grad_normal_ _no_grad_uniform_ _masked_scale",
	"quantized tensors": "quantize* dequantize* _choose_qparams* choose_qparams* fake_quant* _fake_quant* fused_moving_avg_obs_fake_quant q_* int_repr _saturate_weight_to_fp16 _rowwise_prune " +
		"_mixed_dtypes_linear _int_mm",
	"sparse or nested tensors": "sparse* _sparse* smm sspaddmm hspmm coalesce _coalesce* is_coalesced indices _indices values _values indices_copy to_dense _to_dense dense_dim _nnz _spsolve _dimI _dimV " +
		"_convert_indices* nested* _nested* to_padded_tensor to_sparse* _to_sparse* crow_indices* col_indices* ccol_indices* row_indices* sparse_dim",
	"matrix factorisations and inverses": "linalg_* _linalg* svd lu* _lu* qr geqrf ormqr orgqr det logdet slogdet inverse pinverse cholesky* _cholesky* matrix_exp matrix_power triangular_solve nuclear_norm " +
		"_compute_linear_combination",
	"Fourier transforms of this form": "fft_* _fft* stft istft",
	"kernels of other devices, which exports do not choose": "_flash_attention* _efficient_attention* cudnn* _cudnn* miopen* mkldnn* _mkldnn* batch_norm_elemt batch_norm_stats batch_norm_gather* batch_norm_update* _slow_conv* " +
		"slow_conv* thnn_* _nnpack* _conv_depthwise2d conv_depthwise3d convolution_overrideable _scaled_* _grid_sampler_2d_cpu_fallback _native_multi_head_attention _transform_bias_rescale_qkv " +
		"_batch_norm* _native_batch_norm* native_batch_norm _embedding_bag*",
	"questions about a tensor, which exports answer": "is_* isreal _is_* result_type can_cast promote_types get_device sym_* numel storage_offset element_size output_nr _version retain_grad retains_grad size " +
		"_debug_has_internal_overlap _has_same_storage_numel data _make_dep_token get_autocast_dtype _functional_assert* _functional_sym* _propagate_xla_data equal allclose dim grad",
	"gives the tensor object other memory, which exports do not do": "resize* set _resize* _reshape_alias* set_data shallow_copy_data from_file _lazy_clone",
	scripted:            "as_tensor tensor _list_to_tensor _tensor_to_list _ncf* _pack_sequence _pad_packed_sequence _pack_padded_sequence pad_sequence __interpolate __upsample* _no_grad*",
	"special functions": "special_* lgamma digamma polygamma mvlgamma erfinv igamma* i0 nextafter frexp",
}
