#!/usr/bin/env python3
"""The verdict of scripts/bench-gate on programs that only claim to have measured: what it passes and what it fails."""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GATE = ROOT / "bench" / "gate" / "gate.py"
# Answers as bench/gate/main.cpp does. The n-th process of this program takes the n-th time of a cell, the last one for
# ever; "none" is a cell that it cannot run.
FAKE = """#!{python}
import json, pathlib, sys
folder = pathlib.Path({folder!r})
count = folder / "{name}.count"
begun = int(count.read_text()) if count.exists() else 0
count.write_text(str(begun + 1))
times = json.loads({times!r})
print(" ".join(times))
sys.stdout.flush()
for line in sys.stdin:
    cell, calls = line.split()
    of = times.get(cell, "none")
    if of == "none":
        print("none there is no such cell")
    else:
        seconds = of["seconds"][min(max(begun - 1, 0), len(of["seconds"]) - 1)]  # the first process tells names alone
        print(seconds * int(calls), int(of["instructions"] * int(calls)))
    sys.stdout.flush()
"""
failures = 0


def run(base, present, *options):
    """The gate's exit status and output for cells {name: (seconds of each repetition, instructions)}."""
    with tempfile.TemporaryDirectory() as folder:
        programs = []
        for name, cells in (("base", base), ("present", present)):
            times = {cell: of if of == "none" else {"seconds": of[0], "instructions": of[1]}
                     for cell, of in cells.items()}
            path = pathlib.Path(folder) / name
            path.write_text(FAKE.format(python=sys.executable, folder=folder, name=name, times=json.dumps(times)))
            path.chmod(0o755)
            programs.append(str(path))
        done = subprocess.run([sys.executable, str(GATE), *programs, "--starts", "1", "--samples", "2", *options],
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def expect(status, text, what, base, present, *options):
    global failures
    got, output = run(base, present, *options)
    if got != status or text not in output:
        failures += 1
        print(f"{what}: status {got}, not {status}, or no '{text}' in:\n{output}")


def cells(n, seconds=(1e-3,), instructions=1e6):
    return {f"cell{k}": (list(seconds), instructions) for k in range(n)}


same = cells(20)
expect(0, "no slower", "two equal programs", same, same)
expect(0, "no slower", "all cells half a percent slower", same, cells(20, (1.005e-3,)))
expect(1, "geometric mean 1.0200", "all cells two percent slower", same, cells(20, (1.02e-3,)))
expect(0, "no slower", "all cells faster", same, cells(20, (0.5e-3,)))
expect(1, "slower by more than 5%: cell3", "one cell six percent slower", same,
       same | {"cell3": ([1.06e-3], 1e6)})
expect(0, "slower by more than 5%: none", "one cell four percent slower", same,
       same | {"cell3": ([1.04e-3], 1e6)})
expect(0, "no slower", "one cell slower in one repetition of three", same,
       same | {"cell3": ([1.5e-3, 1e-3, 1e-3], 1e6)})
expect(1, "SLOWER", "one cell slower in two repetitions of three", same,
       same | {"cell3": ([1.5e-3, 1e-3, 1.5e-3], 1e6)})
expect(0, "not in both versions", "a cell that the base does not have", cells(19), same)
expect(1, "cell3 does not run: there is no such cell", "a cell that fails now", same, same | {"cell3": "none"})
expect(0, "no slower", "more time for equal instructions, judged by these", same, cells(20, (2e-3,)), "--instructions")
expect(1, "cell3", "more instructions in equal time, judged by these", same, same | {"cell3": ([1e-3], 2e6)},
       "--instructions")
expect(0, "no slower", "a small call with more time for equal instructions", same | {"small/add": ([1e-6], 1e4)},
       same | {"small/add": ([2e-6], 1e4)})
expect(1, "slower by more than 5%: small/add", "a small call with more instructions in equal time",
       same | {"small/add": ([1e-6], 1e4)}, same | {"small/add": ([1e-6], 1.1e4)})
expect(1, "slower by more than 5%: small/add", "a slower small call where instructions are not counted",
       same | {"small/add": ([1e-6], -1)}, same | {"small/add": ([2e-6], -1)})
expect(2, "no cell has such a name", "a name of no cell", same, same, "--cells", "nowhere")
expect(0, "1 cells", "one chosen cell", same, same | {"cell3": ([9e-3], 1e6)}, "--cells", "cell17")
print(f"{failures} failures" if failures else "the verdicts are right")
sys.exit(bool(failures))
