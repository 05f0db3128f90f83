"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xi32>) -> tensor<4xi32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4xi32>):
    %1 = "stablehlo.map"(%0) <{dimensions = array<i64: 0>}> ({
    ^bb0(%2: tensor<i32>):
      %3 = "stablehlo.constant"() <{value = dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64]> : tensor<65xi32>}> : () -> tensor<65xi32>
      %4 = "stablehlo.dynamic_slice"(%3, %2) <{slice_sizes = array<i64: 1>}> : (tensor<65xi32>, tensor<i32>) -> tensor<1xi32>
      %5 = "stablehlo.reshape"(%4) : (tensor<1xi32>) -> tensor<i32>
      "stablehlo.return"(%5) : (tensor<i32>) -> ()
    }) : (tensor<4xi32>) -> tensor<4xi32>
    "func.return"(%1) : (tensor<4xi32>) -> ()
  }) : () -> ()
}) : () -> ()
