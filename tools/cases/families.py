#!/usr/bin/env python3
"""Makes the cases T*_* in testdata/cases: rows of public fault reports, each over every family of operators that it can touch.

usage: families.py OUT_FOLDER [NAME ...]

A case is one module with a result for every use of an operator. Uses that torch itself refuses are left out, and are printed.
"""
import gzip
import io
import json
import os
import sys
import warnings

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

inf, nan = float("inf"), float("nan")
bf16, f16, f32, f64, i32, i64, u8, bool_, c64 = (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool, torch.complex64)


def randn(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


class Many(nn.Module):
    """Gives what each of the functions makes of the inputs."""

    def __init__(self, fns):
        super().__init__()
        self.fns = fns

    def forward(self, *xs):
        out = []
        for f in self.fns:
            r = f(*xs)
            out += list(r) if isinstance(r, (tuple, list)) else [r]
        return tuple(t.clone() for t in out)


def many(uses, inputs, **options):
    """A module of the uses, by name, that torch takes."""
    fns = []
    for name, f in uses:
        try:
            f(*[x.clone() for x in inputs])
            with FakeTensorMode(allow_non_fake_inputs=True) as fake:  # as an export runs it
                f(*[fake.from_tensor(x) for x in inputs])
            fns.append(f)
        except Exception as e:
            print(f"  torch refuses {name}: {str(e).splitlines()[0][:100]}")
    return Many(fns), inputs, options


BINARY = {
    "sub": torch.sub, "rsub": torch.rsub, "mul": torch.mul, "div": torch.div, "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"), "floor_divide": torch.floor_divide, "remainder": torch.remainder, "fmod": torch.fmod,
    "pow": torch.pow, "maximum": torch.maximum, "minimum": torch.minimum, "fmax": torch.fmax, "atan2": torch.atan2, "hypot": torch.hypot,
    "eq": torch.eq, "lt": torch.lt, "ge": torch.ge, "where": lambda x, y: torch.where(x > 0, x, y), "where2": lambda x, y: torch.where(x > 0, y, x),
    "clamp": lambda x, y: x.clamp(min=y), "add3": lambda x, y: torch.add(x, y, alpha=2), "and": lambda x, y: x & y, "xor": lambda x, y: x ^ y,
    "logical_and": torch.logical_and, "logical_xor": torch.logical_xor, "copysign": torch.copysign, "xlogy": torch.xlogy, "logaddexp": torch.logaddexp,
    "shift": lambda x, y: x << y, "lerp": lambda x, y: torch.lerp(x, x + 1, y), "isclose": torch.isclose, "float_power": torch.float_power,
    "masked_fill": lambda x, y: x.masked_fill(x > 0, y), "full_like": torch.full_like, "addcmul": lambda x, y: torch.addcmul(x, x, y),
    "addcdiv": lambda x, y: torch.addcdiv(x, x, y), "squared": lambda x, y: (x - y) ** 2,
}


def promotion(dtypes, tolerance):
    values = {bool_: [0, 1, 1, 0], u8: [0, 1, 3, 7]}
    xs = tuple(torch.tensor(values.get(d, [-7, 0, 1, 3])).to(d) for d in dtypes)
    half, whole = torch.tensor(2.5), torch.tensor(3)
    uses = []
    for i, d in enumerate(dtypes):
        for k, f in BINARY.items():
            for name, y in (("2", 2), ("0.75", 0.75), ("True", True), ("half", half), ("whole", whole), ("tensor", None)):
                if k in ("pow", "float_power", "shift") and name in ("half", "whole"):
                    continue
                if k == "pow" and d is bool_ and name in ("True", "tensor"):  # bool, but exports record int64
                    continue
                uses.append((f"{k}({d}, {name})", lambda *a, f=f, i=i, y=y: f(a[i], a[i].flip(0) if y is None else y)))
    return many(uses, xs, tolerance=tolerance)


def case_T11_binary():
    return promotion([bool_, u8, i32, i64, f32, f64], 1e-6)


def case_T11_binary_16():
    return promotion([bf16, f16], 1e-2)


UNARY = {
    "abs": torch.abs, "neg": torch.neg, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "exp": torch.exp, "log": torch.log, "log1p": torch.log1p, "sin": torch.sin, "erf": torch.erf,
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu, "round": torch.round, "floor": torch.floor, "trunc": torch.trunc, "frac": torch.frac, "sign": torch.sign,
    "reciprocal": torch.reciprocal, "square": torch.square, "isnan": torch.isnan, "signbit": torch.signbit, "logical_not": torch.logical_not, "bitwise_not": torch.bitwise_not,
    "sum": torch.sum, "sum0": lambda x: x.sum(0), "sum_dtype": lambda x: x.sum(dtype=f64), "mean": torch.mean, "mean_dtype": lambda x: x.mean(dtype=f32), "prod": torch.prod,
    "cumsum": lambda x: x.cumsum(0), "cumprod": lambda x: x.cumprod(0), "cummax": lambda x: x.cummax(0)[0], "amax": torch.amax, "argmax": torch.argmax, "max": lambda x: x.max(0),
    "any": torch.any, "all": torch.all, "std": torch.std, "var0": lambda x: x.var(unbiased=False), "norm": torch.norm, "softmax": lambda x: x.softmax(0),
    "softmax_dtype": lambda x: x.softmax(0, dtype=f32), "log_softmax": lambda x: x.log_softmax(0), "logsumexp": lambda x: x.logsumexp(0), "count": torch.count_nonzero,
    "gelu": F.gelu, "silu": F.silu, "softplus": F.softplus, "elu": F.elu, "leaky": F.leaky_relu, "hardswish": F.hardswish, "logit": lambda x: torch.logit(x, 1e-3),
    "sort": lambda x: x.sort()[0], "flip": lambda x: x.flip(0), "roll": lambda x: x.roll(1), "clamp": lambda x: x.clamp(0, 2), "clamp_float": lambda x: x.clamp(0.5),
    "int": lambda x: x.to(i32), "float": lambda x: x.float(), "bool": lambda x: x.bool(), "half": lambda x: x.half(), "bf16": lambda x: x.to(bf16), "dot": lambda x: x @ x, "outer": lambda x: torch.outer(x, x),
    "type_as": lambda x: torch.ones(2).type_as(x), "new_full": lambda x: x.new_full((2,), 3), "zeros_like": torch.zeros_like, "stack": lambda x: torch.stack([x, x.flip(0)]),
    "cat_float": lambda x: torch.cat([x, torch.ones(1)]), "diff": torch.diff, "tril": lambda x: torch.outer(x, x).tril(), "pad": lambda x: F.pad(x, (1, 1), value=1),
    "nan_to_num": torch.nan_to_num, "expm1": torch.expm1, "atan": torch.atan, "layer_norm": lambda x: F.layer_norm(x, (4,)), "index_add": lambda x: x.index_add(0, torch.tensor([0, 0]), x[:2]),
    "scatter_add": lambda x: x.scatter_add(0, torch.tensor([0, 0]), x[:2]), "put": lambda x: x.index_put((torch.tensor([1, 1]),), x[2:], accumulate=True),
    "amin_reduce": lambda x: x.scatter_reduce(0, torch.tensor([0, 0]), x[2:], "amin"), "where_float": lambda x: torch.where(x > 0, x, 0.5), "repeat": lambda x: x.repeat(2),
}


