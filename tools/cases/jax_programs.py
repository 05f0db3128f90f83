"""JAX programs with what surrounds computations in real ones: devices, donations, keys, recomputation, operations by the names of compilers.

xla_export.py writes them out. Each is a name, a function, its arguments and options of jax.jit, as in jax_defs.py.
"""

import jax

jax.config.update("jax_num_cpu_devices", 4)  # before JAX makes an array

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax_defs import BF16, CASES, EDGES, F32, I32, add, ids, rand  # noqa: E402


def programs():
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    on = lambda *axes: jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))  # noqa: E731

    def sharded(w, x):
        return jax.nn.relu(lax.with_sharding_constraint(x @ w, on("x", "y"))).sum(0)

    add("program_sharded", sharded, rand(6, 8), rand(4, 6), in_shardings=(on(None, "y"), on("x", None)), out_shardings=on())
    add("program_sharded_donated", lambda s, x: (s + x, s * x), rand(4, 6), rand(4, 6), in_shardings=(on("x"), on("x")), donate_argnums=(0,))
    add("program_donated_in_vain", lambda s, x: s.sum() + x, rand(4, 6), rand(4, 6), donate_argnums=(0,))
    add("program_sharded_scan", lambda w, x: lax.scan(lambda h, m: (jnp.tanh(lax.with_sharding_constraint(h @ m, on("x"))), h.sum()), x, w), rand(3, 6, 6), rand(4, 6),
        in_shardings=(on(), on("x")))
    add("program_composite", lambda x: lax.composite(lambda y, *, k: jnp.sin(y) * k, "sample.scaled")(x, k=np.float32(2.0)), rand(3, 4))

    def tagged(x):
        from jax.experimental.xla_metadata import set_xla_metadata
        with set_xla_metadata(note="1"):
            return jnp.sin(x)

    add("program_metadata", tagged, rand(3, 4))
    add("program_remat_scan", jax.grad(lambda w, x: lax.scan(jax.checkpoint(lambda h, m: (jnp.tanh(h @ m), None)), x, w)[0].sum()), rand(3, 4, 4), rand(2, 4))
    add("program_switch_in_loop", lambda x: lax.while_loop(lambda s: lax.cond(s[0] > 4, lambda: False, lambda: True),
                                                           lambda s: (s[0] + 1, lax.switch(s[0] % 3, [jnp.sin, jnp.cos, jnp.tanh], s[1])), (0, x)), rand(3, 4))
    add("program_scan_in_scan", lambda x: lax.scan(lambda c, v: (lax.scan(lambda d, u: (d * 0.5 + u, d), c, v.reshape(3, 2))[0], c), jnp.zeros(2), x), rand(4, 6))
    for impl in ["threefry2x32", "rbg", "unsafe_rbg"]:
        key = np.arange(1, 3 if impl == "threefry2x32" else 5, dtype=np.uint32)
        add(f"program_key_{impl}", lambda k, impl=impl: jax.random.normal(jax.random.fold_in(jax.random.split(jax.random.wrap_key_data(k, impl=impl))[1], 3), (5,)), key)
    add("program_special", lambda x: (jax.scipy.special.i0(x), jax.scipy.special.i1e(x), jax.scipy.special.erfinv(x / 5), jax.scipy.special.ndtri(x / 5), jax.scipy.special.gammainc(x, x + 1)),
        rand(3, 4, lo=0.1))
    add("program_special_slow", lambda x: (jax.scipy.special.polygamma(1, x), jax.scipy.special.zeta(x + 1, x), jax.scipy.special.betainc(x, x + 1, x / 5)), rand(4, lo=0.5))
    add("program_fft_3d", lambda x: jnp.abs(jnp.fft.fftn(x)) ** 2, rand(2, 3, 4))
    add("program_sort_total", lambda x: lax.sort(lax.bitcast_convert_type(x, I32)), EDGES)
    add("program_approx_top_k", lambda x: (lax.approx_max_k(x, 2), lax.approx_min_k(x, 3, reduction_dimension=0)), rand(4, 6))
    for name, f, args in [("eigh", lambda a: jnp.linalg.eigh(a + a.T)[0], (rand(3, 3),)), ("qr", lambda a: jnp.matmul(*jnp.linalg.qr(a)), (rand(4, 3),)),
                          ("svd", lambda a: jnp.linalg.svd(a, compute_uv=False), (rand(4, 3),)),
                          ("ragged_dot", lambda x, w, g: lax.ragged_dot(x, w, g, preferred_element_type=F32), (rand(6, 4, dtype=BF16), rand(3, 4, 5, dtype=BF16), ids(2, 0, 3))),
                          ("ragged_dot_transposed", lambda x, w, g: lax.ragged_dot_general(x, w, g, lax.RaggedDotDimensionNumbers((((1,), (2,)), ((), ())), [0], [0])),
                           (rand(6, 4), rand(3, 5, 4), ids(2, 1, 3)))]:
        add(f"program_{name}", f, *args, platform="tpu")


def build():
    programs()
    return CASES
