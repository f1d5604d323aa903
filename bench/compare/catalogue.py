#!/usr/bin/env python3
"""Compares optimisers, losses over alignments, Fourier transforms and gradients of indexing with PyTorch, and
optimisers with the traffic of one sweep. All programs take turns in one run on one core, twice; a figure that the
second run does not confirm is not printed. Prints tables, writes JSON.

    python3 bench/compare/catalogue.py [--build build/release] [--out bench/results/catalogue.json] [--only JOB ...]
"""
import argparse
import json
import os
import pathlib
import sys

from peer import undisturbed_median
from strengths import Program, table, time_of

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import confirm  # noqa: E402

STATES = {"sgd": 0, "sgd_momentum": 1, "sgd_nesterov": 1, "sgd_dampening": 1, "adam": 2, "adam_amsgrad": 3, "adamw": 2,
          "nadam": 2, "radam": 2, "adamax": 2, "rmsprop": 1, "rmsprop_centered": 3, "adagrad": 1, "adadelta": 2,
          "adafactor": 0, "lion": 1}
SETS = [(40, 4, 4), (4, 100, 100), (1, 250, 400), (1, 2000, 2000)]  # tensors, rows, columns
LOSSES = [(50, 1, 28, 10), (200, 16, 28, 30), (500, 32, 80, 60)]  # T, B, C, S
TRANSDUCERS = [(50, 1, 28, 10), (100, 8, 28, 20)]
POINTS = (64, 128, 256, 480, 512, 1000, 1009, 1024, 2048, 4096)
CELLS = {
    "Optimisers": [(job, *size, 0) for job in STATES for size in SETS],
    "Losses over alignments": [(job + end, *size) for job, sizes in (("ctc", LOSSES), ("rnnt", TRANSDUCERS))
                               for size in sizes for end in ("", "_grad")],
    "Fourier transforms": [(job, n, batch, 0, 0) for job in ("rfft", "irfft") for n in POINTS for batch in (1, 32, 256)]
    + [(job, 160000, 1, 0, 0) for job in ("stft", "stft_grad")],
    "Indexing": [(job, *size, 0) for job in ("index_select", "index_select_grad", "index_add", "gather", "gather_grad")
                 for size in ((1000, 64, 4096), (1000, 1000, 32))],
}
HEADS = {"Optimisers": "tensors x rows x columns", "Losses over alignments": "T/B/C/S",
         "Fourier transforms": "points, batch", "Indexing": "rows, columns, places"}
PEERS = {"torch": "torch / ours", "fused": "torch, fused / ours", "sweep": "sweep / ours"}


def size_of(title, cell):
    _, a, b, c, d = cell
    return {"Optimisers": f"{a} x {b} x {c}", "Losses over alignments": f"{a}/{b}/{c}/{d}",
            "Fourier transforms": f"{a}, {b}", "Indexing": f"{a}, {b}, {c}"}[title]


def questions(cell):
    """Returns the question that each program is asked for this cell."""
    job, *size = cell
    asked = {"ours": cell, "torch": cell}
    if job in STATES:
        asked |= {"fused": cell, "sweep": ("sweep", STATES[job], size[0], size[1] * size[2], 0)}
    return asked


def measure(programs, cell, rounds, seconds):
    answers = {}
    for _ in range(rounds):
        for name, question in questions(cell).items():
            program = programs.get("ours" if name == "sweep" else name)
            if program and None not in answers.setdefault(name, []):
                answers[name].append(program.ask(question, seconds))
    return {name: undisturbed_median(each) for name, each in answers.items() if each and None not in each}


def agreed(runs, of):
    """Returns of(run) for the last run, if the one before agrees."""
    values = [of(run) for run in runs[-2:]]
    return values[-1] if confirm.agree(*values) else None


def confirmed(programs, cell, rounds, seconds):
    """Returns our microseconds, and each peer / ours, of two successive runs that agree, of at most four; else None."""
    runs = [measure(programs, cell, rounds, seconds)]
    while True:
        runs.append(measure(programs, cell, rounds, seconds))
        result = {"ours_us": agreed(runs, lambda run: run["ours"])} | {
            name: agreed(runs, lambda run, peer=name: run[peer] / run["ours"]) for name in PEERS if name in runs[-1]}
        if len(runs) == 4 or None not in result.values():
            return result


def report(results):
    parts = []
    for title, cells in CELLS.items():
        measured = [(cell, results["/".join(map(str, cell))]) for cell in cells if "/".join(map(str, cell)) in results]
        if not measured:
            continue
        names = [name for name in PEERS if any(name in result for _, result in measured)]
        rows = [[cell[0].replace("_grad", ", with gradient"), size_of(title, cell),
                 time_of(result["ours_us"]) if result["ours_us"] else "-"]
                + [f"{result[name]:.2f}" if result.get(name) else "-" for name in names] for cell, result in measured]
        beside = [[result[name] for name in ("torch", "fused") if name in result] for _, result in measured]
        lost = sum(any(ratio and ratio < 1 for ratio in ratios) for ratios in beside)
        open_ = sum(None in ratios for ratios in beside)
        parts += [f"{title}: of {sum(map(bool, beside))} cells with torch beside them {lost} are lost, and {open_} were not "
                  "the same twice.", "",
                  table([title, HEADS[title], "ours"] + [PEERS[name] for name in names], rows), ""]
    return "\n".join(parts).rstrip("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.02)
    parser.add_argument("--only", nargs="*", help="these jobs; others stay as they are in the JSON")
    parser.add_argument("--out", help="JSON")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    programs = {"ours": Program([str(pathlib.Path(options.build).resolve() / "bench" / "bench_catalogue")])}
    for name, form in (("torch", "default"), ("fused", "fused")):
        program = Program([sys.executable, str(HERE / "catalogue_torch.py"), form])
        if program.version:
            programs[name] = program
        else:
            print(f"{name}: left out, catalogue_torch.py does not start (bench/compare/requirements.txt)",
                  file=sys.stderr)
    out = pathlib.Path(options.out) if options.out else None
    results = json.loads(out.read_text())["results"] if out and out.exists() and options.only else {}
    for cell in (cell for cells in CELLS.values() for cell in cells if not options.only or cell[0] in options.only):
        name = "/".join(map(str, cell))
        results[name] = confirmed(programs, cell, options.rounds, options.seconds)
        print(name, results[name], file=sys.stderr, flush=True)
    version = programs["torch"].version if "torch" in programs else "without torch"
    print(f"{version}.\n\n{report(results)}")
    if out:
        out.write_text(json.dumps({"version": version, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
