#!/usr/bin/env python3
"""Writes nam/*.nam, small models for the Neural Amp Modeler, and nam/expected.safetensors: what they make of an input.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_nam_fixtures.py [FOLDER]

The models are computed here sample by sample in f64 with numpy, by the definition of the format
(github.com/sdatkinson/NeuralAmpModelerCore, docs/wavenet_walkthrough.rst and the order of weights in NAM/wavenet and
NAM/lstm.cpp): no code of the library or of the reference takes part. Convolutions see zeros before the first sample.
"""
import json
import pathlib
import sys

import numpy as np
from safetensors.numpy import save_file

ACTIVATIONS = {
    "Tanh": np.tanh,
    "Hardtanh": lambda v: np.clip(v, -1, 1),
    "ReLU": lambda v: np.maximum(v, 0),
    "LeakyReLU": lambda v: np.where(v > 0, v, np.float32(0.01) * v),
    "Sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    "SiLU": lambda v: v / (1 + np.exp(-v)),
    "Hardswish": lambda v: v * np.clip(v + 3, 0, 6) / 6,
    "Softsign": lambda v: v / (1 + np.abs(v)),
}


class Weights:
    """Hands out random weights and keeps the list of them."""

    def __init__(self, seed):
        self.rng, self.list = np.random.default_rng(seed), []

    def take(self, *shape, scale=0.4):
        values = (self.rng.normal(size=shape) * scale).astype(np.float32)
        self.list += values.ravel().tolist()
        return values.astype(np.float64)


def activation(entry):
    if isinstance(entry, str):
        return ACTIVATIONS[entry]
    if entry["type"] == "LeakyReLU":
        slope = np.float32(entry.get("negative_slope", 0.01))
        return lambda v: np.where(v > 0, v, slope * v)
    if entry["type"] == "PReLU":
        slope = np.float32(entry["negative_slope"])
        return lambda v: np.where(v > 0, v, slope * v)
    if entry["type"] == "Hardtanh":
        return lambda v: np.clip(v, np.float32(entry.get("min_val", -1)), np.float32(entry.get("max_val", 1)))
    return ACTIVATIONS[entry["type"]]


def causal(x, weight, bias, dilation, groups=1):
    """x [T, I] -> [T, O]; weight [O, I / groups, K]: the last tap is the present."""
    T, (O, I, K) = len(x), weight.shape
    y = np.zeros((T, O))
    for t in range(T):
        for o in range(O):
            g = o // (O // groups)
            for k in range(K):
                at = t - (K - 1 - k) * dilation
                if at >= 0:
                    y[t, o] += weight[o, :, k] @ x[at, g * I:(g + 1) * I]
    return y + (0 if bias is None else bias)


FILMS = ("conv_pre", "conv_post", "input_mixin_pre", "input_mixin_post", "activation_pre", "activation_post", "layer1x1_post",
         "head1x1_post")


