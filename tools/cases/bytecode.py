"""Writes MLIR bytecode of what the modules of JAX do not have: python bytecode.py FOLDER

Each text below becomes NAME.FORM.mlirbc: builtin, the dialects of the text themselves, or a portable artifact of a version of StableHLO. Made with jaxlib
0.10.2.
"""

import io
import os
import re
import sys

from jax._src.interpreters import mlir
from jax._src.lib import _jax
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo

BIG = list(range(65))
LITERALS = [
    (f"dense<{BIG}>", "tensor<65xi32>"),
    (f"dense<{[i % 3 == 0 for i in range(300)]}>".replace("T", "t").replace("F", "f"), "tensor<300xi1>"),
    ("dense<[1, -2, 3]>", "tensor<3xi8>"),
    ("dense<[[1, -2], [3, 32767]]>", "tensor<2x2xi16>"),
    ("dense<[255, 0]>", "tensor<2xui8>"),
    ("dense<[18446744073709551615, 0]>", "tensor<2xui64>"),
    ("dense<[-8, 7]>", "tensor<2xi4>"),
    ("dense<[0, 15]>", "tensor<2xui4>"),
    ("dense<[1.5, 0xFFC00001]>", "tensor<2xf32>"),
    ("dense<[1.5, -0.0]>", "tensor<2xf64>"),
    ("dense<[1.5, 0x7E00]>", "tensor<2xf16>"),
    ("dense<-1.5>", "tensor<2x3xbf16>"),
    ("dense<[1.5, 448.0]>", "tensor<2xf8E4M3FN>"),
    ("dense<[(1.0, -2.0), (0.5, 3.0)]>", "tensor<2xcomplex<f32>>"),
    ("dense<(1.0, 2.0)>", "tensor<3xcomplex<f64>>"),
    ("dense<>", "tensor<0x3xf32>"),
    ("dense<true>", "tensor<i1>"),
    ("dense<false>", "tensor<5xi1>"),
    ("dense<true>", "tensor<9x2xi1>"),
    ("dense<[true, false, true]>", "tensor<3xi1>"),
    ("dense<[true, true, true, true, true, true, true, true]>", "tensor<8xi1>"),
    ("dense<[[true, false, true], [true, false, false], [false, false, true]]>", "tensor<3x3xi1>"),
]

