#!/usr/bin/env python3
"""Our GRU, fused and unrolled, and torch's in one run, in turn, on one core: a table of medians and ratios, and JSON.

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
CELLS += [("train", 32, 10, 1), ("train", 32, 10, 32)]


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
    print(f"microseconds a sequence, medians of {options.pairs} rounds, one pinned thread; torch {version}\n")
    print("| | H | T | B | fused | unrolled | torch | torch / fused | torch / unrolled |\n|---|---|---|---|---|---|---|---|---|")
    results = []
    for mode, H, T, B in CELLS:
        sizes = f"{H} {T} {B}"
        rounds = [(ours.ask(f"{mode} {sizes}"), ours.ask(f"unrolled_{mode} {sizes}"), torch.ask(f"{mode} {sizes}"))
                  for _ in range(options.pairs)]
        fused, unrolled, theirs = (statistics.median(side) for side in zip(*rounds))
        ratio = statistics.median(t / f for f, _, t in rounds)
        ratio_unrolled = statistics.median(t / u for _, u, t in rounds)
        what = "forward" if mode == "forward" else "with gradients"
        print(f"| {what} | {H} | {T} | {B} | {fused:.0f} | {unrolled:.0f} | {theirs:.0f} | {ratio:.2f} | {ratio_unrolled:.2f} |",
              flush=True)
        results.append({"mode": mode, "H": H, "T": T, "B": B, "fused_us": fused, "unrolled_us": unrolled,
                        "torch_us": theirs, "torch_over_fused": ratio, "torch_over_unrolled": ratio_unrolled})
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps({"torch": version, "cells": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
