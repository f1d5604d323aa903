#!/usr/bin/env python3
"""Compares frozen nets (`ferrite freeze`, compiled by gcc -O3 -march=native) with the library's own streams, and with
NeuralAmpModelerCore and RTNeural: nanoseconds a sample, in blocks of 64 and one by one, all in turn in one run, and all
of it twice. Writes JSON and tables of ratios, peer / frozen, without those that the second run does not confirm.

    python3 bench/compare/frozen.py [--nam-core CHECKOUT] [--rtneural CHECKOUT] [--build build/release]
                                    [--out bench/results/frozen.json] [--rounds 9]

The checkouts and the nets are those of nam.py and rtneural.py; the net's time is called Ferrite in the JSON, the library's
stream is one of the peers.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys

import nam
import rtneural
from streams import HERE, compiled, machine, measured, tables, today

sys.path.insert(0, str(HERE.parent))
from confirm import agree


def frozen(folder, build, net):
    """Freezes and compiles a net; returns the program that runs it."""
    name = "net_" + "".join(c if c.isalnum() else "_" for c in net.stem.lower())
    source = folder / f"{name}.c"
    subprocess.run([build / "tools" / "ferrite", "freeze", net, "-o", source], check=True, stdout=subprocess.DEVNULL)
    object_file = folder / f"{name}.o"
    subprocess.run(["gcc", "-std=c99", "-O3", "-march=native", "-c", source, "-o", object_file], check=True)
    program = folder / name
    program.unlink(missing_ok=True)
    return compiled(program, [HERE / "frozen_peer.cpp", object_file], "-O2", f"-DFROZEN={name}", "-include",
                    folder / f"{name}.h", "-lm")


def cells(nets, peers, folder, build, rounds):
    programs = {name: {"Ferrite": frozen(folder, build, net), "its stream": build / "bench" / "stream_ferrite"} | peers
                for name, net in nets.items()}
    keys = [(name, block) for name in nets for block in (64, 1)]
    runs = [{key: measured(programs[key[0]], nets[key[0]], key[1], rounds) for key in keys} for _ in range(2)]
    for name, block in keys:
        first, second = (run[name, block] for run in runs)
        ratio = lambda times, peer: times[peer] / times["Ferrite"]
        yield {"net": name, "block": block, "nanoseconds": {k: (first[k] + second[k]) / 2 for k in first},
               "unconfirmed": [k for k in first if not agree(ratio(first, k), ratio(second, k))]}


def written(folder, nets, ending):
    files = {}
    for name, net in nets.items():
        files[name] = folder / (name.replace(" ", "_") + ending)
        files[name].write_text(json.dumps(net))
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nam-core")
    parser.add_argument("--neural-audio")
    parser.add_argument("--rtneural")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--out", default="bench/results/frozen.json")
    parser.add_argument("--rounds", type=int, default=9)
    a = parser.parse_args()
    build = pathlib.Path(a.build)
    folder = build / "frozen-compare"
    folder.mkdir(exist_ok=True)
    found = []
    if a.nam_core:
        random.seed(1)
        nets = {name: {"version": "0.7.0" if name.startswith("A2") else "0.5.4", "metadata": {}, "sample_rate": 48000} | make()
                for name, make in nam.NETS.items()}
        peers = {k: v for k, v in nam.programs(folder, a).items() if k != "Ferrite"}
        found += list(cells(written(folder, nets, ".nam"), peers, folder, build, a.rounds))
    if a.rtneural:
        random.seed(1)
        nets = {f"{kind}_{H}": rtneural.recurrent(kind, H) for kind in ("gru", "lstm") for H in rtneural.UNITS}
        peers = {k: v for k, v in rtneural.programs(folder, a).items() if k != "Ferrite"}
        found += list(cells(written(folder, nets, ".json"), peers, folder, build, a.rounds))
    result = {"machine": machine(), "date": today(), "cells": found}
    pathlib.Path(a.out).write_text(json.dumps(result, indent=1) + "\n")
    print(tables(result))


if __name__ == "__main__":
    main()