def unary(dtypes, tolerance):
    values = {bool_: [0, 1, 1, 0], u8: [0, 1, 3, 7]}
    xs = tuple(torch.tensor(values.get(d, [-3, 0, 1, 3])).to(d) for d in dtypes)
    uses = [(f"{k}({d})", lambda *a, f=f, i=i: f(a[i])) for i, d in enumerate(dtypes) for k, f in UNARY.items()]
    return many(uses, xs, tolerance=tolerance)


def case_T11_unary():
    return unary([bool_, u8, i32, i64, f32, f64], 1e-6)


def case_T11_unary_16():
    return unary([bf16, f16], 1e-2)


COMPLEX = {
    "abs": torch.abs, "angle": torch.angle, "neg": torch.neg, "sgn": torch.sgn, "conj": lambda z: torch.conj(z).resolve_conj(), "reciprocal": torch.reciprocal, "square": torch.square, "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt, "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log, "log2": torch.log2, "log10": torch.log10, "log1p": torch.log1p, "sin": torch.sin, "cos": torch.cos,
    "tan": torch.tan, "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh, "asin": torch.asin, "acos": torch.acos, "atan": torch.atan, "asinh": torch.asinh, "acosh": torch.acosh, "atanh": torch.atanh,
    "sigmoid": torch.sigmoid, "silu": F.silu, "sinc": torch.sinc, "isfinite": torch.isfinite, "isinf": torch.isinf, "isnan": torch.isnan, "isreal": torch.isreal, "nan_to_num": torch.nan_to_num,
    "logical_not": torch.logical_not, "sum": torch.sum, "mean": lambda z: z.mean(0), "prod": lambda z: z.prod(1), "cumsum": lambda z: z.cumsum(1), "cumprod": lambda z: z.cumprod(0), "var": lambda z: z.var(1),
    "std": torch.std, "var_mean": lambda z: torch.var_mean(z, 0, correction=2), "std_mean": lambda z: torch.std_mean(z), "logsumexp": lambda z: z.logsumexp(1), "logcumsumexp": lambda z: z.logcumsumexp(1),
    "norm": torch.norm, "norm1": lambda z: z.norm(1, dim=0), "norm_inf": lambda z: z.norm(inf), "any": torch.any, "all": lambda z: z.all(1), "count": torch.count_nonzero, "rms_norm": lambda z: F.rms_norm(z, (4,)),
    "rms_norm_weight": lambda z: F.rms_norm(z, (4,), z[0], 1e-3), "diff": torch.diff, "trapezoid": torch.trapezoid, "add": lambda z: z + (1 - 2j), "rsub": lambda z: (1 - 2j) - z, "mul": lambda z: z * 2j, "div": lambda z: z / (1 + 1j),
    "rdiv": lambda z: (1 + 1j) / z, "pow": lambda z: z ** (1.5 + 0.5j), "pow2": lambda z: z ** 2, "rpow": lambda z: (2 + 1j) ** z, "float_power": lambda z: torch.float_power(z, 2).abs().float(), "eq": lambda z: z == 1j,
    "full_like": lambda z: torch.full_like(z, 2 - 1j), "new_full": lambda z: z.new_full((2,), 1j), "full": lambda z: torch.full((2,), 1 + 1j), "fill": lambda z: z.clone().fill_(3j), "masked_fill": lambda z: z.masked_fill(z.real > 0, 1j),
    "index_fill": lambda z: z.index_fill(1, torch.tensor([2, 0]), 1 - 1j), "where": lambda z: torch.where(z.real > 0, z, 2j), "renorm": lambda z: z.renorm(2, 0, 1.5), "linspace": lambda z: torch.linspace(1j, 2 + 1j, 4),
    "logspace": lambda z: torch.logspace(0, 1 + 1j, 3), "linspace_tensor": lambda z: torch.linspace(z[0, 0], z[1, 1], 5, dtype=c64), "addmm": lambda z: torch.addmm(z[:, :3], z, z[0, :3].expand(4, 3), beta=1j, alpha=2 + 1j),
}

COMPLEX2 = {
    "lerp": lambda z, w: torch.lerp(z, w, 0.3 + 0.1j), "lerp_far": lambda z, w: torch.lerp(z, w, 0.9), "addcmul": lambda z, w: torch.addcmul(z, z, w, value=1 + 1j), "addcdiv": lambda z, w: torch.addcdiv(z, z, w, value=2j),
    "add_alpha": lambda z, w: torch.add(z, w, alpha=1j), "logaddexp": torch.logaddexp, "isclose": torch.isclose, "l1": F.l1_loss, "l1_none": lambda z, w: F.l1_loss(z, w, reduction="none"), "dist": torch.dist,
    "pairwise": F.pairwise_distance, "vdot": lambda z, w: torch.vdot(z[0], w[0]), "pow": torch.pow,
}


def case_T11_complex():
    """Complex numbers, also on the axes, where cuts and signs of zeros count, and complex Python numbers."""
    re = torch.tensor([[-2.5, -0.5, 0.0, 0.25], [1.5, 3.0, -1e-4, -0.0], [0.75, -3.0, 2.0, -0.6]])
    im = torch.tensor([[0.0, -0.0, 1.5, -0.25], [0.0, -0.0, 1e-4, -2.0], [1.25, -1.5, 0.5, 2.0]])
    z, w = torch.complex(re, im), torch.complex(randn(2, 3, 4), randn(3, 3, 4))
    uses = [(k, lambda *a, f=f: f(a[0])) for k, f in COMPLEX.items()] + [(k + " apart", lambda *a, f=f: f(a[1])) for k, f in COMPLEX.items()]
    uses += [(k, lambda *a, f=f: f(a[0], a[1])) for k, f in COMPLEX2.items()]
    return many(uses, (z, w))


SPECIAL = {
    "erfc": torch.erfc, "erfcx": torch.special.erfcx, "log_ndtr": torch.special.log_ndtr, "ndtr": torch.special.ndtr, "j0": torch.special.bessel_j0, "j1": torch.special.bessel_j1, "y0": torch.special.bessel_y0,
    "y1": torch.special.bessel_y1, "airy": torch.special.airy_ai, "frexp": lambda x: tuple(torch.frexp(x)), "zeta": lambda x: torch.special.zeta(x.abs() + 1, 0.75), "zeta_self": lambda x: torch.special.zeta(3, x), "zeta_one": lambda x: torch.special.zeta(1, x),
    "trigamma": lambda x: torch.special.polygamma(1, x), "gammainc": lambda x: torch.special.gammainc(x.abs(), x.flip(0).abs()), "gammaincc": lambda x: torch.special.gammaincc(x.abs(), x.flip(0).abs()),
    "gammainc_near": lambda x: torch.special.gammainc(x.abs() * 40, x.abs() * 42), "gammaincc_near": lambda x: torch.special.gammaincc(x.abs() * 400, x.abs() * 402), "gammainc_small": lambda x: torch.special.gammaincc(x.abs() / 100, x.flip(0).abs() / 9),
    "hypot": lambda x: torch.hypot(x, x.flip(0)), "hash": lambda x: torch.hash_tensor(x).to(i64),
}


