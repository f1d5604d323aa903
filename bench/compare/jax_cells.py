"""Users' cells in JAX: the products with x of all steps, and one step for lax.scan."""
import jax
import jax.numpy as jnp
from jax import lax
from jax.nn import sigmoid

import own_cells


def plain_gru_of_x(w, x):
    return x @ w["w_x"] + w["b_x"]


def gated(i, g, h):
    i_r, i_z, i_n = jnp.split(i, 3, axis=1)
    g_r, g_z, g_n = jnp.split(g, 3, axis=1)
    n = jnp.tanh(i_n + sigmoid(i_r + g_r) * g_n)
    return n + sigmoid(i_z + g_z) * (h - n)


def plain_gru(w, i, state):
    h = gated(i, state[0] @ w["w_h"] + w["b_h"], state[0])
    return (h,), h


def peephole_of_x(w, x):
    return x @ w["w_x"] + w["b"]


def peephole_lstm(w, i, state):
    h, c = state
    a, f, g, o = jnp.split(i + h @ w["w_h"], 4, axis=1)
    c = sigmoid(f + w["p_f"] * c) * c + sigmoid(a + w["p_i"] * c) * jnp.tanh(g)
    h = sigmoid(o + w["p_o"] * c) * jnp.tanh(c)
    return (h, c), h


def minimal_of_x(w, x):
    return x @ w["w_f"] + w["b_f"], x @ w["w_n"] + w["b_n"]


def minimal_gated(w, i, state):
    (h,) = state
    f = sigmoid(i[0] + h @ w["u_f"])
    h = h + f * (jnp.tanh(i[1] + (f * h) @ w["u_n"]) - h)
    return (h,), h


def normalised(sums, scale, shift):
    gates = sums.reshape(*sums.shape[:-1], 3, -1)
    gates = gates - jnp.mean(gates, axis=-1, keepdims=True)
    gates = gates * lax.rsqrt(jnp.mean(gates * gates, axis=-1, keepdims=True) + 1e-5)
    return gates.reshape(sums.shape) * scale + shift


def layer_norm_of_x(w, x):
    return normalised(x @ w["weight_ih"], w["scale_ih"], w["shift_ih"])


def layer_norm_gru(w, i, state):
    h = gated(i, normalised(state[0] @ w["weight_hh"], w["scale_hh"], w["shift_hh"]), state[0])
    return (h,), h


STEPS = {"plain_gru": (plain_gru_of_x, plain_gru), "peephole_lstm": (peephole_of_x, peephole_lstm),
         "minimal_gated": (minimal_of_x, minimal_gated), "layer_norm_gru": (layer_norm_of_x, layer_norm_gru)}


def layer(kind, w, x):
    """Returns the outputs of a layer: x [T, B, D] -> [T, B, H]."""
    of_x, step = STEPS[kind]
    zeros = jnp.zeros(x.shape[1:])
    first = (zeros, zeros) if kind == "peephole_lstm" else (zeros,)
    return lax.scan(lambda s, i: step(w, i, s), first, of_x(w, x))[1]


def data_of(kind, H, T, B):
    """Returns the parameters by name and x [T, B, D]."""
    parameters = jax.tree.map(jnp.asarray, own_cells.parameters(kind, H))
    return parameters, jnp.asarray(own_cells.data(H, T, B).swapaxes(0, 1))
