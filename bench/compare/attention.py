#!/usr/bin/env python3
"""Attention beside torch, and scans over many single numbers beside jax: all programs in one run, in turn, on one core,
twice; a figure that the second run does not confirm is not printed. Prints a table, the lost cells first; writes JSON.

    python3 bench/compare/attention.py [--build build/release] [--out bench/results/attention.json]
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

from peer import undisturbed_median
from run import ONE_THREAD
from where import machine, today

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import confirm  # noqa: E402

ONE_THREAD = ONE_THREAD | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}
SIZES = [(4, 64, 32), (8, 256, 64), (8, 512, 64), (4, 2048, 32), (3, 333, 40)]  # heads, steps, numbers
CELLS = [(job, *size) for size in SIZES for job in ("dense", "causal", "dense_grad", "causal_grad")]
CELLS += [("scalars", carries, 100, 1) for carries in (1, 8, 64)]


class Program:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE,
                                        env=os.environ | ONE_THREAD)
        self.version = self.process.stdout.readline().strip()

    def ask(self, cell, seconds):
        print(*cell, 0, seconds, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        return None if answer == "none" else float(answer)


def measured(programs, cell, options):
    """Our microseconds and the others' over ours, of two runs that agree; None where they do not."""
    runs = []
    for _ in range(4):
        times = {name: [] for name in programs}
        for _ in range(options.rounds):
            for name, program in programs.items():
                times[name].append(program.ask(cell, options.seconds))
        least = {name: undisturbed_median(each) for name, each in times.items() if None not in each}
        runs = [*runs[-1:], least]
        if len(runs) == 2 and all(confirm.agree(runs[0][name] / runs[0]["ours"], runs[1][name] / runs[1]["ours"]) for name in least):
            break
    ratios = {name: sum(run[name] / run["ours"] for run in runs) / len(runs) for name in runs[-1] if name != "ours"
              and confirm.agree(runs[0][name] / runs[0]["ours"], runs[-1][name] / runs[-1]["ours"])}
    return {"cell": cell, "us": runs[-1]["ours"], "ratios": ratios}


def text(result):
    names = {"dense": "all keys", "causal": "causal", "dense_grad": "all keys, with gradients",
             "causal_grad": "causal, with gradients", "scalars": "numbers, each a carry: gradient through 100 steps"}
    lines = [f"{result['torch']}, {result['jax']}.", "", "| job | size | ours, us | theirs / ours |", "|---|---|---|---|"]
    for row in sorted(result["cells"], key=lambda row: min(row["ratios"].values(), default=99)):
        job, heads, steps, width = row["cell"]
        size = str(heads) if job == "scalars" else f"{heads} x {steps} x {width}"
        ratios = ", ".join(f"{name} " + (f"**{r:.2f}**" if r < 1 else f"{r:.2f}") for name, r in row["ratios"].items()) or "-"
        lines.append(f"| {names[job]} | {size} | {row['us']:.4g} | {ratios} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.15)
    parser.add_argument("--out", type=pathlib.Path, default="bench/results/attention.json")
    options = parser.parse_args()
    programs = {"ours": Program(pathlib.Path(options.build).resolve() / "bench" / "bench_attention")}
    for name in ("torch", "jax"):
        programs[name] = Program(sys.executable, HERE / "attention_peers.py", name)
    cells = []
    for cell in CELLS:
        cells.append(measured(programs, cell, options))
        print(cells[-1], file=sys.stderr, flush=True)
    result = {"machine": machine(), "date": today(), "torch": programs["torch"].version, "jax": programs["jax"].version,
              "cells": cells}
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(text(result))


if __name__ == "__main__":
    main()
