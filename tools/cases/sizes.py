"""Modules in which the data decides sizes, whose results have fixed shapes all the same. As defs.py; every case has calls with all, some and
no elements chosen.
"""
import torch
from torch import nn


def randn(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


MASKS = [torch.tensor(m, dtype=torch.bool) for m in ([0, 1, 1, 0, 1, 0], [1] * 6, [0] * 6, [0, 0, 0, 0, 0, 1])]


def calls(*make):
    """Options and arguments: one call a mask."""
    all_args = [tuple(f(i) for f in make) for i in range(len(MASKS))]
    return all_args[0], {"calls": [(a, {}) for a in all_args[1:]], "tolerance": 2e-5}


class Rows(nn.Module):
    """Chosen rows through layers, back to their places; and other values by a mask."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.norm, self.up, self.down = nn.LayerNorm(4), nn.Linear(4, 8), nn.Linear(8, 4)
        self.conv = nn.Conv1d(3, 3, 3, padding=1)
        self.embed = nn.Embedding(9, 4)

    def forward(self, x, mask, ids):
        rows = x[mask]  # [u, 3, 4]
        y = self.down(torch.nn.functional.gelu(self.up(self.norm(rows))))
        y = y + rows * 2 - self.conv(rows).softmax(-1)
        heads = rows.view(-1, 3, 2, 2).transpose(1, 2)
        y = y + torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).reshape(-1, 3, 4)
        back = torch.zeros_like(x)
        back[mask] = y
        more = x.clone()
        more[mask] += 1
        picked = torch.zeros(6, 4).masked_scatter(mask[:, None], self.embed(ids[mask]))
        flat = torch.zeros(2, 36).masked_scatter(torch.arange(72).view(2, 36) < 12 * mask.sum(), rows)
        return back, more, picked, flat


def case_sizes_rows():
    args, opt = calls(lambda i: randn(1 + i, 6, 3, 4), lambda i: MASKS[i].clone(), lambda i: torch.arange(6) + i)
    return Rows(), args, {}, opt


class Sums(nn.Module):
    """Reductions over what is chosen."""

    def forward(self, x, mask):
        rows = x[mask]  # [u, 4]
        deep = x > 0.3
        some = x.masked_select(deep)
        at = torch.nonzero(deep)
        i, j = torch.nonzero(deep, as_tuple=True)
        n = torch.numel(some)
        torch._check(n >= 0)
        both = rows[:, 1] > 0
        again = rows[both]
        rank = torch.nonzero(mask)[:, 0]
        return (rows.sum(0), rows.sum(), rows.mean(0), rows.prod(0), (rows > 0).any(0), (rows > 0).all(0), some.sum(), some.square().sum(), at.sum(0),
                x[i, j].sum(), torch.count_nonzero(some), torch.linalg.vector_norm(rows, dim=0), again.sum(0),
                (rows.cumsum(0) * 0 + 1).sum(), torch.ones_like(some).sum(), x[rank].sum(0), torch.arange(rows.shape[0]).sum(), some.shape[0] * x[0],
                torch.cat([rows, rows * 2], 1).sum(0), rows.flip(1).sum(0), torch.stack([rows, rows], 1).sum(0), rows.unsqueeze(0).expand(3, -1, -1).sum(1))


def case_sizes_sums():
    args, opt = calls(lambda i: randn(20 + i, 6, 4), lambda i: MASKS[i].clone())
    return Sums(), args, {}, opt


class Known(nn.Module):
    """Sizes that constants of the program decide, which outputs may have."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.tensor([True, False, True, True]), persistent=False)
        self.register_buffer("counts", torch.tensor([2, 0, 1, 3]), persistent=False)
        self.register_buffer("cuts", torch.tensor([1, 3]), persistent=False)

    def forward(self, x):
        rows = x[self.mask]
        back = torch.zeros_like(x)
        back[self.mask] = rows * 2
        return (rows, back, torch.nonzero(self.mask), x.masked_select(self.mask[:, None]), x.repeat_interleave(self.counts, 0),
                *torch.tensor_split(x, self.cuts), torch.bincount(self.counts, minlength=2), torch.nonzero_static(x > 0, size=5))


def case_sizes_known():
    return Known(), (randn(3, 4, 2),), {}


class Experts(nn.Module):
    """A mixture whose experts each take the rows that chose them, and put their results back by index."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 4)) for _ in range(3))

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        masks = nn.functional.one_hot(chosen, 3).permute(2, 1, 0)
        out, put = torch.zeros_like(x), torch.zeros_like(x)
        for mask, expert in zip(masks, self.experts):
            slot, row = torch.where(mask)
            y = expert(x[None, row].reshape(-1, 4)) * weights[row, slot, None]
            out.index_add_(0, row, y)
            put.index_put_((row,), y, accumulate=True)
        return out, put


def case_sizes_experts():
    return Experts(), (randn(11, 5, 4),), {}, {"calls": [((randn(12, 5, 4) * 3,), {}), ((torch.ones(5, 4),), {})]}


class Parts(nn.Module):
    """Rows sorted by expert, split by how many each has, and joined again; and parts of a sum that is not known."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.gate = nn.Linear(4, 3)
        self.weight = nn.Parameter(torch.randn(3, 4, 4))

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        order = chosen.flatten().sort()[1]
        sizes = nn.functional.one_hot(chosen, 3).sum((0, 1)).tolist()
        parts = x[order // 2].split(sizes, dim=0)
        y = torch.cat([torch.nn.functional.linear(p, w) for p, w in zip(parts, self.weight)]) * weights.flatten()[order, None]
        out = torch.zeros_like(x).index_add(0, order // 2, y)
        some = torch.cat([parts[0], x, parts[2] * 2])
        return out, y, some.sum(0), some.abs().amax(0)


def case_sizes_parts():
    return Parts(), (randn(15, 5, 4),), {}, {"calls": [((randn(16, 5, 4) * 3,), {}), ((torch.ones(5, 4),), {})]}


class Valid(nn.Module):
    """Attention to tokens that a mask leaves, filled up again to a size that is known; slices by a number; two selections of one size."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.qkv, self.out = nn.Linear(4, 12), nn.Linear(4, 4)

    def forward(self, x, context, mask):
        valid = mask.nonzero().flatten()
        tokens = self.qkv(torch.cat([x, context[:, valid]], 1))
        q, k, v = (t.unflatten(-1, (2, 2)).transpose(1, 2) for t in tokens.chunk(3, -1))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        y = torch.nn.functional.pad(self.out(y), (0, 0, 0, 9 - y.shape[1]), value=0.5)
        n = mask.sum().item()
        head, tail, last = context[:, :n], context[:, n:], context[:, -3:n]
        more, other = context[0].clone(), context[0] * 2
        more[mask] += self.out(other[mask.logical_not().logical_not()])
        return y, head.sum(1), tail.square().sum(1), last.sum(1), more


def case_sizes_valid():
    args, opt = calls(lambda i: randn(30 + i, 1, 3, 4), lambda i: randn(40 + i, 1, 6, 4), lambda i: MASKS[i].clone())
    return Valid(), args, {}, opt


class Unbounded(nn.Module):
    """E2, to be refused: shapes of outputs, and uses that elements which are not chosen would reach."""

    def forward(self, x, mask, repeats):
        rows = x[mask]
        return (torch.nonzero(mask), rows * 2, rows.sort(0)[0].sum(0), (rows.T @ rows), x.repeat_interleave(repeats, 0).sum(0))


def case_E2():
    return Unbounded(), (randn(9, 6, 4), MASKS[0].clone(), torch.tensor([1, 0, 2, 1, 1, 1])), {}


class Numbers(nn.Module):
    """Numbers read from tensors, in arithmetic and as operands."""

    def forward(self, x, n):
        top, k = x.max().item(), n.item()
        half = x.to(torch.bfloat16)
        return (x / top, x * k, n * top, half * top + k, (x + 1) * (top * 2 - k), x.sum() - k / 4, torch.where(x > top / 2, x, -top), x == top,
                x.masked_fill(x > 0, top))


def case_sizes_numbers():
    return Numbers(), (randn(13, 3, 2), torch.tensor(3)), {}, {"calls": [((randn(14, 3, 2), torch.tensor(-5)), {})]}
