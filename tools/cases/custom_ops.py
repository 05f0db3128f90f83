#!/usr/bin/env python3
"""Makes the cases of testdata/custom: models with operators of their own, made by torch.library, with two calls' inputs, outputs and buffers.

usage: custom_ops.py OUT_FOLDER [CASE ...]

Each case is a folder with the archive as captured and after run_decompositions(). ops.tpu beside it, written by hand, says in tpuc's IR what the
operators compute. How run_decompositions() wraps operators that write to arguments depends on torch: mutating is made with torch 2.15, and the
same model as mutating_2_5 and mutating_2_9 with torch 2.5.1 and 2.9.0. overlapping is what tpuc refuses.
"""
import gzip
import io
import json
import os
import sys
from typing import List, Tuple

import torch
from safetensors.torch import save_file
from torch import Tensor, nn


@torch.library.custom_op("mylib::gate", mutates_args=())
def gate(x: Tensor, weight: Tensor, alpha: float) -> Tensor:
    """Is called with two shapes: a function each."""
    return x * torch.sigmoid(alpha * x) * weight


@gate.register_fake
def _(x, weight, alpha):
    return torch.empty_like(x)


@torch.library.custom_op("mylib::roll", mutates_args=())
def roll(x: Tensor, shift: int, mode: str = "columns") -> Tensor:
    """Computes something else for every shift: a function is for one."""
    return torch.roll(x, shift, 1 if mode == "columns" else 0)


@roll.register_fake
def _(x, shift, mode="columns"):
    return torch.empty_like(x)


@torch.library.custom_op("mylib::extremes", mutates_args=())
def extremes(xs: List[Tensor], bias: Tensor | None) -> Tuple[Tensor, Tensor]:
    """Takes a list and may do without an argument; gives two tensors."""
    high = torch.maximum(xs[0], xs[1])
    low = torch.minimum(xs[0], xs[1])
    return (high, low) if bias is None else (high + bias, low + bias)


@extremes.register_fake
def _(xs, bias):
    return torch.empty_like(xs[0]), torch.empty_like(xs[0])


@torch.library.custom_op("mylib::accumulate", mutates_args=("total",))
def accumulate(total: Tensor, x: Tensor) -> Tensor:
    """Writes to an argument."""
    total.add_(x.sum(0))
    return x - total


@accumulate.register_fake
def _(total, x):
    return torch.empty_like(x)


class Inner(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n))

    def forward(self, x):
        return torch.ops.mylib.gate(x, self.weight, 1.5)


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = Inner(8)
        self.narrow = Inner(4)
        self.register_buffer("total", torch.zeros(2, 4))

    def forward(self, x):
        y = self.wide(x)
        z = self.narrow(y[:, :4].contiguous())
        high, low = torch.ops.mylib.extremes([z, torch.ops.mylib.roll(z, 1)], None)
        low = torch.ops.mylib.roll(low, 2, "rows")
        return torch.ops.mylib.accumulate(self.total[1], high), low, y


@torch.library.custom_op("mylib::shift", mutates_args=("x", "scale"))
def shift(x: Tensor, by: Tensor, scale: Tensor | None, times: float) -> None:
    """Writes to one argument, and to another if it gets one; gives nothing."""
    x.add_(by * times)
    if scale is not None:
        scale.mul_(2)


@torch.library.custom_op("mylib::ema", mutates_args=("averages",))
def ema(averages: List[Tensor], x: Tensor, decay: float) -> Tensor:
    """Writes to the tensors of a list."""
    for a in averages:
        a.mul_(decay).add_(x, alpha=1 - decay)
    return averages[0] + averages[-1]


@ema.register_fake
def _(averages, x, decay):
    return torch.empty_like(x)


class Mutating(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(4, 3))
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x, y):
        first, second = x[0], x[1]
        torch.ops.mylib.shift(self.mean, first, None, 0.5)  # a buffer
        torch.ops.mylib.shift(self.cache[1], second, None, 1.0)  # a view of one
        z = torch.zeros(4, 3) + first
        torch.ops.mylib.shift(z[2], second, z[0], 2.0)  # two views of one tensor
        torch.ops.mylib.shift(z.t()[1][:3], first, z.t()[2], 2.0)  # views of a view, in columns
        w = torch.ops.mylib.ema([y[0], self.mean, y[2], self.cache[3]], second, 0.75)  # an input, a buffer, and views of both, as a list
        torch.ops.mylib.shift(y[1:], z[2:], y[:1], 1.0)  # slices of an input
        torch.ops.mylib.shift(z.view(12), z.new_ones(12), self.cache[:, 0:1], 1.0)  # a view of another shape, and a column
        return w, z, y * 1, self.cache + 1, torch.ops.mylib.accumulate(self.mean, x)


class Overlapping(nn.Module):
    """Gives an operator that writes to both arguments a row and a column of one tensor."""

    def forward(self, x):
        z = torch.zeros(4, 3) + x[0]
        torch.ops.mylib.shift(z[1], x[0], z[:, 0], 1.0)
        return z


CASES = {"mixed": (Mixed, lambda: (torch.randn(3, 8),)), "mutating": (Mutating, lambda: (torch.randn(3, 3), torch.randn(3, 3))),
         "overlapping": (Overlapping, lambda: (torch.randn(2, 3),))}
CASES["mutating_2_5"] = CASES["mutating_2_9"] = CASES["mutating"]


def save(program, path):
    for n in program.graph.nodes:  # no path of the machine
        if "stack_trace" in n.meta:
            n.meta["stack_trace"] = (n.meta["stack_trace"] or "").replace(os.path.dirname(os.path.abspath(__file__)) + "/", "")
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    with gzip.GzipFile(path, "wb", mtime=0) as f:
        f.write(buffer.getvalue())


def main():
    for name in sys.argv[2:] or CASES:
        make(name, os.path.join(sys.argv[1], name))


def make(name, folder):
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(3)
    kind, arguments = CASES[name]
    model = kind().eval()
    calls = [arguments(), arguments()]
    program = torch.export.export(model, tuple(x.clone() for x in calls[0]))
    save(program, os.path.join(folder, "model.pt2.gz"))
    save(program.run_decompositions(), os.path.join(folder, "decomposed.pt2.gz"))
    for i, args in enumerate(calls):
        suffix = "" if i == 0 else f"_{i + 1}"
        save_file({f"input_{k}": x for k, x in enumerate(args)}, os.path.join(folder, f"inputs{suffix}.safetensors"))
        with torch.no_grad():
            out = model(*(x.clone() for x in args))
        save_file({f"output_{k}": t.contiguous() for k, t in enumerate(out)}, os.path.join(folder, f"outputs{suffix}.safetensors"))
        save_file({k: b.clone() for k, b in model.named_buffers()}, os.path.join(folder, f"buffers_after{suffix}.safetensors"))
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump({"name": name, "calls": len(calls), "tolerance": 2e-5}, f, indent=1)


if __name__ == "__main__":
    main()
