"""Writes the cases of xla_defs.py and jax_programs.py: python xla_export.py OUT.zip [EXPORTER] [NAME...], or python xla_export.py OUT.txtar for texts that tpuc refuses


For each case and each exporter a folder EXPORTER_NAME with model.mlir, inputs.safetensors, outputs.safetensors (what the exporter's own program gives on
the CPU, which must be near to eager torch, but for random numbers). A case that an exporter does not take is named and left out. Made with torch 2.9.0, torch_xla 2.9.0, torchax
0.0.13 and jax 0.10.2; the zip is the same bytes every time.
"""

import copy
import os
import sys
import zipfile

os.environ.update(PJRT_DEVICE="CPU", JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

import jax_programs  # noqa: E402
import xla_defs  # noqa: E402
from jax_export import module, safetensors, scrub  # noqa: E402


def array(x):
    """A tensor of torch, or what may become one, as NumPy's."""
    x = torch.as_tensor(x).detach().cpu()
    if x.dtype == torch.bfloat16:
        return x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return x.numpy()


def with_torch_xla(program, args):
    from torch_xla import stablehlo
    shlo = stablehlo.exported_program_to_stablehlo(program)
    f = shlo._bundle.stablehlo_funcs[0]
    flat, _ = torch.utils._pytree.tree_flatten(args)
    inputs = stablehlo._extract_call_parameters(flat, f.meta, shlo._bundle)
    return shlo.get_stablehlo_text(), inputs, shlo(*args)


def lazy_torch_xla(fn, args):
    """The text of what torch_xla has traced, the tensors that it reads, and what it gives."""
    import torch_xla
    import torch_xla.core.xla_model as xm
    torch_xla.manual_seed(3)
    outputs = fn(*(a.to(torch_xla.device()) for a in args))
    outputs = outputs if isinstance(outputs, list) else [outputs]
    text = xm.get_stablehlo(outputs)
    _, inputs = torch_xla._XLAC._get_tensors_xla_device_data_node(outputs)
    return text, [a.cpu() for a in inputs], [a.detach().cpu() for a in outputs]


def with_torchax(program, args):
    import jax
    import torchax  # noqa: F401
    from torchax.export import exported_program_to_stablehlo
    from torchax.ops.mappings import t2j
    jax.config.update("jax_enable_x64", True)
    weights, exported = exported_program_to_stablehlo(program)
    flat, _ = torch.utils._pytree.tree_flatten(args)
    inputs = [t2j(a) for a in flat]
    outs = exported.call(weights, (inputs,))
    leaves = [np.asarray(a) for a in jax.tree.leaves((weights, inputs))]
    kept = [leaves[i] for i in exported.module_kept_var_idx]
    return scrub(exported.mlir_module()), kept, [np.asarray(a) for a in jax.tree.leaves(outs)]


# Functions of the exported program and its arguments, which give the text, its inputs and its outputs.
EXPORTERS = {"torch_xla": with_torch_xla, "torchax": with_torchax}


def leaves(x):
    """Tensors of a nest of them."""
    flat, _ = torch.utils._pytree.tree_flatten(x)
    return [a if isinstance(a, np.ndarray) else array(a) for a in flat]


def near(got, want):
    """Reports whether an exporter's output is torch's, of which it may have another dtype; 16-bit floats are computed in other orders."""
    tolerance = 1e-1 if want.dtype.itemsize == 2 else 1e-3
    return got.shape == want.shape and np.allclose(got.astype(np.complex128), want.astype(np.complex128), rtol=tolerance, atol=tolerance, equal_nan=True)


def numpy_or_self(x, numpy=torch.Tensor.numpy):
    """NumPy has no bfloat16 that torch knows, and torch_xla asks for one: its programs take the tensor as well."""
    return x if x.dtype == torch.bfloat16 else numpy(x)


torch.Tensor.numpy = numpy_or_self


def jax_cases():
    """The JAX programs as name, text, inputs and outputs, in three forms by turns."""
    import jax
    import jax.numpy as jnp
    for i, (name, fn, args, options) in enumerate(jax_programs.build()):
        platform = options.pop("platform", None)
        jitted = jax.jit(fn, keep_unused=True, **options)
        inputs = [np.asarray(jnp.asarray(a)) for a in jax.tree.leaves(args)]
        text = module(jitted, args, ["pretty", "export", "generic"][i % 3], platform)
        yield name, text, inputs, [np.asarray(a) for a in jax.tree.leaves(jax.jit(fn, keep_unused=True)(*args))]


def main():
    out, words = sys.argv[1], sys.argv[2:]
    exporters = [w for w in words if w in EXPORTERS] or list(EXPORTERS)
    only = {w for w in words if w not in EXPORTERS}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        def put(name, data):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(info, data)

        def case(name, text, inputs, outputs):
            put(f"{name}/model.mlir", text)
            put(f"{name}/inputs.safetensors", safetensors({f"input_{k}": a for k, a in enumerate(inputs)}))
            put(f"{name}/outputs.safetensors", safetensors({f"output_{k}": a for k, a in enumerate(outputs)}))

        for name, *rest in jax_cases():
            if (not only or name in only) and exporters == list(EXPORTERS):
                case(f"jax_{name}", *rest)
        for name, model, args, options in xla_defs.build():
            if only and name not in only:
                continue
            if options.get("lazy"):
                if "torch_xla" in exporters:
                    text, inputs, outputs = lazy_torch_xla(model, args)
                    case(f"torch_xla_{name}", text, leaves(inputs), leaves(outputs))
                continue
            with torch.no_grad():
                program = torch.export.export(model, args, strict=options.get("strict", False))
                want = leaves(copy.deepcopy(model)(*args))
            for exporter in exporters:
                try:
                    text, inputs, outputs = EXPORTERS[exporter](program, args)
                    inputs, outputs = leaves(inputs), leaves(outputs)
                    assert len(outputs) == len(want), f"{len(outputs)} outputs, torch has {len(want)}"
                    for i, (a, b) in enumerate(zip(outputs, want, strict=True)):
                        assert near(a, b), f"output {i} is not torch's"
                except Exception as e:  # noqa: BLE001 - what this exporter does not take is named and left out
                    print(f"{exporter}_{name}: {type(e).__name__}: {str(e).strip()[:300]}", file=sys.stderr)
                    continue
                case(f"{exporter}_{name}", text, inputs, outputs)


def refused(out):
    from torch_xla import stablehlo
    parts = []
    for name, model, args, dynamic, left in xla_defs.refused_torch_xla():
        program = torch.export.export(model.eval(), args, dynamic_shapes=dynamic)
        options = stablehlo.StableHLOExportOptions(custom_ops_allowed_in_graph=set(left))
        parts.append((f"torch_xla/{name}.mlir", stablehlo.exported_program_to_stablehlo(program, options).get_stablehlo_text()))
    parts += [(f"jax/{name}.mlir", scrub(text)) for name, text in xla_defs.refused_jax()]
    with open(out, "w") as f:
        f.write("Texts that exporters wrote and that cannot be compiled, from tools/cases/xla_export.py.\n\n")
        for name, text in parts:
            f.write(f"-- {name} --\n{text.rstrip()}\n")


if __name__ == "__main__":
    refused(sys.argv[1]) if sys.argv[1].endswith(".txtar") else main()
