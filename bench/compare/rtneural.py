#!/usr/bin/env python3
"""Compares small nets with RTNeural sample by sample, and ours in blocks of 64 with its samples: nanoseconds a sample.
All programs take turns in one run on one core. Writes JSON and a table of ratios, peer / ours.

    python3 bench/compare/rtneural.py --rtneural CHECKOUT [--build build/release] [--rounds 9]
                                      [--out bench/results/rtneural.json] [--nets gru_16 ...]

The checkout (github.com/jatinchowdhury18/RTNeural) needs its submodules. Its models have their sizes as template
arguments and are built with `-O3 -march=native`, once with Eigen, once with xsimd. Nets are x [1] -> GRU or LSTM of H
units -> linear(1), and six causal convolutions of C channels and K taps, dilations 1 to 32, each with relu, then
linear(1), with random weights from a fixed seed, from one JSON file for all. The sums of all outputs have to agree
before a time is taken.
"""
import argparse
import json
import pathlib
import random

from streams import HERE, compiled, measured, report

UNITS = (8, 12, 16, 20, 24, 32, 40, 64)
CONVOLUTIONS = ((4, 3), (8, 3), (16, 3), (32, 3), (64, 3), (16, 8))


def values(scale, *shape):
    if not shape:
        return random.uniform(-scale, scale)
    return [values(scale, *shape[1:]) for _ in range(shape[0])]


def dense(inputs):
    return {"type": "dense", "activation": "", "shape": [None, None, 1],
            "weights": [values(inputs ** -0.5, inputs, 1), values(0.1, 1)]}


def recurrent(kind, H):
    gates = {"gru": 3, "lstm": 4}[kind]
    scale = H ** -0.5
    bias = values(scale, 2, 3 * H) if kind == "gru" else values(scale, 4 * H)
    layer = {"type": kind, "activation": "tanh", "shape": [None, None, H],
             "weights": [values(scale, 1, gates * H), values(scale, H, gates * H), bias]}
    return {"in_shape": [None, None, 1], "layers": [layer, dense(H)]}


def convolutions(C, K):
    layers = []
    for k in range(6):
        inputs = C if k else 1
        scale = (inputs * K) ** -0.5
        layers.append({"type": "conv1d", "activation": "relu", "shape": [None, None, C], "kernel_size": [K],
                       "dilation": [2 ** k], "weights": [values(scale, K, inputs, C), values(scale, C)]})
    return {"in_shape": [None, None, 1], "layers": [*layers, dense(C)]}


def programs(folder, a):
    checkout = pathlib.Path(a.rtneural)
    modules = checkout / "modules"
    all_of_them = {"Ferrite": pathlib.Path(a.build) / "bench" / "stream_ferrite"}
    for name in ("Eigen", "xsimd"):
        all_of_them[f"RTNeural, {name}"] = compiled(
            folder / f"rtneural_{name.lower()}", [HERE / "rtneural_peer.cpp"], "-O3", f"-DRTNEURAL_USE_{name.upper()}=1",
            "-DRTNEURAL_DEFAULT_ALIGNMENT=16", f"-I{checkout}", f"-I{modules}/Eigen", f"-I{modules}/xsimd/include",
            f"-I{modules}/json")
    return all_of_them


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rtneural", required=True)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--out", default="bench/results/rtneural.json")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--nets", nargs="*", help="only these")
    a = parser.parse_args()
    folder = pathlib.Path(a.build) / "rtneural-compare"
    folder.mkdir(exist_ok=True)
    all_of_them = programs(folder, a)
    random.seed(1)
    nets = {f"{kind}_{H}": recurrent(kind, H) for kind in ("gru", "lstm") for H in UNITS}
    nets |= {f"conv_{C}_{K}": convolutions(C, K) for C, K in CONVOLUTIONS}
    cells = []
    for name, net in nets.items():
        if a.nets and name not in a.nets:
            continue
        file = folder / (name + ".json")
        file.write_text(json.dumps(net))
        for block in (64, 1):
            cells.append({"net": name, "block": block, "nanoseconds": measured(all_of_them, file, block, a.rounds)})
    report(cells, a.out)


if __name__ == "__main__":
    main()
