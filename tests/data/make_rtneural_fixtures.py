#!/usr/bin/env python3
"""Writes rtneural/*.json, nets in RTNeural's form, and rtneural/expected.safetensors: what they make of an input.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_rtneural_fixtures.py [FOLDER]

conv.json is computed by torch.nn.functional in f64. The recurrent nets run sample by sample in numpy, with the delay
lines of RTNeural's sample-rate correction as its header describes them (RTNeural/gru/gru.h, lstm/lstm.h: a write index,
two multipliers, and a shift by one at every step).
"""
import json
import math
import pathlib
import sys

import numpy as np
import torch
from safetensors.numpy import save_file

RATIOS = {"1": 1.0, "2": 2.0, "48": 48000 / 44100, "96": 96000 / 44100, "3": 3.0}


class Weights:
    def __init__(self):
        self.rng = np.random.default_rng(3)

    def take(self, *shape, scale=0.5):
        return (self.rng.normal(size=shape) * scale).astype(np.float32)


def conv_net(w, x):
    """dense, conv1d, batchnorm, prelu, conv1d of two groups, batchnorm, elu, dense."""
    def entry(kind, size, weights, activation="", **more):
        layers.append({"type": kind, "activation": activation, "shape": [None, None, size], **more,
                       "weights": [a.tolist() for a in weights]})

    def conv(h, kernel, bias, dilation, groups):
        past = (kernel.shape[0] - 1) * dilation
        padded = torch.nn.functional.pad(h.T[None], (past, 0))
        return torch.nn.functional.conv1d(padded, torch.tensor(kernel).double().permute(2, 1, 0), torch.tensor(bias).double(),
                                          dilation=dilation, groups=groups)[0].T

    def norm(h, mean, var, eps, gamma=None, beta=None):
        tensors = [None if a is None else torch.tensor(a).double() for a in (mean, var, gamma, beta)]
        return torch.nn.functional.batch_norm(h, *tensors, eps=eps)

    layers, h = [], torch.tensor(x).double()
    k, b = w.take(1, 6), w.take(6)
    entry("dense", 6, (k, b), "tanh")
    h = torch.tanh(h @ torch.tensor(k).double() + torch.tensor(b).double())
    k, b = w.take(3, 6, 4), w.take(4)
    entry("conv1d", 4, (k, b), "sigmoid", kernel_size=[3], dilation=[2], groups=1)
    h = torch.sigmoid(conv(h, k, b, 2, 1))
    bn = w.take(4), w.take(4), w.take(4), np.abs(w.take(4)) + np.float32(0.1)
    entry("batchnorm", 4, bn, epsilon=0.01)
    h = norm(h, bn[2], bn[3], 0.01, bn[0], bn[1])
    alpha = w.take(1, 4)
    entry("prelu", 4, (alpha,))
    h = torch.nn.functional.prelu(h, torch.tensor(alpha[0]).double())
    k, b = w.take(5, 2, 6), w.take(6)
    entry("conv1d", 6, (k, b), "elu", kernel_size=[5], dilation=[1], groups=2)
    h = torch.nn.functional.elu(conv(h, k, b, 1, 2))
    bn = w.take(6), np.abs(w.take(6)) + np.float32(0.1)
    entry("batchnorm", 6, bn, epsilon=5.0)
    h = norm(h, *bn, 5.0)
    alpha = w.take(1, 1)
    entry("prelu", 6, (alpha,))
    h = torch.nn.functional.prelu(h, torch.tensor(alpha[0]).double())
    entry("activation", 6, (), "elu")
    h = torch.nn.functional.elu(h)
    k, b = w.take(6, 1), w.take(1)
    entry("dense", 1, (k, b))
    return layers, (h @ torch.tensor(k).double() + torch.tensor(b).double()).numpy()


class Delay:
    """What RTNeural does with the states of one layer: LinInterp."""

    def __init__(self, samples, size):
        off = samples - math.floor(samples)
        self.mult, self.plus1 = 1 - off, off
        self.write = math.ceil(samples) - math.ceil(off)
        self.lines = np.zeros((self.write + 1, size))

    def __call__(self, new):
        self.lines[self.write] = new
        out = self.plus1 * self.lines[0] + self.mult * self.lines[1]
        self.lines[:-1] = self.lines[1:].copy()
        return out


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def gru(x, W, U, B, ratio):
    H = len(U)
    h, delay, y = np.zeros(H), Delay(ratio, H), []
    for row in x:
        a, b = row @ W + B[0], h @ U + B[1]
        z, r = sigmoid(a[:H] + b[:H]), sigmoid(a[H:2 * H] + b[H:2 * H])
        new = (1 - z) * np.tanh(a[2 * H:] + r * b[2 * H:]) + z * h
        h = delay(new)
        y.append(h)
    return np.array(y)


def lstm(x, W, U, B, ratio):
    H = len(U)
    h, c, delay_h, delay_c, y = np.zeros(H), np.zeros(H), Delay(ratio, H), Delay(ratio, H), []
    for row in x:
        i, f, g, o = np.split(row @ W + h @ U + B, 4)
        new = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h, c = delay_h(sigmoid(o) * np.tanh(new)), delay_c(new)
        y.append(h)
    return np.array(y)


def main():
    folder = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent) / "rtneural"
    folder.mkdir(exist_ok=True)
    w = Weights()
    x = w.rng.uniform(-1, 1, (60, 1)).astype(np.float32)
    nets, expected = {}, {"x": x}
    nets["conv"], y = conv_net(w, x)
    expected["conv"] = y.astype(np.float32)
    for kind, gates, bias, run in (("gru", 3, (2, 12), gru), ("lstm", 4, (16,), lstm)):
        W, U, B, K, b = w.take(1, gates * 4), w.take(4, gates * 4), w.take(*bias), w.take(4, 1), w.take(1)
        nets[kind] = [{"type": kind, "activation": "tanh", "shape": [None, None, 4], "weights": [W.tolist(), U.tolist(), B.tolist()]},
                      {"type": "dense", "activation": "", "shape": [None, None, 1], "weights": [K.tolist(), b.tolist()]}]
        for name, ratio in RATIOS.items():
            h = run(x.astype(float), *(a.astype(float) for a in (W, U, B)), ratio)
            expected[f"{kind}.{name}"] = (h @ K.astype(float) + b).astype(np.float32)
    for name, layers in nets.items():
        (folder / f"{name}.json").write_text(json.dumps({"in_shape": [None, None, 1], "layers": layers}) + "\n")
    save_file(expected, folder / "expected.safetensors")


if __name__ == "__main__":
    main()
