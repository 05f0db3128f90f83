"""Small modules whose exports are the test cases in testdata/cases.

Each function case_NAME gives (module, args, kwargs, options) for a script that exports it with torch.export and saves inputs, eager
outputs and changed buffers as safetensors; tools/cases/README.md says how to run it again. Rows such as T8 are kinds of faults that
other compilers had in public.
"""
import torch
from torch import nn
from torch.export import Dim


def seeded(module):
    torch.manual_seed(7)
    for p in module.parameters():
        with torch.no_grad():
            p.copy_(torch.randn(p.shape))
    return module


class Tied(nn.Module):
    """T1: one matrix under two names."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.lm_head = nn.Linear(4, 6, bias=False)
        self.lm_head.weight = self.embed.weight

    def forward(self, ids):
        return self.lm_head(self.embed(ids))


def case_T1():
    return seeded(Tied()), (torch.tensor([[0, 5, 2]]),), {}, {"decompose": True}


class Strided(nn.Module):
    """T2: weights with strides (27, 1, 9, 3), transposed, sliced with an offset, repeated with stride 0."""

    def __init__(self):
        super().__init__()
        g = torch.Generator().manual_seed(3)
        self.conv = nn.Parameter(torch.randn(2, 3, 3, 3, generator=g).to(memory_format=torch.channels_last))
        assert self.conv.stride() == (27, 1, 9, 3)
        self.turned = nn.Parameter(torch.randn(4, 5, generator=g).t())
        whole = torch.randn(10, 5, generator=g)
        self.register_buffer("part", whole[2:6, 1:4])
        self.register_buffer("same", torch.randn(1, 3, generator=g).expand(4, 3))

    def forward(self, image, x):
        return torch.conv2d(image, self.conv), x @ self.turned, self.part * 2, self.same + self.part


def case_T2():
    g = torch.Generator().manual_seed(4)
    return Strided(), (torch.randn(1, 3, 5, 5, generator=g), torch.randn(2, 5, generator=g)), {}, {"decompose": True}


class Lifted(nn.Module):
    """T5: a constant made in forward."""

    def forward(self, x):
        return x + torch.tensor([1.0, 2.0])


def case_T5():
    return Lifted(), (torch.tensor([[3.0, 4.0]]),), {}, {"decompose": True}


class Order(nn.Module):
    """T6: inputs used in another order than given, keywords in another order, one not used."""

    def forward(self, a, b, *, scale, unused, shift):
        return b - a, a * scale + shift


def case_T6():
    t = torch.tensor
    return Order(), (t([1.0, 2.0]), t([10.0, 20.0])), {"shift": t(0.5), "unused": t([9, 9]), "scale": t(3.0)}, {}


class Counter(nn.Module):
    """T8: a counter that every call increments."""

    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.n.add_(1)
        return x * self.n


def case_T8_counter():
    a = (torch.tensor([1.0, 2.0]),)
    return Counter(), a, {}, {"calls": [(a, {}), (a, {})], "decompose": True}


class Cache(nn.Module):
    """T8: key and value caches written by index_put_ and index_copy_, and a user input that is written to."""

    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(1, 4, 2), persistent=False)
        self.register_buffer("v", torch.zeros(1, 4, 2))

    def forward(self, x, at, mine):
        self.k[:, at] = x
        self.v.index_copy_(1, at, x * 2)
        mine.mul_(2)
        return self.k.sum(-1), self.v.sum(-1), mine + 1


def case_T8_cache():
    def args(i):
        return torch.full((1, 1, 2), float(i + 1)), torch.tensor([i]), torch.tensor([1.0, 2.0])

    return Cache(), args(0), {}, {"calls": [(args(1), {}), (args(2), {})], "decompose": True}


class Infinite(nn.Module):
    """T10: infinities as arguments and in constants."""

    def forward(self, x, mask):
        y = x.masked_fill(mask, float("-inf"))
        return y, y.softmax(-1), torch.full((2,), float("inf")), x + float("nan")


def case_T10():
    return Infinite(), (torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[True, False, False]])), {}, {"decompose": True}


class Promote(nn.Module):
    """T11: every dtype with Python numbers and 0-d tensors."""

    def forward(self, *xs):
        half, whole = torch.tensor(2.5), torch.tensor(3)
        out = []
        for x in xs:
            for y in (2, 0.1, half, whole):
                out += [x + y, x * y, x / y, torch.where(x > 0, x, y)]
        return tuple(out)


def case_T11():
    dtypes = [torch.bool, torch.uint8, torch.int32, torch.int64, torch.bfloat16, torch.float16, torch.float32, torch.float64]
    xs = tuple(torch.tensor([0, 1, 3, 7]).to(d) for d in dtypes) + (torch.tensor(5, dtype=torch.bfloat16), torch.tensor(5, dtype=torch.int32))
    return Promote(), xs, {}, {"decompose": True, "tolerance": 1e-6}


class Empty(nn.Module):
    """T13: dimensions of size 0."""

    def forward(self, x, y):
        return torch.cat([x, y]), x.sum(0), x.sum(), (x @ y.t()), x.prod(0)


def case_T13():
    return Empty(), (torch.zeros(0, 4), torch.ones(3, 4)), {}, {"decompose": True}


class Shared(nn.Module):
    """R4 and R5: two inputs share a symbol of range 2 and more, one is twice it, one dimension is fixed."""

    def forward(self, x, y, z):
        return x + y + z.reshape(2, -1, 3).sum(0)


def case_R4():
    n = Dim("n", min=2)
    shapes = {"x": {0: n}, "y": {0: n}, "z": {0: 2 * n}}
    return Shared(), (torch.ones(4, 3), torch.ones(4, 3), torch.ones(8, 3)), {}, {
        "dynamic_shapes": shapes, "decompose": True, "calls": [((torch.ones(5, 3), torch.ones(5, 3), torch.ones(10, 3)), {})]}


class Deep(nn.Module):
    """E1: operators that nobody supports, in modules three deep."""

    def __init__(self, fn, inner=None):
        super().__init__()
        self.fn = fn
        self.inner = inner

    def forward(self, x):
        y = self.fn(x)
        return y if self.inner is None else self.inner(y)


def case_E1():
    def eigen(x):
        return torch.linalg.eig(x).eigenvalues.real

    def values(x):
        return torch.linalg.svd(x).U

    def gammas(x):
        return torch.lgamma(x) + torch.digamma(x)

    def middle(x):
        return torch.linalg.ldl_factor(x @ x.t()).LD + x

    inner = Deep(gammas, Deep(lambda x: x.relu(), nn.Sequential(Deep(middle), nn.ReLU())))
    inner.again = Deep(gammas)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = Deep(eigen)
            self.second = Deep(values)
            self.third = inner

        def forward(self, x):
            return self.third(self.first(x) + self.second(x)), self.third.again(x)

    return Model(), (torch.eye(3) + 1,), {}, {}


class Views(nn.Module):
    """Writes through views of views, read back through every other alias."""

    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.arange(24.0).reshape(4, 6))

    def forward(self, x):
        s = self.state
        rows = s.t()  # before any write
        s[1:3, ::2] += x[:2, :3]  # slice of a slice, strided
        rows[0].mul_(10)  # select of a transpose
        flat = s.view(-1)
        flat[5:8].zero_()
        block = s.view(2, 2, 6).permute(2, 0, 1)[4:]
        block.add_(100)
        a, b = s.chunk(2, dim=1)
        a.copy_(b.flip(0))
        b.masked_fill_(b > 110, -1.0)
        copy = s.clone()
        s[0, 0] = 77.0
        own = x * 2  # not a buffer
        part = own[:, 1:3]
        own.unsqueeze(0).select(2, 1).fill_(5.0)
        part.relu_()
        seen = own.reshape(-1)  # a view, as own lies in order
        seen[0] = 42.0
        late = own.t().reshape(-1)  # a copy: writes do not reach own
        late[1] = -9.0
        return copy, rows, flat[:8], own, part, late, s.sum(), b


def case_views():
    g = torch.Generator().manual_seed(5)
    a = [(torch.randn(3, 4, generator=g),) for _ in range(3)]
    return Views(), a[0], {}, {"calls": [(a[1], {}), (a[2], {})], "decompose": True}


class Tables(nn.Module):
    """Constants too large for the program's text: a buffer that no checkpoint has, and a tensor made in forward."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.arange(1.0, 7.0))
        self.register_buffer("table", (torch.arange(18000.0) % 7).reshape(3000, 6), persistent=False)

    def forward(self, x, rows):
        return x * self.scale + self.table[rows], self.table.sum(0) + torch.tensor(BUMPS)[: x.shape[0], None]


BUMPS = [float(i % 5) for i in range(17000)]


def case_tables():
    n = Dim("n", min=2, max=4096)
    args = torch.ones(3, 6), torch.tensor([0, 2999, 17])
    more = torch.ones(5, 6), torch.tensor([1, 1, 2, 3, 5])
    return Tables(), args, {}, {"dynamic_shapes": {"x": {0: n}, "rows": {0: n}}, "calls": [(more, {})]}
