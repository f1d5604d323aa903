"""Measures a GRU of ferrite beside PyTorch's eager mode, torch.compile and jax.jit: forward, and with the gradient.

    python bench/python/peers.py [--seconds S]

All sides run in turns in one process; a figure is the lower quartile, in microseconds. Input size = hidden size.
"""

import argparse
import importlib.metadata
import time

import jax
import jax.numpy as jnp
import numpy as np
import torch

import ferrite
import ferrite.torch
from ferrite import nn

CELLS = [(16, 100, 1), (64, 100, 1), (128, 50, 32)]


def jax_gru(w_ih, w_hh, b_ih, b_hh, x):
    """A GRU in PyTorch's form, scanned over time: x [T, B, D] -> [T, B, H]."""

    def step(h, i):
        g = h @ w_hh + b_hh
        ir, iz, i_n = jnp.split(i, 3, -1)
        hr, hz, hn = jnp.split(g, 3, -1)
        r, z = jax.nn.sigmoid(ir + hr), jax.nn.sigmoid(iz + hz)
        n = jnp.tanh(i_n + r * hn)
        h = n + z * (h - n)
        return h, h

    return jax.lax.scan(step, jnp.zeros((x.shape[1], w_hh.shape[0]), x.dtype), x @ w_ih + b_ih)[1]


def sides(H, T, B):
    """Returns the functions to time: {name: (forward, forward and gradient)}."""
    x = np.random.default_rng(0).standard_normal((T, B, H)).astype("float32")
    t, d = torch.from_numpy(x), torch.ones(T, B, H)
    eager, ours = torch.nn.GRU(H, H), ferrite.torch.GRU(H, H)
    ours.load_state_dict(eager.state_dict())
    compiled = torch.compile(eager)

    def run(m):
        with torch.no_grad():
            return m(t)[0]

    def train(m):
        torch.autograd.backward(m(t)[0], d)
        for p in m.parameters():
            p.grad = None

    weights = [jnp.asarray(p.detach().numpy().T if p.ndim == 2 else p.detach().numpy()) for p in eager.parameters()]
    jx = jnp.asarray(x)
    forward = jax.jit(lambda *w: jax_gru(*w, jx))
    gradient = jax.jit(jax.grad(lambda *w: jax_gru(*w, jx).sum(), argnums=(0, 1, 2, 3)))
    net = nn.GRU(H, H, batch_first=False)
    for p, w in zip(net.parameters(), weights):
        p.assign(np.asarray(w))
    fx = ferrite.tensor(x)
    native = ferrite.compile(lambda v: net(v))
    step = ferrite.value_and_grad(lambda: net(fx).sum(), net.parameters())
    expected = run(eager).numpy()
    for y in (run(ours).numpy(), np.asarray(forward(*weights)), np.asarray(native(fx))):
        np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-4)
    return {
        "PyTorch": (lambda: run(eager), lambda: train(eager)),
        "torch.compile": (lambda: run(compiled), lambda: train(compiled)),
        "jax.jit": (lambda: forward(*weights).block_until_ready(), lambda: jax.block_until_ready(gradient(*weights))),
        "ferrite.torch": (lambda: run(ours), lambda: train(ours)),
        "ferrite": (lambda: native(fx), lambda: step()),
    }


def quartiles(functions, seconds):
    for f in functions:
        f(), f()
    times = [[] for _ in functions]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for k, f in enumerate(functions):
            start = time.perf_counter()
            f()
            times[k].append(time.perf_counter() - start)
    return [sorted(t)[len(t) // 4] * 1e6 for t in times]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=4)
    seconds = parser.parse_args().seconds
    ferrite.set_threads(torch.get_num_threads())
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("torch", "jax"))
    print(f"{versions}; {torch.get_num_threads()} threads; microseconds")
    for cell in CELLS:
        found = sides(*cell)
        for k, what in enumerate(("forward", "forward + gradient")):
            times = quartiles([f[k] for f in found.values()], seconds)
            row = ", ".join(f"{name} {t:.0f}" for name, t in zip(found, times))
            print(f"{'/'.join(map(str, cell)):<11}{what}: {row}", flush=True)


if __name__ == "__main__":
    main()
