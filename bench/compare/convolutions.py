#!/usr/bin/env python3
"""Compares convolutions of small nets with PyTorch, the oneDNN in it, and a separate oneDNN: forward, the gradient of
the input and that of the weights. All programs take turns in one run on one core, twice; a figure that the second run
does not confirm is not printed. Prints a table, writes JSON.

    python3 bench/compare/convolutions.py [--build build/release] [--out bench/results/convolutions.json] [--only TEXT]

The folder that the environment's FERRITE_ONEDNN names holds oneDNN 3.x: include/ and, anywhere below, libdnnl.so. Its
columns: `torch's oneDNN` is the convolution inside torch's call by oneDNN's own clock; `oneDNN` has data in the
order that it prefers, `oneDNN, plain` data in the order of ours; weights are in oneDNN's own order in both.
"""
import argparse
import json
import math
import os
import pathlib
import sys

from peer import onednn_program, undisturbed_median
from strengths import Program, table

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import confirm  # noqa: E402

# Each cell: a description; x, channels of the result, kernel, stride, padding before and after, dilation, groups.
JOBS = {
    "3x3, 3 to 16, 32 x 32": ("8x3x32x32", 16, "3x3", 1, 1, 1, 1, 1),
    "3x3, 16 to 16, 32 x 32": ("8x16x32x32", 16, "3x3", 1, 1, 1, 1, 1),
    "3x3, 32 to 32, 16 x 16": ("8x32x16x16", 32, "3x3", 1, 1, 1, 1, 1),
    "3x3, 64 to 64, 14 x 14": ("8x64x14x14", 64, "3x3", 1, 1, 1, 1, 1),
    "3x3, 64 to 64, 7 x 7": ("8x64x7x7", 64, "3x3", 1, 1, 1, 1, 1),
    "3x3 / 2, 32 to 64, 28 x 28": ("8x32x28x28", 64, "3x3", 2, 1, 1, 1, 1),
    "1x1, 64 to 64, 28 x 28": ("4x64x28x28", 64, "1x1", 1, 0, 0, 1, 1),
    "5x5, 1 to 6, 28 x 28": ("32x1x28x28", 6, "5x5", 1, 2, 2, 1, 1),
    "causal 3 x 8, 16 to 16, 2048": ("1x16x2048", 16, "3", 1, 16, 0, 8, 1),
    "causal 3, 32 to 32, 1024": ("4x32x1024", 32, "3", 1, 2, 0, 1, 1),
    "9, 64 to 64, 256": ("8x64x256", 64, "9", 1, 4, 4, 1, 1),
    "16 / 4, 1 to 32, 8192": ("2x1x8192", 32, "16", 4, 6, 6, 1, 1),
    "depthwise 3x3, 64, 32 x 32": ("8x64x32x32", 64, "3x3", 1, 1, 1, 1, 64),
    "depthwise 3x3, 128, 14 x 14": ("8x128x14x14", 128, "3x3", 1, 1, 1, 1, 128),
    "depthwise 3x3 / 2, 64, 28 x 28": ("8x64x28x28", 64, "3x3", 2, 1, 1, 1, 64),
    "depthwise causal 4, 64, 1024": ("4x64x1024", 64, "4", 1, 3, 0, 1, 64),
}
# The programs, and the names of their numbers.
PEERS = {"torch": ("torch", "torch's oneDNN"), "oneDNN": ("oneDNN", "oneDNN, plain")}
PASSES = {"forward": "forward", "input": "gradient of x", "weights": "gradient of the weights"}


