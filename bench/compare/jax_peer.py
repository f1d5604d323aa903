#!/usr/bin/env python3
"""Recurrent layers as JAX users write them, jax.jit of lax.scan with the input product hoisted; also a perceptron and
users' cells; one thread."""
import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jax_cells
from peer import CLASSES, GATES, WHOLE, Absent, features, serve


def gru(w, i, h):
    g = h @ w["hh"] + w["b_hh"]
    r, z = jnp.split(jax.nn.sigmoid(i[:, : 2 * h.shape[1]] + g[:, : 2 * h.shape[1]]), 2, axis=1)
    n = jnp.tanh(i[:, 2 * h.shape[1]:] + r * g[:, 2 * h.shape[1]:])
    h = n + z * (h - n)
    return h, h


def lstm(w, i, state):
    h, c = state
    a, f, g, o = jnp.split(i + h @ w["hh"] + w["b_hh"], 4, axis=1)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(a) * jnp.tanh(g)
    h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return (h, c), h


def rnn(w, i, h):
    h = jnp.tanh(i + h @ w["hh"] + w["b_hh"])
    return h, h


STEPS = {"gru": gru, "vowels": gru, "lstm": lstm, "rnn": rnn}


def layer(kind, w, x):
    """Returns the outputs of a layer: x [T, B, D] -> [T, B, H]."""
    i = x @ w["ih"] + w["b_ih"]
    zeros = jnp.zeros((x.shape[1], w["hh"].shape[0]))
    return lax.scan(lambda s, v: STEPS[kind](w, v, s), (zeros, zeros) if kind == "lstm" else zeros, i)[1]


def adam(p, g, m, v, t, rate=1e-3, b1=0.9, b2=0.999, eps=1e-8):
    m = b1 * m + (1 - b1) * g
    v = b2 * v + (1 - b2) * g * g
    return p - rate / (1 - b1**t) * m / (jnp.sqrt(v / (1 - b2**t)) + eps), m, v


def data_of(kind, H, T, B):
    """Returns the parameters by name and x [T, B, D]."""
    random = np.random.default_rng(1)
    columns = GATES.get(kind, 1) * H
    D = features(kind, H)

    def uniform(*shape):
        return jnp.asarray(random.uniform(-1, 1, shape).astype(np.float32) / np.sqrt(H).astype(np.float32))

    w = {"ih": uniform(D, columns), "b_ih": uniform(columns), "out": uniform(H, CLASSES), "b_out": uniform(CLASSES)}
    if kind != "mlp":
        w |= {"hh": uniform(H, columns), "b_hh": uniform(columns)}
    return w, jnp.asarray(random.uniform(-1, 1, (T, B, D)).astype(np.float32))


def make(job, kind, H, T, B):
    if kind in WHOLE:
        raise Absent("recurrent nets and a perceptron only")
    own = kind in jax_cells.STEPS
    w, x = (jax_cells.data_of if own else data_of)(kind, H, T, B)
    outputs = jax_cells.layer if own else layer
    if job == "forward":
        run = jax.jit(lambda w, x: outputs(kind, w, x))
        return lambda: run(w, x).block_until_ready()

    targets = jnp.arange(B) % CLASSES

    def loss_of(w):
        if own:
            return jnp.mean(jnp.square(outputs(kind, w, x)))
        h = jax.nn.relu(x[0] @ w["ih"] + w["b_ih"]) if kind == "mlp" else outputs(kind, w, x)[-1]
        logits = h @ w["out"] + w["b_out"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), targets[:, None], axis=1))

    @jax.jit
    def step(w, m, v, t):
        loss, g = jax.value_and_grad(loss_of)(w)
        new = {k: adam(w[k], g[k], m[k], v[k], t) for k in w}
        return tuple({k: new[k][j] for k in w} for j in range(3)) + (t + 1,), loss

    state = [(w, jax.tree.map(jnp.zeros_like, w), jax.tree.map(jnp.zeros_like, w), jnp.float32(1))]

    def train():
        state[0], loss = jax.block_until_ready(step(*state[0]))
        return loss

    return train


if __name__ == "__main__":
    serve(f"jax {jax.__version__}", make, lambda y: y[-1])
