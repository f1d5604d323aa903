#!/usr/bin/env python3
"""Compares an epoch of each example program with the same training in PyTorch, eager and by torch.compile, with one
thread and with two. The programs take turns in one run, epoch by epoch. Prints a table, writes JSON.

    python3 bench/compare/epochs.py [--build build/release] [--nets NET ...] [--threads 1 2] [--out bench/results/epochs.json]

Everything is measured by several runs of all programs, from new processes; a figure that no second run confirms within 10 %
(bench/confirm.py) is shown as "-". A time is the median of the rounds that took at most 1.15 times the least.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

from peer import undisturbed_median

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import confirm  # noqa: E402

TITLES = {
    "sunspots": "sunspots, GRU of 16", "text": "characters, GRU of 128", "digits_mlp": "digits, two layers",
    "digits": "digits, convolutions", "fine_tune": "fine-tuning, GRU of 64", "overdrive": "overdrive, TCN",
    "digits_vae": "digits, autoencoder", "pole": "pole, an update of PPO", "dates": "dates, attention",
    "anomaly": "anomalies, GRU of 16", "ensemble": "ensemble, one net", "names": "names, transformer"}
FORMS = {"torch": "eager", "torch.compile": "compile"}
WARM = 3  # epochs before the first that counts


class Program:
    def __init__(self, command, threads):
        def pinned():
            if threads == 1 and hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

        count = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE,
                                        stderr=subprocess.DEVNULL, env=os.environ | count, preexec_fn=pinned)
        self.version = self.process.stdout.readline().strip()

    def epoch(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measure(net, threads, options, versions, left_out):
    """Returns milliseconds of an epoch, by program."""
    ours = pathlib.Path(options.build).resolve() / "bench" / "bench_epochs"
    programs = {"ours": Program([str(ours), net, str(threads)], threads)}
    for name, form in FORMS.items():
        peer = Program([sys.executable, str(HERE / "epochs_torch.py"), net, str(threads), form], threads)
        if peer.version.startswith("torch"):
            programs[name] = peer
            versions[name] = peer.version
        else:
            left_out[f"{name}, {net}"] = peer.version.removeprefix("none ") or "does not start"
    times = {name: [] for name in programs}
    for _ in range(WARM):
        for program in programs.values():
            program.epoch()
    while len(times["ours"]) < 3 or (len(times["ours"]) < options.rounds and
                                     sum(map(sum, times.values())) < options.seconds):
        for name, program in programs.items():
            times[name].append(program.epoch())
    for program in programs.values():
        program.end()
    return {name: 1e3 * undisturbed_median(all_) for name, all_ in times.items()}


def figure(values, digits):
    """Returns the median of several runs, "-" where no second one confirms it."""
    return confirm.choose([f"{v:.{digits}f}" for v in values]) if values else "-"


def table(cells):
    """Returns the table of all cells: (net, threads) -> results of the runs."""
    lines = ["| epoch of | threads | Ferrite, ms | " + " | ".join(FORMS) + " |", "|---" * (3 + len(FORMS)) + "|"]
    lost = []
    for (net, threads), runs in cells.items():
        ours = figure([run["ours"] for run in runs], 2)
        row = [TITLES[net], str(threads), ours]
        for name in FORMS:
            ratios = [run[name] / run["ours"] for run in runs if name in run]
            row.append(figure(ratios, 2) if len(ratios) == len(runs) else "-")
            if row[-1] != "-" and float(row[-1]) < 1:
                lost.append(f"{TITLES[net]}, {threads} thread{'s' if threads > 1 else ''}, to {name} ({row[-1]})")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join([*lines, "", "Lost: " + ("; ".join(lost) if lost else "none") + "."])


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "an unknown processor"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--nets", nargs="*", default=list(TITLES), choices=list(TITLES))
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2])
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=6, help="of a cell, at most, where three rounds fit")
    parser.add_argument("--out", help="JSON")
    options = parser.parse_args()
    cells = {(net, threads): [] for net in options.nets for threads in options.threads}
    versions, left_out = {}, {}
    for _ in range(options.runs):
        for (net, threads), results in cells.items():
            results.append(measure(net, threads, options, versions, left_out))
            print(net, threads, {name: round(ms, 2) for name, ms in results[-1].items()}, file=sys.stderr, flush=True)
    lines = [f"{processor()}; {', '.join(dict.fromkeys(versions.values()))}.", "", table(cells)]
    lines += [f"Left out: {what}: {why}." for what, why in left_out.items()]
    print("\n".join(lines))
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(
            {"versions": versions, "left_out": left_out,
             "cells": [{"net": net, "threads": threads, "runs": runs} for (net, threads), runs in cells.items()]},
            indent=1) + "\n")


if __name__ == "__main__":
    main()
