"""Modules with control flow whose exports are test cases in testdata/cases, as defs.py has them: branches, loops, scans, maps, regions.

Eager torch refuses some of what export takes (a write in a branch), so outside of an export branches and loops are plain Python.
"""
import torch
from torch import nn
from torch._higher_order_ops import associative_scan, scan
from torch._higher_order_ops import map as map_over
from torch._higher_order_ops import while_loop
from torch.export import Dim


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def seeded(module):
    for i, p in enumerate(module.parameters()):
        with torch.no_grad():
            p.copy_(randn(100 + i, *p.shape))
    return module


def branch(pred, then, otherwise, args):
    if torch.compiler.is_exporting():
        return torch.cond(pred, then, otherwise, args)
    return (then if pred else otherwise)(*args)


def loop(cond, body, state):
    if torch.compiler.is_exporting():
        return while_loop(cond, body, state)
    while cond(*state):
        state = body(*state)
    return state


class Nested(nn.Module):
    """Branches that read parameters and a constant, one within the other, with two results."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.register_buffer("n", torch.tensor(0.5), persistent=False)

    def forward(self, x):
        def then(x):
            return self.a(x), x.sum()

        def otherwise(x):
            return branch(x.mean() > -1, lambda x: self.b(x), lambda x: x * self.n + 1, (x,)), x.max()

        y, z = branch(x.sum() > 0, then, otherwise, (x,))
        return y * 2, z


def case_cond_nested():
    x = randn(1, 2, 4).abs()
    return seeded(Nested()), (x,), {}, {"decompose": True, "calls": [((-x,), {}), ((-x - 3,), {})]}


class Writes(nn.Module):
    """Branches that write to a buffer and through a view of another, and an input that is written before."""

    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(4))
        self.register_buffer("rows", torch.zeros(3, 4))

    def forward(self, x):
        row = self.rows[1]

        def then(x):
            self.n.add_(x.sum(0))
            return x + self.n

        def otherwise(x):
            self.n.mul_(2)
            row.copy_(x[0])
            return x - self.n

        return branch(x.sum() > 0, then, otherwise, (x,)) + row + self.rows.sum(0)


def case_cond_writes():
    torch.set_grad_enabled(False)  # writes in branches are exported without gradients alone
    x = randn(2, 2, 4).abs()
    return Writes(), (x,), {}, {"calls": [((-x,), {}), ((x + 1,), {})]}


class Numbers(nn.Module):
    """Branches that give numbers too: one that both give, which is known, and one that depends on the data, of which exports assert a range."""

    def forward(self, x):
        y, n, _ = torch.cond(x.sum() > 0, lambda x: (x + 1, 3, 5), lambda x: (x - 1, 3, 6), (x,))
        return y * n


def case_cond_numbers():
    x = randn(24, 3, 4).abs()
    return Numbers(), (x,), {}, {"calls": [((-x,), {})]}


class BySize(nn.Module):
    """A branch by the size of an input, which is known."""

    def forward(self, x):
        return branch(x.shape[0] > 4, lambda x: x.sin(), lambda x: x.cos(), (x,))


def case_cond_size():
    return BySize(), (randn(3, 5, 4),), {}, {"dynamic_shapes": ({0: Dim("rows", min=2, max=64)},), "calls": [((randn(4, 3, 4),), {})]}


class Loop(nn.Module):
    """A loop with parameters, an input that stays the same, and a condition on the data."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, k):
        return loop(lambda i, x: (i < 6) & (x.norm() < 100), lambda i, x: (i + 1, self.linear(x) + k), (torch.zeros((), dtype=torch.int64), x))


def case_while():
    return seeded(Loop()), (randn(5, 2, 4), randn(6, 4)), {}, {"decompose": True, "tolerance": 1e-4}


class Scan(nn.Module):
    """A scan over two tensors along a dimension, forwards or backwards, with stacked results of two shapes."""

    def __init__(self, dim, reverse):
        super().__init__()
        self.linear, self.dim, self.reverse = nn.Linear(4, 4), dim, reverse

    def forward(self, xs, h):
        def step(h, x):
            n = torch.tanh(self.linear(h) + x["a"] * x["b"])
            return n, (n * 2, n.sum())

        return scan(step, h, {"a": xs, "b": xs * 2}, dim=self.dim, reverse=self.reverse)


