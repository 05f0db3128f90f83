#!/usr/bin/env python3
"""Makes testdata/cosmetic: one model exported again and again after changes that must not compile it again, with inputs and outputs.

usage: cosmetic.py OUT_FOLDER

base        the model
again       exported a second time
renamed     other names of variables, arguments, layers and buffers
moved       another file, another class, with comments and other line numbers
reordered   independent statements in another order, layers and buffers registered in another order
weights     other weights of the same shapes: the one whose outputs differ
different   another computation, which must be compiled
"""
import gzip
import io
import os
import sys

import torch
from safetensors.torch import save_file

BASE = '''
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(16, 24)
        self.up = nn.Linear(16, 24)
        self.down = nn.Linear(24, 16)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("total", torch.zeros(16))
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 16), persistent=False)

    def forward(self, x, y):
        gate = torch.nn.functional.silu(self.gate(x))
        up = self.up(x)
        wave = torch.sin(y) * self.scale
        bent = torch.cos(y) + 1.0
        self.calls.add_(1)
        out = self.down(gate * up)
        self.total.add_(out.sum(0))
        return out + wave, bent - out
'''

RENAMED = '''
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Linear(16, 24)
        self.w3 = nn.Linear(16, 24)
        self.w2 = nn.Linear(24, 16)
        self.register_buffer("n", torch.zeros((), dtype=torch.int64))
        self.register_buffer("acc", torch.zeros(16))
        self.register_buffer("k", torch.linspace(0.5, 1.5, 16), persistent=False)

    def forward(self, first, second):
        a = torch.nn.functional.silu(self.w1(first))
        b = self.w3(first)
        s = torch.sin(second) * self.k
        c = torch.cos(second) + 1.0
        self.n.add_(1)
        r = self.w2(a * b)
        self.acc.add_(r.sum(0))
        return r + s, c - r
'''

MOVED = '''
# The same model, in another place of another file.
import torch
from torch import nn


class GatedBlock(nn.Module):
    """With a docstring."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(16, 24)
        self.up = nn.Linear(16, 24)
        self.down = nn.Linear(24, 16)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("total", torch.zeros(16))
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 16), persistent=False)

    def forward(self, x, y):
        # the gate
        gate = torch.nn.functional.silu(self.gate(x))
        up = self.up(x)

        # the wave
        wave = torch.sin(y) * self.scale
        bent = torch.cos(y) + 1.0

        self.calls.add_(1)  # state
        out = self.down(gate * up)
        self.total.add_(out.sum(0))
        return out + wave, bent - out


Model = GatedBlock
'''

REORDERED = '''
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(16))
        self.down = nn.Linear(24, 16)
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 16), persistent=False)
        self.up = nn.Linear(16, 24)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.gate = nn.Linear(16, 24)

    def forward(self, x, y):
        bent = torch.cos(y) + 1.0
        up = self.up(x)
        self.calls.add_(1)
        wave = torch.sin(y) * self.scale
        gate = torch.nn.functional.silu(self.gate(x))
        out = self.down(gate * up)
        result = out + wave
        other = bent - out
        self.total.add_(out.sum(0))
        return result, other
'''


def build(source, path, seed):
    """The module that source defines as if it stood in the file path, with weights of the seed by shape and name's order in base."""
    scope = {"__name__": "model"}
    exec(compile(source, path, "exec"), scope)
    scope["Model"].__module__ = "model"
    m = scope["Model"]().eval()
    g = torch.Generator().manual_seed(seed)
    order = {"gate": 0, "w1": 0, "up": 1, "w3": 1, "down": 2, "w2": 2}
    for name, p in sorted(m.named_parameters(), key=lambda np: (order[np[0].split(".")[0]], np[0].split(".")[1])):
        p.data = torch.randn(p.shape, generator=g) * 0.2
    return m


def keep_frames(node, path):
    """Leaves of the node's stack trace the frames of the model's file: others name this machine's."""
    kept, keep = [], False
    for line in (node.meta.get("stack_trace") or "").splitlines():
        if line.lstrip().startswith("File "):
            keep = path in line
        if keep:
            kept.append(line)
    if "stack_trace" in node.meta:
        node.meta["stack_trace"] = "\n".join(kept)


VARIANTS = {
    "base": (BASE, "/home/user/model.py", 1),
    "again": (BASE, "/home/user/model.py", 1),
    "renamed": (RENAMED, "/home/user/model.py", 1),
    "moved": (MOVED, "/opt/project/lib/blocks.py", 1),
    "reordered": (REORDERED, "/home/user/model.py", 1),
    "weights": (BASE, "/home/user/model.py", 2),
    "different": (BASE.replace("+ 1.0", "+ 2.0"), "/home/user/model.py", 1),
}


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    g = torch.Generator().manual_seed(0)
    args = (torch.randn(4, 16, generator=g), torch.randn(4, 16, generator=g))
    save_file({"input_0": args[0], "input_1": args[1]}, os.path.join(out, "inputs.safetensors"))
    for name, (source, path, seed) in VARIANTS.items():
        m = build(source, path, seed)
        ep = torch.export.export(m, args, strict=False)
        for n in ep.graph.nodes:
            keep_frames(n, path)
        buf = io.BytesIO()
        torch.export.save(ep, buf)
        for place in (b"/site-packages/", os.getcwd().encode()):
            if place in buf.getvalue():
                raise SystemExit(f"{name}: the archive names {place.decode()}")
        with open(os.path.join(out, name + ".pt2.gz"), "wb") as f, gzip.GzipFile("", "wb", 9, f, 0) as z:
            z.write(buf.getvalue())
        with torch.no_grad():
            got = m(*args)
        save_file({f"output_{i}": t.contiguous() for i, t in enumerate(got)}, os.path.join(out, name + "_outputs.safetensors"))


main()