def product(w, out, inner, groups=1, bias=True):
    """The weights of a product of every step, [out, inner / groups]; bias None without one."""
    return w.take(out, inner // groups, 1), w.take(out) if bias else None, 1, groups


def films_of(a, w, widths):
    """By name: (weights, whether it shifts); in the order of the file, behind all others of a layer."""
    films = {}
    for name in FILMS:
        film = a.get(f"{name}_film")
        if film and film.get("active", True):
            shift = film.get("shift", True)
            weights = product(w, widths[name] * (2 if shift else 1), a["condition_size"], film.get("groups", 1))
            films[name] = weights, shift
    return films


def wavenet(x, config, w):
    c = x
    if "condition_dsp" in config:
        inner = config["condition_dsp"]
        own = Weights(inner.pop("seed"))
        c = wavenet(x, inner["config"], own)
        inner["weights"] = own.list
        inner["config"]["head_scale"] = own.list[-1]
    h, skip = x, None
    for a in config["layers"]:
        C, n = a["channels"], len(a["dilations"])
        bottleneck, groups = a.get("bottleneck", C), a.get("groups_input", 1)
        kernels = a.get("kernel_sizes", [a.get("kernel_size")] * n)
        acts = a["activation"] if isinstance(a["activation"], list) else [a["activation"]] * n
        modes = a.get("gating_mode", "gated" if a.get("gated") else "none")
        modes = modes if isinstance(modes, list) else [modes] * n
        seconds = a.get("secondary_activation", "Sigmoid")
        seconds = seconds if isinstance(seconds, list) else [seconds] * n
        head1x1 = a.get("head1x1", {"active": False})
        layer1x1 = a.get("layer1x1", {"active": True})
        to_head_size = head1x1["out_channels"] if head1x1["active"] else bottleneck
        h = causal(h, *product(w, C, a["input_size"], bias=False))
        for i in range(n):
            wide = bottleneck * (1 if modes[i] == "none" else 2)
            conv = w.take(wide, C // groups, kernels[i]), w.take(wide)
            mix = product(w, wide, a["condition_size"], a.get("groups_input_mixin", 1), bias=False)
            one = product(w, C, bottleneck, layer1x1.get("groups", 1)) if layer1x1["active"] else None
            to_head = product(w, to_head_size, bottleneck, head1x1.get("groups", 1)) if head1x1["active"] else None
            films = films_of(a, w, {"conv_pre": C, "conv_post": wide, "input_mixin_pre": a["condition_size"], "input_mixin_post": wide,
                                    "activation_pre": wide, "activation_post": bottleneck, "layer1x1_post": C,
                                    "head1x1_post": to_head_size})

            def film(name, v):
                if name not in films:
                    return v
                weights, shift = films[name]
                both = causal(c, *weights)
                return v * both[:, :v.shape[1]] + (both[:, v.shape[1]:] if shift else 0)

            z = film("conv_post", causal(film("conv_pre", h), *conv, a["dilations"][i], groups))
            z = film("activation_pre", z + film("input_mixin_post", causal(film("input_mixin_pre", c), *mix)))
            v = activation(acts[i])(z[:, :bottleneck])
            if modes[i] != "none":
                gate = activation(seconds[i])(z[:, bottleneck:])
                v = v * gate + ((1 - gate) * z[:, :bottleneck] if modes[i] == "blended" else 0)
            v = film("activation_post", v)
            given = film("head1x1_post", causal(v, *to_head)) if to_head else v
            skip = given if skip is None else skip + given
            if one:
                h = h + film("layer1x1_post", causal(v, *one))
        head = a.get("head", {"out_channels": a.get("head_size"), "kernel_size": 1, "bias": a.get("head_bias")})
        weight = w.take(head["out_channels"], to_head_size, head["kernel_size"])
        bias = w.take(head["out_channels"]) if head["bias"] else None
        skip = causal(skip, weight, bias, head.get("head_dilation", 1))
    behind, last = [], config.get("head")
    if last:
        sizes = [skip.shape[1]] + [last["channels"]] * (len(last["kernel_sizes"]) - 1) + [last["out_channels"]]
        behind = [(w.take(sizes[i + 1], sizes[i], k), w.take(sizes[i + 1])) for i, k in enumerate(last["kernel_sizes"])]
    y = skip * w.take(1)
    for weights in behind:
        y = causal(activation(last["activation"])(y), *weights, 1)
    return y


def lstm(x, config, w):
    H, layers, sigmoid = config["hidden_size"], config["num_layers"], ACTIVATIONS["Sigmoid"]
    cells = []
    for k in range(layers):
        width = config["input_size"] if k == 0 else H
        cells.append([w.take(4 * H, width + H), w.take(4 * H), w.take(H), w.take(H)])
    head = w.take(config.get("out_channels", 1), H), w.take(config.get("out_channels", 1))
    y = []
    for row in x:
        for cell in cells:
            i, f, g, o = np.split(cell[0] @ np.concatenate([row, cell[2]]) + cell[1], 4)
            cell[3] = sigmoid(f) * cell[3] + sigmoid(i) * np.tanh(g)
            cell[2] = row = sigmoid(o) * np.tanh(cell[3])
        y.append(head[0] @ row + head[1])
    return np.array(y)


def model(version, architecture, config, seed, x):
    w = Weights(seed)
    y = {"WaveNet": wavenet, "LSTM": lstm}[architecture](x, config, w)
    if architecture == "WaveNet":
        config["head_scale"] = w.list[-1]
    return {"version": version, "metadata": {"name": "a \"test\"", "gain": 0.5, "date": {"year": 2024, "list": [1, 2.5, None, True]}},
            "architecture": architecture, "config": config, "weights": w.list, "sample_rate": 48000}, y


def array(input_size, channels, head_size, head_bias, dilations, **more):
    return {"input_size": input_size, "condition_size": 1, "head_size": head_size, "channels": channels, "kernel_size": 3,
            "dilations": dilations, "activation": "Tanh", "gated": False, "head_bias": head_bias} | more


def main():
    folder = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent) / "nam"
    folder.mkdir(exist_ok=True)
    x = np.random.default_rng(0).uniform(-1, 1, (100, 1)).astype(np.float32).astype(np.float64)
    off = {"active": False, "shift": True, "groups": 1}
    films = {f"{name}_film": off for name in FILMS}
    newer = array(1, 4, None, None, [1, 3, 2], **films)
    for key in ("head_size", "head_bias", "kernel_size", "gated"):
        del newer[key]
    newer |= {"kernel_sizes": [2, 5, 3], "head": {"out_channels": 3, "kernel_size": 4, "bias": True},
              "activation": [{"type": "LeakyReLU", "negative_slope": 0.2}, "SiLU", "Hardtanh"],
              "gating_mode": ["gated", "none", "gated"], "secondary_activation": ["Softsign", None, "Sigmoid"],
              "bottleneck": 6, "groups_input": 2, "groups_input_mixin": 1, "layer1x1": {"active": True, "groups": 1},
              "head1x1": {"active": True, "out_channels": 5, "groups": 1},
              "slimmable": {"method": "slice_channels_uniform", "kwargs": {"allowed_channels": [2, 4]}}}
    # As the trainer writes it since 0.13: every activation an object, Hardtanh with its bounds.
    bounds = newer | {"activation": [{"type": "Hardtanh", "min_val": -0.3, "max_val": 0.1}, {"type": "PReLU", "negative_slope": 0.3},
                                     {"type": "Hardtanh", "min_val": -1.0, "max_val": 1.0}],
                      "secondary_activation": [{"type": "Hardtanh", "min_val": 0.05, "max_val": 0.2}, None, {"type": "Sigmoid"}]}
    last = array(4, 3, 1, False, [1, 2], activation="Hardswish") | {"layer1x1": {"active": False, "groups": 1}}
    # Everything that the format has: films everywhere, of groups, with and without a shift; products of groups; blended gates.
    def film(shift, groups):
        return {"active": True, "shift": shift, "groups": groups}
    modulated = array(1, 4, 2, True, [1, 3, 2], activation="SiLU") | {
        "condition_size": 2, "bottleneck": 4, "groups_input": 2, "groups_input_mixin": 2, "layer1x1": {"active": True, "groups": 2},
        "head1x1": {"active": True, "out_channels": 6, "groups": 2}, "gating_mode": ["blended", "none", "gated"],
        "secondary_activation": ["Sigmoid", None, "Softsign"], "conv_pre_film": film(True, 1), "conv_post_film": film(False, 2),
        "input_mixin_pre_film": film(True, 2), "input_mixin_post_film": film(True, 1), "activation_pre_film": film(False, 1),
        "activation_post_film": film(True, 2), "layer1x1_post_film": film(True, 2), "head1x1_post_film": film(False, 2)}
    del modulated["gated"]
    condition = {"version": "0.7.0", "architecture": "WaveNet", "seed": 99, "sample_rate": 48000, "config": {
        "layers": [array(1, 3, 2, True, [1, 2])], "head": None, "head_scale": 0.02}}
    behind = {"channels": 3, "out_channels": 1, "kernel_sizes": [2, 1, 3], "activation": {"type": "LeakyReLU", "negative_slope": 0.1}}
    nets = {
        "lstm": ("0.5.4", "LSTM", {"input_size": 1, "hidden_size": 3, "num_layers": 2}),
        "wavenet": ("0.5.4", "WaveNet", {"layers": [array(1, 4, 2, False, [1, 2, 8]), array(4, 2, 1, True, [16])],
                                         "head": None, "head_scale": 0.02}),
        "wavenet_gated": ("0.5.4", "WaveNet", {"layers": [array(1, 3, 1, True, [1, 4], gated=True, activation="ReLU")],
                                               "head": None, "head_scale": 0.02}),
        "wavenet_newer": ("0.7.0", "WaveNet", {"layers": [newer, last], "head": None, "head_scale": 0.02}),
        "wavenet_bounds": ("0.7.0", "WaveNet", {"layers": [bounds, last], "head": None, "head_scale": 0.02}),
        "wavenet_modulated": ("0.7.0", "WaveNet", {"layers": [modulated], "head": behind, "head_scale": 0.02,
                                                   "condition_dsp": condition}),
    }
    expected, models = {"x": x.astype(np.float32)}, {}
    for seed, (name, (version, architecture, config)) in enumerate(nets.items()):
        models[name], y = model(version, architecture, config, seed + 1, x)
        expected[name] = y.astype(np.float32)
        (folder / f"{name}.nam").write_text(json.dumps(models[name]) + "\n")
    container = {"version": "0.7.0", "architecture": "SlimmableContainer", "metadata": {"name": "both"}, "config": {"submodels": [
        {"max_value": 0.5, "model": models["lstm"]}, {"max_value": 1.0, "model": models["wavenet"]}]}, "weights": [],
        "sample_rate": 48000}
    (folder / "container.nam").write_text(json.dumps(container) + "\n")
    save_file(expected, folder / "expected.safetensors")


if __name__ == "__main__":
    main()
