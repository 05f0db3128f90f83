#!/usr/bin/env python3
"""Makes the model of the start-up benchmark: a Llama-like decoder of 88 million parameters (12 layers, hidden size 768) with random weights.

usage: model.py OUT_FOLDER [--aoti]

Writes model.pt2 (torch.export), inputs.safetensors and outputs.safetensors (one call of 64 tokens), weights.safetensors for jax_run.py, and with
--aoti the package model.aoti.pt2 of AOTInductor, which needs a C++ compiler. Needs torch and safetensors.
"""
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

VOCAB, HIDDEN, HEADS, MLP, LAYERS, TOKENS = 4096, 768, 12, 2048, 12, 64


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.mlp_norm = RMSNorm(), RMSNorm()
        self.q, self.k, self.v, self.o = (nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(HIDDEN, MLP, bias=False), nn.Linear(HIDDEN, MLP, bias=False)
        self.down = nn.Linear(MLP, HIDDEN, bias=False)

    def forward(self, x, cos, sin):
        b, s, _ = x.shape
        h = self.attention_norm(x)
        q, k, v = (f(h).view(b, s, HEADS, HIDDEN // HEADS).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, s, HIDDEN))
        h = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = RMSNorm()
        frequencies = 10000.0 ** (-torch.arange(0, HIDDEN // HEADS, 2) / (HIDDEN // HEADS))
        angles = torch.arange(TOKENS)[:, None] * frequencies[None, :]
        self.register_buffer("cos", torch.cat((angles, angles), -1).cos())
        self.register_buffer("sin", torch.cat((angles, angles), -1).sin())

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return F.linear(self.norm(x), self.embed.weight)


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(0)
    model = Model().eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() > 1:
                p.normal_(0, 0.02)
    ids = torch.randint(0, VOCAB, (1, TOKENS))
    with torch.no_grad():
        logits = model(ids)
        program = torch.export.export(model, (ids,), strict=False)
    torch.export.save(program, os.path.join(out, "model.pt2"))
    save_file({"input_0": ids}, os.path.join(out, "inputs.safetensors"))
    save_file({"output_0": logits}, os.path.join(out, "outputs.safetensors"))
    save_file(dict(model.state_dict()), os.path.join(out, "weights.safetensors"))
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} million parameters")
    if "--aoti" in sys.argv:
        with torch.no_grad():
            torch._inductor.aoti_compile_and_package(program, package_path=os.path.join(out, "model.aoti.pt2"))


if __name__ == "__main__":
    main()