# Operations that JAX does not write, in forms that every version of StableHLO has.
OPERATIONS = """
func.func private @f(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
}
func.func @main(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %i: tensor<2xi32>, %n: tensor<2xi64>, %t: !stablehlo.token, %image: tensor<1x4x4x2xf32>, %filter: tensor<3x3x2x4xf32>) -> RESULTS {
  %size = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
  %pads = "stablehlo.constant"() <{value = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> : () -> tensor<2x2xi64>
  %three = "stablehlo.constant"() <{value = dense<1.0> : tensor<3x3xf32>}> : () -> tensor<3x3xf32>
  %0:3 = "stablehlo.batch_norm_training"(%x, %s, %s) <{epsilon = 0.001 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  %1 = "stablehlo.batch_norm_inference"(%0#0, %s, %s, %0#1, %0#2) <{epsilon = 0.001 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %2 = "stablehlo.map"(%x, %1) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = "stablehlo.divide"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%r) : (tensor<f32>) -> ()
  }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = "stablehlo.einsum"(%x, %x) <{einsum_config = "ab,cb->ac"}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  %4 = "stablehlo.torch_index_select"(%x, %i) <{dim = 0 : i64, batch_dims = 0 : i64}> : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  %5 = "stablehlo.rng"(%size, %size, %n) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> : (tensor<i32>, tensor<i32>, tensor<2xi64>) -> tensor<2x3xi32>
  %6 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%r) : (tensor<f32>) -> ()
  }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %7 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %8 = "stablehlo.create_token"() : () -> !stablehlo.token
  %9 = "stablehlo.after_all"(%t, %8) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token
  %10 = "stablehlo.send"(%x, %9) <{channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}> : (tensor<2x3xf32>, !stablehlo.token) -> !stablehlo.token
  %11:2 = "stablehlo.infeed"(%10) <{infeed_config = "a", layout = [[0, 1]]}> : (!stablehlo.token) -> (tensor<2x3xf32>, !stablehlo.token)
  %12 = "stablehlo.custom_call"(%x) <{call_target_name = "target", has_side_effect = true, backend_config = "a\\22\\\\\\0A\\FF\\C3\\A9", api_version = 2 : i32, called_computations = [@f], operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]}> {mhlo.extra = [1 : i32, 2.5 : f64, "s", {k = 4 : ui8}], "weird name" = dense<1> : tensor<2xi32>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %13 = "stablehlo.custom_call"() <{call_target_name = "none", operand_layouts = [], result_layouts = [dense<[1, 0]> : tensor<2xindex>]}> : () -> tensor<2x3xf32>
  %14 = "stablehlo.dynamic_conv"(%image, %filter, %pads) <{window_strides = array<i64: 2, 2>, lhs_dilation = array<i64: 1, 2>, window_reversal = array<i1: true, false>, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]}> : (tensor<1x4x4x2xf32>, tensor<3x3x2x4xf32>, tensor<2x2xi64>) -> tensor<1x?x?x4xf32>
  %15 = "stablehlo.set_dimension_size"(%x, %size) <{dimension = 0 : i64}> : (tensor<2x3xf32>, tensor<i32>) -> tensor<?x3xf32, #stablehlo.bounds<2, ?>>
  %16 = "stablehlo.triangular_solve"(%three, %three) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %17 = "stablehlo.fft"(%s) <{fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 3>}> : (tensor<3xf32>) -> tensor<2xcomplex<f32>>
  %18 = "stablehlo.constant"() <{value = dense<BIG> : tensor<65xi32>}> : () -> tensor<65xi32>
  %19 = "stablehlo.dynamic_broadcast_in_dim"(%s, %n) <{broadcast_dimensions = array<i64: 1>, known_expanding_dimensions = array<i64: 0>}> : (tensor<3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  %20 = "stablehlo.tuple"(%s) : (tensor<3xf32>) -> tuple<tensor<3xf32>>
  %21 = "stablehlo.tuple"(%12, %20) : (tensor<2x3xf32>, tuple<tensor<3xf32>>) -> tuple<tensor<2x3xf32>, tuple<tensor<3xf32>>>
  return
}
"""

# What newer versions have.
NEWER = """
func.func @main(%x: tensor<3x3xf32>, %e: tensor<2xf8E4M3>, %m: tensor<2xf4E2M1FN>) -> tensor<3x3xf32> {
  %0 = "stablehlo.dot_general"(%x, %x) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>}> : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  %1 = "stablehlo.exponential"(%0) <{result_accuracy = #stablehlo.result_accuracy<atol = 0.5, ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}> : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %2 = "stablehlo.custom_call"(%1) <{call_target_name = "typed", backend_config = {a = 1 : i32, b = true}, api_version = 4 : i32}> : (tensor<3x3xf32>) -> tensor<3x3xf32>
  return %2 : tensor<3x3xf32>
}
"""

# A constant that does not stand in the text, inside of an operation that travels opaquely.
OPAQUE = """
func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
  %0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<i32>):
    %big = "stablehlo.constant"() <{value = dense<BIG> : tensor<65xi32>}> : () -> tensor<65xi32>
    %slice = "stablehlo.dynamic_slice"(%big, %a) <{slice_sizes = array<i64: 1>}> : (tensor<65xi32>, tensor<i32>) -> tensor<1xi32>
    %r = "stablehlo.reshape"(%slice) : (tensor<1xi32>) -> tensor<i32>
    "stablehlo.return"(%r) : (tensor<i32>) -> ()
  }) : (tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}
"""

# Operations of dialects that are not versioned, which an artifact holds between conversions of their operands and results, and shardings.
MIXED = """
sdy.mesh @mesh = <["d"=2]>
func.func @main(%x: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>, jax.buffer_donor = true}) -> tensor<4x2xf32> {
  %0 = "stablehlo.tanh"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{}, {"d"}]> : tensor<4x4xf32>
  %2 = "chlo.erf_inv"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3:2 = "chlo.top_k"(%2) <{k = 2 : i64}> : (tensor<4x4xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  %4 = "stablehlo.sine"(%3#0) : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %4 : tensor<4x2xf32>
}
"""

