package bytecode

import (
	"slices"
	"strconv"
	"strings"
)

// vhloOps are VHLO's operations up to version 1.20 of StableHLO, with their attributes in the order of the alphabet. What stands behind a colon says
// what becomes of an attribute in StableHLO: an array of numbers instead of a tensor, a symbol or several instead of strings, a handle instead of a number, a unit
// instead of true, or nothing. What stands behind an equals sign is the value that StableHLO leaves out.
var vhloOps = map[string]string{
	"abs_v1":                      "",
	"add_v1":                      "",
	"after_all_v1":                "",
	"all_gather_v1":               "all_gather_dim channel_id:channel=0 replica_groups use_global_device_ids:unit=false",
	"all_gather_v2":               "all_gather_dim channel_id:channel=0 replica_groups use_global_device_ids:unit=false",
	"all_reduce_v1":               "channel_id:channel=0 replica_groups use_global_device_ids:unit=false",
	"all_reduce_v2":               "channel_id:channel=0 replica_groups use_global_device_ids:unit=false",
	"all_to_all_v1":               "channel_id:channel=0 concat_dimension replica_groups split_count split_dimension",
	"all_to_all_v2":               "channel_id:channel=0 concat_dimension replica_groups split_count split_dimension",
	"and_v1":                      "",
	"async_done_v1":               "",
	"async_start_v1":              "",
	"atan2_v1":                    "",
	"batch_norm_grad_v1":          "epsilon feature_index",
	"batch_norm_inference_v1":     "epsilon feature_index",
	"batch_norm_training_v1":      "epsilon feature_index",
	"bitcast_convert_v1":          "",
	"broadcast_in_dim_v1":         "broadcast_dimensions:array",
	"broadcast_v1":                "broadcast_sizes:array",
	"call_v1":                     "callee:symbol",
	"case_v1":                     "",
	"cbrt_v1":                     "",
	"cbrt_v2":                     "result_accuracy=accurate",
	"ceil_v1":                     "",
	"cholesky_v1":                 "lower=false",
	"clamp_v1":                    "",
	"collective_broadcast_v1":     "channel_id:channel=0 replica_groups",
	"collective_broadcast_v2":     "channel_id:channel=0 has_dynamic_root:unit=false replica_groups",
	"collective_permute_v1":       "channel_id:channel=0 source_target_pairs",
	"collective_reduce_v1":        "channel_id:channel=0 has_dynamic_root:unit=false replica_groups use_global_device_ids:unit=false",
	"compare_v1":                  "compare_type=NOTYPE comparison_direction",
	"complex_v1":                  "",
	"composite_v1":                "composite_attributes=empty decomposition:symbol name version=0",
	"composite_v2":                "composite_attributes=empty decomposition:symbol name version=0",
	"concatenate_v1":              "dimension",
	"constant_v1":                 "value",
	"convert_v1":                  "",
	"convolution_v1":              "batch_group_count feature_group_count input_batch_dimension input_feature_dimension input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation:array=ones output_batch_dimension output_feature_dimension output_spatial_dimensions padding=zeros precision_config=DEFAULT rhs_dilation:array=ones window_reversal:array=zeros window_strides:array=ones",
	"cosine_v1":                   "",
	"cosine_v2":                   "result_accuracy=accurate",
	"count_leading_zeros_v1":      "",
	"create_token_v1":             "",
	"cross-replica-sum_v1":        "replica_groups",
	"custom_call_v1":              "api_version=1 backend_config=empty call_target_name called_computations:symbols=empty has_side_effect=false operand_layouts=empty output_operand_aliases=empty result_layouts=empty",
	"custom_call_v2":              "api_version=1 backend_config=empty call_target_name called_computations:symbols=empty has_side_effect=false operand_layouts=empty output_operand_aliases=empty result_layouts=empty result_tilings=empty",
	"divide_v1":                   "",
	"dot_general_v1":              "lhs_batching_dimensions lhs_contracting_dimensions precision_config=DEFAULT rhs_batching_dimensions rhs_contracting_dimensions",
	"dot_general_v2":              "accumulation_type allow_imprecise_accumulation lhs_batching_dimensions lhs_component_count lhs_contracting_dimensions lhs_precision_type num_primitive_operations precision_config=DEFAULT rhs_batching_dimensions rhs_component_count rhs_contracting_dimensions rhs_precision_type",
	"dot_v1":                      "precision_config=DEFAULT",
	"dynamic_broadcast_in_dim_v1": "broadcast_dimensions:array known_expanding_dimensions:array=empty known_nonexpanding_dimensions:array=empty",
	"dynamic_conv_v1":             "batch_group_count feature_group_count input_batch_dimension input_feature_dimension input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation:array=ones output_batch_dimension output_feature_dimension output_spatial_dimensions padding:dropped precision_config=DEFAULT rhs_dilation:array=ones window_reversal:array=zeros window_strides:array=ones",
	"dynamic_conv_v2":             "batch_group_count feature_group_count input_batch_dimension input_feature_dimension input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation:array=ones output_batch_dimension output_feature_dimension output_spatial_dimensions precision_config=DEFAULT rhs_dilation:array=ones window_reversal:array=zeros window_strides:array=ones",
	"dynamic_gather_v1":           "collapsed_slice_dims index_vector_dim indices_are_sorted=false offset_dims start_index_map",
	"dynamic_gather_v2":           "collapsed_slice_dims index_vector_dim indices_are_sorted=false offset_dims operand_batching_dims start_index_map start_indices_batching_dims",
	"dynamic_iota_v1":             "iota_dimension",
	"dynamic_pad_v1":              "",
	"dynamic_reshape_v1":          "",
	"dynamic_slice_v1":            "slice_sizes:array",
	"dynamic_update_slice_v1":     "",
	"einsum_v1":                   "einsum_config",
	"exponential_minus_one_v1":    "",
	"exponential_minus_one_v2":    "result_accuracy=accurate",
	"exponential_v1":              "",
	"exponential_v2":              "result_accuracy=accurate",
	"fft_v1":                      "fft_length:array fft_type",
	"floor_v1":                    "",
	"func_v1":                     "arg_attrs=empty function_type res_attrs=empty sym_name sym_visibility=empty",
	"gather_v1":                   "collapsed_slice_dims index_vector_dim indices_are_sorted=false offset_dims slice_sizes:array start_index_map",
	"gather_v2":                   "collapsed_slice_dims index_vector_dim indices_are_sorted=false offset_dims operand_batching_dims slice_sizes:array start_index_map start_indices_batching_dims",
	"get_dimension_size_v1":       "dimension",
	"get_tuple_element_v1":        "index",
	"if_v1":                       "",
	"imag_v1":                     "",
	"infeed_v1":                   "infeed_config=empty layout=empty",
	"iota_v1":                     "iota_dimension",
	"is_finite_v1":                "",
	"log_plus_one_v1":             "",
	"log_plus_one_v2":             "result_accuracy=accurate",
	"log_v1":                      "",
	"log_v2":                      "result_accuracy=accurate",
	"logistic_v1":                 "",
	"logistic_v2":                 "result_accuracy=accurate",
	"map_v1":                      "dimensions:array",
	"maximum_v1":                  "",
	"minimum_v1":                  "",
	"multiply_v1":                 "",
	"negate_v1":                   "",
	"not_v1":                      "",
	"optimization_barrier_v1":     "",
	"or_v1":                       "",
	"outfeed_v1":                  "outfeed_config=empty",
	"pad_v1":                      "edge_padding_high:array edge_padding_low:array interior_padding:array",
	"partition_id_v1":             "",
	"popcnt_v1":                   "",
	"power_v1":                    "",
	"real_dynamic_slice_v1":       "",
	"real_v1":                     "",
	"recv_v1":                     "channel_id channel_type is_host_transfer=false",
	"recv_v2":                     "channel_id channel_type is_host_transfer=false source_target_pairs=empty",
	"reduce_precision_v1":         "exponent_bits mantissa_bits",
	"reduce_scatter_v1":           "channel_id:channel=0 replica_groups scatter_dimension use_global_device_ids:unit=false",
	"reduce_v1":                   "dimensions:array",
	"reduce_window_v1":            "base_dilations:array=ones padding=zeros window_dilations:array=ones window_dimensions:array window_strides:array=ones",
	"remainder_v1":                "",
	"replica_id_v1":               "",
	"reshape_v1":                  "",
	"return_v1":                   "",
	"reverse_v1":                  "dimensions:array",
	"rng_bit_generator_v1":        "rng_algorithm",
	"rng_v1":                      "rng_distribution",
	"round_nearest_afz_v1":        "",
	"round_nearest_even_v1":       "",
	"rsqrt_v1":                    "",
	"rsqrt_v2":                    "result_accuracy=accurate",
	"scatter_v1":                  "index_vector_dim indices_are_sorted=false inserted_window_dims scatter_dims_to_operand_dims unique_indices=false update_window_dims",
	"scatter_v2":                  "index_vector_dim indices_are_sorted=false input_batching_dims inserted_window_dims scatter_dims_to_operand_dims scatter_indices_batching_dims unique_indices=false update_window_dims",
	"select_and_scatter_v1":       "padding=zeros window_dimensions:array window_strides:array=ones",
	"select_v1":                   "",
	"send_v1":                     "channel_id channel_type is_host_transfer=false",
	"send_v2":                     "channel_id channel_type is_host_transfer=false source_target_pairs=empty",
	"set_dimension_size_v1":       "dimension",
	"shift_left_v1":               "",
	"shift_right_arithmetic_v1":   "",
	"shift_right_logical_v1":      "",
	"sign_v1":                     "",
	"sine_v1":                     "",
	"sine_v2":                     "result_accuracy=accurate",
	"slice_v1":                    "limit_indices:array start_indices:array strides:array",
	"sort_v1":                     "dimension=-1 is_stable=false",
	"sqrt_v1":                     "",
	"sqrt_v2":                     "result_accuracy=accurate",
	"subtract_v1":                 "",
	"tan_v1":                      "",
	"tan_v2":                      "result_accuracy=accurate",
	"tanh_v1":                     "",
	"tanh_v2":                     "result_accuracy=accurate",
	"torch_index_select_v1":       "batch_dims dim",
	"transpose_v1":                "permutation:array",
	"triangular_solve_v1":         "left_side lower transpose_a unit_diagonal",
	"tuple_v1":                    "",
	"unary_einsum_v1":             "einsum_config",
	"uniform_dequantize_v1":       "",
	"uniform_quantize_v1":         "",
	"while_v1":                    "",
	"xor_v1":                      "",
}

