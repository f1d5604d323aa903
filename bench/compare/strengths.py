#!/usr/bin/env python3
"""Compares with the peers what recurrent programs need besides plain sequences, in turn in one run on one core:
lengths, resets, the first step of a user's cell, the same bits for any batch, many small layers. Prints tables, writes
JSON.

    python3 bench/compare/strengths.py [--build build/release] [--out bench/results/strengths.json]
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

from peer import Absent, undisturbed_median

HERE = pathlib.Path(__file__).resolve().parent
LAYERS = 28
PATIENCE = int(os.environ.get("FERRITE_COMPILE_SECONDS", "20"))  # seconds for torch.compile of a cell
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
PEERS = {"torch": ["strengths_torch.py", "eager"], "torch.compile": ["strengths_torch.py", "compile"],
         "jax": ["strengths_jax.py"], "ONNX Runtime": ["strengths_onnxruntime.py"]}
SIZES = [(32, 100, 32), (128, 100, 32), (128, 50, 8)]
CELLS = ([(job, *size) for size in SIZES for what in ("lengths", "padded") for job in (what, what + "_train")]
         + [(job, *size) for size in SIZES for job in ("resets", "resets_train")]
         + [("first", 64, T, 8) for T in (64, 256, 1500)]
         + [("bits", H, 50, 33) for H in (16, 64, 256)]
         + [(job, 4, 524, 1) for job in ("many", "many_streams")])


def lengths(T, B):
    """Returns lengths evenly spaced from 1 to T, in an order without trend, the same as ours."""
    return [1 + (T - 1) * (b * 7 % B) // max(1, B - 1) for b in range(B)]


def resets(T, B):
    """Returns a mask that is 1 at about one of twenty steps."""
    return [[1 if (b * 31 + t * 17) % 20 == 0 else 0 for t in range(T)] for b in range(B)]


def serve(version, answer):
    """Prints the version, then answers lines "job H T B seconds"."""
    print(version, flush=True)
    for line in sys.stdin:
        job, *rest = line.split()
        H, T, B = (int(n) for n in rest[:3])
        try:
            print(answer(job, H, T, B, float(rest[3])), flush=True)
        except Absent as reason:
            print("none", reason, flush=True)


class Program:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, cwd=HERE, env=os.environ | ONE_THREAD)
        self.version = self.process.stdout.readline().strip()

    def ask(self, cell, seconds):
        try:
            self.process.stdin.write(" ".join(map(str, cell)) + f" {seconds}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return None if not line or line.startswith("none") else float(line)


def measure(programs, cell, rounds, seconds):
    answers = {name: [] for name in programs}
    dear = cell[0] in ("bits", "first")
    for _ in range(1 if cell[0] == "bits" else min(rounds, 3) if dear else rounds):
        for name, program in programs.items():
            if None not in answers[name]:
                answers[name].append(program.ask(cell, seconds))
    value = max if cell[0] == "bits" else undisturbed_median
    return {name: value(list(all_)) for name, all_ in answers.items() if all_ and None not in all_}


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|",
                      *("| " + " | ".join(row) + " |" for row in rows)])


def time_of(us):
    return f"{us:.1f} us" if us < 1e3 else f"{us / 1e3:.1f} ms" if us < 1e6 else f"{us / 1e6:.1f} s"


def report(results, names):
    """Returns the tables of all questions. `results` is by cell, then by program."""
    def get(cell, name):
        return results.get("/".join(map(str, cell)), {}).get(name)

    def shown(cell, name, f):
        value = get(cell, name)
        return "-" if value is None else f(value)

    peers = [name for name in names if name != "ours"]
    timed = [name for name in peers if name != "torch.compile"]

    def ratio_row(job, size):
        ours = get((job, *size), "ours")
        return ([job.replace("_train", ", trained"), "/".join(map(str, size)), time_of(ours)]
                + [shown((job, *size), name, lambda v: f"{v / ours:.2f}") for name in timed])

    parts = ["Sequences of lengths 1 to T, evenly spread, beside the same batch padded: time with lengths / time without, "
             "of each program by itself (H/T/B).", "",
             table(["", "H/T/B", "ours", *timed],
                   [["forward" if not end else "trained", "/".join(map(str, size))]
                    + [shown(("lengths" + end, *size), name,
                             lambda v, n=name: f"{v / get(('padded' + end, *size), n):.2f}"
                             if get(("padded" + end, *size), n) else "-") for name in ["ours", *timed]]
                    for size in SIZES for end in ("", "_train")]),
             "", "The same and resets before one of twenty steps: ours, and peer / ours.", "",
             table(["", "H/T/B", "ours", *timed],
                   [ratio_row(job, size) for job in ("lengths", "lengths_train", "resets", "resets_train")
                    for size in SIZES]),
             "", "A layer of a cell that a user wrote (layer norm inside), 64 units, B = 8: from nothing to the end of the "
             "first training step. `>` is where we stopped waiting.", "",
             table(["T", *names],
                   [[str(T), *(shown(("first", 64, T, 8), name, time_of) if get(("first", 64, T, 8), name)
                               else (f"> {PATIENCE} s" if name == "torch.compile" else "-") for name in names)]
                    for T in (64, 256, 1500)]),
             "", "The largest difference between a row of a batch of 33 and the same row alone, f32, outputs of 50 steps.",
             "", table(["H", "ours", *timed],
                       [[str(H), *(shown(("bits", H, 50, 33), name, lambda v: f"{v:.1e}" if v else "0")
                                   for name in ["ours", *timed])] for H in (16, 64, 256)]),
             "", f"{LAYERS} GRUs of 4 units in 524 steps, B = 1 (the shape of a speech enhancer): sequences, and ours "
             "step by step as streams.", "",
             table(["", "ours", "ours, streams", *timed],
                   [["time", shown(("many", 4, 524, 1), "ours", time_of), shown(("many_streams", 4, 524, 1), "ours", time_of),
                     *(shown(("many", 4, 524, 1), name, time_of) for name in timed)]])]
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--out", help="JSON")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    programs = {"ours": Program([str(pathlib.Path(options.build).resolve() / "bench" / "bench_strengths")])}
    for name, script in PEERS.items():
        peer = Program([sys.executable, str(HERE / script[0])] + script[1:])
        if peer.version:
            programs[name] = peer
        else:
            print(f"{name}: left out, {script[0]} does not start (bench/compare/requirements.txt)", file=sys.stderr)
    results = {}
    for cell in CELLS:
        results["/".join(map(str, cell))] = measure(programs, cell, options.rounds, options.seconds)
        print(cell, results["/".join(map(str, cell))], file=sys.stderr, flush=True)
    versions = {name: program.version for name, program in programs.items() if name != "ours"}
    text = ", ".join(versions.values()) + ".\n\n" + report(results, list(programs))
    print(text)
    if options.out:
        pathlib.Path(options.out).write_text(
            json.dumps({"versions": versions, "results": results, "tables": text}, indent=1) + "\n")


if __name__ == "__main__":
    main()
