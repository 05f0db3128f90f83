#!/usr/bin/env python3
"""Makes testdata/custom/mixed: a model with operators of its own, made by torch.library, with two calls' inputs, outputs and buffers.

usage: custom_ops.py OUT_FOLDER

ops.tpu beside it, written by hand, says in tpuc's IR what the operators compute.
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


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(3)
    model = Mixed().eval()
    calls = [torch.randn(3, 8), torch.randn(3, 8)]
    program = torch.export.export(model, (calls[0],))
    for n in program.graph.nodes:  # no path of the machine
        if "stack_trace" in n.meta:
            n.meta["stack_trace"] = n.meta["stack_trace"].replace(os.path.dirname(os.path.abspath(__file__)) + "/", "")
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    with gzip.GzipFile(os.path.join(folder, "model.pt2.gz"), "wb", mtime=0) as f:
        f.write(buffer.getvalue())
    for i, x in enumerate(calls):
        suffix = "" if i == 0 else f"_{i + 1}"
        with torch.no_grad():
            out = model(x)
        save_file({"input_0": x}, os.path.join(folder, f"inputs{suffix}.safetensors"))
        save_file({f"output_{k}": t.contiguous() for k, t in enumerate(out)}, os.path.join(folder, f"outputs{suffix}.safetensors"))
        save_file({"total": model.total.clone()}, os.path.join(folder, f"buffers_after{suffix}.safetensors"))
    with open(os.path.join(folder, "case.json"), "w") as f:
        json.dump({"name": "mixed", "calls": len(calls), "tolerance": 2e-5}, f, indent=1)


if __name__ == "__main__":
    main()
