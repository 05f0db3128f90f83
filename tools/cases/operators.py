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