def case_scan_short():
    return seeded(Scan(0, False)), (randn(7, 5, 4), randn(8, 4)), {}, {"decompose": True}


def case_scan_long():
    return seeded(Scan(1, True)), (randn(9, 4, 12), randn(10, 4)), {}, {"decompose": True}


class Map(nn.Module):
    """A map whose function has a product, a softmax, a convolution and a reduction."""

    def __init__(self):
        super().__init__()
        self.linear, self.conv = nn.Linear(4, 4), nn.Conv1d(3, 2, 3)

    def forward(self, xs, y):
        def f(x, y):
            return self.linear(x).softmax(-1) + y, x.sum(), x @ x.T, self.conv(x)

        return map_over(f, xs, y)


def case_map():
    return seeded(Map()), (randn(11, 5, 3, 4), randn(12, 4)), {}, {"decompose": True}


def case_map_long():
    return seeded(Map()), (randn(13, 20, 3, 4), randn(14, 4)), {}, {}


class Recurrence(nn.Module):
    """h[i] = a[i] h[i-1] + b[i] by an associative scan, which raw graphs hold as regions of vmap."""

    def forward(self, a, b):
        return associative_scan(lambda x, y: (x[0] * y[0], x[1] * y[0] + y[1]), (a, b), dim=1, combine_mode="generic")


def case_associative():
    return Recurrence(), (randn(15, 3, 7, 2), randn(16, 3, 7, 2)), {}, {"decompose": True}


class Vmap(nn.Module):
    """Nested regions, mapped dimensions in the middle, values that are not mapped, products, gathers and composite operators."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)

    def forward(self, x, y, i, j):
        def f(a, b):
            return self.norm(self.linear(a)).softmax(-1)[1:] @ a.T + b.sum() + a[0, 0]

        def near(i, j):
            return (i >= j) & (i - j < 3), x[i, :, j]

        def take(i):
            return y.index_select(1, i.reshape(1)).flatten().cumsum(0)

        mask = torch.vmap(torch.vmap(near, in_dims=(None, 0)), in_dims=(0, None))(i, j)
        return torch.vmap(f, in_dims=(0, 1))(x, y), mask, torch.vmap(take)(i)


def case_vmap():
    return seeded(Vmap()), (randn(17, 5, 3, 4), randn(18, 2, 5), torch.arange(5), torch.arange(4)), {}, {"decompose": True}


class Autocast(nn.Module):
    """Regions of autocast, on and off, one within the other: bf16 products among f32."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x)
            z = y.exp() + torch.softmax(y, -1)
            with torch.autocast("cpu", enabled=False):
                w = x @ x.T
            u = x @ x.T
            loss = nn.functional.mse_loss(y, z)
        with torch.autocast("cpu", enabled=False):
            v = self.linear(w[:, :1] * x)
        return y, z, w, u, v, loss


def case_autocast():
    return seeded(Autocast()), (randn(19, 3, 4),), {}, {"decompose": True, "tolerance": 2e-2}


class NoGrad(nn.Module):
    """A region without gradients that writes to a buffer and to an input."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("n", torch.zeros(4))

    def forward(self, x):
        with torch.no_grad():
            y = self.linear(x)
            self.n.add_(1)
            x.mul_(2)
        return y * 2 + self.n, x + 0


def case_no_grad():
    torch.set_grad_enabled(True)
    return seeded(NoGrad()), (randn(20, 3, 4),), {}, {"decompose": True, "calls": [((randn(21, 3, 4),), {})]}


class LoopWrites(nn.Module):
    """A loop whose body adds to a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(4))

    def forward(self, x):
        def body(i, x):
            self.n.add_(x)
            return i + 1, x * 2

        return loop(lambda i, x: i < 3, body, (torch.zeros((), dtype=torch.int64), x))[1] + self.n


def case_while_writes():
    torch.set_grad_enabled(False)
    return LoopWrites(), (randn(22, 4),), {}, {"calls": [((randn(23, 4),), {})]}
