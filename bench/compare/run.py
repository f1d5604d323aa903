#!/usr/bin/env python3
"""Times our nets and the peers' in turn, in one run on one core: prints a table of ratios, peer / ours, writes JSON.

    python3 bench/compare/run.py [--build build/release] [--full | --own] [--out bench/results/compare.json]

Every program answers the same questions (peer.py) and waits while the others are asked, once in each round; a time is
the median of the rounds that took at most 1.15 times the least, since others were disturbed. A peer that is not
installed, or cannot do a cell, is left out and named. --own times the layers of users' cells, also compared with the
nearest built-in fused layer; before a time is taken, the peers have to compute what we compute from the same
parameters. oneDNN is taken from the folder that the environment's FERRITE_ONEDNN names: include/ and, anywhere below,
libdnnl.so of 3.x; oneDNN 3.6.2 for CPUs is a part of the wheel `paddlepaddle`.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

from peer import OWN, TOLERANCE, onednn_program, undisturbed, undisturbed_median
from where import machine, today

HERE = pathlib.Path(__file__).resolve().parent
PEERS = {
    "torch": ["torch_peer.py", "eager"],
    "torch.compile": ["torch_peer.py", "compile"],
    "TorchScript": ["torch_peer.py", "script"],
    "jax.jit": ["jax_peer.py"],
    "ONNX Runtime": ["onnxruntime_peer.py"],
    "oneDNN": None,  # compiled, if it is there
}
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}

# Cells of public record: GRU and LSTM 128/50 and 256/100 at B = 1.
DEFAULT = [("forward", kind, H, T, B) for kind, H, T, B in
           [("gru", H, T, 1) for H in (16, 32, 64, 128, 256) for T in (1, 100)]
           + [("gru", 128, 50, 1), ("lstm", 128, 50, 1), ("lstm", 256, 100, 1), ("rnn", 128, 50, 1)]
           + [("gru", H, 100, 32) for H in (16, 32, 64, 128, 256)]
           + [("lstm", 128, 50, 32), ("rnn", 128, 50, 32), ("gru", 128, 50, 128), ("gru", 512, 10, 128)]]
DEFAULT += [("train", kind, H, T, B) for kind, H, T, B in
            [("gru", 32, 10, 1), ("gru", 32, 10, 32), ("gru", 32, 100, 32), ("gru", 128, 10, 1), ("gru", 128, 50, 32),
             ("gru", 256, 50, 1), ("gru", 256, 50, 32), ("gru", 256, 50, 128), ("lstm", 32, 10, 1), ("lstm", 128, 50, 32),
             ("rnn", 32, 10, 1), ("rnn", 128, 50, 32)]]
DEFAULT += [(job, kind, H, T, B) for kind, H, T, batches in (("mlp", 128, 1, (1, 32, 128)), ("vowels", 64, 16, (1, 32)))
            for B in batches for job in ("train", "compiled")]
DEFAULT += [(job, kind, H, T, B) for kind, H, T in (("cnn", 16, 1), ("transformer", 128, 64)) for B in (1, 32, 128)
            for job in ("train", "compiled")]
FULL = [(job, kind, H, T, B) for job in ("forward", "train") for kind in ("gru", "lstm", "rnn") for B in (1, 32, 128)
        for H in (4, 8, 16, 24, 32, 64, 128, 256, 512) for T in (1, 10, 50, 100)]
OWN_GRID = [(job, kind, H, T, B) for job in ("forward", "train") for kind in OWN
       for T, B in ((10, 1), (100, 1), (100, 32)) for H in (16, 64, 256)]
OWN_PEERS = ["torch", "torch.compile", "TorchScript", "jax.jit"]


class Peer:
    """A program that answers each line with microseconds, or with none and the reason."""

    def __init__(self, command, tells_version=True):
        self.why = {}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, cwd=HERE, env=os.environ | ONE_THREAD)
        self.version = self.process.stdout.readline().strip() if tells_version else ""
        self.alive = bool(self.version) or not tells_version

    def ask(self, job, kind, H, T, B, seconds=0):
        """Returns the numbers of the answer, or None."""
        try:
            self.process.stdin.write(f"{job} {kind} {H} {T} {B} {seconds}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.alive = False
            return None
        if answer.startswith("none"):
            self.why.setdefault(answer[5:].strip(), []).append(f"{job.removeprefix('check_')} {kind} {H}/{T}/{B}")
            return None
        return [float(number) for number in answer.split()]


def start_peers(build, wanted):
    peers = {}
    for name, script in PEERS.items():
        if wanted and name not in wanted:
            continue
        onednn = onednn_program(build / "bench" / "onednn_peer", "onednn_peer.cpp") if script is None else None
        if script is None and not onednn:
            print(f"{name}: left out, FERRITE_ONEDNN names no folder that has it")
            continue
        peer = Peer([str(onednn)] if script is None else [sys.executable, str(HERE / script[0])] + script[1:])
        if peer.alive:
            peers[name] = peer
        else:
            print(f"{name}: left out, {(script or ['onednn_peer'])[0]} does not start (bench/compare/requirements.txt)")
    return peers


def same(ours, peers, cell):
    """Returns the peers that can do this cell of a user. Ends the program if their results differ from ours."""
    asked = ("check_" + cell[0], *cell[1:])
    wanted = ours.ask(*asked)
    able = {}
    for name, peer in peers.items():
        values = peer.ask(*asked) if peer.alive else None
        if values is None:
            continue
        gap = max(abs(a - b) for a, b in zip(values, wanted, strict=True))
        if not gap <= TOLERANCE:
            raise SystemExit(f"{name} differs from ours by {gap} in {cell}")
        able[name] = peer
    return able


def measure(ours, peers, cell, rounds, seconds):
    job, kind, H, T, B = cell
    if kind in OWN:
        peers = same(ours, peers, cell)
    answers = {"ours": [], "limit": []} | {name: [] for name in peers}

    def ask(program, job):
        times = program.ask(job, *cell[1:], seconds)
        return times and times[0]

    for _ in range(rounds):
        answers["ours"].append(ask(ours, job))
        answers["limit"].append(ask(ours, "limit_" + job))
        for name, peer in peers.items():
            if peer.alive and None not in answers[name]:
                answers[name].append(ask(peer, job))
    for name, times in answers.items():  # a single round is not a result
        program = ours if name in ("ours", "limit") else peers[name]
        for _ in range(rounds):
            if not times or None in times or len(undisturbed(times)) > 1:
                break
            times.append(ask(program, "limit_" + job if name == "limit" else job))
    own = undisturbed_median(answers["ours"])
    row = {"job": job, "kind": kind, "H": H, "T": T, "B": B, "ours_us": round(own, 3), "ratios": {}}
    for name, times in answers.items():
        if name != "ours" and times and None not in times:
            row["ratios"][name] = round(undisturbed_median(times) / own, 3)
    return row


def merged(old, result):
    """Returns the cells that were measured now, and the others of an earlier result."""
    key = lambda row: (row["job"], row["kind"], row["H"], row["T"], row["B"])
    now = {key(row): row for row in result["cells"]}
    cells = [now.pop(key(row), row) for row in old["cells"]] + list(now.values())
    names = {title(row) for row in result["cells"]}
    left_out = {name: {reason: list(missing) for reason, missing in why.items()}
                for name, why in result["left_out"].items()}
    for name, reasons in old["left_out"].items():
        for reason, missing in reasons.items():
            kept = [cell for cell in missing if cell not in names]
            if kept:
                left_out.setdefault(name, {}).setdefault(reason, [])[:0] = kept
    return old | result | {"versions": old["versions"] | result["versions"], "cells": cells, "lost": lost(cells),
                           "left_out": left_out}


def ratio(row, name):
    """Returns a peer's time over ours as the tables print it: bold where the peer is faster."""
    value = row["ratios"].get(name)
    return "-" if value is None else f"**{value:.2f}**" if value < 1 else f"{value:.2f}"