// stableHLO turns an operation of VHLO into one of StableHLO or func.
func (d *decoder) stableHLO(o *operation, name, parent string) {
	table := inherentOf("vhlo." + name)[0]
	base := name[:strings.LastIndex(name, "_v")]
	if d.version < nativeProperties { // all attributes are in one dictionary
		o.split(table)
	}
	switch {
	case base == "func" || base == "call" || base == "return" && parent == "func.func":
		o.name = "func." + base
	default:
		o.name = "stablehlo." + base
	}
	if gather := imploded[base]; gather != nil {
		gather(&imploder{d, o})
	}
	layouts := base == "custom_call" && slices.ContainsFunc(o.inherent, func(a named) bool {
		return strings.HasSuffix(a.name, "_layouts") && !d.isAbsent(a.value, "empty")
	})
	var out []named
	for _, a := range o.inherent {
		i := slices.IndexFunc(table, func(b inherent) bool { return b.name == a.name })
		if i >= 0 {
			keep := layouts && strings.HasSuffix(a.name, "_layouts") // both or none
			if table[i].absent != "" && !keep && d.isAbsent(a.value, table[i].absent) {
				continue
			}
			switch table[i].form {
			case "dropped":
				continue
			case "channel":
				a.name = "channel_handle"
			}
			a.value = d.inForm(a.value, table[i].form)
		}
		out = append(out, a)
	}
	slices.SortStableFunc(out, func(a, b named) int { return strings.Compare(a.name, b.name) })
	o.inherent = out
}

