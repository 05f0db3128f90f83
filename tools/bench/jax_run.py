"""The model of model.py in JAX, run once with a persistent compilation cache in the folder. usage: jax_run.py FOLDER"""
import json
import os
import sys

folder = sys.argv[1]
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_COMPILATION_CACHE_DIR"] = os.path.join(folder, "jax-cache")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"

import jax
import jax.numpy as jnp
import numpy as np

HIDDEN, HEADS, LAYERS = 768, 12, 12


def load(path):
    """Reads a safetensors file of f32 and i64 tensors, mapped."""
    raw = np.memmap(path, dtype=np.uint8, mode="r")
    n = int(raw[:8].view(np.uint64)[0])
    out = {}
    for name, t in json.loads(bytes(raw[8 : 8 + n])).items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            out[name] = raw[8 + n + begin : 8 + n + end].view({"F32": np.float32, "I64": np.int64}[t["dtype"]]).reshape(t["shape"])
    return out


def norm(x, w):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * w


def rotate(x, cos, sin):
    a, b = jnp.split(x, 2, axis=-1)
    return x * cos + jnp.concatenate((-b, a), -1) * sin


def forward(w, ids):
    x = w["embed.weight"][ids]
    b, s, _ = x.shape
    mask = jnp.tril(jnp.ones((s, s), bool))
    for i in range(LAYERS):
        p = lambda name: w[f"layers.{i}.{name}.weight"]
        h = norm(x, p("attention_norm"))
        q, k, v = ((h @ p(n).T).reshape(b, s, HEADS, HIDDEN // HEADS).transpose(0, 2, 1, 3) for n in "qkv")
        scores = rotate(q, w["cos"], w["sin"]) @ rotate(k, w["cos"], w["sin"]).swapaxes(-1, -2) / (HIDDEN // HEADS) ** 0.5
        a = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), -1) @ v
        x = x + a.transpose(0, 2, 1, 3).reshape(b, s, HIDDEN) @ p("o").T
        h = norm(x, p("mlp_norm"))
        x = x + (jax.nn.silu(h @ p("gate").T) * (h @ p("up").T)) @ p("down").T
    return norm(x, w["norm.weight"]) @ w["embed.weight"].T


weights = jax.device_put(load(os.path.join(folder, "weights.safetensors")))
ids = load(os.path.join(folder, "inputs.safetensors"))["input_0"].astype(np.int32)
logits = np.asarray(jax.jit(forward)(weights, ids))
print("mean", logits.astype(np.float64).mean(), flush=True)
