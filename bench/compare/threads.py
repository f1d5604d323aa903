#!/usr/bin/env python3
"""Compares two threads with one, ours and torch's, and ours with two processes of one thread, in turn in one run.

    python3 bench/compare/threads.py [--build build/release] [--rounds 3] [--out bench/results/threads.json]
                                     [--cells job/kind/H/T/B ...]

A time is the least of the rounds. Rounds in which a cache line took over 1.5 times the least time to the other
processor and back are measured again: the host had moved one of the two to another chip.
"""
import argparse
import json
import pathlib
import subprocess
import sys

from run import HERE, Peer
from where import machine, today

GRID = [(job, kind, *sizes) for job in ("forward", "train") for kind in ("gru", "lstm", "rnn")
        for sizes in ((64, 50, 32), (256, 50, 32), (256, 50, 128), (512, 20, 64))]
GRID += [("train", "mlp", 512, 1, B) for B in (32, 128)]
GRID += [("train", "gru", 16, 10, B) for B in (1, 8)]  # too small to be shared
FAR = 1.5
PATIENCE = 10  # how often a round is measured again


class Ours:
    def __init__(self, build):
        self.process = subprocess.Popen([build / "bench" / "bench_threads"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, cell):
        print(*cell, file=self.process.stdin, flush=True)
        names = ("one", "two", "beside", "round_trip")
        return dict(zip(names, map(float, self.process.stdout.readline().split()), strict=True))


def measure(ours, torch, cell, rounds, nearest):
    """Returns the least times of the rounds in which both processors were near, and the round trips of all."""
    times, trips = {}, []
    good = 0
    for _ in range(rounds + PATIENCE):
        row = ours.ask(cell)
        row |= {f"torch_{word}": peer.ask(*cell, 0.4)[0] for word, peer in torch.items() if peer.alive}
        trips.append(row.pop("round_trip"))
        nearest = min(nearest, trips[-1])
        if trips[-1] > FAR * nearest:
            continue
        for name, value in row.items():
            times[name] = min(times.get(name, value), value)
        good += 1
        if good == rounds:
            break
    return {"cell": cell, "us": times, "round_trips_ns": trips}, nearest


def text(result):
    torch = "torch_one" in result["cells"][0]["us"]
    heads = ["job", "net", "H", "T", "B", "one thread, us", "two: times", "of two processes"]
    lines = [f"A line of the cache goes to the other processor and back in {result['round_trip_ns']:.0f} ns."
             + (f" {result['torch']}." if torch else ""), "",
             "| " + " | ".join(heads + ["torch: times", "torch / ours, two threads"] * torch) + " |"]
    lines[-1:] = [lines[-1], "|---" * (len(heads) + 2 * torch) + "|"]
    share = lambda row: row["us"]["beside"] / 2 / row["us"]["two"]
    for row in sorted(result["cells"], key=share):
        t = row["us"]
        columns = [*map(str, row["cell"]), f"{t['one']:.1f}", f"{t['one'] / t['two']:.2f}", f"{share(row):.2f}"]
        if torch:
            columns += [f"{t['torch_one'] / t['torch_two']:.2f}", f"{t['torch_two'] / t['two']:.2f}"]
        lines.append("| " + " | ".join(columns) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", default="bench/results/threads.json")
    parser.add_argument("--cells", nargs="*", help="only these")
    options = parser.parse_args()
    ours = Ours(pathlib.Path(options.build).resolve())
    torch = {word: Peer([sys.executable, str(HERE / "torch_peer.py"), "eager", threads])
             for word, threads in (("one", "1"), ("two", "2"))}
    cells = GRID
    if options.cells:
        cells = [(c.split("/")[0], c.split("/")[1], *map(int, c.split("/")[2:])) for c in options.cells]
    nearest, rows = float("inf"), []
    for cell in cells:
        row, nearest = measure(ours, torch, cell, options.rounds, nearest)
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    result = {"machine": machine(), "date": today(), "torch": torch["one"].version, "round_trip_ns": nearest,
              "cells": rows}
    pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n")
    print(text(result))


if __name__ == "__main__":
    main()
