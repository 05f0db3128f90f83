"""Cases of frontend/stablehlo: functions over jax.numpy and jax.lax with their inputs.

Each is a name, a function, its arguments, and options of jax.jit. jax_export.py writes them out. Names are FAMILY_WHAT; the families are those
of the front end's rules. Inputs are drawn with a fixed seed. A case with 64-bit inputs,
or the option x64, runs with JAX's 64-bit types. The option platform lowers for that one: on CPUs JAX calls LAPACK.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

CASES = []  # (name, function, arguments, options)
RNG = np.random.default_rng(7)
F32, F64, BF16, F16 = jnp.float32, jnp.float64, jnp.bfloat16, jnp.float16
I8, I32, I64, U8, U32, U64, BOOL = jnp.int8, jnp.int32, jnp.int64, jnp.uint8, jnp.uint32, jnp.uint64, jnp.bool_
SHORT = {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
         "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool", "complex64": "c64", "int4": "i4", "uint4": "u4",
         "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2"}


def add(name, fn, *args, **options):
    CASES.append((name, fn, args, options))


def short(dtype):
    return SHORT[jnp.dtype(dtype).name]


def rand(*shape, dtype=F32, lo=-2.0, hi=2.0):
    d = jnp.dtype(dtype)
    if d == np.bool_:
        return np.asarray(RNG.random(shape) < 0.5)
    if jnp.issubdtype(d, jnp.integer):
        lo, hi = (0, 9) if jnp.issubdtype(d, jnp.unsignedinteger) else (-9, 9)
        return np.asarray(RNG.integers(lo, hi, shape)).astype(d)
    if jnp.issubdtype(d, jnp.complexfloating):
        return np.asarray(RNG.uniform(lo, hi, shape) + 1j * RNG.uniform(lo, hi, shape)).astype(d)
    return np.asarray(RNG.uniform(lo, hi, shape)).astype(d)


def ids(*values, dtype=I32):
    return np.array(values, dtype)


EDGES = jnp.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 3.5, -1.5, np.inf, -np.inf, np.nan, 1e-30, 70000.0, -70000.0, 100.0], F32)


def elementwise():
    floats = ["abs", "ceil", "floor", "cos", "sin", "tan", "tanh", "exp", "expm1", "logistic", "neg", "sign", "is_finite", "erf", "round", "exp2",
              "square", "integer_pow3", "cbrt", "sinh", "cosh", "asinh", "atan", "erfc", "stop_gradient"]
    for name in floats:
        f = {"integer_pow3": lambda x: lax.integer_pow(x, 3), "round": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
             "stop_gradient": lax.stop_gradient}.get(name) or getattr(lax, name)
        dtypes = [F32, BF16] if name in ("exp", "tanh", "sin", "erf", "floor", "sign") else [F32]
        for d in dtypes:
            add(f"elementwise_{name}_{short(d)}", f, rand(3, 5, dtype=d))
    for name in ["log", "log1p", "sqrt", "rsqrt", "lgamma", "digamma", "acosh"]:
        add(f"elementwise_{name}_f32", getattr(lax, name), rand(3, 5, lo=1.05, hi=4.0))
    for name in ["asin", "acos", "atanh", "erf_inv"]:
        add(f"elementwise_{name}_f32", getattr(lax, name), rand(3, 5, lo=-0.9, hi=0.9))
    for name in ["abs", "ceil", "floor", "tanh", "exp", "sign", "is_finite", "sqrt", "log", "rsqrt", "logistic", "neg"]:
        add(f"elementwise_{name}_edges", getattr(lax, name), EDGES)
    add("elementwise_round_away", lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), EDGES)
    for name in ["add", "sub", "mul", "div", "max", "min", "pow", "rem", "atan2", "nextafter"]:
        add(f"elementwise_{name}_f32", getattr(lax, name), rand(3, 5), rand(3, 5) + 3.0 if name == "pow" else rand(3, 5))
        if name != "nextafter":
            add(f"elementwise_{name}_bf16", getattr(lax, name), rand(3, 5, dtype=BF16, lo=0.5), rand(3, 5, dtype=BF16))
    for name in ["add", "mul", "max", "min", "div", "rem"]:
        add(f"elementwise_{name}_edges", getattr(lax, name), EDGES, EDGES[::-1])
    for d in [I8, I32, I64, U8, U32]:
        for name in ["add", "mul", "max", "div", "rem"]:
            add(f"elementwise_{name}_{short(d)}", getattr(lax, name), rand(4, 3, dtype=d), rand(4, 3, dtype=d) | np.array(1, d))
    for d in [I32, U8, BOOL]:
        for f, name in [(lax.bitwise_and, "and"), (lax.bitwise_or, "or"), (lax.bitwise_xor, "xor")]:
            add(f"elementwise_{name}_{short(d)}", f, rand(4, 3, dtype=d), rand(4, 3, dtype=d))
        add(f"elementwise_not_{short(d)}", lax.bitwise_not, rand(4, 3, dtype=d))
    for d in [I32, U32, I8]:
        amount = jnp.array([0, 1, 3, 7, 8, 31, 32, 40, 2], d)
        value = jnp.array([-1, 5, -128, 127, 64, 3, -7, 1, 0]).astype(d)
        for f, name in [(lax.shift_left, "shl"), (lax.shift_right_arithmetic, "sra"), (lax.shift_right_logical, "srl")]:
            add(f"elementwise_{name}_{short(d)}", f, value, amount)
    add("elementwise_popcount_u32", lax.population_count, rand(9, dtype=U32))
    add("elementwise_clz_u32", lax.clz, rand(9, dtype=U32))
    add("elementwise_int_div_zero", lax.div, ids(7, -7, 0), ids(0, 0, 0))
    for name in ["eq", "ne", "lt", "le", "gt", "ge"]:
        add(f"elementwise_{name}_edges", getattr(lax, name), EDGES, EDGES[::-1])
    for d in [U8, I64, BOOL]:
        add(f"elementwise_lt_{short(d)}", lax.lt, rand(7, dtype=d), rand(7, dtype=d))
    add("elementwise_clamp_scalar", lambda x: lax.clamp(F32(-1), x, F32(1)), EDGES)
    add("elementwise_clamp_tensor", lax.clamp, rand(3, 5) - 1, rand(3, 5), rand(3, 5) + 1)
    add("elementwise_clip_i32", lambda x: jnp.clip(x, -3, 4), rand(9, dtype=I32))
    add("elementwise_select", lax.select, rand(3, 4, dtype=BOOL), rand(3, 4), rand(3, 4))
    add("elementwise_select_n", lambda w, a, b, c: lax.select_n(w, a, b, c), ids(0, 2, 1, 0), rand(4), rand(4), rand(4))
    add("elementwise_where_scalar", lambda p, x: jnp.where(p, x, 0), jnp.array(True), rand(3, 4))
    add("elementwise_reduce_precision", lambda x: lax.reduce_precision(x, 5, 10), rand(4, 4))
    add("elementwise_nan_to_num", jnp.nan_to_num, EDGES)
    add("elementwise_isinf", lambda x: (jnp.isinf(x), jnp.isposinf(x), jnp.isneginf(x), jnp.isnan(x)), EDGES)
    add("elementwise_fmod_mod", lambda x, y: (jnp.fmod(x, y), jnp.mod(x, y), jnp.floor_divide(x, y)), rand(9), rand(9))
    add("elementwise_int_mod", lambda x, y: (jnp.mod(x, y), x // y), rand(9, dtype=I32), ids(1, 2, 3, -2, -3, 4, 5, -5, 7))
    add("elementwise_logaddexp", jnp.logaddexp, EDGES, EDGES[::-1])
    add("elementwise_hypot", jnp.hypot, rand(9), rand(9))
    add("elementwise_empty", lambda x, y: x * y + 1, jnp.zeros((0, 3)), jnp.zeros((0, 3)))
    add("elementwise_scalar", lambda x, y: jnp.sin(x) * y, F32(0.3), F32(2))
    add("elementwise_f64", lambda x: jnp.exp(x) + jnp.tanh(x), rand(5, dtype=F64))
    add("elementwise_broadcasting", lambda x, y, z: x * y + z, rand(4, 1, 3), rand(2, 1), F32(2))
    for name in ["add", "mul", "div", "sub"]:
        add(f"elementwise_{name}_c64", getattr(lax, name), rand(4, dtype=jnp.complex64), rand(4, dtype=jnp.complex64))
    add("elementwise_complex_parts", lambda x: (jnp.real(x), jnp.imag(x), jnp.conj(x), jnp.abs(x)), rand(6, dtype=jnp.complex64))
    add("elementwise_complex_make", lax.complex, rand(6), rand(6))
    add("elementwise_complex_exp", jnp.exp, rand(6, dtype=jnp.complex64))


def convert():
    for a, b in [(F32, BF16), (F32, F16), (F32, I32), (F32, I8), (F32, U8), (F32, BOOL), (BF16, F32), (F16, F32), (I32, F32), (I32, I8), (I64, I32),
                 (U8, I32), (BOOL, F32), (BOOL, I32), (I32, BOOL), (F32, F64), (F64, F32), (U32, F32), (I32, U32), (F32, jnp.complex64),
                 (F32, jnp.float8_e4m3fn), (F32, jnp.float8_e5m2), (jnp.float8_e4m3fn, F32), (I32, jnp.int4), (jnp.int4, I32)]:
        add(f"convert_{short(a)}_{short(b)}", lambda x, b=b: x.astype(b), rand(3, 4, dtype=a), x64=b in (F64, I64, U64))
    add("convert_edges_i32", lambda x: x.astype(I32), EDGES[:9])
    add("convert_edges_bf16", lambda x: x.astype(BF16), EDGES)
    add("convert_edges_f16", lambda x: x.astype(F16), EDGES)
    add("convert_bitcast_f32_u32", lambda x: lax.bitcast_convert_type(x, U32), EDGES)
    add("convert_bitcast_u32_f32", lambda x: lax.bitcast_convert_type(x, F32), rand(4, dtype=U32))
    add("convert_bitcast_f32_u8", lambda x: lax.bitcast_convert_type(x, U8), rand(3))


def move():
    x = rand(2, 3, 4)
    add("move_reshape", lambda x: x.reshape(4, 6), x)
    add("move_reshape_scalar", lambda x: x.reshape(()), rand(1, 1))
    add("move_transpose", lambda x: jnp.transpose(x, (2, 0, 1)), x)
    add("move_broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (3, 2, 5, 4), (1, 3)), rand(2, 4))
    add("move_broadcast_expand", lambda x: lax.broadcast_in_dim(x, (3, 2, 4), (1, 2)), rand(1, 4))
    add("move_broadcast_to", lambda x: jnp.broadcast_to(x, (5, 2, 3)), rand(2, 3))
    add("move_rev", lambda x: lax.rev(x, (0, 2)), x)
    add("move_flip_roll", lambda x: (jnp.flip(x, 1), jnp.roll(x, 2, 1)), x)
    add("move_concat", lambda x, y: lax.concatenate([x, y, x], 1), x, rand(2, 5, 4))
    add("move_concat_empty", lambda x, y: jnp.concatenate([x, y], 0), jnp.zeros((0, 3)), rand(2, 3))
    add("move_stack", lambda x, y: (jnp.stack([x, y], 1), jnp.hstack([x, y]), jnp.tile(x, (2, 1))), rand(3, 2), rand(3, 2))
    add("move_slice", lambda x: lax.slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 2)), x)
    add("move_slice_python", lambda x: x[:, ::-1, 1:4:2], x)
    add("move_split", lambda x: jnp.split(x, 2, axis=2), x)
    for low, high, interior in [(1, 2, 0), (-1, 1, 0), (0, 0, 2), (-1, -1, 1)]:
        add(f"move_pad_{low}_{high}_{interior}".replace("-", "m"), lambda x, p=(low, high, interior): lax.pad(x, F32(9), [p, (0, 1, 0)]), rand(4, 3))
    for mode in ["constant", "edge", "reflect", "wrap", "symmetric"]:
        add(f"move_numpy_pad_{mode}", lambda x, mode=mode: jnp.pad(x, ((1, 2), (2, 1)), mode=mode), rand(4, 3))
    add("move_iota", lambda x: x + lax.broadcasted_iota(F32, (3, 4), 1), rand(3, 4))
    add("move_arange_linspace", lambda x: x + jnp.arange(5) + jnp.linspace(0, 1, 5), rand(5))
    add("move_eye_tri", lambda x: (x + jnp.eye(4), jnp.tril(x), jnp.triu(x, 1)), rand(4, 4))
    add("move_diag", lambda x: (jnp.diag(x), jnp.trace(x), jnp.diagonal(x, 1)), rand(4, 4))
    add("move_repeat", lambda x: jnp.repeat(x, 3, axis=1), rand(2, 3))
    add("move_barrier", lambda x: lax.optimization_barrier((x, x * 2)), rand(3))
    add("move_constants", lambda x: x + np.arange(12, dtype=np.float32).reshape(3, 4) * np.float32(0.1), rand(3, 4))
    add("move_constant_kinds", lambda: (np.array([np.inf, -np.inf, np.nan, -0.0], np.float32), np.array([True, False]), np.array([[1, -2]], np.int8),
                                        np.array([2**63 + 1], np.uint64), jnp.array([1.5, -2], BF16), np.array([1 + 2j], np.complex64),
                                        jnp.array([0.5, -3], F16), np.zeros((0, 2), np.float32)), x64=True)
    add("move_constant_large", lambda x: x + np.sin(np.arange(600, dtype=np.float32)).reshape(3, 200), rand(3, 200))
    add("move_constant_mask", lambda x: jnp.where(np.arange(64).reshape(8, 8) % 3 == 0, x, 0), rand(8, 8))
    add("move_squeeze_expand", lambda x: jnp.expand_dims(jnp.squeeze(x, 1), (0, 3)), rand(2, 1, 3))
    add("move_meshgrid", lambda x, y: jnp.meshgrid(x, y), rand(3), rand(2))


def linear():
    add("linear_matmul", jnp.matmul, rand(3, 4), rand(4, 5))
    add("linear_matmul_batched", jnp.matmul, rand(2, 3, 4), rand(2, 4, 5))
    add("linear_matmul_vector", lambda x, y: (x @ y, y @ x.T), rand(3, 4), rand(4))
    add("linear_dot", jnp.dot, rand(5), rand(5))
    add("linear_bf16", jnp.matmul, rand(3, 4, dtype=BF16), rand(4, 5, dtype=BF16))
    add("linear_bf16_f32", lambda x, y: lax.dot(x, y, preferred_element_type=F32), rand(3, 4, dtype=BF16), rand(4, 5, dtype=BF16))
    add("linear_i8_i32", lambda x, y: lax.dot(x, y, preferred_element_type=I32), rand(3, 4, dtype=I8), rand(4, 5, dtype=I8))
    add("linear_i32", jnp.matmul, rand(3, 4, dtype=I32), rand(4, 5, dtype=I32))
    add("linear_c64", jnp.matmul, rand(3, 4, dtype=jnp.complex64), rand(4, 5, dtype=jnp.complex64))
    add("linear_f64", jnp.matmul, rand(3, 4, dtype=F64), rand(4, 5, dtype=F64))
    add("linear_highest", lambda x, y: jnp.matmul(x, y, precision="highest"), rand(3, 4), rand(4, 5))
    add("linear_empty_contraction", jnp.matmul, jnp.zeros((3, 0)), jnp.zeros((0, 5)))
    for spec, a, b in [("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("ij,kj->ik", (3, 4), (5, 4)), ("abc,cd->abd", (2, 3, 4), (4, 5)),
                       ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)), ("ij,ij->", (3, 4), (3, 4)), ("i,j->ij", (3,), (4,)),
                       ("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)), ("abcd,cdef->abef", (2, 2, 3, 2), (3, 2, 2, 2))]:
        name = spec.replace(",", "_").replace("->", "_to_")
        add(f"linear_einsum_{name}", lambda x, y, spec=spec: jnp.einsum(spec, x, y), rand(*a), rand(*b))
    add("linear_ragged_dot", lambda x, y, g: lax.ragged_dot(x, y, g), rand(6, 4), rand(3, 4, 5), ids(2, 1, 3))
    add("linear_tensordot", lambda x, y: jnp.tensordot(x, y, ((1, 2), (0, 1))), rand(2, 3, 4), rand(3, 4, 2))
    add("linear_cholesky", jnp.linalg.cholesky, np.eye(3, dtype=np.float32) * 3 + np.float32(0.5), platform="tpu")
    add("linear_triangular_solve", lambda a, b: lax.linalg.triangular_solve(jnp.tril(a) + 3 * jnp.eye(3), b, left_side=True, lower=True), rand(3, 3), rand(3, 2), platform="tpu")
    nchw, nhwc = ("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")

    def conv(name, x, w, strides, padding, numbers=nchw, **k):
        add("linear_conv_" + name, lambda x, w: lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=numbers, **k), x, w)

    conv("same", rand(1, 2, 6, 6), rand(3, 2, 3, 3), (1, 1), "SAME")
    conv("valid_strided", rand(2, 2, 7, 6), rand(3, 2, 3, 2), (2, 1), "VALID")
    conv("padded", rand(1, 2, 5, 5), rand(3, 2, 3, 3), (1, 1), ((2, 0), (1, 1)))
    conv("nhwc", rand(1, 6, 6, 2), rand(3, 3, 2, 4), (1, 1), "SAME", nhwc)
    conv("nhwc_strided", rand(2, 6, 5, 2), rand(3, 3, 2, 4), (2, 2), "SAME", nhwc)
    conv("groups", rand(1, 4, 5, 5), rand(6, 2, 3, 3), (1, 1), "SAME", feature_group_count=2)
    conv("depthwise", rand(1, 5, 5, 4), rand(3, 3, 1, 4), (1, 1), "SAME", nhwc, feature_group_count=4)
    conv("batch_groups", rand(4, 2, 5, 5), rand(4, 2, 3, 3), (1, 1), "VALID", batch_group_count=2)
    conv("rhs_dilation", rand(1, 2, 8, 8), rand(3, 2, 3, 3), (1, 1), "VALID", rhs_dilation=(2, 2))
    conv("lhs_dilation", rand(1, 2, 4, 4), rand(3, 2, 3, 3), (1, 1), ((2, 2), (2, 2)), lhs_dilation=(2, 2))
    conv("1d", rand(2, 3, 9), rand(4, 3, 3), (2,), "SAME", ("NCH", "OIH", "NCH"))
    conv("3d", rand(1, 2, 4, 4, 4), rand(3, 2, 2, 2, 2), (1, 1, 1), "VALID", ("NCDHW", "OIDHW", "NCDHW"))
    conv("bf16", rand(1, 2, 6, 6, dtype=BF16), rand(3, 2, 3, 3, dtype=BF16), (1, 1), "SAME")
    conv("bf16_f32", rand(1, 2, 6, 6, dtype=BF16), rand(3, 2, 3, 3, dtype=BF16), (1, 1), "SAME", preferred_element_type=F32)
    add("linear_conv_transpose", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), rand(1, 4, 4, 2), rand(3, 3, 2, 4))
    add("linear_conv_grad", jax.grad(lambda w, x: (lax.conv_general_dilated(x, w, (2, 2), "SAME") ** 2).sum()), rand(3, 2, 3, 3), rand(2, 2, 6, 6))
    add("linear_conv_grad_input", jax.grad(lambda x, w: (lax.conv_general_dilated(x, w, (2, 2), "SAME") ** 2).sum()), rand(2, 2, 6, 6), rand(3, 2, 3, 3))


def reduce():
    x = rand(3, 4, 5)
    for name in ["sum", "prod", "max", "min", "mean", "var", "std", "ptp"]:
        add(f"reduce_{name}_axis", lambda x, f=getattr(jnp, name): f(x, axis=1), x)
        if name in ("sum", "max", "mean"):
            add(f"reduce_{name}_all", getattr(jnp, name), x)
            add(f"reduce_{name}_keep", lambda x, f=getattr(jnp, name): f(x, axis=(0, 2), keepdims=True), x)
            add(f"reduce_{name}_bf16", lambda x, f=getattr(jnp, name): f(x, axis=1), rand(3, 4, 5, dtype=BF16))
    for name in ["all", "any"]:
        add(f"reduce_{name}", lambda x, f=getattr(jnp, name): f(x, axis=1), rand(5, 3, dtype=BOOL))
    for d in [I8, I32, U8]:
        add(f"reduce_max_min_{short(d)}", lambda x: (x.max(0), x.min(0)), rand(4, 3, dtype=d))
    add("reduce_sum_i32", lambda x: x.sum(1), rand(4, 3, dtype=I32))
    add("reduce_max_nan", lambda x: (x.max(), x.min()), EDGES)
    add("reduce_sum_empty", lambda x: x.sum(0), jnp.zeros((0, 3)))
    add("reduce_bitwise", lambda x: (lax.reduce(x, np.int32(-1), lax.bitwise_and, (0,)), lax.reduce(x, np.int32(0), lax.bitwise_or, (0,)),
                                     lax.reduce(x, np.int32(0), lax.bitwise_xor, (0,))), rand(5, 3, dtype=I32))
    add("reduce_init", lambda x: lax.reduce(x, F32(10), lax.add, (1,)), x)
    add("reduce_custom", lambda x: lax.reduce(x, F32(0), lambda a, b: a + 2 * b - b, (1,)), x)
    add("reduce_pair", lambda x, y: lax.reduce((x, y), (F32(0), F32(1)), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)), rand(3, 4), rand(3, 4))
    add("reduce_argmax", lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 2)), x)
    add("reduce_argmax_nan", jnp.argmax, EDGES)
    add("reduce_argmax_i32", lambda x: jnp.argmax(x, 0), rand(6, 3, dtype=I32))
    add("reduce_logsumexp", lambda x: jax.nn.logsumexp(x, axis=1), x)
    add("reduce_softmax", lambda x: (jax.nn.softmax(x), jax.nn.log_softmax(x, axis=1)), x)
    add("reduce_norm", lambda x: (jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1)), rand(4, 3))
    add("reduce_count", lambda x: (jnp.count_nonzero(x > 0), (x > 0).sum(axis=1)), rand(4, 3))
    for name in ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]:
        add(f"reduce_{name}", lambda x, f=getattr(lax, name): f(x, axis=1), rand(3, 6))
        add(f"reduce_{name}_reverse", lambda x, f=getattr(lax, name): f(x, axis=0, reverse=True), rand(4, 2))
    add("reduce_cumsum_i32", lambda x: lax.cumsum(x, axis=0), rand(7, dtype=I32))
    add("reduce_associative_scan", lambda x: lax.associative_scan(jnp.multiply, x), rand(7))
    window = dict(max=(-np.inf, lax.max), min=(np.inf, lax.min), sum=(0.0, lax.add))
    for name, (init, f) in window.items():
        add(f"reduce_window_{name}_same", lambda x, i=init, f=f: lax.reduce_window(x, i, f, (1, 3, 2), (1, 2, 1), "SAME"), rand(2, 6, 5))
        add(f"reduce_window_{name}_dilated", lambda x, i=init, f=f: lax.reduce_window(x, i, f, (2, 2), (1, 1), "VALID", window_dilation=(2, 1)), rand(6, 5))
    add("reduce_window_padded", lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), ((1, 0), (0, 2)), base_dilation=(2, 1)), rand(3, 5))
    add("reduce_avg_pool", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4, rand(1, 4, 6, 2))
    add("reduce_max_pool_grad", jax.grad(lambda x: (lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2).sum()), rand(1, 4, 6, 2))
    add("reduce_max_pool_overlapping_grad", jax.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (3, 3), (1, 1), "SAME").sum()), rand(5, 4))
    for d in [F32, I32, U8, BF16]:
        add(f"reduce_sort_{short(d)}", lambda x: lax.sort(x, dimension=0), rand(7, 3, dtype=d))
    add("reduce_sort_edges", jnp.sort, EDGES)
    add("reduce_sort_descending", lambda x: jnp.sort(x, descending=True), rand(9))
    add("reduce_sort_pairs", lambda x, y: lax.sort((x, y), num_keys=1), rand(9, dtype=I32), rand(9))
    add("reduce_sort_two_keys", lambda x, y: lax.sort((x, y), num_keys=2), rand(9, dtype=I32), rand(9))
    add("reduce_argsort", lambda x: jnp.argsort(x, axis=0), rand(5, 3))
    add("reduce_argsort_stable", lambda x: jnp.argsort(x, stable=True), ids(3, 1, 3, 1, 2, 2, 3))
    add("reduce_top_k", lambda x: lax.top_k(x, 3), rand(4, 9))
    add("reduce_top_k_i32", lambda x: lax.top_k(x, 2), jnp.array([[5, 1, 9, 3], [2, 8, 4, 7]], I32))
    add("reduce_median", lambda x: (jnp.median(x, axis=1), jnp.quantile(x, 0.3, axis=1)), rand(3, 7))
    add("reduce_unique_counts", lambda x: jnp.bincount(x, length=6), ids(0, 1, 1, 5, 3, 3, 3))
    add("reduce_searchsorted", lambda x, v: jnp.searchsorted(x, v), jnp.sort(rand(8)), rand(5))


def index():
    x = rand(5, 4, 3)
    add("index_int", lambda x, i: x[i], x, I32(2))
    add("index_negative", lambda x, i: x[i], x, I32(-1))
    add("index_array", lambda x, i: x[i], x, ids(0, 4, 2, -1))
    add("index_two_arrays", lambda x, i, j: x[i, :, j], x, ids(0, 4, 2), ids(2, 1, 0))
    add("index_out_of_range", lambda x, i: x[i], x, ids(0, 9, -9))
    for mode in ["clip", "fill", "promise_in_bounds"]:
        values = (0, 7, -7, 3) if mode != "promise_in_bounds" else (0, 1, 4, 3)
        add(f"index_take_{mode}", lambda x, i, mode=mode: x.at[i].get(mode=mode), x, ids(*values))
    add("index_take_along", lambda x, i: jnp.take_along_axis(x, i, axis=1), rand(3, 5), jnp.array([[0, 4], [2, 2], [1, 3]]))
    add("index_embedding", lambda t, i: t[i], rand(10, 4), jnp.array([[1, 2, 3], [9, 0, 1]]))
    add("index_mask_select", lambda x, m: jnp.where(m[:, None], x, -1), rand(4, 3), rand(4, dtype=BOOL))
    add("index_dynamic_slice", lambda x, i, j: lax.dynamic_slice(x, (i, j, 1), (2, 3, 2)), x, I32(1), I32(9))
    add("index_dynamic_slice_u32", lambda x, i: lax.dynamic_slice(x, (i,), (2,)), rand(6), U32(5))
    add("index_dynamic_slice_in_dim", lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, 1), rand(3, 6), I32(3))
    add("index_dynamic_update_slice", lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0)), rand(5, 4), rand(2, 2), I32(4))
    add("index_dynamic_index", lambda x, i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False), rand(3, 6), I32(3))
    for name in ["add", "set", "multiply", "min", "max"]:
        add(f"index_scatter_{name}", lambda x, i, u, name=name: getattr(x.at[i], name)(u), rand(5, 3), ids(0, 3, 4), rand(3, 3))
        if name != "set":
            add(f"index_scatter_{name}_repeated", lambda x, i, u, name=name: getattr(x.at[i], name)(u), rand(5, 3), ids(1, 1, 4), rand(3, 3))
    for mode in ["drop", "clip"]:
        add(f"index_scatter_mode_{mode}", lambda x, i, u, mode=mode: x.at[i].add(u, mode=mode), rand(5, 3), ids(0, 7, 4), rand(3, 3))
    add("index_scatter_2d", lambda x, i, j, u: x.at[i, j].set(u), rand(5, 4), ids(0, 1, 4), ids(3, 0, 2), rand(3))
    add("index_scatter_slice", lambda x, u: x.at[1:4, ::2].set(u), rand(5, 4), rand(3, 2))
    add("index_scatter_apply", lambda x, i: x.at[i].apply(jnp.sin), rand(6), ids(0, 2))
    add("index_scatter_bf16", lambda x, i, u: x.at[i].add(u), rand(5, 3, dtype=BF16), ids(0, 1, 0), rand(3, 3, dtype=BF16))
    add("index_segment_sum", lambda x, s: jax.ops.segment_sum(x, s, 4), rand(6, 2), ids(0, 0, 1, 3, 3, 3))
    add("index_one_hot", lambda i: jax.nn.one_hot(i, 5), ids(0, 4, 2, 7))
    add("index_gather_batched", lambda x, i: jax.vmap(lambda a, j: a[j])(x, i), rand(3, 5), jnp.array([[0, 1], [4, 2], [3, 3]]))
    add("index_scatter_batched", lambda x, i, u: jax.vmap(lambda a, j, v: a.at[j].add(v))(x, i, u), rand(3, 5), jnp.array([[0, 1], [4, 2], [3, 3]]), rand(3, 2))
    add("index_gather_grad", jax.grad(lambda x, i: (x[i] ** 2).sum()), rand(6, 2), ids(1, 1, 5))


def control():
    x = rand(3, 4)
    add("control_cond_true", lambda p, x: lax.cond(p, jnp.sin, lambda y: y * 2, x), jnp.array(True), x)
    add("control_cond_false", lambda p, x: lax.cond(p, jnp.sin, lambda y: y * 2, x), jnp.array(False), x)
    add("control_cond_captures", lambda p, x, y: lax.cond(p, lambda: x + y, lambda: x - 2 * y), jnp.array(True), x, rand(3, 4))
    add("control_cond_many", lambda p, x, y: lax.cond(p > 0, lambda a, b: (a, b, a.sum()), lambda a, b: (b, a, b.sum()), x, y), I32(1), x, rand(3, 4))
    for i in [-1, 0, 1, 3, 9]:
        add(f"control_switch_{i}".replace("-", "m"), lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y * 2, lambda y: -y], x), I32(i), x)
    add("control_switch_three", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda y: y], x), I32(2), x)
    add("control_while", lambda x: lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 1.5), (0, x)), x)
    add("control_while_data", lambda x: lax.while_loop(lambda v: v.sum() < 50, lambda v: v * 2 + 1, x), jnp.abs(x))
    add("control_while_never", lambda x: lax.while_loop(lambda v: v.sum() > 1e9, lambda v: v * 2, x), x)
    add("control_while_captures", lambda x, w: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, jnp.tanh(s[1] @ w)), (0, x))[1], x, rand(4, 4))
    add("control_fori", lambda x: lax.fori_loop(0, 4, lambda i, v: v + i * x, x), x)
    add("control_fori_dynamic", lambda x, n: lax.fori_loop(0, n, lambda i, v: v * 1.1 + i, x), x, I32(3))
    add("control_fori_indexed", lambda x: lax.fori_loop(0, 3, lambda i, v: v.at[i].set(v[i] * 2 + i), x), x)
    add("control_scan", lambda x: lax.scan(lambda c, v: (c + v, c * v), jnp.zeros(4), x), x)
    add("control_scan_reverse", lambda x: lax.scan(lambda c, v: (c * 0.5 + v, c), jnp.zeros(4), x, reverse=True), x)
    add("control_scan_unroll", lambda x: lax.scan(lambda c, v: (c + v, c * v), jnp.zeros(4), x, unroll=2), rand(6, 4))
    add("control_scan_length", lambda x: lax.scan(lambda c, _: (c * 2, c.sum()), x, None, length=3), x)
    add("control_scan_two", lambda x, y: lax.scan(lambda c, v: (c + v[0].sum() * v[1], c), F32(0), (x, y)), x, rand(3))
    add("control_scan_grad", jax.grad(lambda x: lax.scan(lambda c, v: (jnp.tanh(c + v), c), jnp.zeros(4), x)[0].sum()), x)
    add("control_nested", lambda x: lax.fori_loop(0, 3, lambda i, v: lax.cond(i % 2 == 0, lambda a: a + 1, lambda a: lax.fori_loop(0, 2, lambda j, b: b * 1.5, a), v), x), x)
    add("control_while_in_cond", lambda p, x: lax.cond(p, lambda v: lax.while_loop(lambda a: a.sum() < 30, lambda a: a + 1, v), lambda v: v, x), jnp.array(True), x)
    add("control_map", lambda x: lax.map(lambda r: jnp.sin(r).sum(), x), x)
    add("control_vmap_while", jax.vmap(lambda n: lax.while_loop(lambda v: v < 20, lambda v: v * 2 + 1, n)), ids(1, 5, 30))
    add("control_remat", jax.grad(lambda x: jax.checkpoint(lambda v: jnp.sin(jnp.sin(v)))(x).sum()), x)
    add("control_custom_jvp", lambda x: (jax.nn.relu(x), jax.nn.silu(x), jax.nn.gelu(x), jax.nn.gelu(x, approximate=False), jax.nn.elu(x)), x)
    add("control_nested_jit", lambda x: jax.jit(lambda a: jax.jit(jnp.sin)(a) + jax.jit(jnp.sin)(a * 2))(x), x)
    add("control_donated", lambda s, x: (s + x, s * x), rand(3), rand(3), donate_argnums=(0,))
    add("control_donated_two", lambda s, t, x: (t + x, s * x, x.sum()), rand(3), rand(3), rand(3), donate_argnums=(0, 1))
    add("control_no_arguments", lambda: jnp.arange(4) * 2)
    add("control_unused_argument", lambda x, y: x + 1, rand(3), rand(2), keep_unused=True)
    add("control_argument_result", lambda x, y: (y, x, x), rand(3), rand(2))
    add("control_named", lambda params, x: params["w"] @ x + params["b"], {"w": rand(3, 4), "b": rand(3)}, rand(4))


def random():
    key = jnp.array([3, 7], U32)
    add("random_uniform", lambda k: jax.random.uniform(k, (3, 5)), key)
    add("random_normal", lambda k: jax.random.normal(k, (9,)), key)
    add("random_bits", lambda k: jax.random.bits(k, (7,), jnp.uint32), key)
    add("random_randint", lambda k: jax.random.randint(k, (9,), -5, 20), key)
    add("random_split", lambda k: jax.random.split(k, 3), key)
    add("random_permutation", lambda k: jax.random.permutation(k, 8), key)
    add("random_bernoulli", lambda k: jax.random.bernoulli(k, 0.3, (9,)), key)
    add("random_categorical", lambda k, x: jax.random.categorical(k, x), key, rand(4, 6))
    add("random_dropout", lambda k, x: jnp.where(jax.random.bernoulli(k, 0.8, x.shape), x / 0.8, 0), key, rand(4, 6))
    add("random_rng_bit_generator", lambda k: lax.rng_bit_generator(k, (5,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY), np.array([1, 2], U64))
    add("random_philox", lambda k: lax.rng_bit_generator(k, (5,), algorithm=lax.RandomAlgorithm.RNG_PHILOX), np.array([1, 2], U64))
    add("random_fft", lambda x: (jnp.fft.fft(x), jnp.fft.rfft(x)), rand(2, 8))
    add("random_irfft", lambda x: jnp.fft.irfft(jnp.fft.rfft(x)), rand(2, 8))


def layer_norm(x, g, b):
    m = x.mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5) * g + b


def models():
    def p(*shape, s=0.3, dtype=F32):
        return rand(*shape, dtype=dtype, lo=-s, hi=s)

    def mlp(params, x):
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = params[-1]
        return x @ w + b

    layers = [(p(8, 16), p(16)), (p(16, 16), p(16)), (p(16, 4), p(4))]
    add("model_mlp", mlp, layers, rand(5, 8))
    add("model_mlp_bf16", mlp, jax.tree.map(lambda a: a.astype(BF16), layers), rand(5, 8, dtype=BF16))
    add("model_mlp_sgd", lambda w, x, y: jax.tree.map(lambda a, g: a - 0.1 * g, w, jax.grad(lambda w: ((mlp(w, x) - y) ** 2).mean())(w)),
        layers, rand(5, 8), rand(5, 4), donate_argnums=(0,))

    def attention(q, k, v, mask):
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(mask, s, -1e9)), v)

    def block(w, x):
        b, t, d = x.shape
        h = layer_norm(x, w["g1"], w["b1"])
        q, k, v = (a.reshape(b, t, 2, d // 2) for a in jnp.split(h @ w["qkv"], 3, -1))
        x = x + attention(q, k, v, jnp.tril(jnp.ones((t, t), bool))).reshape(b, t, d) @ w["o"]
        return x + jax.nn.gelu(layer_norm(x, w["g2"], w["b2"]) @ w["up"]) @ w["down"]

    d = 8
    w = dict(g1=p(d) + 1, b1=p(d), qkv=p(d, 3 * d), o=p(d, d), g2=p(d) + 1, b2=p(d), up=p(d, 16), down=p(16, d))
    add("model_transformer_block", block, w, rand(2, 6, d))
    add("model_transformer_scan", lambda w, x: lax.scan(lambda h, l: (block(l, h), None), x, w)[0], jax.tree.map(lambda a: jnp.stack([a, a * 0.9, a * 1.1]), w), rand(2, 6, d))

    def decode(w, cache, tok, pos):
        x = w["emb"][tok]
        q, k, v = x @ w["q"], x @ w["k"], x @ w["v"]
        kc = lax.dynamic_update_slice(cache["k"], k[:, None], (0, pos, 0))
        vc = lax.dynamic_update_slice(cache["v"], v[:, None], (0, pos, 0))
        s = jnp.einsum("bd,btd->bt", q, kc) / np.sqrt(q.shape[-1])
        a = jax.nn.softmax(jnp.where(jnp.arange(kc.shape[1]) <= pos, s, -jnp.inf))
        x = x + jnp.einsum("bt,btd->bd", a, vc)
        return jnp.argmax(x @ w["emb"].T, -1), {"k": kc, "v": vc}

    add("model_decode", decode, dict(emb=p(12, d), q=p(d, d), k=p(d, d), v=p(d, d)), dict(k=rand(2, 6, d), v=rand(2, 6, d)), ids(3, 7), I32(2), donate_argnums=(1,))

    def convnet(w, x):
        for k in w["conv"]:
            x = jax.nn.relu(lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
            x = lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return x.mean((1, 2)) @ w["out"]

    add("model_convnet", convnet, dict(conv=[p(3, 3, 3, 4), p(3, 3, 4, 6)], out=p(6, 5)), rand(2, 8, 8, 3))

    def lstm(w, x):
        def step(s, v):
            h, c = s
            i, f, g, o = jnp.split(v @ w["x"] + h @ w["h"] + w["b"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        return lax.scan(step, (jnp.zeros((x.shape[1], 6)), jnp.zeros((x.shape[1], 6))), x)

    add("model_lstm", lstm, dict(x=p(4, 24), h=p(6, 24), b=p(24)), rand(5, 2, 4))

    def moe(w, x):
        gate, which = lax.top_k(jax.nn.softmax(x @ w["gate"]), 2)
        gates = (jax.nn.one_hot(which, 4) * gate[..., None]).sum(1)
        h = jax.nn.silu(jnp.einsum("td,edf->tef", x, w["up"]))
        return jnp.einsum("tef,efd,te->td", h, w["down"], gates)

    add("model_moe", moe, dict(gate=p(8, 4, s=1), up=p(4, 8, 12), down=p(4, 12, 8)), rand(7, 8))

    def ragged_moe(w, x):
        which = jnp.argmax(x @ w["gate"], -1)
        order = jnp.argsort(which)
        sizes = jnp.bincount(which, length=4)
        y = lax.ragged_dot(x[order], w["up"], sizes.astype(I32))
        return jnp.zeros_like(y).at[order].set(y)

    add("model_moe_ragged", ragged_moe, dict(gate=p(8, 4, s=1), up=p(4, 8, 12)), rand(7, 8))

    def batch_norm(w, x):
        return jax.nn.relu((x - w["mean"]) * lax.rsqrt(w["var"] + 1e-5) * w["g"] + w["b"])

    add("model_batch_norm", batch_norm, dict(mean=p(4), var=p(4) + 1, g=p(4) + 1, b=p(4)), rand(2, 3, 3, 4))

    def rope(x):
        half = x.shape[-1] // 2
        a = jnp.arange(x.shape[1])[:, None] / 10000 ** (jnp.arange(half) / half)
        c, s, l, r = jnp.cos(a), jnp.sin(a), x[..., :half], x[..., half:]
        return jnp.concatenate([l * c - r * s, r * c + l * s], -1).astype(x.dtype)

    add("model_rope", rope, rand(2, 5, 8))
    add("model_rms_norm_bf16", lambda x, g: (x.astype(F32) * lax.rsqrt((x.astype(F32) ** 2).mean(-1, keepdims=True) + 1e-6)).astype(BF16) * g,
        rand(3, 8, dtype=BF16), rand(8, dtype=BF16))
    add("model_adam", lambda w, m, v, g: (w - 0.01 * (0.9 * m + 0.1 * g) / (jnp.sqrt(0.99 * v + 0.01 * g * g) + 1e-8), 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g),
        rand(4, 3), rand(4, 3), jnp.abs(rand(4, 3)), rand(4, 3), donate_argnums=(0, 1, 2))
    add("model_cross_entropy_grad", jax.grad(lambda w, x, y: -jnp.take_along_axis(jax.nn.log_softmax(x @ w), y[:, None], 1).mean()), p(6, 5), rand(4, 6), ids(0, 4, 2, 2))
    add("model_dot_product_attention", lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True), rand(2, 5, 4, 8), rand(2, 5, 2, 8), rand(2, 5, 2, 8))
    add("model_beam", lambda x: lax.fori_loop(0, 3, lambda i, s: lax.top_k(s[:, None] + x[i], 1)[0][:, 0], jnp.zeros(4)), rand(3, 4))


def build():
    for family in (elementwise, convert, move, linear, reduce, index, control, random, models):
        family()
    return CASES
