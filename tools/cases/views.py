#!/usr/bin/env python3
"""Makes random programs of views and in-place operators, for the test of functionalisation.

usage: views.py OUT.tar.gz [COUNT [SEED]]   (180 programs from seed 1 on unless given)

A program is a list of steps over a growing list of tensors: inputs, buffers, a constant of the module, what a step made. Steps are views (slices,
transposes, windows, diagonals, strides, splits, parts of complex numbers), writes through any of them, and operators that make new memory. It is
called twice with other inputs and the state carried over. A case holds raw and decomposed archives, both calls' outputs in eager torch, and all
inputs and buffers that a call wrote to, as they are afterwards. Programs that torch itself cannot export, or whose exported program does not give
what eager torch does, are left out with the reason.
"""
import copy
import gzip
import io
import json
import random
import sys
import tarfile
import warnings

import torch
from safetensors.torch import save
from torch import nn

f32, i64, c64, bool_ = torch.float32, torch.int64, torch.complex64, torch.bool
MAX_ELEMENTS = 200


# Views: a function of a random generator and a tensor gives the step's name and arguments, or None where it does not apply.
def a_slice(r, x):
    d = r.randrange(x.dim())
    start = r.randrange(x.shape[d])
    return d, start, r.randint(start + 1, x.shape[d]), r.choice([1, 1, 1, 2, 3])


def sizes_of(r, n):
    """A random shape of n elements."""
    out = []
    while n > 1 and len(out) < 3:
        k = r.choice([k for k in range(2, n + 1) if n % k == 0])
        out.append(k)
        n //= k
    if n > 1:
        out[-1] *= n
    if r.random() < 0.3:
        out.insert(r.randrange(len(out) + 1), 1)
    return out


