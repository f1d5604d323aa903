#!/usr/bin/env python3
"""Compares two builds of the cells in bench/gate and says whether the second is slower. Started by scripts/bench-gate.

    python3 bench/gate/gate.py BASE_PROGRAM PRESENT_PROGRAM [--instructions] [--cells TEXT ...]

Both programs run on one core and wait while the other is asked. A repetition starts both several times, alternately as
they are and as PROGRAM_whole, the same objects linked in another order: the places of a process's memory and of a
program's functions make short calls up to a fifth slower or faster. They are asked in turn, several times for each
cell, for equal numbers of calls. The least time counts; for cells "small/..." the least number of instructions where
the system counts them. A cell fails when it is slower by more than 5 % in two of three repetitions; all cells together
fail when the geometric mean of their ratios is above 1.01.
Exit status: 0 no slower, 1 slower, 2 the programs could not be compared.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

CELL_LIMIT = 1.05
MEAN_LIMIT = 1.01
COUNTED = "small/"  # cells so small that their time is noise: judged by instructions where these can be counted
SAMPLE = 3e-3  # minimum seconds of one sample


class Program:
    """A running program of cells."""

    def __init__(self, path):
        self.process = subprocess.Popen(path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.cells = self.process.stdout.readline().split()
        if not self.cells:
            raise SystemExit(f"{path} does not start")

    def ask(self, cell, calls):
        """Returns (seconds, instructions) of one call. Raises LookupError with the program's reason without one."""
        self.process.stdin.write(f"{cell} {calls}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise LookupError(f"the program ended (status {self.process.wait()})")
        if answer.startswith("none"):
            raise LookupError(answer[5:].strip())
        seconds, instructions = answer.split()
        return float(seconds) / calls, int(instructions) / calls

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def calls_for(base, present, cell):
    """Returns how many calls make one sample of the slower program. Afterwards both have run the cell."""
    calls = 1
    while True:
        seconds = max(program.ask(cell, calls)[0] for program in (base, present))
        if seconds * calls >= SAMPLE / 4:
            return max(1, math.ceil(SAMPLE / seconds))
        calls *= 4


def compare(base, present, cell, samples):
    """Returns the least seconds and instructions of a call: ((base, present), (base, present))."""
    calls = calls_for(base, present, cell)
    answers = {base: [], present: []}
    for k in range(samples):
        for program in (base, present) if k % 2 else (present, base):
            answers[program].append(program.ask(cell, calls))
    return tuple((min(a[i] for a in answers[base]), min(a[i] for a in answers[present])) for i in (0, 1))


def failed(ratios):
    """Returns whether a cell is too slow in most of its repetitions, two of three."""
    return sum(ratio > CELL_LIMIT for ratio in ratios) * 2 > len(ratios)


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values))


def repetition(options, cells):
    """Compares all cells once. Returns {cell: ((base, present) seconds, (base, present) instructions)}, the least of
    several starts of both programs, and {cell: reason} of those that the present program cannot run."""
    results, broken = {}, {}
    for k in range(options.starts):
        measured, failures = measure(linked(options.base, k), linked(options.present, k), cells, options.samples)
        for cell, figures in measured.items():
            before = results.get(cell, figures)
            results[cell] = tuple(tuple(map(min, old, new)) for old, new in zip(before, figures))
        broken |= failures
    return {cell: figures for cell, figures in results.items() if cell not in broken}, broken


def linked(path, start):
    """Returns the program of a start: every second one is linked in another order."""
    return path.with_name(path.name + "_whole") if start % 2 else path


def measure(base_path, present_path, cells, samples):
    """Returns the result of `repetition` for one start of both programs."""
    base, present = Program(base_path), Program(present_path)
    results, broken = {}, {}
    for cell in cells:
        try:
            present.ask(cell, 1)
        except LookupError as reason:
            broken[cell] = str(reason)
            if present.process.poll() is not None:
                present = Program(present_path)
            continue
        try:
            results[cell] = compare(base, present, cell, samples)
        except LookupError:  # a cell that the older version lacks has no speed to keep
            if base.process.poll() is not None:
                base = Program(base_path)
    base.close()
    present.close()
    return results, broken


def cells_of(options):
    base, present = Program(options.base), Program(options.present)
    cells = [c for c in present.cells if not options.cells or any(text in c for text in options.cells)]
    base.close()
    present.close()
    if not cells:
        raise SystemExit("no cell has such a name")
    return cells


def show(cells, runs, judged):
    """Prints the table. Returns the ratios of every cell by what is judged, seconds (0) or instructions (1)."""
    def ratio(pair):
        return pair[1] / pair[0] if min(pair) > 0 else None

    width = max(map(len, cells))
    titles = " ".join(f"{f'run {k + 1}':>7}" for k in range(len(runs)))
    print(f"{'cell':{width}} {'base, us':>10} {titles} {'instr.':>7}")
    ratios = {}
    for cell in cells:
        of = [run[cell] for run in runs if cell in run]
        if len(of) < len(runs):
            print(f"{cell:{width}} {'not in both versions':>10}")
            continue
        counts = [ratio(run[1]) for run in of]
        by_count = judged or (cell.startswith(COUNTED) and None not in counts)
        ratios[cell] = counts if by_count else [ratio(run[0]) for run in of]
        if None in ratios[cell]:
            raise SystemExit("instructions cannot be counted on this system")
        times = " ".join(f"{ratio(run[0]):7.3f}" for run in of)
        count = f"{min(counts):7.3f}" if None not in counts else f"{'-':>7}"
        print(f"{cell:{width}} {1e6 * min(run[0][0] for run in of):10.2f} {times} {count}"
              + ("  SLOWER" if failed(ratios[cell]) else ""))
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=pathlib.Path)
    parser.add_argument("present", type=pathlib.Path)
    parser.add_argument("--cells", nargs="*", default=[], help="only cells whose names contain one of these")
    parser.add_argument("--starts", type=int, default=4, help="the least of so many starts of both programs counts")
    parser.add_argument("--samples", type=int, default=8, help="and the least of so many samples of each")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--instructions", action="store_true",
                        help="judge by instructions in place of time: on a machine that others use")
    parser.add_argument("--json", type=pathlib.Path, help="all figures")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    cells = cells_of(options)
    runs, broken = [], {}
    for k in range(options.repetitions):
        print(f"repetition {k + 1} of {options.repetitions}", file=sys.stderr, flush=True)
        results, failures = repetition(options, cells)
        runs.append(results)
        broken |= failures
    ratios = show([c for c in cells if c not in broken], runs, 1 if options.instructions else 0) if runs[0] else {}
    if options.json:
        options.json.write_text(json.dumps({"cells": ratios, "broken": broken}, indent=1) + "\n")
    for cell, reason in broken.items():
        print(f"{cell} does not run: {reason}")
    if not ratios:
        raise SystemExit("nothing was compared")
    mean = geometric_mean([statistics.median(of) for of in ratios.values()])
    slower = [cell for cell, of in ratios.items() if failed(of)]
    what = "instructions" if options.instructions else "time"
    print(f"\n{len(ratios)} cells, {what}: geometric mean {mean:.4f} (at most {MEAN_LIMIT}), "
          f"slower by more than {CELL_LIMIT - 1:.0%}: {', '.join(slower) or 'none'}")
    if slower or broken or mean > MEAN_LIMIT:
        print("SLOWER" if slower or mean > MEAN_LIMIT else "BROKEN")
        return 1
    print("no slower")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SystemExit as e:
        if isinstance(e.code, str):
            print(e.code, file=sys.stderr)
            sys.exit(2)
        raise