def case_T11_special():
    """Special functions in all their regions, at their poles and at what is not finite."""
    x = torch.tensor([-40.0, -8.9, -5.5, -4.0, -2.2, -1.5, -1.0, -0.3, -1e-3, -0.0, 0.0, 1e-5, 0.2, 0.45, 0.5, 0.8, 1.0, 1.05, 1.5, 2.1, 3.9, 4.5, 5.5, 9.0, 30.0, 60.0, inf, -inf, nan])
    y = torch.tensor([-5.0, -0.5, 0.0, 0.25, 1.0, 2.0, 7.5]).to(bf16)
    uses = [(k, lambda *a, f=f: f(a[0])) for k, f in SPECIAL.items()]
    double = [k for k in SPECIAL if k not in ("hash",)]
    uses += [(k + " f64", lambda *a, f=SPECIAL[k]: f(a[0].double())) for k in double] + [(k + " of few", lambda *a, f=f: f(a[1].float())) for k, f in SPECIAL.items()]
    return many(uses, (x, y), tolerance=2e-5)


ORDER = {
    "quantile": lambda x: x.quantile(0.3), "quantile_dim": lambda x: x.quantile(0.3, 1), "quantile_keep": lambda x: x.quantile(torch.tensor([0.0, 0.25, 1.0]), 0, keepdim=True), "quantile_all_keep": lambda x: x.quantile(torch.tensor([0.5]), keepdim=True),
    "nanquantile": lambda x: x.nanquantile(0.4, 1), "nanquantile_many": lambda x: x.nanquantile(torch.tensor([0.1, 0.9]), -1, keepdim=True), "lower": lambda x: x.quantile(0.45, 1, interpolation="lower"), "higher": lambda x: x.quantile(0.45, 0, interpolation="higher"),
    "midpoint": lambda x: x.quantile(0.45, 1, interpolation="midpoint"), "nearest": lambda x: x.nanquantile(0.45, 1, interpolation="nearest"), "kth": lambda x: x.kthvalue(2), "kth_keep": lambda x: x.kthvalue(3, 0, keepdim=True),
    "mode": lambda x: x.mode(), "mode_keep": lambda x: x.mode(0, keepdim=True), "median": lambda x: x.median(1), "nanmedian": lambda x: x.nanmedian(0, keepdim=True), "median_all": torch.median, "dist": lambda x: torch.dist(x, x.flip(1)),
    "dist0": lambda x: torch.dist(x, x.flip(1), 0), "pdist": F.pdist, "pdist1": lambda x: F.pdist(x, 1), "pdist_inf": lambda x: F.pdist(x, inf), "renorm": lambda x: x.renorm(1, 1, 2.0), "dropout_grad": lambda x: torch.ops.aten.native_dropout_backward(x, x.isnan() | (x > 0), 2.0),
    "softmax_grad": lambda x: torch.ops.aten._softmax_backward_data(x, x.softmax(1), 1, x.dtype), "log_softmax_grad": lambda x: torch.ops.aten._log_softmax_backward_data(x, x.log_softmax(0), 0, x.dtype), "tanh_grad": lambda x: torch.ops.aten.tanh_backward(x, x),
    "sigmoid_grad": lambda x: torch.ops.aten.sigmoid_backward(x, x), "threshold_grad": lambda x: torch.ops.aten.threshold_backward(x, x, 0.5), "linspace": lambda x: torch.linspace(x[0, 0], x[1, 1], 5), "linspace_int": lambda x: torch.linspace(x[0, 0], 7.5, 4, dtype=i64),
    "linspace_one": lambda x: torch.linspace(2, x[1, 1], 1), "logspace": lambda x: torch.logspace(x[0, 0], 2, 4, base=3.0), "logspace_int": lambda x: torch.logspace(0, x[1, 1].abs(), 3, base=2.0, dtype=i32), "numbers": lambda x: torch.linspace(0.5, 7.9, 6, dtype=i64),
    "powers": lambda x: torch.logspace(0, 4.9, 5, base=2.0, dtype=i64),
}


def case_T10_order():
    """Ranks, frequencies and distances, with NaN, and numbers between the elements of tensors."""
    x = torch.tensor([[1.5, -2.0, 0.25, 3.0, -1.0], [4.0, 0.5, nan, -3.0, 2.0], [-0.5, 7.0, 6.0, 5.0, 1.0], [0.75, -4.0, 2.5, 0.1, 9.0]])
    whole = torch.tensor([[3, 1, 3, 1, 2], [0, 5, 5, 0, 5], [7, 7, 7, 1, 1], [2, 9, 4, 6, 8]])
    uses = [(k, lambda *a, f=f: f(a[0])) for k, f in ORDER.items()] + [(k + " of numbers", lambda *a, f=f: f(a[1])) for k, f in ORDER.items()]
    uses += [(k, lambda *a, f=ORDER[k]: f(a[2])) for k in ("mode", "mode_keep", "median_all")] + [(k + " bool", lambda *a, f=ORDER[k]: f(a[2] > 4)[0]) for k in ("mode",)]
    return many(uses, (x, x.nan_to_num(-6.0), whole))


def margins(dtype, tolerance):
    x, y, z, t = randn(1, 4, 5).to(dtype), randn(2, 4, 5).to(dtype), randn(3, 4, 5).to(dtype), torch.tensor([1, 4, 0, 2])
    labels = torch.tensor([[3, 0, -1, 1, 2], [0, 0, 4, -1, 3], [-1, 2, 3, 4, 0], [4, 3, 2, 1, 0]])
    table, ids = randn(4, 6, 3).to(dtype), torch.tensor([0, 3, 5, 5, 2, 1, 0])
    w = randn(5, 5).abs().to(dtype)
    bag = lambda a, *o, **k: F.embedding_bag(a[4], a[5], *o, **k)
    uses = [(f"multi {r} {p}", lambda *a, r=r, p=p: F.multi_margin_loss(a[0], a[3], p=p, margin=0.5, reduction=r, weight=w)) for r in ("none", "mean", "sum") for p in (1, 2)]
    uses += [(f"triplet {r} {s}", lambda *a, r=r, s=s, p=p: F.triplet_margin_loss(a[0], a[1], a[2], margin=0.7, p=p, swap=s, reduction=r)) for r in ("none", "mean", "sum") for s in (False, True) for p in (2,)]
    uses += [(f"labels {r}", lambda *a, r=r: F.multilabel_margin_loss(a[0], labels, reduction=r)) for r in ("none", "mean", "sum")]
    uses += [("one row", lambda *a: F.multi_margin_loss(a[0][0], torch.tensor(2))), ("labels of one row", lambda *a: F.multilabel_margin_loss(a[0][0], labels[0])), ("triplet 1", lambda *a: F.triplet_margin_loss(a[0], a[1], a[2], p=1.0))]
    offsets, ends = torch.tensor([0, 2, 2, 5]), torch.tensor([0, 2, 2, 7])
    uses += [(f"bag {m} {p}", lambda *a, m=m, p=p: bag(a, offsets, mode=m, padding_idx=p)) for m in ("sum", "mean", "max") for p in (None, 5, -1)]
    uses += [(f"bag {m} to the last", lambda *a, m=m: bag(a, ends, mode=m, include_last_offset=True)) for m in ("sum", "mean", "max")]
    uses += [("weighted bag", lambda *a: bag(a, offsets, mode="sum", per_sample_weights=torch.linspace(0, 1, 7).to(dtype))), ("bags of rows", lambda *a: F.embedding_bag(a[4][:6].reshape(2, 3), a[5])), ("short rows", lambda *a: F.embedding(a[4], a[5].clone(), max_norm=1.0))]
    uses += [("bag of short rows", lambda *a: F.embedding_bag(a[4], a[5].clone(), offsets, max_norm=0.5, norm_type=1.0))]
    return many(uses, (x, y, z, t, ids, table), tolerance=tolerance)