// inForm is an attribute as StableHLO has it.
func (d *decoder) inForm(a attribute, form string) attribute {
	switch form {
	case "array":
		l, ok := a.(*Literal)
		if !ok {
			d.at.fail("an attribute that is no tensor, wanted one of numbers")
		}
		out := numbersAttr{elem: l.typ.elem.text}
		for _, v := range d.ints(l) {
			out.words = append(out.words, l.typ.elem.number(uint64(v)))
		}
		return out
	case "unit":
		return unitAttr{}
	case "channel":
		n, ok := a.(intAttr)
		if !ok {
			d.at.fail("a channel that is no integer, wanted one")
		}
		return channelHandle(n.value, 0)
	case "symbol":
		s, ok := a.(stringAttr)
		if !ok {
			d.at.fail("an attribute that is no string, wanted the name of a function")
		}
		return symbolAttr{string(s)}
	case "symbols":
		v, ok := a.(arrayAttr)
		if !ok {
			d.at.fail("an attribute that is no list, wanted names of functions")
		}
		out := make(arrayAttr, len(v))
		for i := range v {
			out[i] = d.inForm(v[i], "symbol")
		}
		return out
	}
	return a
}

// isAbsent reports the value that StableHLO leaves out.
func (d *decoder) isAbsent(a attribute, value string) bool {
	switch a := a.(type) {
	case stringAttr:
		return value == "empty" && a == ""
	case dictAttr:
		return value == "empty" && len(a) == 0
	case boolAttr:
		return value == "false" && !bool(a)
	case intAttr:
		return value == strconv.FormatInt(a.value, 10)
	case arrayAttr:
		if value == "DEFAULT" {
			return !slices.ContainsFunc(a, func(b attribute) bool { return b != textAttr("#stablehlo<precision DEFAULT>") })
		}
		return value == "empty" && len(a) == 0
	case textAttr:
		return value == "NOTYPE" && a == "#stablehlo<comparison_type NOTYPE>" ||
			value == "accurate" && a == "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>"
	case *Literal:
		one, ok := map[string]int64{"ones": 1, "zeros": 0}[value]
		return value == "empty" && a.typ.elements() == 0 || ok && !slices.ContainsFunc(d.ints(a), func(v int64) bool { return v != one })
	}
	return false
}