def multiply_adds(job):
    x, channels, kernel, stride, before, after, dilation, groups = job
    x, kernel = ([int(n) for n in text.split("x")] for text in (x, kernel))
    out = [(n + before + after - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(x[2:], kernel)]
    return x[0] * channels * math.prod(out) * (x[1] // groups) * math.prod(kernel)


class Peer(Program):
    def ask(self, cell, seconds):
        """Returns both numbers; None for a number that the program does not give."""
        self.process.stdin.write(" ".join(map(str, cell)) + f" {seconds}\n")
        self.process.stdin.flush()
        return [None if n == "none" else float(n) for n in self.process.stdout.readline().split()]


def measure(ours, peers, cell, rounds, seconds):
    times = {"ours": []}
    for _ in range(rounds):
        times["ours"].append(ours.ask(cell, seconds))
        for program, peer in peers.items():
            for name, value in zip(PEERS[program], peer.ask(cell, seconds)):
                times.setdefault(name, []).append(value)
    return {name: undisturbed_median(each) for name, each in times.items() if each and None not in each}


def confirmed(runs, of):
    """Returns of(run) for the last run, if the one before agrees."""
    values = [of(run) for run in runs[-2:]]
    return values[-1] if confirm.agree(*values) else None


def row_of(ours, peers, cell, options):
    """Returns the row of a cell from two successive runs that agree, among at most four."""
    names = [name for program in peers for name in PEERS[program]]
    runs = [measure(ours, peers, cell, options.rounds, options.seconds)]
    while True:
        runs.append(measure(ours, peers, cell, options.rounds, options.seconds))
        row = {"ours_us": confirmed(runs, lambda run: run["ours"])} | {
            name: confirmed(runs, lambda run, peer=name: run[peer] / run["ours"])
            for name in names if all(name in run for run in runs[-2:])}
        if len(runs) == 4 or None not in row.values():
            return row


def report(results, peak):
    rows, lost = [], []
    names = [name for peers in PEERS.values() for name in peers if any(name in row for row in results.values())]
    for name, row in results.items():
        job, what = name.split(": ")
        share = 2e-3 * multiply_adds(JOBS[job]) / row["ours_us"] / peak if row["ours_us"] else None
        shown = [f"{row[peer]:.2f}" if row.get(peer) else "-" for peer in names]
        rows.append([job, PASSES[what], f"{row['ours_us']:.1f}" if row["ours_us"] else "-",
                     f"{100 * share:.0f} %" if share else "-", *shown])
        lost += [f"{job}, {PASSES[what]} ({peer} {row[peer]:.2f})" for peer in names
                 if row.get(peer) and row[peer] < 1]
    return (table(["convolution", "", "ours, us", "share of the peak", *(f"{name} / ours" for name in names)],
                  rows)
            + f"\n\nLost: {'; '.join(lost) or 'none'}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.03)
    parser.add_argument("--only", default="", help="jobs whose names contain it; others stay as they are in the JSON")
    parser.add_argument("--out", help="JSON")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    ours = Program([str(pathlib.Path(options.build).resolve() / "bench" / "bench_convolution")])
    peers = {"torch": Peer([sys.executable, str(HERE / "convolutions_torch.py")])}
    if not peers["torch"].version:
        print("torch: left out, convolutions_torch.py does not start (bench/compare/requirements.txt)", file=sys.stderr)
        del peers["torch"]
    alone = onednn_program(pathlib.Path(options.build).resolve() / "bench" / "onednn_convolution", "onednn_convolution.cpp")
    if alone:
        peers["oneDNN"] = Peer([str(alone)])
    peak = ours.ask(("peak", *JOBS["3x3, 3 to 16, 32 x 32"]), options.seconds)
    out = pathlib.Path(options.out) if options.out else None
    results = json.loads(out.read_text())["results"] if out and out.exists() and options.only else {}
    for name, job in JOBS.items():
        for what in PASSES:
            if options.only in name:
                cell = f"{name}: {what}"
                results[cell] = row_of(ours, peers, (what, *job), options)
                print(cell, results[cell], file=sys.stderr, flush=True)
    version = ", ".join(peer.version for peer in peers.values()) or "without peers"
    print(f"{version}, one thread, peak {peak:.0f} GFLOP/s.\n\n{report(results, peak)}")
    if out:
        out.write_text(json.dumps({"version": version, "peak_gflops": peak, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