def case_T11_margins():
    return margins(f32, 2e-5)


def case_T11_margins_16():
    return margins(bf16, 2e-2)


def roundings(dtype):
    """Formulas of which torch rounds some steps and not others, with numbers that the dtype does not hold; of 64 elements, as torch rounds the rest of its vectors otherwise."""
    x, y, z = randn(1, 8, 8).to(dtype), randn(2, 8, 8).to(dtype), randn(3, 8, 8).to(dtype)
    p, t = randn(4, 8, 8).sigmoid().to(dtype), randn(5, 8, 8).sigmoid().to(dtype)
    w, sign, places = randn(6, 8).to(dtype), randn(7, 8, 8).sign().to(dtype), torch.tensor([0.0, 1.0, 2.5, 3.0, 4.0, 6.0, 7.5, 8.0]).to(dtype)
    image, kernel, spread = randn(8, 2, 4, 6, 6).to(dtype), randn(9, 6, 4, 3, 3).to(dtype), randn(10, 4, 6, 3, 3).to(dtype)
    zero_d = torch.tensor(0.7)
    numbers = {
        "add": torch.add, "sub": torch.sub, "rsub": torch.rsub, "mul": torch.mul, "div": torch.div, "fmod": torch.fmod, "remainder": torch.remainder, "floor_divide": torch.floor_divide,
        "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"), "pow": lambda x, y: x.abs() ** y, "xlogy": torch.xlogy, "gt": torch.gt, "scaled": lambda x, y: torch.add(x, x, alpha=0.7) + y,
    }
    uses = [(f"{k} {n}", lambda *a, f=f, n=n: f(a[0], n)) for k, f in numbers.items() for n in (0.7, zero_d)] + [("divided", lambda *a: torch.div(zero_d, a[0])), ("inverse", lambda *a: 0.7 / a[0])]
    losses = {
        "mse": lambda r, *a: F.mse_loss(a[0], a[1], reduction=r), "l1": lambda r, *a: F.l1_loss(a[0], a[1], reduction=r), "smooth": lambda r, *a: F.smooth_l1_loss(a[0], a[1], reduction=r, beta=0.3),
        "huber": lambda r, *a: F.huber_loss(a[0], a[1], reduction=r, delta=0.3), "bce": lambda r, *a: F.binary_cross_entropy(a[3], a[4], reduction=r), "weighted bce": lambda r, *a: F.binary_cross_entropy(a[3], a[4], a[5].abs(), reduction=r),
        "logits": lambda r, *a: F.binary_cross_entropy_with_logits(a[0], a[4], reduction=r), "weighted logits": lambda r, *a: F.binary_cross_entropy_with_logits(a[0], a[4], a[5].abs(), reduction=r, pos_weight=a[5].abs()),
        "kl": lambda r, *a: F.kl_div(a[0], a[4], reduction=r), "kl of logarithms": lambda r, *a: F.kl_div(a[0], a[1], reduction=r, log_target=True), "poisson": lambda r, *a: F.poisson_nll_loss(a[0], a[4], reduction=r),
        "full poisson": lambda r, *a: F.poisson_nll_loss(a[3], a[4] * 4, log_input=False, full=True, eps=1e-3, reduction=r), "hinge": lambda r, *a: F.hinge_embedding_loss(a[0], a[6], margin=8.4, reduction=r),
        "soft margin": lambda r, *a: F.soft_margin_loss(a[0], a[6], reduction=r), "ranking": lambda r, *a: F.margin_ranking_loss(a[0], a[1], a[6], margin=0.3, reduction=r),
        "cosine": lambda r, *a: F.cosine_embedding_loss(a[0], a[1], a[6][:, 0], margin=0.1, reduction=r), "triplet": lambda r, *a: F.triplet_margin_loss(a[0], a[1], a[2], margin=0.3, reduction=r),
    }
    uses += [(f"{k} {r}", lambda *a, f=f, r=r: f(r, *a)) for k, f in losses.items() for r in ("none", "mean", "sum")]
    one = {
        "logit": lambda *a: torch.logit(a[3]), "logit eps": lambda *a: torch.logit(a[3], 0.2), "entr": lambda *a: torch.special.entr(a[3]), "ndtr": lambda *a: torch.special.ndtr(a[0]), "hypot": lambda *a: torch.hypot(a[0], a[1]),
        "logaddexp": lambda *a: torch.logaddexp(a[0], a[1]), "logaddexp2": lambda *a: torch.logaddexp2(a[0], a[1]), "std": lambda *a: a[0].std(1), "logsumexp": lambda *a: a[0].logsumexp(1), "mvlgamma": lambda *a: torch.mvlgamma(a[3] + 3, 3),
        "addr": lambda *a: torch.addr(a[0], a[5], a[5]), "scaled addr": lambda *a: torch.addr(a[0], a[5], a[5], beta=0.3, alpha=0.7), "renorm": lambda *a: torch.renorm(a[0], 2, 0, 2.2), "vecdot": lambda *a: torch.linalg.vecdot(a[0], a[1]),
        "similarity": lambda *a: F.cosine_similarity(a[0], a[1]), "rows": lambda *a: F.embedding(torch.tensor([0, 2, 2]), a[0].clone(), max_norm=2.2), "trapezoid": lambda *a: torch.trapezoid(a[0], dx=0.3),
        "places": lambda *a: torch.trapezoid(a[0], a[7], dim=0), "running": lambda *a: torch.cumulative_trapezoid(a[0][:, :2], dx=0.3), "gradient": lambda *a: torch.gradient(a[0], spacing=(a[7],), dim=0)[0],
        "prod": lambda *a: a[3].prod(0), "prod_all": lambda *a: (a[3][:3] + 0.5).prod(), "conv": lambda *a: F.conv2d(a[8], a[9], a[5][:6]), "transposed": lambda *a: F.conv_transpose2d(a[8], a[10], a[5][:6], stride=2),
    }
    if dtype is f16:  # torch's own kernel for it rounds sums of parts, in blocks
        del one["transposed"]
    return many(uses + list(one.items()), (x, y, z, p, t, w, sign, places, image, kernel, spread), tolerance=1e-6)