// imploded gather several attributes of VHLO into one of StableHLO.
var imploded = map[string]func(*imploder){
	"convolution":    (*imploder).conv,
	"dynamic_conv":   (*imploder).conv,
	"dot_general":    (*imploder).dot,
	"gather":         (*imploder).gather,
	"dynamic_gather": (*imploder).gather,
	"scatter":        (*imploder).scatter,
	"send":           (*imploder).channel,
	"recv":           (*imploder).channel,
}

// imploder takes attributes of an operation and puts others in their place.
type imploder struct {
	d *decoder
	o *operation
}

// take removes an attribute; nil where the operation has none of that name.
func (p *imploder) take(name string) attribute {
	i := slices.IndexFunc(p.o.inherent, func(a named) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	a := p.o.inherent[i].value
	p.o.inherent = slices.Delete(p.o.inherent, i, i+1)
	return a
}

func (p *imploder) put(name string, a attribute) {
	p.o.inherent = append(p.o.inherent, named{name, a})
}

// numbers takes a list, which older versions may not have.
func (p *imploder) numbers(name string) []int64 {
	switch a := p.take(name).(type) {
	case nil:
	case *Literal:
		return p.d.ints(a)
	default:
		p.d.at.fail("%s of %s is no tensor, wanted one of integers", name, p.o.name)
	}
	return nil
}

func (p *imploder) number(name string) int64 {
	a, ok := p.take(name).(intAttr)
	if !ok {
		p.d.at.fail("%s has no integer %s, wanted one", p.o.name, name)
	}
	return a.value
}

func (p *imploder) conv() {
	var sides [3][]int64
	for i, names := range [3][2]string{{"input_batch", "input_feature"}, {"kernel_input_feature", "kernel_output_feature"}, {"output_batch", "output_feature"}} {
		side, _, _ := strings.Cut(names[0], "_")
		sides[i] = append([]int64{p.number(names[0] + "_dimension"), p.number(names[1] + "_dimension")}, p.numbers(side+"_spatial_dimensions")...)
	}
	p.put("dimension_numbers", convNumbers(p.d.at, sides))
}

func (p *imploder) dot() {
	p.put("dot_dimension_numbers", dotNumbers(p.numbers("lhs_batching_dimensions"), p.numbers("rhs_batching_dimensions"),
		p.numbers("lhs_contracting_dimensions"), p.numbers("rhs_contracting_dimensions")))
	var a dotAlgorithm
	named := true
	for i, name := range []string{"lhs_precision_type", "rhs_precision_type", "accumulation_type"} {
		t, ok := p.take(name).(*typ)
		if named = named && ok && t.text != "none"; named {
			a.types[i] = t
		}
	}
	for i, name := range []string{"lhs_component_count", "rhs_component_count", "num_primitive_operations"} {
		n, ok := p.take(name).(intAttr)
		a.counts[i] = n.value
		named = named && ok
	}
	imprecise, ok := p.take("allow_imprecise_accumulation").(boolAttr)
	if a.imprecise = bool(imprecise); named && ok {
		p.put("algorithm", a.attr())
	}
}

func (p *imploder) gather() {
	p.put("dimension_numbers", p.fields("gather", gatherFields))
}

func (p *imploder) scatter() {
	p.put("scatter_dimension_numbers", p.fields("scatter", scatterFields))
}

func (p *imploder) channel() {
	p.put("channel_handle", channelHandle(p.number("channel_id"), p.number("channel_type")))
}

func (p *imploder) fields(name string, names []string) attribute {
	lists := make([][]int64, len(names))
	for i, n := range names {
		lists[i] = p.numbers(n)
	}
	return fields(name, names, lists, p.number("index_vector_dim"))
}
