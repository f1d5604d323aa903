#!/usr/bin/env python3
"""Compares linear recurrences with their memory traffic, with torch (minGRU-pytorch and mambapy) and with jax. All
programs take turns in one run on one core, twice; a figure that the second run does not confirm is not printed. Prints
tables, writes JSON.

    python3 -m pip install -r bench/compare/requirements.txt einops==0.8.2
    python3 -m pip install --no-deps minGRU-pytorch==0.2.1 mambapy==1.2.0
    python3 bench/compare/linear.py [--build build/release] [--out bench/results/linear.json]
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
ONE_THREAD["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
SWEEPS = [("scan", T, 1) for T in (64, 256, 1024)] + [("scan_grad", T, 5 / 3) for T in (64, 256, 1024)]
# A job of ours, and those that it is compared with: a program, its job, and its name in the table.
TRAIN = [("train_min_gru", 1000, {"minGRU-pytorch": ("torch", "train_min_gru"),
                                  "minGRU-pytorch by torch.compile": ("torch", "train_min_gru_compiled"),
                                  "torch.nn.GRU": ("torch", "train_gru"),
                                  "jax associative_scan": ("jax", "train_min_gru"), "our GRU": ("ours", "train_gru")})]
SELECTIVE = [(job, T, {"mambapy pscan": ("torch", job), "jax associative_scan": ("jax", job)})
             for job in ("selective", "selective_grad") for T in (64, 512, 4096)]
STREAMS = [("stream_min_gru", D, {"our GRU": ("ours", "stream_gru")}) for D in (1, 16, 64)]


class Program:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE,
                                        env=os.environ | ONE_THREAD)
        self.version = self.process.stdout.readline().strip()

    def ask(self, job, n, seconds):
        self.process.stdin.write(f"{job} {n} {seconds}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def confirmed(programs, job, n, peers, options):
    """Returns our microseconds, and the ratio of each peer to us where two runs agree."""
    runs = []
    for _ in range(4):
        times = {}
        for _ in range(options.rounds):
            times.setdefault("ours", []).append(programs["ours"].ask(job, n, options.seconds))
            for name, (program, other) in peers.items():
                times.setdefault(name, []).append(programs[program].ask(other, n, options.seconds))
        least = {name: undisturbed_median(each) for name, each in times.items()}
        runs = [*runs[-1:], {name: least[name] / least["ours"] for name in peers} | {"us": least["ours"]}]
        if len(runs) == 2 and all(confirm.agree(runs[0][name], runs[1][name]) for name in peers):
            break
    ratios = {name: statistics.mean(r[name] for r in runs) if confirm.agree(runs[0][name], runs[1][name]) else None for name in peers}
    return {"job": job, "n": n, "us": runs[-1]["us"], "ratios": ratios}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--out", type=pathlib.Path, help="JSON")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    programs = {"ours": Program(str(pathlib.Path(options.build).resolve() / "bench" / "bench_linear"))}
    for name in ("torch", "jax"):
        programs[name] = Program(sys.executable, str(HERE / "linear_peers.py"), name)
    cells = []
    for job, n, passes in SWEEPS:
        cell = confirmed(programs, job, n, {"sweep": ("ours", "sweep")}, options)
        ratio = cell["ratios"]["sweep"]
        cell["ratios"] = {"memory": ratio and ratio * passes}
        cells.append(cell)
    cells += [confirmed(programs, job, n, peers, options) for job, n, peers in TRAIN + SELECTIVE + STREAMS]
    show = lambda value: "-" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"  # noqa: E731
    lines = [f"{programs['torch'].version} with minGRU-pytorch 0.2.1 and mambapy 1.2.0, {programs['jax'].version}.", "",
             "| job | size | ours, us | theirs / ours |", "|---|---|---|---|"]
    for c in cells:
        lines.append(f"| {c['job']} | {c['n']} | {c['us']:.3g} | " + ", ".join(f"{k} {show(v)}" for k, v in c["ratios"].items()) + " |")
    print("\n".join(lines))
    if options.out:
        versions = [programs["torch"].version, "minGRU-pytorch 0.2.1", "mambapy 1.2.0", programs["jax"].version]
        options.out.write_text(json.dumps({"versions": versions, "cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()
