#!/usr/bin/env python3
"""Compares ONNX files with ONNX Runtime, OpenVINO and tract, one thread, batch 1. The programs take turns in one run.
Prints a table, writes JSON.

    python3 bench/compare/onnx_nets.py MODELS [--build build/release] [--out bench/results/onnx.json]

MODELS is the folder that onnx_models.py wrote. Everything is measured by two runs of all programs, from new processes; a
figure that the second run does not confirm within 10 % (bench/confirm.py) is shown as "-". A step of DeepFilterNet 3 is a
call with one frame for the others, which hold no states there: what they compute is less than a stream needs.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import confirm  # noqa: E402

PEERS = ("onnxruntime", "openvino", "tract")
NETS = {
    "GRU 256, 100 steps": ("whole", "gru_256", "x=1,100,256:f32"),
    "GRU 128, 50 steps": ("whole", "gru_128", "x=1,50,128:f32"),
    "LSTM 256, 100 steps": ("whole", "lstm_256", "x=1,100,256:f32"),
    "RNN 128, 100 steps": ("whole", "rnn_128", "x=1,100,128:f32"),
    "TCN of 6 blocks, 512 samples": ("whole", "tcn", "x=1,1,512:f32"),
    "CNN, 28 x 28": ("whole", "cnn", "x=1,1,28,28:f32"),
    "DeepFilterNet 3, encoder, a frame": ("step", "enc", "feat_erb=1,1,1,32:f32", "feat_spec=1,2,1,96:f32"),
    "DeepFilterNet 3, ERB decoder, a frame": ("step", "erb_dec", "emb=1,1,512:f32", "e3=1,64,1,8:f32", "e2=1,64,1,8:f32",
                                              "e1=1,64,1,16:f32", "e0=1,64,1,32:f32"),
    "DeepFilterNet 3, DF decoder, a frame": ("step", "df_dec", "emb=1,1,512:f32", "c0=1,64,1,96:f32"),
    "Silero VAD, a frame": ("step", "silero_vad_16k_op15", "input=1,576:f32", "state=2,1,128:f32", "sr=:i64"),
}


class Program:
    def __init__(self, command):
        def pinned():
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL, preexec_fn=pinned)
        self.version = self.process.stdout.readline().strip()

    def microseconds(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure(net, options, versions, left_out):
    """Returns microseconds of a call, by program: the least of all rounds."""
    form, file, *inputs = NETS[net]
    model = str(options.models / f"{file}.onnx")
    programs = {"ours": Program([str(options.build / "bench" / "bench_onnx"), form, model, *inputs])}
    for peer in PEERS:
        program = Program([sys.executable, str(HERE / "onnx_peer.py"), peer, model, *inputs])
        if program.version.startswith(peer):
            programs[peer], versions[peer] = program, program.version
        else:
            left_out[f"{peer}, {net}"] = program.version.removeprefix("none ")[:120]
    times = {name: [] for name in programs}
    for _ in range(options.rounds):
        for name, program in programs.items():
            times[name].append(program.microseconds())
    for program in programs.values():
        program.end()
    return {name: min(all_) for name, all_ in times.items()}


def table(cells):
    lines = ["| net | Ferrite, us | " + " | ".join(PEERS) + " |", "|---" * (2 + len(PEERS)) + "|"]
    lost = []
    for net, runs in cells.items():
        row = [net, confirm.choose([f"{run['ours']:.1f}" for run in runs])]
        for peer in PEERS:
            ratios = [run[peer] / run["ours"] for run in runs if peer in run]
            row.append(confirm.choose([f"{r:.2f}" for r in ratios]) if len(ratios) == len(runs) else "-")
            if row[-1] != "-" and float(row[-1]) < 1:
                lost.append(f"{net}, to {peer} ({row[-1]})")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join([*lines, "", "Lost: " + ("; ".join(lost) if lost else "none") + "."])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", help="JSON")
    options = parser.parse_args()
    nets = [net for net, (_, file, *_) in NETS.items() if (options.models / f"{file}.onnx").exists()]
    cells, versions, left_out = {net: [] for net in nets}, {}, {}
    for _ in range(options.runs):
        for net, results in cells.items():
            results.append(measure(net, options, versions, left_out))
            print(net, {name: round(us, 1) for name, us in results[-1].items()}, file=sys.stderr, flush=True)
    lines = [f"{', '.join(versions.values())}. Times of the others over Ferrite's.", "", table(cells)]
    lines += [f"Left out: {what}: {why}." for what, why in left_out.items()]
    print("\n".join(lines))
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(
            {"versions": versions, "left_out": left_out, "cells": [{"net": net, "runs": runs} for net, runs in cells.items()]},
            indent=1) + "\n")


if __name__ == "__main__":
    main()