def case_T11_roundings_bf16():
    return roundings(bf16)


def case_T11_roundings_f16():
    return roundings(f16)


def case_T13_empty():
    """Dimensions of size 0 in every family."""
    e, w, none = torch.zeros(0, 4), torch.zeros(3, 0), torch.zeros(0)
    x, ids = randn(1, 3, 4), torch.zeros(0, dtype=i64)
    image = torch.zeros(0, 2, 5, 5)
    weight, kernel = randn(2, 5, 4), randn(3, 3, 2, 3, 3)
    fold = {
        "sum": lambda e: e.sum(0), "sum_all": torch.sum, "prod": lambda e: e.prod(0), "mean0": lambda e: e.mean(0), "mean1": lambda e: e.mean(1), "any": torch.any, "all": torch.all,
        "all0": lambda e: e.bool().all(0), "var": lambda e: e.var(0), "std1": lambda e: e.std(1), "norm": torch.norm, "norm0": lambda e: e.norm(dim=0), "logsumexp": lambda e: e.logsumexp(0),
        "cumsum": lambda e: e.cumsum(0), "cumsum1": lambda e: e.cumsum(1), "cumprod": lambda e: e.cumprod(0), "cummax": lambda e: e.cummax(0), "amax1": lambda e: e.amax(1), "max1": lambda e: e.max(1),
        "argmax1": lambda e: e.argmax(1), "softmax0": lambda e: e.softmax(0), "softmax1": lambda e: e.softmax(1), "log_softmax": lambda e: e.log_softmax(0), "sort0": lambda e: e.sort(0), "sort1": lambda e: e.sort(1),
        "topk0": lambda e: e.topk(0, 0), "topk1": lambda e: e.topk(2, 1), "flip": lambda e: e.flip(0), "roll": lambda e: e.roll(1, 0), "t": lambda e: e.t(), "repeat": lambda e: e.repeat(2, 3),
        "expand": lambda e: e.unsqueeze(0).expand(2, -1, -1), "reshape": lambda e: e.reshape(2, 0, 7), "flatten": torch.flatten, "pad": lambda e: F.pad(e, (1, 1, 2, 1), value=3.0), "where": lambda e: torch.where(e > 0, e, 1.0),
        "cat": lambda e: torch.cat([e, e]), "stack": lambda e: torch.stack([e, e]), "split": lambda e: e.split(2, 1), "chunk": lambda e: e.chunk(2, 0), "unbind": lambda e: e.unbind(1), "mul": lambda e: e * e + 1,
        "layer_norm": lambda e: F.layer_norm(e, (4,)), "gelu": F.gelu, "tril": torch.tril, "diff": lambda e: e.diff(dim=1), "unfold": lambda e: e.unfold(1, 2, 1), "bool": lambda e: e.bool(), "count": torch.count_nonzero,
        "matmul": lambda e: e @ weight.t(), "linear": lambda e: F.linear(e, weight), "self": lambda e: e.t() @ e, "einsum": lambda e: torch.einsum("ij,kj->ik", e, weight), "narrow": lambda e: e[:, 1:3], "step": lambda e: e[::2],
        "normalize": lambda e: F.normalize(e, dim=1), "attention": lambda e: F.scaled_dot_product_attention(e[None, None], weight[None, None], weight[None, None]), "cdist": lambda e: torch.cdist(e, weight),
    }
    uses = [(f"{k}", lambda *a, f=f: f(a[0])) for k, f in fold.items()]
    uses += [(f"{k} of [3,0]", lambda *a, f=f: f(a[1])) for k, f in fold.items() if k not in ("reshape", "narrow")]
    uses += [(f"{k} of [0]", lambda *a, f=f: f(a[2])) for k, f in fold.items() if k in ("sum", "prod", "cumsum", "softmax0", "sort0", "flip", "cat", "stack", "all", "any", "norm", "mul", "bool")]
    uses += [
        ("cat with a full one", lambda *a: torch.cat([a[3], a[0]])), ("cat legacy", lambda *a: torch.cat([a[3], a[2]])), ("embedding", lambda *a: F.embedding(a[4], a[3])), ("index_select", lambda *a: a[3].index_select(0, a[4])),
        ("index", lambda *a: a[3][a[4]]), ("gather", lambda *a: a[3].gather(0, a[4].reshape(0, 1).expand(0, 4))), ("scatter", lambda *a: a[3].scatter(0, a[4].reshape(0, 1), 1.0)),
        ("scatter_add", lambda *a: a[3].scatter_add(0, a[4].reshape(0, 1), a[2].reshape(0, 1))), ("index_put", lambda *a: a[3].index_put((a[4],), a[0])), ("index_add", lambda *a: a[3].index_add(0, a[4], a[0])),
        ("conv", lambda *a: F.conv2d(a[5], kernel)), ("max_pool", lambda *a: F.max_pool2d(a[5], 2)), ("avg_pool", lambda *a: F.avg_pool2d(a[5], 2)), ("interpolate", lambda *a: F.interpolate(a[5], scale_factor=2.0)),
        ("group_norm", lambda *a: F.group_norm(a[5], 1)), ("adaptive", lambda *a: F.adaptive_avg_pool2d(a[5], 1)), ("bmm", lambda *a: torch.bmm(a[5][:, 0], a[5][:, 1])), ("inner of 0", lambda *a: a[1] @ a[0]),
        ("addmm", lambda *a: torch.addmm(torch.ones(4), a[1], a[0])), ("bmm inner", lambda *a: torch.bmm(a[1][None], a[0][None])), ("zeros", lambda *a: torch.zeros(0, 3) + 1), ("arange", lambda *a: torch.arange(3, 3)),
        ("linspace", lambda *a: torch.linspace(0, 1, 0)), ("one_hot", lambda *a: F.one_hot(a[4], 3)), ("bucketize", lambda *a: torch.bucketize(a[2], torch.tensor([1.0, 2.0]))), ("where3", lambda *a: torch.where(a[0] > 0, a[0], a[0])),
        ("slice to nothing", lambda *a: a[3][2:1].sum()), ("slice beyond", lambda *a: a[3][5:]), ("mean of nothing", lambda *a: a[3][2:2].mean()), ("masked_fill", lambda *a: a[0].masked_fill(a[0] > 0, 2.0)),
    ]
    return many(uses, (e, w, none, x, ids, image), decompose=True)


