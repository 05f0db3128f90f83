"""Models of torch that torch_xla and torchax export: each is a name, a module, its arguments and options.

xla_export.py writes them out. Weights and inputs are drawn with fixed seeds. Options: strict, torch.export's; lazy, a function that torch_xla traces without
torch.export, as training does. REFUSED are exports that tpuc refuses.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CASES = []  # (name, module, arguments, options)


def add(name, module, *args, **options):
    CASES.append((name, module.eval(), args, options))


def rand(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=GENERATOR).to(dtype)


GENERATOR = torch.Generator().manual_seed(7)


class Fn(nn.Module):
    """A function as a module."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                                  nn.Conv2d(6, 8, 3, stride=2, groups=2), nn.BatchNorm2d(8), nn.Hardswish(), nn.AvgPool2d(2, 1))
        self.head = nn.Linear(8, 5)
        for m in self.body:
            if isinstance(m, nn.BatchNorm2d):
                m.running_mean.uniform_(-0.5, 0.5)
                m.running_var.uniform_(0.5, 2)

    def forward(self, x):
        x = self.body(x)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1)), x


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.Conv2d(4, 4, 3, padding=2, dilation=2)
        self.up = nn.ConvTranspose2d(4, 3, 4, 2, 1)
        self.norm = nn.GroupNorm(2, 4)

    def forward(self, x):
        return torch.sigmoid(self.up(F.silu(x + self.b(F.gelu(self.norm(self.a(x)))))))


class RMSNorm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(n) + 0.5)

    def forward(self, x):
        y = x.float()
        return self.weight * (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).type_as(x)


class LlamaBlock(nn.Module):
    def __init__(self, d=16, heads=4, kv=2):
        super().__init__()
        self.heads, self.kv, self.n = heads, kv, d // heads
        self.q, self.k, self.v, self.o = nn.Linear(d, d, False), nn.Linear(d, kv * self.n, False), nn.Linear(d, kv * self.n, False), nn.Linear(d, d, False)
        self.gate, self.up, self.down = nn.Linear(d, 24, False), nn.Linear(d, 24, False), nn.Linear(24, d, False)
        self.norm1, self.norm2 = RMSNorm(d), RMSNorm(d)

    def forward(self, x, cos, sin, mask):
        b, t, d = x.shape
        h = self.norm1(x)
        q, k, v = (f(h).view(b, t, -1, self.n).transpose(1, 2) for f in (self.q, self.k, self.v))

        def rotate(y):
            l, r = y.chunk(2, -1)
            return y * cos + torch.cat((-r, l), -1) * sin

        k, v = (y.repeat_interleave(self.heads // self.kv, 1) for y in (rotate(k), v))
        s = rotate(q) @ k.transpose(2, 3) / math.sqrt(self.n) + mask
        y = (s.softmax(-1, dtype=torch.float32).type_as(q) @ v).transpose(1, 2).reshape(b, t, d)
        x = x + self.o(y)
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, vocab=23, d=16, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(LlamaBlock(d) for _ in range(layers))
        self.norm, self.head = RMSNorm(d), nn.Linear(d, vocab, False)
        self.head.weight = self.embed.weight
        self.register_buffer("inv_freq", 1.0 / 10000 ** (torch.arange(0, 4, 2) / 4))

    def forward(self, ids):
        t = ids.shape[1]
        a = torch.outer(torch.arange(t, dtype=torch.float32), self.inv_freq)
        a = torch.cat((a, a), -1)
        mask = torch.full((t, t), float("-inf"), dtype=self.norm.weight.dtype).triu(1)
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, a.cos().type_as(x), a.sin().type_as(x), mask)
        return self.head(self.norm(x))


class Attention(nn.Module):
    def forward(self, q, k, v, mask):
        return (F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True),
                F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(19, 8, padding_idx=0), nn.Embedding(6, 8), nn.LayerNorm(8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")

    def forward(self, ids, mask):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1]))[None])
        a, _ = self.layer.self_attn(x, x, x, key_padding_mask=mask)
        x = self.layer.norm1(x + a)
        x = self.layer.norm2(x + self.layer.linear2(F.gelu(self.layer.linear1(x))))
        keep = (~mask).unsqueeze(-1).type_as(x)
        return torch.tanh((x * keep).sum(1) / keep.sum(1))