# What portable artifacts do not have: attributes, types and locations of MLIR itself, resources, and operations that nobody knows.
BUILTIN = """
module @m attributes {a.array = array<i32: 1, -2>, a.bools = array<i1: true, false>, a.empty = array<i64>, a.symbol = @f::@g, a.type = (i32, f32) -> (), a.unit, a.typed = "s" : i8,
    a.float = 1.5 : bf16, a.index = 7 : index, a.wide = 255 : ui8, a.numbers = dense_resource<numbers> : tensor<3xi32>, a.text = #stablehlo<comparison_direction EQ>} {
  func.func @main(%x: tensor<2xf32> loc("x"), %v: vector<4xf32>, %m: memref<2xf32>, %u: tensor<*xf32>, %n: none, %s: tensor<2xsi8>, %i: index, %c: complex<f64>, %q: tensor<2xf8E5M2>) -> tensor<2xf32> {
    %i32 = "stablehlo.constant"() <{value = dense<0> : tensor<2xi32>}> : () -> tensor<2xi32>
    %0 = "stablehlo.constant"() <{value = dense_resource<weights> : tensor<2xf32>}> : () -> tensor<2xf32> loc(fused<"meta">["a.py":3:4, "scope"])
    %1 = "mine.op"(%0, %x) <{k = 3 : i64}> {more} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc(callsite("f"("b.py":7:1) at "c.py":9:2))
    %2 = "chlo.broadcast_compare"(%1, %x) <{comparison_direction = #chlo<comparison_direction LT>, compare_type = #chlo<comparison_type FLOAT>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1> loc("d.py":1:2 to 3:4)
    %3 = "stablehlo.gather"(%x, %i32) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
    return %3 : tensor<2xf32>
  }
}
{-#
  dialect_resources: {
    builtin: {
      numbers: "0x04000000010000000200000003000000",
      weights: "0x040000000000803F00000040"
    }
  },
  external_resources: {
    someone: {
      flag: true,
      name: "text",
      blob: "0x0400000001020304"
    }
  }
#-}
"""


def literals():
    """A function that returns all of them."""
    types = ", ".join(t for _, t in LITERALS)
    names = ", ".join(f"%{i}" for i in range(len(LITERALS)))
    body = "".join(f'  %{i} = "stablehlo.constant"() <{{value = {v} : {t}}}> : () -> {t}\n' for i, (v, t) in enumerate(LITERALS))
    return f"func.func @main() -> ({types}) {{\n{body}  return {names} : {types}\n}}\n"


def returning(text):
    """A text whose last function returns all that it computes: what is not used does not come into an artifact."""
    names, types = [], []
    name = None
    for line in text[text.index("@main"):].split("\n"):
        if m := re.match(r"  %(\w+)(?::(\d))? =", line):
            name = m
        if name and (m := re.search(r"\) -> (\(.*\)|[^()]*)$", line)) and not line.startswith("    "):
            of = m[1].strip("()")
            n = int(name[2] or 1)
            names += [f"%{name[1]}#{i}" for i in range(n)] if n > 1 else [f"%{name[1]}"]
            types.append(of)
            name = None
    types = ", ".join(types)
    return text.replace("RESULTS", f"({types})").replace("  return\n", f"  return {', '.join(names)} : {types}\n")


TEXTS = {
    "literals": (literals(), ["builtin", "1.17.0", "0.12.0"]),
    "operations": (returning(OPERATIONS.replace("BIG", str(BIG))), ["builtin", "1.17.0", "1.0.0", "0.14.0", "0.9.0"]),
    "opaque": (OPAQUE.replace("BIG", str(BIG)), ["builtin"]),
    "mixed": (MIXED, ["builtin", "artifact"]),
    "newer": (NEWER, ["builtin", "1.17.0"]),
    "builtin": (BUILTIN, ["builtin"]),
}


def main():
    folder = sys.argv[1]
    for name, (text, forms) in TEXTS.items():
        for form in forms:
            with mlir.make_ir_context() as context:
                context.allow_unregistered_dialects = name == "builtin"
                module = ir.Module.parse(text)
                if name != "builtin":
                    passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)
                if form == "builtin":
                    out = io.BytesIO()
                    module.operation.write_bytecode(out)
                    data = out.getvalue()
                elif name == "mixed":
                    data = stablehlo.serialize_portable_artifact(module, stablehlo.get_current_version(), True)
                else:
                    data = _jax.mlir.serialize_portable_artifact(module, form, False)
            with open(os.path.join(folder, f"{name}.{form}.mlirbc"), "wb") as f:
                f.write(data)


if __name__ == "__main__":
    main()
