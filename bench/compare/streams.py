"""What nam.py and rtneural.py share: programs that run streams of a net in a file, asked in turn on one core, and the
table of ratios.
"""
import json
import pathlib
import platform
import subprocess

from peer import undisturbed_median

HERE = pathlib.Path(__file__).resolve().parent


def compiled(to, sources, *options):
    if not to.exists():
        subprocess.run(["g++", "-std=c++20", "-march=native", "-DNDEBUG", "-w", f"-I{HERE}", "-o", to, *sources, *options],
                       check=True)
    return to


class Program:
    def __init__(self, path, net, block):
        self.process = subprocess.Popen(["taskset", "-c", "1", path, net, str(block)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.sum = float(self.process.stdout.readline())

    def ask(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measured(all_of_them, net, block, rounds):
    running = {name: Program(path, net, block) for name, path in all_of_them.items()}
    ours = running["Ferrite"].sum
    for name, program in running.items():
        if abs(program.sum - ours) > 5e-4 * 4096:  # a mean of samples below 1
            raise SystemExit(f"{name} gives {program.sum} for {net.name}, we {ours}")
    times = {name: [] for name in running}
    for _ in range(rounds):
        for name, program in running.items():
            times[name].append(program.ask())
    for program in running.values():
        program.close()
    return {name: undisturbed_median(t) for name, t in times.items()}


def report(cells, out):
    """Writes the JSON and prints the table, the cells that we lose first."""
    model = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    pathlib.Path(out).write_text(json.dumps({"machine": model[0] if model else platform.machine(), "cells": cells}, indent=1) + "\n")
    peers = [p for p in cells[0]["nanoseconds"] if p != "Ferrite"]
    print("| net | block | ours, ns a sample | " + " | ".join(f"{p} / ours" for p in peers) + " |")
    print("|---|---|---|" + "---|" * len(peers))
    best = lambda c: min(c["nanoseconds"][p] for p in peers) / c["nanoseconds"]["Ferrite"]
    for c in sorted(cells, key=best):
        t = c["nanoseconds"]
        ratios = " | ".join(f"**{t[p] / t['Ferrite']:.2f}**" if t[p] < t["Ferrite"] else f"{t[p] / t['Ferrite']:.2f}" for p in peers)
        print(f"| {c['net']} | {c['block']} | {t['Ferrite']:.0f} | {ratios} |")