class Cells(nn.Module):
    """An LSTM cell, step by step."""

    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(4 + 6, 24)

    def forward(self, x):
        h = c = torch.zeros(x.shape[1], 6)
        out = []
        for v in x.unbind(0):
            i, f, g, o = self.cell(torch.cat((v, h), -1)).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            out.append(h)
        return torch.stack(out), h, c


class Counter(nn.Module):
    """A buffer that the call writes to, and a constant."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.table = torch.arange(12, dtype=torch.float32).reshape(4, 3) / 7

    def forward(self, x, i):
        self.total.add_(x.sum(0))
        return self.total * 2 + self.table[i]


class Cache(nn.Module):
    def forward(self, cache, new, pos):
        return cache.index_copy(1, pos, new), torch.index_select(cache, 1, pos + 1)


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 4)
        self.up, self.down = nn.Parameter(torch.randn(4, 6, 8) / 3), nn.Parameter(torch.randn(4, 8, 6) / 3)

    def forward(self, x):
        weight, which = torch.topk(self.gate(x).softmax(-1), 2)
        gates = torch.zeros(x.shape[0], 4).scatter(1, which, weight / weight.sum(-1, keepdim=True))
        h = F.relu(torch.einsum("td,edf->tef", x, self.up))
        return torch.einsum("tef,efd,te->td", h, self.down, gates), which


def composite(x):
    from torch_xla.experimental.mark_pattern_utils import StableHLOCompositeBuilder
    mark = StableHLOCompositeBuilder("sample.scaled_gelu", {"scale": 0.25, "times": 3, "kind": "erf"})
    return mark.mark_outputs(F.gelu(mark.mark_inputs(x * 2)) * 0.25) + 1


def models():
    torch.manual_seed(3)
    add("mlp", nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4), nn.Softmax(-1)), rand(5, 8))
    add("mlp_bf16", nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to(torch.bfloat16), rand(5, 8, dtype=torch.bfloat16))
    add("mlp_f64", nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 4)).double(), rand(5, 8, dtype=torch.float64))
    add("mlp_f16", nn.Sequential(nn.Linear(8, 16), nn.GELU(approximate="tanh"), nn.Linear(16, 4)).half(), rand(5, 8, dtype=torch.float16))
    add("convnet", ConvNet(), rand(2, 3, 12, 12))
    add("residual", Residual(), rand(1, 4, 6, 5))
    add("conv1d_3d", Fn(lambda x, w, y, v: (F.conv1d(x, w, stride=2, padding=1), F.conv3d(y, v))), rand(2, 3, 9), rand(4, 3, 3), rand(1, 2, 4, 4, 4), rand(3, 2, 2, 2, 2))
    add("llama", Llama(), torch.tensor([[1, 5, 22, 0, 7], [3, 3, 9, 11, 2]]))
    add("llama_bf16", Llama().to(torch.bfloat16), torch.tensor([[1, 5, 22, 0, 7]]))
    add("attention", Attention(), rand(2, 2, 5, 4), rand(2, 2, 5, 4), rand(2, 2, 5, 4), torch.ones(5, 5, dtype=torch.bool).tril(1))
    add("encoder", Encoder(), torch.tensor([[1, 5, 18, 0], [3, 9, 0, 0]]), torch.tensor([[False, False, False, True], [False, False, True, True]]))
    add("lstm_cells", Cells(), rand(4, 2, 4))
    add("lstm", nn.LSTM(4, 6, 2, batch_first=True), rand(2, 5, 4), strict=True)
    add("gru", nn.GRU(4, 6), rand(5, 2, 4), strict=True)
    add("counter", Counter(), rand(5, 3), torch.tensor([2]))
    add("cache", Cache(), rand(2, 6, 3), rand(2, 2, 3), torch.tensor([1, 3]))
    add("mixture", Mixture(), rand(5, 6))
    add("composite", Fn(composite), rand(3, 4))


def operators():
    x, y = rand(3, 5), rand(3, 5)
    fn = lambda name, f, *args, **k: add(name, Fn(f), *args, **k)  # noqa: E731
    fn("op_unary", lambda x: (x.abs(), x.ceil(), x.cos(), x.erf(), x.exp(), x.floor(), x.neg(), x.round(), x.sign(), x.sin(), x.tan(), x.tanh(), x.trunc(),
                              x.sigmoid(), x.reciprocal(), x.square(), x.expm1(), x.atan()), x)
    fn("op_unary_trigonometric", lambda x: (x.sinh(), x.cosh(), x.asinh(), (x / 9).asin(), (x / 9).acos(), (x / 9).atanh(), (x.abs() + 1.1).acosh(), x.erfc()), x)
    fn("op_unary_positive", lambda x: (x.log(), x.log1p(), x.log2(), x.log10(), x.sqrt(), x.rsqrt()), x.abs() + 0.5)
    fn("op_gamma", lambda x: (x.lgamma(), x.digamma()), x.abs() + 0.5)
    fn("op_binary", lambda x, y: (x + y, x - y, x * y, x / y, torch.maximum(x, y), torch.minimum(x, y), torch.atan2(x, y), x.abs() ** y, torch.fmod(x, y),
                                  torch.remainder(x, y), torch.floor_divide(x, y), x > y, x == y, torch.logaddexp(x, y)), x, y)
    fn("op_integer", lambda i, j: (i + j, i * j, i // j, i % j, i & j, i | j, i ^ j, ~i, i << 2, i.abs(), i < j), torch.tensor([7, -7, 5, 0]), torch.tensor([2, 3, -2, 9]))
    fn("op_activations", lambda x: (F.relu6(x), F.elu(x), F.leaky_relu(x), F.hardtanh(x), F.softplus(x), F.mish(x), F.selu(x), F.hardsigmoid(x), F.logsigmoid(x), F.glu(x[:, :4])), x)
    fn("op_reduce", lambda x: (x.sum((0, 1)), x.sum(1), x.mean(0, keepdim=True), x.amax(1), x.amin((0, 1)), x.prod(1), x.var(1), x.std(0), x.argmax(1), x.argmin(), x.logsumexp(1)), x)
    fn("op_reduce_all", lambda x: (x.sum(), x.norm(), x.mean(), x.max()), x)
    fn("op_reduce_bool", lambda x: ((x > 0).any(1), (x > 0).all(), (x > 0).sum(1), tuple(x.max(1)), tuple(x.min(0))), x)
    fn("op_cumulative", lambda x: (x.cumsum(1), x.cumsum(0)), x)
    fn("op_cumprod", lambda x: x.cumprod(1), x)
    fn("op_sort", lambda x: (tuple(x.sort(1)), x.argsort(0, descending=True), tuple(x.topk(3))), x)
    fn("op_index", lambda x, i: (x[i], x[:, i[:2]], x.gather(1, i[None].expand(3, -1)), torch.take_along_dim(x, i[None, :2], 1), x[1:, ::2], x[..., -1]), x, torch.tensor([2, 0, 1]))
    fn("op_index_put", lambda x, i, v: (x.index_put((i,), v), x.index_put((i,), v, accumulate=True), x.index_add(0, i, v), x.scatter(0, i[:, None].expand(-1, 5), v),
                                        x.scatter_add(0, i[:, None].expand(-1, 5), v), x.masked_fill(x > 0, 9.0)), x, torch.tensor([2, 0]), rand(2, 5))
    fn("op_scatter_reduce", lambda x, i, v: x.scatter_reduce(0, i[:, None].expand(-1, 5), v, "amax"), x, torch.tensor([2, 0]), rand(2, 5))
    fn("op_where", lambda x, y: (torch.where(x > 0, x, y), torch.where(x > 0, x, 0.5), x.clamp(-0.5, 0.5), x.clamp(min=0.1), torch.isnan(x / 0), torch.isfinite(x / 0), x.nan_to_num()), x, y)
    fn("op_shapes", lambda x: (x.permute(1, 0), x.flip(1), x.roll(2, 1), x.repeat(2, 1), x.unsqueeze(0).expand(2, -1, -1), x.reshape(5, 3), x.diagonal(), x.tril(), x.triu(1),
                               F.pad(x, (1, 2, 0, 1)), F.pad(x[None], (1, 2), mode="reflect")), x)
    fn("op_unfold", lambda x: x.unfold(1, 2, 1), x)
    fn("op_join", lambda x, y: (torch.cat((x, y), 1), torch.stack((x, y), 1), x.split(2, 1), x.chunk(2, 1)), x, y)
    fn("op_create", lambda x: (x + torch.arange(5), torch.full((3, 5), 7.0) + x, torch.eye(3) @ x, torch.linspace(0, 1, 5) * x, torch.ones_like(x) - torch.zeros(3, 1)), x)
    fn("op_convert", lambda x: (x.to(torch.int32), x.bool(), x.half(), x.double(), x.to(torch.bfloat16).float(), x.to(torch.uint8).int()), x.abs() * 9)
    fn("op_matmul", lambda a, b, v: (a @ b, a @ v, torch.bmm(a, b), torch.einsum("bij,bjk->ik", a, b), torch.outer(v, v), torch.addmm(a[0], a[0], b[0] @ b[0])),
       rand(2, 4, 4), rand(2, 4, 4), rand(4))
    fn("op_dot", lambda v: torch.dot(v, v), rand(4))
    fn("op_matmul_int", lambda a, b: a @ b, torch.arange(6).reshape(2, 3), torch.arange(12).reshape(3, 4) - 5)
    fn("op_pool", lambda x: (F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1), F.adaptive_avg_pool2d(x, (2, 3)), F.max_pool2d(x, 3, 2, 1)), rand(1, 2, 8, 9))
    fn("op_pool_dilated", lambda x: (F.max_pool2d(x, 3, 1, 1, 2), F.max_pool1d(x[0], 2)), rand(1, 2, 8, 9))
    fn("op_norms", lambda x: (F.layer_norm(x, (5,)), F.group_norm(x.reshape(1, 3, 5), 3), F.instance_norm(x[None]), F.normalize(x), F.softmax(x, 0), F.log_softmax(x, 1)), x)
    fn("op_interpolate", lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(5, 7), mode="bilinear")), rand(1, 2, 4, 3))
    fn("op_interpolate_corners", lambda x: F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=True), rand(1, 2, 4, 3))
    fn("op_loss", lambda x, t: (F.cross_entropy(x, t, reduction="none"), F.nll_loss(x.log_softmax(1), t, reduction="none"),
                             F.binary_cross_entropy_with_logits(x, (x > 0).float(), reduction="none")),
       x, torch.tensor([1, 4, 0]))
    fn("op_loss_mean", lambda x, t: (F.cross_entropy(x, t), F.mse_loss(x, x * 2), F.l1_loss(x, x + 1)), x, torch.tensor([1, 4, 0]))
    fn("op_complex", lambda x, y: (torch.view_as_real(torch.complex(x, y) * torch.complex(y, x)), torch.complex(x, y).real), x, y)
    fn("op_fft", lambda x: (torch.view_as_real(torch.fft.rfft(x)), torch.fft.irfft(torch.fft.rfft(x), 8)), rand(2, 8))
    fn("op_one_hot", lambda i: F.one_hot(i, 5), torch.tensor([0, 4, 2]))
    fn("op_bucketize", lambda x, b: (torch.bucketize(x, b), torch.searchsorted(b, x)), x, torch.tensor([-1.0, 0.0, 1.0]))
    fn("op_tuple_dict", lambda x, y: {"sum": x + y, "rest": (x - y, [x * y])}, x, y)
    fn("op_scalar_input", lambda x, s: x * s + 1, x, torch.tensor(2.5))
    fn("op_unused_input", lambda x, y: x + 1, x, y)
    fn("op_input_result", lambda x, y: (y, x + y), x, y)
    fn("op_empty", lambda x: (x + 1, x.sum(0), torch.cat((x, x), 0)), torch.zeros(0, 3))
    fn("op_cond", lambda p, x: torch.cond(p, lambda x: x.sin(), lambda x: x * 2, (x,)), torch.tensor(True), x)


def train(x, y):
    torch.manual_seed(5)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3)).to(x.device)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    with torch.no_grad():
        return [loss, *(p - 0.1 * p.grad for p in model.parameters()), *model.buffers()]


def scan(x):
    from torch_xla.experimental.scan import scan
    return list(scan(lambda c, v: (torch.tanh(c + v), c * v), torch.zeros(3, device=x.device), x))


def random(x):
    dropped = F.dropout(torch.ones_like(x), 0.5)
    return [torch.rand_like(x) + torch.randn_like(x), torch.bernoulli(torch.full_like(x, 0.5)), dropped, torch.randint(0, 9, (4,), device=x.device)]


def determinant(a):
    return list(torch.linalg.slogdet(a @ a.T + 3 * torch.eye(3, device=a.device)))


def lazily():
    for name, f, *args in [("train", train, rand(2, 1, 6, 6), torch.tensor([1, 2])), ("scan", scan, rand(4, 3)), ("random", random, rand(3, 4)),
                           ("determinant", determinant, rand(3, 3)), ("sort", lambda x: [*x.sort(1), *x.topk(2), x.argsort(1, descending=True), *x.kthvalue(2)], rand(3, 9)),
                           ("where_nan", lambda x: [(x / x).sort(0)[0], (x / x).topk(1, 0)[0]], torch.tensor([[0.0, 1.0], [-0.0, 2.0], [3.0, 0.0]]))]:
        CASES.append(("lazy_" + name, f, args, {"lazy": True}))


def build():
    models()
    operators()
    lazily()
    return CASES


class Weighted(nn.Module):
    """A function of a matrix and the arguments as a module."""

    def __init__(self, fn):
        super().__init__()
        torch.manual_seed(3)
        self.fn, self.w = fn, nn.Parameter(torch.randn(4, 3))

    def forward(self, *args):
        return self.fn(self.w, *args)


def gate(x):
    return x * x.sigmoid()


def quantised(w, x):
    import torch.ao.quantization.fx._decomposed  # noqa: F401
    ops = torch.ops.quantized_decomposed
    return ops.dequantize_per_tensor(ops.quantize_per_tensor(x, 0.1, 3, -128, 127, torch.int8), 0.1, 3, -128, 127, torch.int8) @ w


def refused_torch_xla():
    """Name, module, arguments, dynamic shapes, operators that stay calls."""
    x, batch = rand(2, 4), (({0: torch.export.Dim("b")},),)
    gated = torch.library.custom_op("sample::gate", gate, mutates_args=(), schema="(Tensor x) -> Tensor")
    gated.register_fake(torch.empty_like)
    return [("dynamic", Weighted(lambda w, x: torch.softmax(x @ w, -1)), (x,), batch, ()),
            ("dynamic_reshape", Weighted(lambda w, x: x.reshape(x.shape[0] * 2, 2) @ w[:2]), (x,), batch, ()),
            ("quantised", Weighted(quantised), (x,), None, ()),
            ("custom_operator", Weighted(lambda w, x: torch.ops.sample.gate(x @ w)), (x,), None, ("sample",))]


def refused_jax():
    """Name and text."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    x, w = jnp.ones((4, 6)), jnp.ones((6, 8))
    b, = jax.export.symbolic_shape("b")
    n = jax.export.symbolic_shape("n, 4", constraints=["n >= 2", "n <= 8"])
    mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("x")
    text = lambda f, *args: jax.jit(f).lower(*args).as_text()  # noqa: E731
    export = lambda f, *args: jax.export.export(jax.jit(f))(*args).mlir_module()  # noqa: E731
    return [("symbolic", export(lambda x, w: jax.nn.softmax(x @ w), jax.ShapeDtypeStruct((b, 6), jnp.float32), w)),
            ("symbolic_constraint", export(lambda x: x.reshape(-1, 2), jax.ShapeDtypeStruct(n, jnp.float32))),
            ("shard_map", text(jax.shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=spec, out_specs=jax.sharding.PartitionSpec()), x)),
            ("callback", text(lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x), x)),
            ("print", text(lambda x: (jax.debug.print("{}", x), x + 1)[1], x)),
            ("print_ordered", text(lambda x: (jax.debug.print("{}", x, ordered=True), x + 1)[1], x)),
            ("lapack", text(jnp.linalg.eigh, jnp.eye(3)))]