def case_T10_nonfinite():
    """NaN and infinities in inputs, arguments and constants; gelu of +inf aside, which torch's vector units make NaN."""
    x = torch.tensor([[1.0, -inf, nan, 0.0], [inf, -2.0, -0.0, 3.0], [-inf, -inf, -inf, -inf], [inf, -inf, 5.0, inf]])
    y = torch.tensor([[nan, 1.0, 2.0, -0.0], [inf, inf, 0.5, -1.0], [1.0, -inf, 0.0, inf], [0.0, 2.0, -inf, 1.0]])
    clean = torch.tensor([[1.0, -inf, 2.0, 0.0], [inf, -2.0, -1.0, 3.0], [-inf, -inf, -inf, -inf], [inf, -inf, 5.0, 4.0]])
    one = {
        "max": lambda x: x.max(1), "min": lambda x: x.min(1), "amax": lambda x: x.amax(1), "amin": lambda x: x.amin(0), "max_all": torch.max, "argmax": lambda x: x.argmax(1), "argmin": lambda x: x.argmin(1), "aminmax": torch.aminmax,
        "sort": lambda x: x.sort(dim=1, stable=True), "sort_down": lambda x: x.sort(dim=1, descending=True, stable=True), "topk": lambda x: x.topk(2, 1)[0], "topk_small": lambda x: x.topk(2, 1, largest=False)[0],
        "cummax": lambda x: x.cummax(1), "cummin": lambda x: x.cummin(1), "cumsum": lambda x: x.cumsum(1), "cumprod": lambda x: x.cumprod(1), "logcumsumexp": lambda x: x.logcumsumexp(1), "sum": lambda x: x.sum(1), "prod": lambda x: x.prod(1), "mean": lambda x: x.mean(1),
        "nansum": lambda x: x.nansum(1), "nanmean": lambda x: x.nanmean(1), "var": lambda x: x.var(1), "norm": lambda x: x.norm(dim=1), "norm_inf": lambda x: x.norm(inf, dim=1), "logsumexp": lambda x: x.logsumexp(1),
        "softmax": lambda x: x.softmax(1), "log_softmax": lambda x: x.log_softmax(1), "softmin": lambda x: F.softmin(x, 1), "isnan": torch.isnan, "isinf": torch.isinf, "isfinite": torch.isfinite, "isposinf": torch.isposinf, "nan_to_num": torch.nan_to_num,
        "nan_to": lambda x: torch.nan_to_num(x, 7.0, 8.0, -inf), "sign": torch.sign, "signbit": torch.signbit, "round": torch.round, "floor": torch.floor, "trunc": torch.trunc, "abs": torch.abs, "neg": torch.neg, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
        "log": torch.log, "log1p": torch.log1p, "exp": torch.exp, "expm1": torch.expm1, "sin": torch.sin, "atan": torch.atan, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "logsigmoid": F.logsigmoid, "erf": torch.erf, "reciprocal": torch.reciprocal,
        "relu": torch.relu, "relu6": F.relu6, "leaky": F.leaky_relu, "elu": F.elu, "selu": F.selu, "celu": F.celu, "gelu": lambda x: F.gelu(x.clamp(max=9)), "gelu_tanh": lambda x: F.gelu(x.clamp(max=9), approximate="tanh"), "silu": F.silu, "mish": F.mish, "softplus": F.softplus, "hardswish": F.hardswish,
        "hardsigmoid": F.hardsigmoid, "hardtanh": F.hardtanh, "softsign": F.softsign, "threshold": lambda x: F.threshold(x, 0.5, -1.0), "clamp": lambda x: x.clamp(-1, 1), "clamp_inf": lambda x: x.clamp(-inf, inf), "clamp_nan": lambda x: x.clamp(min=nan),
        "clamp_min": lambda x: x.clamp_min(0.0), "bool": torch.Tensor.bool, "bf16": lambda x: x.to(bf16), "f16_overflow": lambda x: (x * 1e6).to(f16), "any": torch.any, "all": torch.all, "count": torch.count_nonzero, "masked_fill": lambda x: x.masked_fill(x > 0, -inf),
        "masked_nan": lambda x: x.masked_fill(x > 0, nan), "full": lambda x: torch.full((3,), -inf), "full_like": lambda x: torch.full_like(x, nan), "pad": lambda x: F.pad(x, (1, 0), value=-inf), "triu": torch.triu, "tril": torch.tril, "mul0": lambda x: x * 0.0,
        "pow2": lambda x: x ** 2, "pow0": lambda x: x ** 0, "pow_half": lambda x: x ** 0.5, "pow_neg": lambda x: x ** -1, "rpow": lambda x: 2.0 ** x, "rpow0": lambda x: 0.0 ** x, "where": lambda x: torch.where(x > 0, x, nan), "eq_self": lambda x: x == x, "lt_inf": lambda x: x < inf,
        "max_pool": lambda x: F.max_pool2d(x[None, None], 2), "avg_pool": lambda x: F.avg_pool2d(x[None, None], 2), "interpolate": lambda x: F.interpolate(x[None, None], scale_factor=2.0), "layer_norm": lambda x: F.layer_norm(x, (4,)),
        "rms_norm": lambda x: F.rms_norm(x, (4,)), "normalize": F.normalize, "flip": lambda x: x.flip(1), "index": lambda x: x[torch.tensor([2, 0])], "gather": lambda x: x.gather(1, torch.tensor([[3, 0], [0, 0], [1, 2], [3, 3]])),
        "scatter_amax": lambda x: torch.zeros(4, 4).scatter_reduce(1, torch.tensor([[0, 0, 1, 1]] * 4), x, "amax"), "scatter_sum": lambda x: torch.zeros(4, 4).scatter_add(1, torch.tensor([[0, 0, 1, 1]] * 4), x), "frac": torch.frac, "square": torch.square,
        "eye": lambda x: x * torch.eye(4), "constant": lambda x: x + torch.tensor([nan, inf, -inf, 1.0]), "searchsorted": lambda x: torch.searchsorted(torch.tensor([-1.0, 0.0, inf]), x[3]), "diff": torch.diff, "lerp": lambda x: torch.lerp(x, x + 1, 0.5),
        "atanh": torch.atanh, "acos": torch.acos, "cosh": torch.cosh, "digamma": torch.exp2, "logit": torch.logit, "deg": torch.deg2rad, "median": lambda x: x.median(1)[0],
    }
    two = {
        "maximum": torch.maximum, "minimum": torch.minimum, "fmax": torch.fmax, "fmin": torch.fmin, "add": torch.add, "mul": torch.mul, "div": torch.div, "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"), "fmod": torch.fmod, "remainder": torch.remainder,
        "pow": torch.pow, "atan2": torch.atan2, "logaddexp": torch.logaddexp, "logaddexp2": torch.logaddexp2, "hypot": torch.hypot, "copysign": torch.copysign, "xlogy": torch.xlogy, "eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "ge": torch.ge, "matmul": torch.matmul,
        "logical_and": torch.logical_and, "isclose": lambda x, y: torch.isclose(x, y, equal_nan=True), "clamp": lambda x, y: x.clamp(max=y), "heaviside": torch.heaviside, "nextafter": torch.nextafter, "where": lambda x, y: torch.where(x > y, x, y),
        "attention": lambda x, y: F.scaled_dot_product_attention(torch.ones(1, 4, 4), torch.ones(1, 4, 4), torch.eye(4)[None], attn_mask=torch.where(x > 0, 0.0, -inf)), "addcmul": lambda x, y: torch.addcmul(x, x, y), "mse": lambda x, y: F.mse_loss(x, y, reduction="none"),
        "huber": lambda x, y: F.huber_loss(x, y, reduction="none"), "smooth": lambda x, y: F.smooth_l1_loss(x, y, reduction="none"), "bce": lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"),
    }
    uses = [(k, lambda *a, f=f: f(a[0])) for k, f in one.items()] + [(k + " without nan", lambda *a, f=f: f(a[2])) for k, f in one.items()] + [(k, lambda *a, f=f: f(a[0], a[1])) for k, f in two.items()]
    return many(uses, (x, y, clean), tolerance=1e-6)


