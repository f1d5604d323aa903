#!/usr/bin/env python3
"""Attention beside torch, and scans over many single numbers beside jax: all programs in one run, in turn, on one core,
twice; a figure that the second run does not confirm is not printed. Prints a table, the lost cells first; writes JSON.

    python3 bench/compare/attention.py [--build build/release] [--out bench/results/attention.json]
"""
import argparse
import json
import os
import pathlib
import sys

from linear import HERE, Program, confirmed
from where import machine, today

SIZES = [(4, 64, 32), (8, 256, 64), (8, 512, 64), (4, 2048, 32), (3, 333, 40)]  # heads, steps, numbers
CELLS = [(job, *size) for size in SIZES for job in ("dense", "causal", "dense_grad", "causal_grad")]
CELLS += [("scalars", carries, 100, 1) for carries in (1, 8, 64)]


def text(result):
    names = {"dense": "all keys", "causal": "causal", "dense_grad": "all keys, with gradients",
             "causal_grad": "causal, with gradients", "scalars": "numbers, each a carry: gradient through 100 steps"}
    lines = [f"{result['torch']}, {result['jax']}.", "", "| job | size | ours, us | theirs / ours |", "|---|---|---|---|"]
    for row in sorted(result["cells"], key=lambda row: min(filter(None, row["ratios"].values()), default=99)):
        job, (heads, steps, width) = row["job"], row["n"].split()
        size = heads if job == "scalars" else f"{heads} x {steps} x {width}"
        ratios = ", ".join(f"{name} " + (f"**{r:.2f}**" if r < 1 else f"{r:.2f}") for name, r in row["ratios"].items() if r) or "-"
        lines.append(f"| {names[job]} | {size} | {row['us']:.4g} | {ratios} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.15)
    parser.add_argument("--out", type=pathlib.Path, default="bench/results/attention.json")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    programs = {"ours": Program(pathlib.Path(options.build).resolve() / "bench" / "bench_attention")}
    for name in ("torch", "jax"):
        programs[name] = Program(sys.executable, HERE / "attention_peers.py", name)
    cells = []
    for job, *size in CELLS:
        peer = "jax" if job == "scalars" else "torch"
        cells.append(confirmed(programs, job, " ".join(map(str, size)), {peer: (peer, job)}, options))
        print(cells[-1], file=sys.stderr, flush=True)
    result = {"machine": machine(), "date": today(), "torch": programs["torch"].version, "jax": programs["jax"].version,
              "cells": cells}
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(text(result))


if __name__ == "__main__":
    main()
