#!/usr/bin/env python3
"""Compares functions along rows with the least time that the machine needs and with PyTorch. All programs take turns in
one run on one core, twice; a figure that the second run does not confirm is not printed. Prints a table, writes JSON.

    python3 bench/compare/rows.py [--build build/release] [--out bench/results/rows.json] [--only TEXT]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

from peer import undisturbed_median

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import confirm  # noqa: E402

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}

# A job, and the least that the machine needs for it: a sum of limits with factors. A copy moves 8 bytes an element; a
# backward pass reads the cotangent and the residuals, and writes the gradient.
COPY, READ, EXP, COMPARE = "limit_copy", "limit_read", "limit_exp", "limit_comparisons"
OF_ROWS = {
    "softmax": {EXP: 1}, "softmax_grad": {EXP: 1, COPY: 1.5},
    "log_softmax": {EXP: 1}, "log_softmax_grad": {EXP: 2, COPY: 0.5},
    "logsumexp": {EXP: 1}, "logsumexp_grad": {EXP: 2},
    "layer_norm": {COPY: 1}, "layer_norm_grad": {COPY: 2.5},
    "sum": {READ: 1}, "var": {READ: 1}, "var_grad": {READ: 1, COPY: 1}, "var_columns": {READ: 1}, "stddev": {READ: 1},
    "norm_1": {READ: 1}, "norm_2": {READ: 1}, "norm_2_grad": {READ: 1, COPY: 1}, "norm_inf": {READ: 1},
    "norm_3": {READ: 1},
    "cumsum": {COPY: 1}, "cumsum_grad": {COPY: 2}, "cumsum_columns": {COPY: 1}, "cumprod": {COPY: 1},
    "cumprod_grad": {COPY: 3}, "cummax": {COPY: 2}, "cummax_grad": {COPY: 4}, "logcumsumexp": {EXP: 1},
}
OF_LINES = {"max_pool1d_2": {COPY: 0.75}, "max_pool1d_2_grad": {COPY: 2}, "avg_pool1d_2": {COPY: 0.75},
            "avg_pool1d_2_grad": {COPY: 1.5}}
OF_PLANES = {"max_pool2d_2": {COPY: 0.625}, "max_pool2d_2_grad": {COPY: 1.75}, "max_pool2d_3": {COPY: 0.625},
             "max_pool2d_3_grad": {COPY: 1.75}, "avg_pool2d_2": {COPY: 0.625}, "avg_pool2d_2_grad": {COPY: 1.25},
             "avg_pool2d_3": {COPY: 1}, "avg_pool2d_3_grad": {COPY: 2}}
OF_SHORT = {"sort": {COMPARE: 1}, "argsort": {COMPARE: 1}, "topk_4": {COMPARE: 1}, "kthvalue": {COMPARE: 1}}
CELLS = ([(job, *size, needs) for job, needs in OF_ROWS.items() for size in ((64, 256), (4096, 1024))]
         + [(job, *size, needs) for job, needs in OF_LINES.items() for size in ((64, 256), (4096, 1024))]
         + [(job, *size, needs) for job, needs in OF_PLANES.items() for size in ((16, 32), (512, 112))]
         + [("sort_grad", 1024, 64, {COMPARE: 1, COPY: 2})]
         + [(job, 65536 // n, n, needs) for job, needs in OF_SHORT.items() for n in (8, 16, 32, 64, 128, 256)])


class Program:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, cwd=HERE, env=os.environ | ONE_THREAD)
        self.version = self.process.stdout.readline().strip()

    def ask(self, job, rows, n, seconds):
        self.process.stdin.write(f"{job} {rows} {n} {seconds}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def measure(ours, torch, cell, rounds, seconds):
    """Returns microseconds of ours, of the limit and of torch (None without it)."""
    job, rows, n, needs = cell
    size = (rows, n * n if "pool2d" in job else n)
    times = {}
    for _ in range(rounds):
        times.setdefault("ours", []).append(ours.ask(job, rows, n, seconds))
        times.setdefault("limit", []).append(sum(k * ours.ask(name, *size, seconds) for name, k in needs.items()))
        if torch:
            times.setdefault("torch", []).append(torch.ask(job, rows, n, seconds))
    return {name: undisturbed_median(each) for name, each in times.items()}


def ratio(runs, name):
    """Returns `name` / ours over two runs, if they agree."""
    of = [run[name] / run["ours"] for run in runs if name in run]
    return statistics.mean(of) if len(of) > 1 and confirm.agree(*of[:2]) else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.02)
    parser.add_argument("--only", default="", help="jobs whose name contains this; the others stay as --out has them")
    parser.add_argument("--out", type=pathlib.Path, help="JSON")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    ours = Program(str(pathlib.Path(options.build).resolve() / "bench" / "bench_rows"))
    torch = Program(sys.executable, str(HERE / "rows_torch.py"))
    if not torch.version:
        print("torch: left out, rows_torch.py does not start (bench/compare/requirements.txt)", file=sys.stderr)
        torch = None
    known = {}
    if options.only and options.out and options.out.exists():
        known = {(r["job"], r["rows"], r["n"]): r for r in json.loads(options.out.read_text())["cells"]}
    for cell in CELLS:
        if options.only not in cell[0]:
            continue
        runs = [measure(ours, torch, cell, options.rounds, options.seconds) for _ in range(2)]
        for _ in range(2):  # again if the last two do not agree
            if all(ratio(runs, name) for name in runs[0] if name != "ours"):
                break
            runs = [runs[1], measure(ours, torch, cell, options.rounds, options.seconds)]
        known[cell[:3]] = {"job": cell[0], "rows": cell[1], "n": cell[2], "ours_us": runs[-1]["ours"],
                           "of_limit": ratio(runs, "limit"), "torch": ratio(runs, "torch")}
        print(known[cell[:3]], file=sys.stderr, flush=True)
    results = [known[cell[:3]] for cell in CELLS if cell[:3] in known]
    show = lambda value: "-" if value is None else f"{value:.2f}"  # noqa: E731
    lost = [f"{r['job'].replace('_grad', ' with gradient')} {r['rows']} x {r['n']} ({r['torch']:.2f})" for r in results
            if r["torch"] is not None and r["torch"] < 1]
    lines = ["| function | rows x n | ours, us | limit / ours | torch / ours |", "|---|---|---|---|---|"]
    for r in results:
        size = f"{r['rows']} x {r['n']}" + (f" x {r['n']}" if "pool2d" in r["job"] else "")
        name = r["job"].replace("_grad", ", with gradient")
        lines.append(f"| {name} | {size} | {r['ours_us']:.1f} | {show(r['of_limit'])} | {show(r['torch'])} |")
    if torch:
        lines = [torch.version + ".", "", *lines, "", "Lost: " + ("; ".join(lost) if lost else "none") + "."]
    print("\n".join(lines))
    if options.out:
        versions = [torch.version] if torch else []
        options.out.write_text(json.dumps({"versions": versions, "cells": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
