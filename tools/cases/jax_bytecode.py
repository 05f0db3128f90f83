"""Writes the modules of testdata/jax/cases.zip as MLIR bytecode: python jax_bytecode.py CASES.zip OUT.tar.gz

Each module becomes FORM/NAME.mlirbc in several forms: artifact, a portable artifact as jax.export writes it; builtin, the dialects of the text themselves; a
folder by the version of StableHLO for artifacts of older ones: 0.9.0 for all and another for each; and export, what Exported.serialize() writes, for
the first functions of jax_defs.py. A module that has no form at a version is left out there. Made with jax 0.10.2 and flatbuffers; the archive is
the same bytes every time.
"""

import dataclasses
import gzip
import io
import sys
import tarfile
import zipfile

import jax
from jax import export
from jax._src.interpreters import mlir
from jax._src.lib import _jax
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo

jax.config.update("jax_platforms", "cpu")

import jax_defs  # noqa: E402

OLDEST = "0.9.0"
VERSIONS = ["0.12.0", "0.14.0", "0.17.0", "1.0.0", "1.4.0", "1.8.0", "1.9.0", "1.13.0"]  # each changed how something is written
EXPORTS = 5


def parse(text):
    """The module of a text, in the context that is entered. A text without locations has none: the parser's own are taken out."""
    module = ir.Module.parse(text)
    if "loc(" not in text:
        passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)
    return module


def artifact(module, version):
    return _jax.mlir.serialize_portable_artifact(module, version, False)


def forms(text, i):
    """Pairs of a folder and the bytes of a module."""
    with mlir.make_ir_context():
        out = io.BytesIO()
        parse(text).operation.write_bytecode(out)
        yield "builtin", out.getvalue()
        yield "artifact", artifact(parse(text), stablehlo.get_current_version())
        for version in (OLDEST, VERSIONS[i % len(VERSIONS)]):
            try:
                yield version, artifact(parse(text), version)
            except Exception as e:  # noqa: BLE001 - an operation that is newer than the version
                print(f"{version}: {str(e)[:200]}", file=sys.stderr)


def main():
    cases, out = sys.argv[1:]
    artifacts = {}
    packed = io.BytesIO()
    with zipfile.ZipFile(cases) as z, tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        def put(form, name, data):
            info = tarfile.TarInfo(f"{form}/{name}.mlirbc")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

        names = [n for n in z.namelist() if n.endswith("/model.mlir")]
        for i, entry in enumerate(names):
            name = entry.split("/")[0]
            for form, data in forms(z.read(entry).decode(), i):
                put(form, name, data)
                if form == "artifact":
                    artifacts[name] = data
        for name, fn, args, options in [c for c in jax_defs.build() if c[0] in artifacts][:EXPORTS]:
            exported = export.export(jax.jit(fn, keep_unused=True))(*args)
            exported = dataclasses.replace(exported, mlir_module_serialized=artifacts[name])  # without the folders of this machine
            put("export", name, bytes(exported.serialize()))
    with open(out, "wb") as f:
        f.write(gzip.compress(packed.getvalue(), mtime=0))


if __name__ == "__main__":
    main()
