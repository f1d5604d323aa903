#!/usr/bin/env python3
"""Compares streams of `.nam` nets with NeuralAmpModelerCore and NeuralAudio: nanoseconds a sample, in blocks of 64 and
one by one. All programs take turns in one run on one core. Writes JSON and a table of ratios, peer / ours.

    python3 bench/compare/nam.py --nam-core CHECKOUT [--neural-audio CHECKOUT] [--build build/release]
                                 [--out bench/results/nam.json] [--rounds 9]

The checkouts need their submodules (github.com/sdatkinson/NeuralAmpModelerCore, github.com/mikeoliphant/NeuralAudio).
Both are built with `-Ofast -march=native`, as NAM Core builds its tools, with their special code for WaveNets of the A2
kind switched on; NeuralAudio uses the tanh of Eigen, the fastest of its exact ones. The nets have random weights from a
fixed seed. The sums of all outputs have to agree before a time is taken.
"""
import argparse
import json
import pathlib
import random

from streams import HERE, compiled, measured, report

A2_KERNELS = [6] * 14 + [15, 15] + [6] * 7
A2_DILATIONS = [1, 3, 7, 17, 41, 101, 239] * 2 + [1, 13] + [1, 3, 7, 17, 41, 101, 239]
STANDARD = [2 ** k for k in range(10)]
LITE, LITE_2 = STANDARD[:7], STANDARD[7:] + STANDARD


def weights(count, scale):
    return [random.gauss(0, scale) for _ in range(count)]


def lstm(layers, hidden):
    count = sum(4 * hidden * ((1 if k == 0 else hidden) + hidden) + 6 * hidden for k in range(layers)) + hidden + 1
    return {"architecture": "LSTM", "config": {"input_size": 1, "hidden_size": hidden, "num_layers": layers},
            "weights": weights(count, 0.3)}


def array(input_size, channels, head_size, head_bias, dilations):
    count = channels * input_size + len(dilations) * (3 * channels ** 2 + 2 * channels + channels ** 2 + channels)
    count += channels * head_size + (head_size if head_bias else 0)
    return {"input_size": input_size, "condition_size": 1, "head_size": head_size, "channels": channels, "kernel_size": 3,
            "dilations": dilations, "activation": "Tanh", "gated": False, "head_bias": head_bias}, count


def a1(channels, first, second):
    arrays = [array(1, channels, channels // 2, False, first), array(channels, channels // 2, 1, True, second)]
    return {"architecture": "WaveNet", "config": {"layers": [a for a, _ in arrays], "head": None, "head_scale": 0.02},
            "weights": weights(sum(n for _, n in arrays), 0.2) + [0.02]}


def a2(channels):
    off = {"active": False, "shift": True, "groups": 1}
    n = len(A2_KERNELS)
    layer = {"input_size": 1, "condition_size": 1, "head": {"out_channels": 1, "kernel_size": 16, "bias": True},
             "channels": channels, "kernel_sizes": A2_KERNELS, "dilations": A2_DILATIONS,
             "activation": [{"type": "LeakyReLU", "negative_slope": 0.01}] * n, "bottleneck": channels,
             "head1x1": {"active": False, "out_channels": 1, "groups": 1}, "layer1x1": {"active": True, "groups": 1},
             "groups_input": 1, "groups_input_mixin": 1, "gating_mode": ["none"] * n, "secondary_activation": [None] * n,
             "slimmable": None}
    layer |= {f"{name}_film": off for name in ("conv_pre", "conv_post", "input_mixin_pre", "input_mixin_post",
                                               "activation_pre", "activation_post", "layer1x1_post", "head1x1_post")}
    count = channels + sum(channels ** 2 * k + 2 * channels + channels ** 2 + channels for k in A2_KERNELS) + 16 * channels + 1
    return {"architecture": "WaveNet", "config": {"layers": [layer], "head": None, "head_scale": 0.01},
            "weights": weights(count, 0.1) + [0.01]}


NETS = {"LSTM 1x16": lambda: lstm(1, 16), "LSTM 2x8": lambda: lstm(2, 8), "LSTM 2x16": lambda: lstm(2, 16),
        "A1 nano": lambda: a1(4, LITE, LITE_2), "A1 feather": lambda: a1(8, LITE, LITE_2),
        "A1 lite": lambda: a1(12, LITE, LITE_2), "A1 standard": lambda: a1(16, STANDARD, STANDARD),
        "A2 lite": lambda: a2(3), "A2 full": lambda: a2(8)}


def programs(folder, a):
    build = pathlib.Path(a.build)
    all_of_them = {"Ferrite": build / "bench" / "stream_ferrite"}
    core = pathlib.Path(a.nam_core)
    sources = [HERE / "nam_core_peer.cpp", *sorted((core / "NAM").rglob("*.cpp"))]
    eigen = core / "Dependencies" / "eigen"
    include = eigen if (eigen / "Eigen").exists() else pathlib.Path("/usr/include/eigen3")
    all_of_them["NAM Core"] = compiled(folder / "nam_core", sources, "-Ofast", f"-I{core}", f"-I{core}/Dependencies/nlohmann", f"-I{core}/Dependencies",
                                       f"-I{include}", "-DNAM_SAMPLE_FLOAT", "-DNAM_ENABLE_A2_FAST")
    if a.neural_audio:
        na = pathlib.Path(a.neural_audio)
        deps = na / "deps"
        all_of_them["NeuralAudio"] = compiled(
            folder / "neural_audio", [HERE / "neural_audio_peer.cpp", na / "NeuralAudio" / "NeuralModel.cpp"], "-Ofast", f"-I{na}",
            f"-I{deps}/RTNeural", f"-I{deps}/math_approx/include", f"-I{deps}/RTNeural/modules/Eigen",
            f"-I{deps}/RTNeural/modules/json", "-DDSP_SAMPLE_FLOAT", "-DBUILD_INTERNAL_STATIC_WAVENET",
            "-DBUILD_STATIC_INTERNAL_NAMA2", "-DBUILD_INTERNAL_STATIC_LSTM", "-DWAVENET_MAX_NUM_FRAMES=64",
            "-DLAYER_ARRAY_BUFFER_PADDING=24", "-DRTNEURAL_USE_EIGEN=1", "-DRTNEURAL_DEFAULT_ALIGNMENT=16",
            "-DRTNEURAL_NAMESPACE=RTNeural", "-DLSTM_MATH=EigenMath", "-DWAVENET_MATH=EigenMath")
    return all_of_them


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nam-core", required=True)
    parser.add_argument("--neural-audio")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--out", default="bench/results/nam.json")
    parser.add_argument("--rounds", type=int, default=9)
    a = parser.parse_args()
    folder = pathlib.Path(a.build) / "nam-compare"
    folder.mkdir(exist_ok=True)
    all_of_them = programs(folder, a)
    random.seed(1)
    cells = []
    for name, make in NETS.items():
        net = folder / (name.replace(" ", "_") + ".nam")
        net.write_text(json.dumps({"version": "0.7.0" if name.startswith("A2") else "0.5.4", "metadata": {}, "sample_rate": 48000} | make()))
        for block in (64, 1):
            cells.append({"net": name, "block": block, "nanoseconds": measured(all_of_them, net, block, a.rounds)})
    report(cells, a.out)


if __name__ == "__main__":
    main()
