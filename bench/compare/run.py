#!/usr/bin/env python3
"""Our GRU and torch's in one run, in turn, on one core: a table of medians and ratios, and JSON.

    python3 bench/compare/run.py build/bench/bench/bench_gru [--out docs/benchmarks-gru.json]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

CELLS = [(mode, H, 100, B) for mode in ("forward", "train") for B in (1, 32) for H in (16, 32, 64, 128, 256)]


class Peer:
    """A program that answers each line with a number."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            return float(self.process.stdout.readline())
        except (BrokenPipeError, ValueError):
            raise SystemExit(f"{self.process.args[0]}: no answer to \"{line}\"") from None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--out")
    parser.add_argument("--pairs", type=int, default=7)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    ours = Peer([options.program, "--serve"])
    torch = Peer([sys.executable, str(pathlib.Path(__file__).with_name("torch_gru.py"))])
    version = torch.process.stdout.readline().strip()
    print(f"microseconds a sequence, medians of {options.pairs} pairs, one pinned thread; torch {version}")
    print(f"{'':8} {'H':>5} {'T':>5} {'B':>5} {'ours':>12} {'torch':>12} {'torch/ours':>11}")
    results = []
    for mode, H, T, B in CELLS:
        line = f"{mode} {H} {T} {B}"
        pairs = [(ours.ask(line), torch.ask(line)) for _ in range(options.pairs)]
        mine, theirs = (statistics.median(side) for side in zip(*pairs))
        ratio = statistics.median(t / m for m, t in pairs)
        print(f"{mode:8} {H:5} {T:5} {B:5} {mine:12.1f} {theirs:12.1f} {ratio:11.2f}", flush=True)
        results.append({"mode": mode, "H": H, "T": T, "B": B, "ours_us": mine, "torch_us": theirs, "ratio": ratio})
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps({"torch": version, "cells": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
