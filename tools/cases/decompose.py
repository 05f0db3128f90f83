#!/usr/bin/env python3
"""Makes decomposed archives of zoo cases: torch.export.load, run_decompositions(), save, with the case's inputs, outputs and case.json beside it.

usage: decompose.py ZOO_FOLDER OUT_FOLDER [COUNT]   (COUNT: 60 cases unless given, chosen by the digests of their names)

Each archive is run by torch on the first call's inputs before it is written: one that torch itself cannot decompose, run, or reproduce the
outputs with is left out with its reason, and the next case is taken. What is there already is kept, so a run that was ended goes on.
Archives of Transformers' own operators need the transformers package, which registers them.
"""
import gzip
import hashlib
import io
import json
import os
import shutil
import sys
import warnings

import torch
import torch.utils._pytree as pytree
from safetensors.torch import load_file

COUNT = 60


def load(folder):
    with gzip.open(os.path.join(folder, "model.pt2.gz")) as f:
        return torch.export.load(io.BytesIO(f.read()))


def call(program, folder):
    """The program's outputs for the case's first inputs; leaves of the example call that are no tensors stay."""
    given = load_file(os.path.join(folder, "inputs.safetensors"))
    flat, spec = pytree.tree_flatten(program.example_inputs)
    flat = [given.get(f"input_{i}", x) for i, x in enumerate(flat)]
    args, kwargs = pytree.tree_unflatten(flat, spec)
    with torch.no_grad():
        return program.module()(*args, **kwargs)


def check(program, folder):
    """An error where the decomposed program does not give the case's outputs within its tolerance."""
    with open(os.path.join(folder, "case.json")) as f:
        tolerance = json.load(f).get("tolerance", {"rel_to_max": 2e-5})
    rel = tolerance["rel_to_max"] if isinstance(tolerance, dict) else tolerance
    want = load_file(os.path.join(folder, "outputs.safetensors"))
    for i, leaf in enumerate(pytree.tree_leaves(call(program, folder))):
        ref = want.get(f"output_{i}")
        if ref is None:
            continue
        got = torch.as_tensor(leaf)
        if not ref.dtype.is_floating_point:
            if not torch.equal(got, ref):
                raise ValueError(f"output_{i} differs")
            continue
        a, b = got.double(), ref.double()
        finite = b.isfinite()
        worst = (a - b)[finite].abs().max().item() if finite.any() else 0.0
        largest = b[finite].abs().max().item() if finite.any() else 0.0
        if not torch.equal(a.isfinite(), finite) or worst > rel * (1 + largest):
            raise ValueError(f"output_{i} differs by {worst:.3g}, allowed are {rel * (1 + largest):.3g}")


def make(source, target):
    if os.path.exists(os.path.join(target, "decomposed.pt2.gz")):
        return
    program = load(source).run_decompositions()
    check(program, source)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    os.makedirs(target, exist_ok=True)
    for name in sorted(os.listdir(source)):
        if name.endswith(".safetensors") or name == "case.json":
            shutil.copyfile(os.path.join(source, name), os.path.join(target, name))
    with gzip.GzipFile(os.path.join(target, "decomposed.pt2.gz"), "wb", mtime=0) as f:
        f.write(buffer.getvalue())


def main():
    zoo, out = sys.argv[1], sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else COUNT
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    try:
        import transformers.integrations.moe  # noqa: F401  registers its operators
    except ImportError:
        print("transformers is absent: archives with its operators cannot be read")
    made = 0
    for name in sorted(os.listdir(zoo), key=lambda n: hashlib.sha256(n.encode()).hexdigest()):
        if made == count:
            break
        try:
            make(os.path.join(zoo, name), os.path.join(out, name))
        except Exception as e:  # whatever torch says of it is the reason
            print(f"left out {name}: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}", flush=True)
            continue
        made += 1
        print(f"{made} {name}", flush=True)


if __name__ == "__main__":
    main()
