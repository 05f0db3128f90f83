"builtin.module"() ({
  "func.func"() <{function_type = (tensor<f32>) -> tensor<f32>, sym_name = "f", sym_visibility = "private"}> ({
  ^bb0(%0: tensor<f32>):
    "func.return"(%0) : (tensor<f32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2x3xf32>, tensor<3xf32>, tensor<2xi32>, tensor<2xi64>, !stablehlo.token, tensor<1x4x4x2xf32>, tensor<3x3x2x4xf32>) -> (tensor<i32>, tensor<2x2xi64>, tensor<3x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x2xf32>, tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<2x3xf32>, !stablehlo.token, !stablehlo.token, !stablehlo.token, tensor<2x3xf32>, !stablehlo.token, tensor<2x3xf32>, tensor<2x3xf32>, tensor<1x?x?x4xf32>, tensor<?x3xf32, #stablehlo.bounds<2, ?>>, tensor<3x3xf32>, tensor<2xcomplex<f32>>, tensor<65xi32>, tensor<2x3xf32>, tuple<tensor<3xf32>>, tuple<tensor<2x3xf32>, tuple<tensor<3xf32>>>), sym_name = "main"}> ({
  ^bb0(%1: tensor<2x3xf32>, %2: tensor<3xf32>, %3: tensor<2xi32>, %4: tensor<2xi64>, %5: !stablehlo.token, %6: tensor<1x4x4x2xf32>, %7: tensor<3x3x2x4xf32>):
    %8 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %9 = "stablehlo.constant"() <{value = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> : () -> tensor<2x2xi64>
    %10 = "stablehlo.constant"() <{value = dense<0x3F800000> : tensor<3x3xf32>}> : () -> tensor<3x3xf32>
    %11:3 = "stablehlo.batch_norm_training"(%1, %2, %2) <{epsilon = 1.0e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
    %12 = "stablehlo.batch_norm_inference"(%11#0, %2, %2, %11#1, %11#2) <{epsilon = 1.0e-03 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    %13 = "stablehlo.map"(%1, %12) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%14: tensor<f32>, %15: tensor<f32>):
      %16 = "stablehlo.divide"(%14, %15) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%16) : (tensor<f32>) -> ()
    }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %17 = "stablehlo.einsum"(%1, %1) <{einsum_config = "ab,cb->ac"}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
    %18 = "stablehlo.torch_index_select"(%1, %3) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
    %19 = "stablehlo.rng"(%8, %8, %4) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> : (tensor<i32>, tensor<i32>, tensor<2xi64>) -> tensor<2x3xi32>
    %20 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>, use_global_device_ids}> ({
    ^bb0(%21: tensor<f32>, %22: tensor<f32>):
      %23 = "stablehlo.add"(%21, %22) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%23) : (tensor<f32>) -> ()
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %24 = "stablehlo.collective_permute"(%1) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %25 = "stablehlo.create_token"() : () -> !stablehlo.token
    %26 = "stablehlo.after_all"(%5, %25) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token
    %27 = "stablehlo.send"(%1, %26) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}> : (tensor<2x3xf32>, !stablehlo.token) -> !stablehlo.token
    %28:2 = "stablehlo.infeed"(%27) <{infeed_config = "a", layout = [[0 : i64, 1 : i64]]}> : (!stablehlo.token) -> (tensor<2x3xf32>, !stablehlo.token)
    %29 = "stablehlo.custom_call"(%1) <{api_version = 2 : i32, backend_config = "a\22\5C\0A\FF\C3\A9", call_target_name = "target", called_computations = [@f], has_side_effect = true, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]}> {mhlo.extra = [1 : i32, 2.5e+00 : f64, "s", {k = 4 : ui8}], "weird name" = dense<1> : tensor<2xi32>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %30 = "stablehlo.custom_call"() <{call_target_name = "none", operand_layouts = [], result_layouts = [dense<[1, 0]> : tensor<2xindex>]}> : () -> tensor<2x3xf32>
    %31 = "stablehlo.dynamic_conv"(%6, %7, %9) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 2>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>], window_reversal = array<i1: true, false>, window_strides = array<i64: 2, 2>}> : (tensor<1x4x4x2xf32>, tensor<3x3x2x4xf32>, tensor<2x2xi64>) -> tensor<1x?x?x4xf32>
    %32 = "stablehlo.set_dimension_size"(%1, %8) <{dimension = 0 : i64}> : (tensor<2x3xf32>, tensor<i32>) -> tensor<?x3xf32, #stablehlo.bounds<2, ?>>
    %33 = "stablehlo.triangular_solve"(%10, %10) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    %34 = "stablehlo.fft"(%2) <{fft_length = array<i64: 3>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<3xf32>) -> tensor<2xcomplex<f32>>
    %35 = "stablehlo.constant"() <{value = dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64]> : tensor<65xi32>}> : () -> tensor<65xi32>
    %36 = "stablehlo.dynamic_broadcast_in_dim"(%2, %4) <{broadcast_dimensions = array<i64: 1>, known_expanding_dimensions = array<i64: 0>}> : (tensor<3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
    %37 = "stablehlo.tuple"(%2) : (tensor<3xf32>) -> tuple<tensor<3xf32>>
    %38 = "stablehlo.tuple"(%29, %37) : (tensor<2x3xf32>, tuple<tensor<3xf32>>) -> tuple<tensor<2x3xf32>, tuple<tensor<3xf32>>>
    "func.return"(%8, %9, %10, %11#0, %11#1, %11#2, %12, %13, %17, %18, %19, %20, %24, %25, %26, %27, %28#0, %28#1, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38) : (tensor<i32>, tensor<2x2xi64>, tensor<3x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x2xf32>, tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<2x3xf32>, !stablehlo.token, !stablehlo.token, !stablehlo.token, tensor<2x3xf32>, !stablehlo.token, tensor<2x3xf32>, tensor<2x3xf32>, tensor<1x?x?x4xf32>, tensor<?x3xf32, #stablehlo.bounds<2, ?>>, tensor<3x3xf32>, tensor<2xcomplex<f32>>, tensor<65xi32>, tensor<2x3xf32>, tuple<tensor<3xf32>>, tuple<tensor<2x3xf32>, tuple<tensor<3xf32>>>) -> ()
  }) : () -> ()
}) : () -> ()
