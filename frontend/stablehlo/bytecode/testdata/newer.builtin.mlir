"builtin.module"() ({
  "func.func"() <{function_type = (tensor<3x3xf32>, tensor<2xf8E4M3>, tensor<2xf4E2M1FN>) -> tensor<3x3xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<3x3xf32>, %1: tensor<2xf8E4M3>, %2: tensor<2xf4E2M1FN>):
    %3 = "stablehlo.dot_general"(%0, %0) <{algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>, dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    %4 = "stablehlo.exponential"(%3) <{result_accuracy = #stablehlo.result_accuracy<atol = 5.0e-01, rtol = 0.0e+00, ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}> : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %5 = "stablehlo.custom_call"(%4) <{api_version = 4 : i32, backend_config = {a = 1 : i32, b = true}, call_target_name = "typed"}> : (tensor<3x3xf32>) -> tensor<3x3xf32>
    "func.return"(%5) : (tensor<3x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
