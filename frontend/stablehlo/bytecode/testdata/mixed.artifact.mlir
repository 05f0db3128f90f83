"builtin.module"() ({
  "sdy.mesh"() <{sym_name = "mesh"}> : () -> ()
  "func.func"() <{arg_attrs = [{jax.buffer_donor = true}], function_type = (tensor<4x4xf32>) -> tensor<4x2xf32>, sym_name = "main"}> ({
  ^bb0(%0: tensor<4x4xf32>):
    %1 = "stablehlo.tanh"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = "sdy.sharding_constraint"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %3 = "chlo.erf_inv"(%2) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %4:2 = "chlo.top_k"(%3) <{k = 2 : i64}> : (tensor<4x4xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
    %5 = "stablehlo.sine"(%4#0) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    "func.return"(%5) : (tensor<4x2xf32>) -> ()
  }) : () -> ()
}) : () -> ()
