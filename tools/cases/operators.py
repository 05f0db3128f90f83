"""Families of operators, one module each with a result for every use. As defs.py."""
import torch
import torch.nn.functional as F
from torch import nn

aten = torch.ops.aten


def randn(seed, *shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


class Uses(nn.Module):
    """Gives what each function makes of the inputs."""

    def __init__(self, *fns):
        super().__init__()
        self.fns = fns

    def forward(self, *xs):
        out = []
        for f in self.fns:
            r = f(*xs)
            out += list(r) if isinstance(r, (tuple, list)) else [r]
        return tuple(t.clone() for t in out)


def case_operators_pool():
    def unpool(x):
        y, at = F.max_pool2d(x, 2, 2, return_indices=True)
        z, ids = F.max_pool3d(x[None], 2, 2, return_indices=True)
        return F.max_unpool2d(y, at, 2, 2), F.max_unpool2d(y[0], at[0], 2, 2, output_size=(5, 7)), F.max_unpool3d(z, ids, 2, 2)

    def backward(x):
        y, at = F.max_pool2d(x, (3, 2), (2, 1), padding=1, return_indices=True)
        g = y * 0.5 + 1
        wide = aten.avg_pool2d(x, [3, 2], [2, 2], [1, 0], True, False)
        return (aten.max_pool2d_with_indices_backward(g, x, [3, 2], [2, 1], [1, 1], [1, 1], False, at),
                aten.avg_pool2d_backward(wide + 1, x, [3, 2], [2, 2], [1, 0], True, False, None),
                aten.avg_pool2d_backward(wide + 1, x, [3, 2], [2, 2], [1, 0], True, True, 5),
                aten._adaptive_avg_pool2d_backward(x[:, :, 1:, 1:] * 2, x))

    return Uses(unpool, backward), (randn(1, 2, 4, 4, 6),), {}


class Norms(nn.Module):
    """Batch statistics, which move the running ones."""

    def __init__(self):
        super().__init__()
        self.batch, self.free = nn.BatchNorm2d(3, momentum=0.3), nn.BatchNorm1d(3, track_running_stats=False)
        self.instance = nn.InstanceNorm2d(3, affine=True, track_running_stats=True, momentum=0.2)
        with torch.no_grad():
            self.batch.weight.copy_(randn(2, 3))
            self.batch.bias.copy_(randn(3, 3))

    def forward(self, x):
        return self.batch(x), self.free(x.flatten(2)), self.instance(x)

    def eval(self):  # the statistics are those of training
        return self


def case_operators_norms():
    return Norms(), (randn(1, 4, 3, 2, 5),), {}, {"calls": [((randn(2, 4, 3, 2, 5),), {})]}


def case_operators_sample():
    uses = []
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                how = {"mode": mode, "padding_mode": padding, "align_corners": align}
                uses.append(lambda x, g, y, h, how=how: F.grid_sample(x, g, **how))
                if mode != "bicubic" or padding == "border":
                    uses.append(lambda x, g, y, h, how=how: F.grid_sample(y, h, **how))
    return Uses(*uses), (randn(1, 2, 2, 4, 5), randn(2, 2, 3, 2, 2) * 1.3, randn(3, 1, 2, 3, 4, 2), randn(4, 1, 2, 2, 2, 3) * 1.3), {}


def spd(x):
    return x @ x.mH + torch.eye(x.shape[-2], dtype=x.dtype)


def case_operators_linalg():
    L = torch.linalg
    uses = []
    for pick in (lambda a, z: a, lambda a, z: a[0, :, :2], lambda a, z: z, lambda a, z: a[..., :2, :]):
        uses += [lambda a, z, p=pick, m=m: L.qr(p(a, z), mode=m) for m in ("reduced", "complete", "r")]
        uses += [lambda a, z, p=pick, f=f: f(p(a, z)) for f in (
            torch.geqrf, L.svdvals, L.pinv, L.matrix_rank, lambda x: L.matrix_norm(x, "nuc"), lambda x: L.matrix_norm(x, 2),
            lambda x: L.matrix_norm(x, -2, keepdim=True), L.cond, lambda x: L.householder_product(*torch.geqrf(x if x.shape[-2] >= x.shape[-1] else x.mT)),
            lambda x: torch.ormqr(*torch.geqrf(x), x, transpose=True), lambda x: L.eigvalsh(spd(x) - 3 * torch.eye(x.shape[-2], dtype=x.dtype)),
            lambda x: L.matrix_sqrth(spd(x)), lambda x: L.matrix_exp(x @ x.mH * 0.3), lambda x: L.matrix_rank(x @ x.mH @ x, tol=0.5),
            lambda x: L.pinv(spd(x), hermitian=True, rtol=torch.tensor(0.3)))]
    uses.append(lambda a, z: L.polar(a.mT[0]))
    return Uses(*uses), (randn(1, 2, 3, 4), randn(2, 3, 3, dtype=torch.complex64)), {}, {"tolerance": 1e-4}


def case_operators_count():
    at = torch.tensor([0.0, 0.5, 2.0, 2.25])

    def slopes(x, ids):
        return torch.gradient(x, spacing=(at,), dim=1) + torch.gradient(x, spacing=(torch.tensor([1.0, 3.0, 4.0]), at), edge_order=2)

    def counts(x, ids):
        h, e = torch.histogram(x, 4)
        g, f = torch.histogram(x, torch.tensor([-1.0, 0.0, 0.25, 1.0]), weight=x.abs(), density=True)
        d = torch.histogramdd(x[:, :2], [3, 2], range=[-2.0, 2.0, -1.0, 1.5])
        return h, e, g, f, d.hist, *d.bin_edges, torch.histc(x, 5, -1, 1)

    def places(x, ids):
        line = x.flatten()
        order = line.argsort()
        return (torch.searchsorted(line, x[0], sorter=order), torch.searchsorted(at, 0.5, right=True), torch.bucketize(0.6, at), torch.isin(ids, 2),
                torch.nonzero_static(x > 0, size=14, fill_value=-3), torch.repeat_interleave(x, ids, 0, output_size=5),
                torch.repeat_interleave(ids, output_size=5), x.put(ids, x[0, :3], accumulate=True), x.as_strided_scatter(x[0, :2], (2,), (5,), 1),
                aten._chunk_cat([x, x[:, :3]], 1, 3), torch.einsum("ii->i", x[:, :3]), torch.einsum("ii,jj->ij", x[:, :3], x[:, 1:]),
                torch.scatter_reduce(ids, 0, ids.clamp(max=2), ids * 5 - 4, "mean", include_self=False))

    def losses(x, ids):
        w = torch.tensor([0.5, 1.0, 2.0, 0.25])
        return [F.cross_entropy(x, ids, weight=v, label_smoothing=0.2, ignore_index=2, reduction=r) for v in (None, w) for r in ("mean", "sum", "none")] + [
            F.cross_entropy(x, x.softmax(1), label_smoothing=0.2)]

    return Uses(slopes, counts, places, losses), (randn(1, 3, 4), torch.tensor([2, 0, 3])), {}


class Cells(nn.Module):
    """Recurrent cells of one step, with their weights, in a loop of the model's own."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.lstm, self.gru = nn.LSTMCell(3, 4), nn.GRUCell(4, 4, bias=False)
        self.tanh, self.relu = nn.RNNCell(4, 5), nn.RNNCell(5, 2, nonlinearity="relu")

    def forward(self, x):
        h, c, g, t, r = torch.zeros(2, 4), torch.ones(2, 4), torch.zeros(2, 4), torch.zeros(2, 5), torch.ones(2, 2)
        for step in x:
            h, c = self.lstm(step, (h, c))
            g = self.gru(h, g)
            t = self.tanh(g, t)
            r = self.relu(t, r)
        return h, c, g, t, r, self.gru(h[0], g[0])


def case_operators_cells():
    return Cells(), (randn(5, 3, 2, 3),), {}


def case_operators_windows():
    make = (torch.hann_window, torch.hamming_window, torch.blackman_window, torch.bartlett_window, torch.kaiser_window)
    uses = [lambda x, f=f, n=n, p=p: f(n, periodic=p) * x for f in make for n in (1, 2, 7, 8) for p in (True, False)]
    uses += [lambda x, f=f: f(9, dtype=torch.float64) * x for f in make]
    uses += [lambda x: torch.hamming_window(6, False, 0.6) * x, lambda x: torch.hamming_window(6, True, 0.6, 0.3) * x,
             lambda x: torch.kaiser_window(6, False, 3.5) * x, lambda x: torch.hann_window(0).sum() + x]
    return Uses(*uses), (randn(6, 1),), {}


def fold(size, kernel, **how):
    return lambda x: F.fold(F.unfold(x, kernel, **how) * 1.5, size, kernel, **how)


def case_operators_fold():
    def grid(theta, size, align):
        return lambda x: F.affine_grid(theta + x.mean(), size, align_corners=align)

    flat, deep = randn(7, 2, 2, 3), randn(8, 1, 3, 4)
    uses = [fold((6, 5), (2, 3)), fold((6, 5), (3, 2), stride=2, padding=1), fold((6, 5), 2, dilation=(3, 2), padding=(0, 2), stride=(1, 3)),
            lambda x: F.fold(F.unfold(x[0], 2), (6, 5), 2)]
    uses += [grid(t, s, a) for t, s in ((flat, (2, 3, 4, 5)), (flat, (2, 1, 1, 3)), (deep, (1, 2, 3, 2, 4))) for a in (True, False)]
    return Uses(*uses), (randn(9, 2, 3, 6, 5),), {}


class Rest(nn.Module):
    """In-place forms whose overloads have other names, the diagonal, and losses by class."""

    def forward(self, x, n, ids):
        y, whole, tall, cube = x.abs() + 0.5, n.clone(), x[:, :2].repeat(3, 1), torch.zeros(3, 3, 3)
        y.pow_(x)
        whole.floor_divide_(n.abs() % 3 + 1)
        cube.fill_diagonal_(2)
        wrapped = tall.clone().fill_diagonal_(7, wrap=True)
        ldexp, real = x.clone().ldexp_(n), x.double().abs()
        real.float_power_(x)
        logp = x.log_softmax(1)
        deep = torch.stack([logp, logp * 2], -1)
        weight = torch.arange(1.0, 1 + x.shape[1])
        losses = [F.nll_loss(deep, torch.stack([ids, ids.flip(0)], -1), weight=w, reduction=r, ignore_index=1) for w in (None, weight)
                  for r in ("none", "mean", "sum")]
        forward = torch.ops.aten.nll_loss_forward(logp, ids, weight, 1, 1) + torch.ops.aten.nll_loss_forward(logp, ids, None, 0, -100)
        return (y, whole, cube, tall.fill_diagonal_(-1), wrapped, ldexp, real, *losses, *forward, torch.range(1, 4), torch.range(0, 1, 0.3))


def case_operators_rest():
    return Rest(), (randn(10, 4, 5), torch.arange(-7, 13).view(4, 5), torch.tensor([0, 1, 4, 2])), {}


def case_operators_sequence():
    def pad(**how):
        return lambda x: torch.nn.utils.rnn.pad_sequence([x[:2], x, x[1:2]], **how)

    return Uses(pad(), pad(batch_first=True), pad(batch_first=True, padding_value=-1.5, padding_side="left"), lambda x: pad()(x[:, 0])), (randn(13, 3, 2),), {}


class Unread(nn.Module):
    """A layer that is made within forward, and random numbers, which nothing reads."""

    def forward(self, x):
        nn.Linear(3, 2)
        torch.rand_like(x).mul(2)
        return x * 2


def case_operators_unread():
    return Unread(), (randn(11, 2, 3),), {}


class Draws(nn.Module):
    """E3, to be refused: random numbers in an output, and in memory that an output shows."""

    def forward(self, x):
        noise = torch.zeros(2, 3)
        noise[0].normal_()
        return x + torch.rand_like(x), noise.abs()


def case_E3():
    return Draws(), (randn(12, 2, 3),), {}
