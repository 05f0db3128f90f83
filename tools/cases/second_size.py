#!/usr/bin/env python3
"""Adds a second call at another size to a case with symbolic dimensions: inputs_2 and outputs_2, made by torch from the case's own archive.

usage: second_size.py CASE_FOLDER N   (N: the size that replaces the example's symbolic one)
"""
import json
import os
import sys

import torch
import torch.utils._pytree as pytree
from safetensors.torch import load_file, save_file


def main():
    folder, n = sys.argv[1], int(sys.argv[2])
    program = torch.export.load(os.path.join(folder, "model.pt2"))
    first = load_file(os.path.join(folder, "inputs.safetensors"))
    shapes = {}
    for spec in program.graph_signature.user_inputs:
        meta = next(node for node in program.graph.nodes if node.name == spec).meta["val"]
        shapes[spec] = [int(d) if isinstance(d, int) else int(d.node.expr.subs({s: n for s in d.node.expr.free_symbols})) for d in meta.shape]
    generator = torch.Generator().manual_seed(n)
    inputs = {}
    for i, name in enumerate(program.graph_signature.user_inputs):
        like = first[f"input_{i}"]
        if like.dtype.is_floating_point:
            inputs[f"input_{i}"] = torch.randn(shapes[name], generator=generator, dtype=like.dtype)
        else:
            inputs[f"input_{i}"] = torch.randint(0, int(like.max()) + 1, shapes[name], generator=generator, dtype=like.dtype)
    args, kwargs = program.example_inputs
    flat, spec = pytree.tree_flatten((args, kwargs))
    args, kwargs = pytree.tree_unflatten(list(inputs.values()), spec)
    with torch.no_grad():
        out = program.module()(*args, **kwargs)
    outputs = {f"output_{i}": torch.as_tensor(t).contiguous() for i, t in enumerate(pytree.tree_leaves(out))}
    save_file(inputs, os.path.join(folder, "inputs_2.safetensors"))
    save_file(outputs, os.path.join(folder, "outputs_2.safetensors"))
    path = os.path.join(folder, "case.json")
    with open(path) as f:
        case = json.load(f)
    case["calls"], case["dynamic"] = 2, True
    with open(path, "w") as f:
        json.dump(case, f, indent=1)


if __name__ == "__main__":
    main()