class Strided(nn.Module):
    """T2: tensors with strides, offsets and repeated elements as weights of every family."""

    def __init__(self):
        super().__init__()
        w = randn(5, 12, 8)
        self.turned = nn.Parameter(w[:4, :8].t())  # [8,4], strides (1,8)
        self.every = nn.Parameter(w.reshape(-1)[1:17:2])  # [8], stride 2, offset 1
        self.same = nn.Parameter(randn(6, 1, 8).expand(4, 8))  # stride 0
        self.kernel = nn.Parameter(randn(7, 6, 3, 3, 4).permute(0, 3, 1, 2))  # channels last
        self.line = nn.Parameter(randn(8, 3, 4, 6).permute(2, 1, 0))
        self.block = nn.Parameter(randn(9, 2, 10, 10)[:, 2:6, 3:7])
        self.register_buffer("ids", torch.arange(12).reshape(3, 4).t()[1:])  # [3,3] of int64
        self.register_buffer("mask", torch.eye(8).bool()[:, ::2])
        self.register_buffer("mean", torch.linspace(0, 1, 16)[::4])
        self.register_buffer("cache", randn(10, 2, 4, 3, 8).transpose(1, 2))

    def forward(self, x, image):
        y = F.linear(x, self.turned.t())  # [2,4]
        out = [
            y, x @ self.turned, F.layer_norm(x, (8,), self.every, self.same[0]), F.rms_norm(x, (8,), self.every), F.conv2d(image, self.kernel), F.conv1d(image[:, :, 0], self.line),
            F.embedding(self.ids % 8, self.turned), self.turned[self.ids % 8], torch.bmm(self.block, self.block.transpose(1, 2)), self.block.reshape(2, -1), self.block.flatten(), self.turned.reshape(-1)[:5],
            self.same.cumsum(0), self.same.sum(0), self.same.reshape(-1)[7:9], torch.where(self.mask, self.turned, -1.0), F.batch_norm(image, self.mean, self.mean + 1, eps=1e-3), F.scaled_dot_product_attention(self.cache, self.cache, self.cache),
            self.cache.sort(-1)[0], self.cache.argmax(-1), self.ids.sum(0), self.ids.sort(0)[0], self.turned.softmax(0), torch.cat([self.turned, self.block[0]]), self.turned.view_as(self.turned) + 1, self.every.view(2, 4), self.kernel.permute(0, 2, 3, 1).reshape(6, -1),
            torch.as_strided(x, (2, 3), (8, 2), 1), self.block.diagonal(dim1=1, dim2=2), self.turned.unfold(0, 3, 2), F.conv_transpose2d(image[:, :1].expand(-1, 6, -1, -1), self.kernel), torch.einsum("ij,kj->ik", self.same, x), self.mask.sum(1), self.same.gather(1, self.ids[:, :2] % 8),
            self.turned.contiguous().view(-1)[3:6], F.group_norm(image, 2, self.mean, self.mean), self.every.expand(3, 8).t()[:, 1], self.turned.flip(0), self.turned.index_select(0, self.ids[0] % 8), self.block.max(0)[0],
        ]
        return tuple(t.clone() for t in out)


def case_T2_families():
    return Strided(), (randn(1, 2, 8), randn(2, 2, 4, 5, 5)), {"decompose": True}


class Written(nn.Module):
    """T8: a buffer for each in-place operator, over several calls."""

    WRITES = {
        "add_": lambda s, x, i: s.add_(x, alpha=2), "sub_": lambda s, x, i: s.sub_(x), "mul_": lambda s, x, i: s.mul_(1.5), "div_": lambda s, x, i: s.div_(x.abs() + 1), "pow_": lambda s, x, i: s.pow_(2), "remainder_": lambda s, x, i: s.remainder_(0.7), "neg_": lambda s, x, i: s.neg_(),
        "copy_": lambda s, x, i: s.copy_(x[0]), "copy_cast": lambda s, x, i: s.copy_(x.double()), "fill_": lambda s, x, i: s.fill_(x[0, 0]), "fill_number": lambda s, x, i: s.fill_(0.25), "zero_": lambda s, x, i: s[1].zero_(), "clamp_": lambda s, x, i: s.clamp_(-0.5, 0.5), "relu_": lambda s, x, i: s.relu_(),
        "sigmoid_": lambda s, x, i: s.sigmoid_(), "exp_": lambda s, x, i: s.neg_().exp_(), "floor_": lambda s, x, i: s.floor_(), "masked_fill_": lambda s, x, i: s.masked_fill_(x > 0, 1.0), "masked_scatter_": lambda s, x, i: s.masked_scatter_(x > 0, x.flip(0)),
        "index_put_": lambda s, x, i: s.index_put_((i,), x[:2]), "index_put_acc": lambda s, x, i: s.index_put_((i * 0 + 1,), x[:2], accumulate=True), "setitem": lambda s, x, i: s.__setitem__((slice(1, 3), i), x[1:, :2]), "setitem_mask": lambda s, x, i: s.__setitem__(x > 0, 2.0),
        "index_add_": lambda s, x, i: s.index_add_(0, i, x[:2], alpha=2), "index_copy_": lambda s, x, i: s.index_copy_(0, i, x[1:]), "index_fill_": lambda s, x, i: s.index_fill_(1, i, 3.0), "scatter_": lambda s, x, i: s.scatter_(0, i[:, None].expand(2, 4), x[:2]), "scatter_value": lambda s, x, i: s.scatter_(1, i[:, None], 5.0),
        "scatter_add_": lambda s, x, i: s.scatter_add_(0, (i * 0)[:, None].expand(2, 4), x[:2]), "scatter_reduce_": lambda s, x, i: s.scatter_reduce_(0, (i * 0)[:, None].expand(2, 4), x[:2], "amax"), "addcmul_": lambda s, x, i: s.addcmul_(x, x, value=0.5), "addcdiv_": lambda s, x, i: s.addcdiv_(x, x.abs() + 1),
        "lerp_": lambda s, x, i: s.lerp_(x, 0.1), "triu_": lambda s, x, i: s.triu_(), "tril_": lambda s, x, i: s.tril_(1), "cumsum_": lambda s, x, i: s.cumsum_(0), "addmm_": lambda s, x, i: s.addmm_(x, torch.ones(4, 4), beta=0.5), "maximum": lambda s, x, i: s.copy_(torch.maximum(s, x)),
        "narrow": lambda s, x, i: s.narrow(1, 1, 2).add_(x[:, :2]), "select": lambda s, x, i: s.select(0, 1).mul_(2), "diagonal": lambda s, x, i: s.diagonal().fill_(9.0), "transpose": lambda s, x, i: s.t().copy_(x.t().flip(0)), "view": lambda s, x, i: s.view(-1)[2:5].sub_(1), "step": lambda s, x, i: s[:, ::2].mul_(-1),
        "unsqueeze": lambda s, x, i: s.unsqueeze(0)[0, 0].add_(7), "expand_as": lambda s, x, i: s.add_(x[0].expand_as(s)), "chunk": lambda s, x, i: s.chunk(2, 1)[1].copy_(x[:, :2]), "unbind": lambda s, x, i: s.unbind(0)[2].add_(1), "roll": lambda s, x, i: s.copy_(s.roll(1, 1)), "swap": lambda s, x, i: (s[0].copy_(s[2].clone()), s[2].copy_(x[0])),
        "row_from_self": lambda s, x, i: s[1:].copy_(s[:-1].clone()), "logical": lambda s, x, i: s.logical_not_(), "nan_to_num_": lambda s, x, i: s.div_(0.0).nan_to_num_(1.0, 2.0, 3.0), "silu_": lambda s, x, i: F.silu(s, inplace=True), "hardtanh_": lambda s, x, i: F.hardtanh_(s), "sqrt_": lambda s, x, i: s.abs_().sqrt_(),
        "iadd_slice": lambda s, x, i: s[0:2, 1:].__iadd__(x[0:2, 1:]), "flip": lambda s, x, i: s.copy_(s.flip(0)), "where": lambda s, x, i: s.copy_(torch.where(x > 0, s, x)), "movedim": lambda s, x, i: s.movedim(0, 1)[1].fill_(4.0), "reshape": lambda s, x, i: s.reshape(2, 6)[1].fill_(1.0),
    }

    def __init__(self, names):
        super().__init__()
        self.names = names
        for k, n in enumerate(names):
            self.register_buffer(n, randn(100 + k, 3, 4))
        self.register_buffer("count", torch.zeros(3, dtype=i64))
        self.register_buffer("seen", torch.zeros(3, 4, dtype=bool_))

    def forward(self, x, i):
        for n in self.names:
            self.WRITES[n](getattr(self, n), x, i)
        self.count.add_(1)
        self.count[i] += 2
        self.seen |= x > 0
        return self.count.sum(), sum(getattr(self, n).sum() for n in self.names[:3]), self.seen.clone()


