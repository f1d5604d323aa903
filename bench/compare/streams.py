"""The parts that nam.py and rtneural.py share: programs that run streams of a net in a file, asked in turn on one core,
and the table of ratios.
"""
import json
import pathlib
import statistics
import subprocess

from peer import undisturbed_median
from where import machine, today

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


def confirmed(cell, peers):
    """Returns the peers of a cell whose ratio a second run confirmed, where there was one."""
    return [p for p in peers if p not in cell.get("unconfirmed", ())]


def sentences(cells, peers):
    """Returns the table's result in words: the least ratio and the lost cells of every block size."""
    for block in dict.fromkeys(c["block"] for c in cells):
        rows = [(min(c["nanoseconds"][p] for p in confirmed(c, peers)) / c["nanoseconds"]["Ferrite"], c["net"])
                for c in cells if c["block"] == block and confirmed(c, peers)]
        lost = [net for ratio, net in rows if ratio < 1]
        steps = "One by one" if block == 1 else f"In blocks of {block}"
        yield (f"{steps} the best of them takes {min(rows)[0]:.2f} to {max(rows)[0]:.2f} of our time, in the median "
               f"{statistics.median(ratio for ratio, _ in rows):.2f}; "
               + (f"lost: {', '.join(lost)}." if lost else "none of the cells is lost."))


def text(result):
    """Returns the sentences and the table of a result, with the cells that we lose first."""
    cells = result["cells"]
    peers = [p for p in cells[0]["nanoseconds"] if p != "Ferrite"]
    lines = [f"{result['machine']}, {result['date']}, one thread. " + " ".join(sentences(cells, peers)), "",
             "| net | block | ours, ns a sample | " + " | ".join(f"{p} / ours" for p in peers) + " |",
             "|---|---|---|" + "---|" * len(peers)]
    best = lambda c: min(c["nanoseconds"][p] for p in confirmed(c, peers) or peers) / c["nanoseconds"]["Ferrite"]
    for c in sorted(cells, key=best):
        t = c["nanoseconds"]
        ratios = ((t[p] / t["Ferrite"] if p in confirmed(c, peers) else None) for p in peers)
        shown = " | ".join("-" if r is None else f"**{r:.2f}**" if r < 1 else f"{r:.2f}" for r in ratios)
        lines.append(f"| {c['net']} | {c['block']} | {t['Ferrite']:.0f} | {shown} |")
    return "\n".join(lines)


def tables(result):
    """Returns the table of each group of cells that have the same peers."""
    groups = dict.fromkeys(tuple(c["nanoseconds"]) for c in result["cells"])
    return "\n\n".join(text(result | {"cells": [c for c in result["cells"] if tuple(c["nanoseconds"]) == peers]})
                       for peers in groups)


def report(cells, out):
    """Writes the JSON and prints the table."""
    result = {"machine": machine(), "date": today(), "cells": cells}
    pathlib.Path(out).write_text(json.dumps(result, indent=1) + "\n")
    print(text(result))