def strided(r, x):
    """Distinct places among the elements of x's storage."""
    n = x.untyped_storage().nbytes() // x.element_size()
    step = r.choice([1, 2])
    cols = r.randint(1, max(1, min(3, n // step)))
    rows = r.randint(1, max(1, min(3, n // (cols * step))))
    offset = r.randrange(n - ((rows - 1) * cols * step + (cols - 1) * step))
    size, stride = [rows, cols], [cols * step, step]
    return (size[::-1], stride[::-1], offset) if r.random() < 0.3 else (size, stride, offset)


VIEWS = {
    "slice": lambda r, x: a_slice(r, x) if x.dim() else None,
    "select": lambda r, x: (d := r.randrange(x.dim()), r.randrange(-x.shape[d], x.shape[d])) if x.dim() else None,
    "narrow": lambda r, x: (d := r.randrange(x.dim()), s := r.randrange(x.shape[d]), r.randint(1, x.shape[d] - s)) if x.dim() else None,
    "transpose": lambda r, x: (r.randrange(x.dim()), r.randrange(-x.dim(), x.dim())) if x.dim() > 1 else None,
    "permute": lambda r, x: (r.sample(range(x.dim()), x.dim()),) if x.dim() > 1 else None,
    "movedim": lambda r, x: (r.randrange(x.dim()), r.randrange(x.dim())) if x.dim() > 1 else None,
    "t": lambda r, x: () if x.dim() == 2 else None,
    "mT": lambda r, x: () if x.dim() > 1 else None,
    "expand": lambda r, x: ([r.randint(1, 3) if n == 1 else -1 for n in x.shape],) if 1 in x.shape else ([r.randint(1, 2), *x.shape],),
    "unfold": lambda r, x: (d := r.randrange(x.dim()), k := r.randint(1, x.shape[d]), r.choice([k, k, r.randint(1, 3)])) if x.dim() else None,
    "diagonal": lambda r, x: (r.randint(-1, 1), *r.sample(range(x.dim()), 2)) if x.dim() > 1 else None,
    "as_strided": strided,
    "view": lambda r, x: (sizes_of(r, x.numel()),),
    "reshape": lambda r, x: (sizes_of(r, x.numel()),),
    "flatten": lambda r, x: (),
    "unflatten": lambda r, x: (d := r.randrange(x.dim()), [-1, r.choice([k for k in range(1, x.shape[d] + 1) if x.shape[d] % k == 0])]) if x.dim() else None,
    "unsqueeze": lambda r, x: (r.randint(-1, x.dim()),),
    "squeeze": lambda r, x: (),
    "squeeze_dim": lambda r, x: (r.randrange(x.dim()),) if x.dim() else None,
    "chunk": lambda r, x: (r.randint(1, 3), r.randrange(x.dim())) if x.dim() else None,
    "split": lambda r, x: (r.randint(1, 3), r.randrange(x.dim())) if x.dim() else None,
    "split_sizes": lambda r, x: (d := r.randrange(x.dim()), [k := r.randint(0, x.shape[d]), x.shape[d] - k])[::-1] if x.dim() else None,
    "tensor_split": lambda r, x: (r.randint(1, 3), r.randrange(x.dim())) if x.dim() else None,
    "unbind": lambda r, x: (r.randrange(x.dim()),) if x.dim() and max(x.shape) < 5 else None,
    "view_as_real": lambda r, x: () if x.is_complex() else None,
    "view_as_complex": lambda r, x: () if x.dtype == f32 and x.dim() and x.shape[-1] == 2 else None,
    "real": lambda r, x: () if x.is_complex() else None,
    "imag": lambda r, x: () if x.is_complex() else None,
    "detach": lambda r, x: (),
    "contiguous": lambda r, x: (),
    "to_same": lambda r, x: (),
    "index_dots": lambda r, x: (r.randrange(x.shape[-1]),) if x.dim() else None,
    "view_dtype": lambda r, x: () if x.dtype == f32 else None,
    # These change the tensor and not its elements.
    "unsqueeze_": lambda r, x: (r.randint(-1, x.dim()),),
    "squeeze_": lambda r, x: (),
    "transpose_": lambda r, x: (r.randrange(x.dim()), r.randrange(-x.dim(), x.dim())) if x.dim() > 1 else None,
    "t_": lambda r, x: () if x.dim() == 2 else None,
}
NAMED = {
    "slice": lambda x, d, start, end, step: x[(slice(None),) * d + (slice(start, end, step),)],
    "mT": lambda x: x.mT, "squeeze_dim": lambda x, d: x.squeeze(d), "split_sizes": lambda x, n, d: x.split(n, d),
    "view_as_real": torch.view_as_real, "view_as_complex": torch.view_as_complex, "real": lambda x: x.real, "imag": lambda x: x.imag,
    "to_same": lambda x: x.to(x.dtype), "index_dots": lambda x, i: x[..., i, None], "view_dtype": lambda x: x.view(torch.int32),
    # Writes: x is written to, the others are operands.
    "set_item": lambda x, v, key: x.__setitem__(key, v), "set_mask": lambda x, v: x.__setitem__(x > 0, v), "set_list": lambda x, v, ids: x.__setitem__(ids, v),
    "masked_fill_": lambda x, v: x.masked_fill_(x.ne(v), v), "masked_fill_like_": lambda x, m, v: x.masked_fill_(m > 0, v),
    "index_put_": lambda x, v, ids, add: x.index_put_((torch.tensor(ids),), v, add), "scatter_": lambda x, d, ids, v: x.scatter_(d, torch.tensor(ids), v),
    "scatter_src_": lambda x, v, d, ids: x.scatter_(d, torch.tensor(ids), v), "scatter_add_": lambda x, v, d, ids: x.scatter_add_(d, torch.tensor(ids), v),
    "index_copy_": lambda x, v, d, ids: x.index_copy_(d, torch.tensor(ids), v), "index_add_": lambda x, v, d, ids: x.index_add_(d, torch.tensor(ids), v),
    "index_fill_": lambda x, d, ids, v: x.index_fill_(d, torch.tensor(ids), v), "iadd": lambda x, v: x.__iadd__(v), "imul": lambda x, v: x.__imul__(v),
    "addcmul_": lambda x, v, w: x.addcmul_(v, w, value=0.5), "clamp_": lambda x, lo, hi: x.clamp_(lo, hi),
    # New memory.
    "clone": torch.clone, "plus": lambda x, v: x + v, "times": lambda x, v: x * v, "cat": lambda x: torch.cat([x, x.flip(0)]), "stack": lambda x: torch.stack([x, -x]),
    "where": lambda x: torch.where(x > 0, x, -1), "zeros_like": torch.zeros_like, "gather": lambda x, ids: x.index_select(0, torch.tensor(ids)), "long": lambda x: x.long(),
    "float": lambda x: x.float(), "constant": lambda x, v: torch.tensor(v),
}


def number(r, x):
    if x.dtype == f32 or x.is_complex():
        return r.choice([-1.5, -0.25, 0.5, 1.0, 2.0, 3.0])
    return r.choice([-2, 0, 1, 3])


def rows(r, x, distinct):
    """A dimension and places along it."""
    d = r.randrange(x.dim())
    n = x.shape[d]
    return d, r.sample(range(n), r.randint(1, n)) if distinct else [r.randrange(n) for _ in range(r.randint(1, 3))]


def part(x, d, n):
    return [*x.shape[:d], n, *x.shape[d + 1:]]


def a_write(r, x, others):
    """A write to x: the step's name, the operands among others, and further arguments."""
    def like(shape):  # an operand that broadcasts to shape
        fit = [i for i, y in enumerate(others) if (y.is_complex() <= x.is_complex()) and y.dtype != bool_ and torch.can_cast(y.dtype, x.dtype) and broadcasts(y.shape, shape)]
        return r.choice(fit) if fit else None

    kind = r.choice(["fill_", "zero_", "add_", "mul_", "sub_", "neg_", "copy_", "copy_", "copy_", "add_t", "mul_t", "iadd", "imul", "set_item", "set_mask", "set_list", "masked_fill_",
                     "masked_fill_like_", "index_put_", "scatter_", "scatter_src_", "scatter_add_", "index_copy_", "index_add_", "index_fill_", "addcmul_", "clamp_", "abs_", "relu_"])
    if kind in ("fill_", "add_", "mul_", "sub_"):
        return kind, [], (number(r, x),)
    if kind in ("zero_", "neg_", "abs_", "relu_"):
        return kind, [], ()
    if kind == "clamp_":
        return kind, [], (-2, 2)
    if kind in ("set_mask", "masked_fill_"):
        return kind, [], (number(r, x),)
    if kind == "masked_fill_like_":
        i = like(x.shape)
        return None if i is None or others[i].is_complex() else (kind, [i], (number(r, x),))
    if kind in ("copy_", "add_t", "mul_t", "iadd", "imul"):
        i = like(x.shape)
        return None if i is None else (kind.replace("_t", "_"), [i], ())
    if kind == "addcmul_":
        i, j = like(x.shape), like(x.shape)
        return None if i is None else (kind, [i, j], ())
    if x.dim() == 0:
        return None
    if kind == "set_item":
        d, start, end, step = a_slice(r, x)
        key = (Ellipsis,) + (slice(start, end, step),) + (slice(None),) * (x.dim() - 1 - d)
        i = like(x[key].shape)
        return kind, [i] if i is not None else [], ((key,) if i is not None else (number(r, x), key))
    if kind == "set_list":
        ids = [r.randrange(x.shape[0]) for _ in range(2)]
        return kind, [], (number(r, x), ids)
    d, ids = rows(r, x, distinct=kind not in ("index_put_", "scatter_add_", "index_add_"))
    if kind == "index_fill_":
        return kind, [], (d, ids, number(r, x))
    if kind == "index_put_":
        ids = [i % x.shape[0] for i in ids]
        add = r.random() < 0.5
        ids = ids if add else sorted(set(ids))
        i = like([len(ids), *x.shape[1:]])
        return None if i is None else (kind, [i], (ids, add))
    same = [i for i, y in enumerate(others) if y.dtype == x.dtype and list(y.shape) == part(x, d, len(ids))]
    whole = torch.tensor(ids).reshape([-1 if k == d else 1 for k in range(x.dim())]).expand(part(x, d, len(ids))).tolist()
    if kind == "scatter_":
        return kind, [], (d, whole, number(r, x))
    if not same:
        return None
    return kind, [r.choice(same)], (d, whole if kind.startswith("scatter") else ids)


def broadcasts(shape, to):
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(to)))


def a_new(r, x, others):
    """An operator that makes new memory."""
    kind = r.choice(["clone", "plus", "times", "plus_t", "cat", "stack", "where", "zeros_like", "gather", "long", "float", "constant"])
    if kind in ("plus", "times"):
        return kind, [], (number(r, x),)
    if kind == "plus_t":
        same = [i for i, y in enumerate(others) if y.dtype == x.dtype and broadcasts(y.shape, x.shape)]
        return ("plus", [r.choice(same)], ()) if same else None
    if kind in ("cat", "gather") and x.dim() == 0 or kind in ("where", "long", "float", "constant") and x.is_complex():
        return None
    if kind == "gather":
        return kind, [], ([r.randrange(x.shape[0]) for _ in range(2)],)
    if kind == "constant":
        return kind, [], (x.tolist(),) if x.dtype == i64 else ((x * 0 + 0.5).tolist(),)
    return kind, [], ()


class Program(nn.Module):
    """Runs steps: (name, target, operands, arguments, what it is). A view or new tensor is appended, a tuple of them all."""

    def __init__(self, steps, outputs, state, apart=False):
        super().__init__()
        self.steps, self.outputs, self.apart = steps, outputs, apart
        self.register_buffer("saved", state[0])
        self.register_buffer("scratch", state[1], persistent=False)
        self.constant = state[2]  # lifted
        self.alias = self.scratch if len(state) == 3 else state[3]  # lifted too: the buffer's memory under another name
        self.names = ["saved", "scratch", "constant", "alias"]

    def start(self, inputs):
        return [*inputs, self.saved, self.scratch, self.constant, self.alias]

    def forward(self, *inputs):
        env = self.start(inputs)
        for step in self.steps:
            run(env, step, self.apart)
        return tuple(env[i] for i in self.outputs)


def run(env, step, apart=False):
    """One step; apart: no operand shares memory with what is written."""
    name, target, operands, args, what = step
    f = NAMED.get(name) or getattr(torch.Tensor, name)
    got = f(env[target], *[env[i].clone() if apart else env[i] for i in operands], *args)
    if what == "write":
        return
    env.extend(got if isinstance(got, (tuple, list)) else [got])


def example(r):
    """Inputs of a call."""
    g = torch.Generator().manual_seed(r.randrange(1 << 30))
    eighths = lambda *shape: torch.randint(-16, 17, shape, generator=g) / 8
    return [eighths(3, 4), eighths(2, 3, 2), torch.randint(-3, 4, (4, 3), generator=g), torch.complex(eighths(2, 3), eighths(2, 3))]


def make(seed):
    """A program of a seed, run while it is made: what torch refuses is not taken."""
    r = random.Random(seed)
    g = torch.Generator().manual_seed(seed)
    state = [torch.randint(-16, 17, s, generator=g) / 8 for s in ((4, 6), (3, 4), (6,))]
    if r.random() < 0.3:
        state.append(torch.randint(-16, 17, (2, 2), generator=g) / 8)
    inputs = example(r)
    program = Program([], [], copy.deepcopy(state))
    env = program.start([x.clone() for x in inputs])
    fixed = {memory(x) for x in env[len(inputs) + 2:]} - {memory(program.scratch)}  # a constant is not written to
    start, steps = len(env), []
    length = r.randint(5, 14)
    for _ in range(200):
        if len(steps) == length:
            break
        at = r.randrange(len(env)) if r.random() < 0.5 else r.randrange(max(0, len(env) - 4), len(env))
        x = env[at]
        if x.numel() == 0 or x.numel() > MAX_ELEMENTS or x.dtype not in (f32, i64, c64):
            continue
        what = r.choices(["view", "write", "new"], [5, 4, 1])[0]
        try:
            if what == "write" and memory(x) in fixed:
                continue
            if what == "view":
                name = r.choice(list(VIEWS))
                if name.endswith("_") and any(x is y for y in env[:start]):
                    continue  # the caller's
                args = VIEWS[name](r, x)
                step = None if args is None else (name, at, [], tuple(args), what)
            else:
                got = (a_write if what == "write" else a_new)(r, x, env)
                step = None if got is None else (got[0], at, got[1], got[2], what)
            if step is not None:
                before = x.clone() if what == "write" else None
                run(env, step)
                if before is None or not same(x, before):
                    steps.append(step)
        except (RuntimeError, IndexError, TypeError):  # torch's refusal
            continue
    used = [i for i, x in enumerate(env) if x.numel() <= MAX_ELEMENTS]
    made = [i for i in used if i >= start]
    outputs = sorted(set(r.sample(made, min(len(made), 4)) + r.sample(range(start), 2)))
    return steps, outputs, state, [inputs, example(r)]


def memory(x):
    return x.untyped_storage().data_ptr()


def call(program, inputs):
    with torch.no_grad():
        return [x.clone() for x in program(*inputs)]


def named(program, inputs):
    return {n: getattr(program, n) for n in program.names} | {f"input_{i}": x for i, x in enumerate(inputs)}


def written(program, inputs):
    """The names of what a call of a copy of the program writes to."""
    program, inputs = copy.deepcopy(program), [x.clone() for x in inputs]
    env, out = program.start(inputs), set()
    with torch.no_grad():
        for step in program.steps:
            if step[4] == "write":
                out.add(memory(env[step[1]]))
            run(env, step)
    return {n for n, x in named(program, inputs).items() if memory(x) in out}


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(torch.nan_to_num(a, 1e30), torch.nan_to_num(b, 1e30)) if a.dtype != c64 else same(torch.view_as_real(a), torch.view_as_real(b))


def dense(x):
    return x.detach().clone(memory_format=torch.contiguous_format).resolve_conj().resolve_neg()


def differs(program, inputs, want):
    """Whether a program that torch made gives other outputs or leaves other inputs."""
    inputs = [x.clone() for x in inputs]
    return any(not same(a, b) for a, b in zip(call(program, inputs) + inputs, want, strict=True))


def archive(program):
    for n in program.graph.nodes:  # no path of the machine, and shorter
        for key in ("stack_trace", "nn_module_stack", "torch_fn", "source_fn_stack", "from_node"):
            n.meta.pop(key, None)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return buffer.getvalue()


def case(seed):
    """The files of a program by name, or the reason why torch cannot make it."""
    steps, outputs, state, calls = make(seed)
    if not any(s[4] == "write" for s in steps):
        raise ValueError("nothing is written")
    eager = Program(steps, outputs, copy.deepcopy(state))
    exported = torch.export.export(Program(steps, outputs, copy.deepcopy(state)), tuple(x.clone() for x in calls[0]), strict=False)
    for name, want in zip(("saved", "scratch"), state):
        if not same({**exported.constants, **exported.state_dict}[name], want):
            raise ValueError("the export writes to the module")
    again, parts = exported.module(), None
    files = {"model.pt2": archive(exported)}
    try:
        decomposed = exported.run_decompositions()
        parts = decomposed.module()
        files["decomposed.pt2"] = archive(decomposed)
    except Exception:  # the raw archive alone, then
        pass
    apart = Program(steps, outputs, copy.deepcopy(state), apart=True)
    for k, inputs in enumerate(calls):
        suffix = "" if k == 0 else f"_{k + 1}"
        mine = [x.clone() for x in inputs]
        tensors, touched = named(eager, mine), written(eager, mine)
        out = call(eager, mine)
        if differs(apart, inputs, out + mine) or any(not same(getattr(apart, n), getattr(eager, n)) for n in eager.names):
            raise ValueError("a write reads what it has written")
        if differs(again, inputs, out + mine):
            raise ValueError("the exported program differs from eager torch")
        if parts and differs(parts, inputs, out + mine):
            parts = files.pop("decomposed.pt2") and None
        if any(not torch.isfinite(x).all() or x.abs().max() > 1e6 for x in out + list(tensors.values()) if x.numel() and x.dtype != bool_):
            raise ValueError("numbers grow too large")
        files[f"inputs{suffix}.safetensors"] = save({f"input_{i}": dense(x) for i, x in enumerate(inputs)})
        files[f"outputs{suffix}.safetensors"] = save({f"output_{i}": dense(x) for i, x in enumerate(out)})
        after = {n: dense(t) for n, t in tensors.items() if n in touched}
        if len(state) == 3:
            after.pop("alias", None)  # known by the buffer's name
        for kind, keep in (("buffers", lambda n: n in eager.names), ("inputs", lambda n: n not in eager.names)):
            part = {n: t for n, t in after.items() if keep(n)}
            if part:
                files[f"{kind}_after{suffix}.safetensors"] = save(part)
    files["case.json"] = json.dumps({"calls": len(calls), "stateful": True, "tolerance": {"rel_to_max": 1e-6}, "steps": [str(s[:4]) for s in steps]}, indent=1).encode()
    return files


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    count, seed = [int(a) for a in sys.argv[2:]] + [180, 1][len(sys.argv) - 2:]
    made, reasons = 0, {}
    with open(sys.argv[1], "wb") as f, gzip.GzipFile("", "wb", 9, f, 0) as packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as out:
        while made < count:
            seed += 1
            try:
                files = case(seed)
            except Exception as e:  # whatever torch says of it is the reason
                reason = f"{type(e).__name__}: {(str(e).strip() or ' ').splitlines()[0][:100]}"
                reasons[reason] = reasons.get(reason, 0) + 1
                continue
            made += 1
            for name, data in files.items():
                info = tarfile.TarInfo(f"p{seed:04}/{name}")
                info.size = len(data)
                out.addfile(info, io.BytesIO(data))
    print(f"{made} programs of {made + sum(reasons.values())}; left out:")
    for reason, n in sorted(reasons.items(), key=lambda x: -x[1]):
        print(f"{n:4} {reason}")


if __name__ == "__main__":
    main()