def show(row, peers):
    limit = row["ratios"].get("limit")
    columns = ["-" if limit is None else f"{1 / limit:.2f}", *(ratio(row, name) for name in peers)]
    sizes = f"{row['H']} | {row['T']} | {row['B']}"
    return f"| {row['job']} | {row['kind']} | {sizes} | {row['ours_us']:.1f} | {' | '.join(columns)} |"


def header(peers, limit="limit"):
    names = ["", "layer", "H", "T", "B", "ours, us", f"ours / {limit}", *peers]
    return "| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|"


def title(row):
    return f"{row['job']} {row['kind']} {row['H']}/{row['T']}/{row['B']}"


def lost(rows):
    return [f"{title(row)} to {name} ({ratio:.2f})" for row in rows
            for name, ratio in row["ratios"].items() if name != "limit" and ratio < 1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release", help="where bench_gru is")
    parser.add_argument("--full", action="store_true", help="the whole grid")
    parser.add_argument("--own", action="store_true", help="layers of users' cells; their `limit` is the fused layer")
    parser.add_argument("--cells", nargs="*", help="only these, as job/kind/H/T/B; the others of --out stay")
    parser.add_argument("--peers", nargs="*", help="only these")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.04, help="for each program, cell and round")
    parser.add_argument("--out", help="JSON")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    build = pathlib.Path(options.build).resolve()
    cells = OWN_GRID if options.own else FULL if options.full else DEFAULT
    if options.cells:
        cells = [(c.split("/")[0], c.split("/")[1], *map(int, c.split("/")[2:])) for c in options.cells]
    ours = Peer([str(build / "bench" / "bench_gru"), "--serve"], tells_version=False)
    peers = start_peers(build, options.peers or (OWN_PEERS if options.own else None))
    print("ratios, peer / ours (bold: the peer is faster), medians of", options.rounds, "rounds, one pinned thread;",
          ", ".join(dict.fromkeys(peer.version for peer in peers.values())))
    print("\n" + header(peers, "fused" if options.own else "limit"), flush=True)
    path = options.out and pathlib.Path(options.out)
    old = json.loads(path.read_text()) if path and options.cells and path.exists() else None
    rows = []
    for cell in cells:
        rows.append(measure(ours, peers, cell, options.rounds, options.seconds))
        print(show(rows[-1], peers), flush=True)
        result = {"processor": machine(), "date": today(), "versions": {name: peer.version for name, peer in peers.items()},
                  "rounds": options.rounds, "cells": rows, "lost": lost(rows),
                  "left_out": {name: peer.why for name, peer in peers.items() if peer.why}}
        if path:  # after each cell, because the whole grid takes long
            path.write_text(json.dumps(merged(old, result) if old else result, indent=1) + "\n")
    losses = lost(rows)
    print("\nlost: " + ("; ".join(losses) if losses else "none"))
    for name, peer in peers.items():
        for reason, missing in peer.why.items():
            print(f"{name} without {', '.join(missing)}: {reason}")


if __name__ == "__main__":
    main()
