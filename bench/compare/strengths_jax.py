#!/usr/bin/env python3
"""JAX's answers to strengths.py: lax.scan, all in one jit."""
import time

import jax
import jax.numpy as jnp
import numpy as np

from peer import Absent, microseconds
from strengths import LAYERS, lengths, resets, serve


def weights(H, layers=None):
    shape = (lambda *s: s) if layers is None else (lambda *s: (layers, *s))
    r = np.random.default_rng(1)
    draw = lambda *s: jnp.asarray((r.uniform(-1, 1, shape(*s)) / np.sqrt(H)).astype(np.float32))
    return {"w": draw(H, 3 * H), "u": draw(H, 3 * H), "b": draw(3 * H), "c": draw(3 * H)}


def gru(p, x, inside=None, fresh=None):
    """Returns the outputs of a GRU: x [B, T, D] -> [B, T, H]; masks inside, fresh [B, T]."""
    i = jnp.swapaxes(x @ p["w"] + p["b"], 0, 1)
    B, H = x.shape[0], p["u"].shape[0]
    xs = [i] + [m.T[..., None] for m in (inside, fresh) if m is not None]

    def step(h, s):
        before = jnp.where(s[-1], 0, h) if fresh is not None else h
        g = before @ p["u"] + p["c"]
        r = jax.nn.sigmoid(s[0][:, :H] + g[:, :H])
        z = jax.nn.sigmoid(s[0][:, H : 2 * H] + g[:, H : 2 * H])
        n = jnp.tanh(s[0][:, 2 * H :] + r * g[:, 2 * H :])
        after = n + z * (before - n)
        if inside is not None:
            return jnp.where(s[1], after, before), jnp.where(s[1], after, 0)
        return after, after

    return jnp.swapaxes(jax.lax.scan(step, jnp.zeros((B, H), x.dtype), tuple(xs))[1], 0, 1)


def layer_norm_gru(p, x):
    def norm(v, scale, shift):
        parts = v.reshape(*v.shape[:-1], 3, -1)
        parts = (parts - parts.mean(-1, keepdims=True)) / jnp.sqrt(parts.var(-1, keepdims=True) + 1e-5)
        return parts.reshape(v.shape) * scale + shift

    i = jnp.swapaxes(norm(x @ p["w"], p["b"] + 1, p["c"]), 0, 1)
    H = p["u"].shape[0]

    def step(h, s):
        g = norm(h @ p["u"], p["b"] + 1, p["c"])
        r, z = jax.nn.sigmoid(s[:, :H] + g[:, :H]), jax.nn.sigmoid(s[:, H : 2 * H] + g[:, H : 2 * H])
        n = jnp.tanh(s[:, 2 * H :] + r * g[:, 2 * H :])
        after = n + z * (h - n)
        return after, after

    return jax.lax.scan(step, jnp.zeros((x.shape[0], H), x.dtype), i)[1]


def adam_step(loss):
    def step(p, m, v, t):
        g = jax.grad(loss)(p)
        m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
        v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
        rate = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        return jax.tree.map(lambda a, b, c: a - rate * b / (jnp.sqrt(c) + 1e-8), p, m, v), m, v, t + 1

    return step


def answer(job, H, T, B, seconds):
    x = jnp.asarray(np.random.default_rng(2).uniform(-1, 1, (B, T, H)).astype(np.float32))
    p = weights(H)
    zeros = jax.tree.map(jnp.zeros_like, p)
    if job == "first":
        jax.clear_caches()
        start = time.perf_counter()
        step = jax.jit(adam_step(lambda q: jnp.mean(layer_norm_gru(q, x) ** 2)))
        jax.block_until_ready(step(p, zeros, zeros, 1.0))
        return 1e6 * (time.perf_counter() - start)
    if job == "bits":
        f = jax.jit(gru)
        whole = np.asarray(f(p, x))
        return float(max(np.abs(np.asarray(f(p, x[b : b + 1])) - whole[b : b + 1]).max() for b in range(B)))
    if job == "many_streams":
        raise Absent("not asked")
    if job == "many":
        f = jax.jit(jax.vmap(gru, in_axes=(0, None)))
        many = weights(H, LAYERS)
        return microseconds(lambda: f(many, x).block_until_ready(), seconds)
    inside = jnp.asarray(np.arange(T)[None] < np.asarray(lengths(T, B))[:, None]) if job.startswith("lengths") else None
    fresh = jnp.asarray(np.asarray(resets(T, B)) != 0) if job.startswith("resets") else None
    if not job.endswith("_train"):
        f = jax.jit(lambda q, v: gru(q, v, inside, fresh))
        return microseconds(lambda: f(p, x).block_until_ready(), seconds)
    step = jax.jit(adam_step(lambda q: jnp.mean(gru(q, x, inside, fresh) ** 2)), donate_argnums=(0, 1, 2))
    state = [p, zeros, jax.tree.map(jnp.zeros_like, p), 1.0]

    def train():
        state[:] = step(*state)
        jax.block_until_ready(state[0])

    return microseconds(train, seconds)


if __name__ == "__main__":
    serve(f"jax {jax.__version__}", answer)
