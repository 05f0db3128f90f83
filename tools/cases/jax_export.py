"""Writes the cases of jax_defs.py: python jax_export.py OUT.zip [NAME...]

For each case a folder with model.mlir, inputs.safetensors, outputs.safetensors (what JAX computes on the CPU) of 4-bit types excepted. Made with jax 0.10.2; the zip is the same bytes every time. Every fourth module is in MLIR's generic form, every third
of the others carries locations, and every fifth of the rest comes from jax.export.
"""

import io
import json
import re
import struct
import sys
import zipfile

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_platforms", "cpu")

import jax_defs  # noqa: E402

DTYPES = {"float32": "F32", "float64": "F64", "bfloat16": "BF16", "float16": "F16", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
          "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "bool": "BOOL", "complex64": "C64", "float8_e4m3fn": "F8_E4M3",
          "float8_e5m2": "F8_E5M2"}


def safetensors(tensors):
    """The bytes of a safetensors file."""
    header, data = {}, b""
    for name, x in tensors.items():
        raw = np.ascontiguousarray(x).tobytes()
        header[name] = {"dtype": DTYPES[x.dtype.name], "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def scrub(text):
    """Takes the folders out of paths in locations."""
    return re.sub(r'"(?:/[^"/]+)+/([^"/]+)"', r'"\1"', text)


def module(jitted, args, form, platform):
    """The text of the function in one of the forms."""
    lowered = jitted.trace(*args).lower(lowering_platforms=(platform,)) if platform else jitted.lower(*args)
    if form == "generic":
        return lowered.compiler_ir("stablehlo").operation.get_asm(print_generic_op_form=True)
    if form == "locations":
        return scrub(lowered.as_text(debug_info=True))
    if form == "export":
        from jax import export
        return scrub(export.export(jitted, platforms=[platform] if platform else None)(*args).mlir_module())
    return lowered.as_text()


def outside(x):
    """4-bit integers have no place in safetensors."""
    return x.dtype.name in ("int4", "uint4")


def main():
    out, only = sys.argv[1], set(sys.argv[2:])
    cases = jax_defs.build()
    assert len({c[0] for c in cases}) == len(cases), "names are unique"
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        def put(name, data):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(info, data)

        for i, (name, fn, args, options) in enumerate(cases):
            if only and name not in only:
                continue
            try:
                platform = options.pop("platform", None)
                wide = options.pop("x64", False) or any(np.asarray(a).dtype.name in ("float64", "int64", "uint64") for a in jax.tree.leaves(args))
                with jax.enable_x64(wide):
                    leaves = [np.asarray(jnp.asarray(a)) for a in jax.tree.leaves(args)]
                    options.setdefault("keep_unused", True)
                    jitted = jax.jit(fn, **options)
                    form = "generic" if i % 4 == 1 else "locations" if i % 3 == 1 else "export" if i % 5 == 1 else "pretty"
                    text = module(jitted, args, form, platform)
                    outs = [np.asarray(a) for a in jax.tree.leaves(jax.jit(fn, keep_unused=True)(*args))]
                if any(map(outside, leaves + outs)):
                    continue
                put(f"{name}/model.mlir", text)
                put(f"{name}/inputs.safetensors", safetensors({f"input_{k}": a for k, a in enumerate(leaves)}))
                put(f"{name}/outputs.safetensors", safetensors({f"output_{k}": a for k, a in enumerate(outs)}))
            except Exception as e:  # noqa: BLE001 - a case that this version of JAX lacks is named and left out
                print(f"{name}: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr)


if __name__ == "__main__":
    main()