def case_T8_families():
    names = []
    for n, f in Written.WRITES.items():
        try:
            f(randn(1, 3, 4), randn(2, 3, 4), torch.tensor([0, 2]))
            names.append(n)
        except Exception as e:
            print(f"  torch refuses {n}: {str(e).splitlines()[0][:100]}")
    calls = [(randn(3, 3, 4), torch.tensor([0, 2])), (randn(4, 3, 4), torch.tensor([1, 2]))]
    return Written(names), (randn(2, 3, 4), torch.tensor([2, 0])), {"calls": calls, "decompose": True}


class Constants(nn.Module):
    """T5: constants of every form and dtype made in forward."""

    def forward(self, x, n):
        c = torch.tensor
        out = [
            x + c([1.0, 2.0]), x * c([[1, 2], [3, 4]]), x[c([1, 0])], x[[1, 0, 1]], x + c(2.0), x + c(2), c([1.5, 2.5], dtype=f64) * 2, c([True, False]) & (x[0] > 0), torch.where(c([True, False]), x, 0.0), torch.arange(2) + x, torch.eye(2) @ x, torch.full((2,), 3) + x,
            torch.linspace(0, 1, 2) * x, torch.zeros(2, dtype=i32) + n, c([[0.5]]).expand(2, 2) + x, torch.ones(2, 2).tril() * x, c([1, 2, 3])[n], x + c([float("inf"), 0.0]), x.new_tensor([4.0, 5.0]) + x, c(1 + 0, dtype=u8) + n, torch.cat([c([[7.0, 8.0]]), x]), c([0.1, 0.2], dtype=bf16) + 1,
            F.embedding(n, c([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])), c([3, 1, 2]).sort()[1], x.index_select(1, c([1])), x.masked_fill(c([[True, False], [False, True]]), 9.0), torch.arange(0, 1, 0.25).to(f32), torch.logspace(0, 2, 3), torch.tril_indices(3, 3), torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")[1], x + torch.empty(2).fill_(1.5),
        ]
        mine = c([1.0, 1.0])
        mine.add_(x[0])  # a constant that is written to in every call anew
        return tuple(out) + (mine,)


def case_T5_families():
    return Constants(), (randn(1, 2, 2), torch.tensor([2, 0])), {"decompose": True, "calls": [(randn(2, 2, 2), torch.tensor([1, 1]))]}


def save(folder, module, inputs, options):
    os.makedirs(folder, exist_ok=True)
    module = module.eval()
    calls = [inputs] + list(options.get("calls", []))
    program = torch.export.export(module, tuple(x.clone() for x in inputs), strict=False)
    for name, p in [("model", program)] + ([("decomposed", program.run_decompositions())] if options.get("decompose") else []):
        for n in p.graph.nodes:  # no path of the machine, and shorter
            n.meta.pop("stack_trace", None)
        buffer = io.BytesIO()
        torch.export.save(p, buffer)
        with gzip.GzipFile(os.path.join(folder, name + ".pt2.gz"), "wb", mtime=0) as f:
            f.write(buffer.getvalue())
    state = {n for n, b in module.named_buffers()}
    before = {n: b.clone() for n, b in module.named_buffers()}
    for k, xs in enumerate(calls):
        suffix = "" if k == 0 else f"_{k + 1}"
        save_file({f"input_{i}": x.contiguous() for i, x in enumerate(xs)}, os.path.join(folder, f"inputs{suffix}.safetensors"))
        with torch.no_grad():
            out = module(*[x.clone() for x in xs])
        save_file({f"output_{i}": t.clone().contiguous() for i, t in enumerate(out)}, os.path.join(folder, f"outputs{suffix}.safetensors"))
        after = dict(module.named_buffers())
        changed = {n: after[n].clone().contiguous() for n in state if len(calls) > 1 and state and "T8" in folder}
        if changed:
            save_file(changed, os.path.join(folder, f"buffers_after{suffix}.safetensors"))
    del before
    case = {"name": os.path.basename(folder), "calls": len(calls), "tolerance": {"rel_to_max": options.get("tolerance", 2e-5)}}
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump(case, f, indent=1)
    for name in os.listdir(folder):
        os.chmod(os.path.join(folder, name), 0o644)


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    out = sys.argv[1]
    for name, make in sorted(globals().items()):
        if not name.startswith("case_") or len(sys.argv) > 2 and name[5:] not in sys.argv[2:]:
            continue
        print(name[5:], flush=True)
        torch.manual_seed(1)
        save(os.path.join(out, name[5:]), *make())


if __name__ == "__main__":
    main()
