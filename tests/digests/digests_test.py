#!/usr/bin/env python3
"""The program of scripts/digests on a few cases, and the verdict of its comparison on lines that were changed.

    digests_test.py PROGRAM
"""
import pathlib
import subprocess
import sys
import tempfile

COMPARE = pathlib.Path(__file__).resolve().parent / "compare.py"
CASES = ["--seeds", "1", "12", "--cases", "random/", "recurrent/gru/fused/1-forward", "scan/elman/forward", "fusion/chain",
         "training/gru/", "stream/gru/fused", "layer/linear", "operation/checked"]
failures = 0


def fail(text):
    global failures
    failures += 1
    print(text)


def compare(base, present, explained=""):
    """Status and output for two programs that print these lines."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        programs = []
        for name, text in (("base", base), ("present", present)):
            (folder / f"{name}.lines").write_text(text)
            program = folder / name
            program.write_text(f"#!/bin/sh\ncat '{folder / name}.lines'\n")
            program.chmod(0o755)
            programs.append(str(program))
        (folder / "explained.txt").write_text(explained)
        done = subprocess.run([sys.executable, str(COMPARE), "--pair", "test", *programs, "--explained",
                               str(folder / "explained.txt")], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def expect(status, text, what, *arguments):
    got, output = compare(*arguments)
    if got != status or text not in output:
        fail(f"{what}: status {got}, not {status}, or no '{text}' in:\n{output[:3000]}")


def changed(lines, case, section):
    """The lines with another digest or number in the first one of a section."""
    start = f"{case} {section} "
    at = next(i for i, line in enumerate(lines) if line.startswith(start))
    text = lines[at][len(start):]
    digit = next(i for i, c in enumerate(text) if c.isdigit())
    new = text[:digit] + str((int(text[digit]) + 1) % 10) + text[digit + 1:]
    return "".join(lines[:at] + [start + new] + lines[at + 1:])


def main():
    runs = [subprocess.run([sys.argv[1], *CASES], capture_output=True, text=True) for _ in range(2)]
    if any(run.returncode for run in runs):
        fail(f"status {[run.returncode for run in runs]}: {runs[0].stderr}" +
             "\n".join(line for line in runs[0].stdout.splitlines() if "FAULT" in line))
    if runs[0].stdout != runs[1].stdout:
        fail("two runs of the same cases print different lines")
    text = runs[0].stdout
    lines = text.splitlines(keepends=True)
    expect(0, "the same", "equal lines", text, text)
    gru = "recurrent/gru/fused/1-forward/plain"
    for case, section, title in [
            ("random/3", "values", "  values: 1 lines"), (gru, "gradients", "  gradients: 1 lines"),
            (gru, "second", "  second gradients: 1 lines"), ("fusion/chain", "values.graph", "  graphs: 1 lines"),
            ("fusion/chain", "gradients.export", "  exported programs: 1 lines"),
            ("fusion/chain", "values.plan", "  plans: 1 lines"), (gru, "saved", "  what a tape saves: 1 lines"),
            ("scan/elman/forward/0", "gradients.scan", "  scans: 1 lines"),
            ("training/gru/fused", "values.cost.compiled", "  allocations and locks: 1 lines"),
            ("stream/gru/fused/1/1", "values.cost.step", "  allocations and locks: 1 lines")]:
        other = changed(lines, case, section)
        expect(1, title, f"a change of {case} {section}", text, other)
        expect(1, f"    {case} {section}", f"the name of {case} {section}", text, other)
        expect(0, "1 more are explained", f"an explained change of {case} {section}", text, other,
               f"# why\n{case.split('/')[0]}/* {section}: it is meant\n")
        expect(1, "DIFFERENT", f"a change of {case} explained for another section", text, other,
               f"{case} nothing: it is meant\n")
    expect(1, "explains nothing: fusion/chain values.plan: it was meant", "an entry that explains nothing", text, text,
           "fusion/chain values.plan: it was meant\n")
    expect(2, "line 1 explains nothing", "an entry without a reason", text, text, "fusion/chain values.plan\n")
    without = "".join(line for line in lines if not line.startswith("fusion/chain "))
    expect(1, "lost: fusion/chain", "a case that is gone", text, without)
    expect(0, "the same", "a case that is gone, explained", text, without, "fusion/chain lost: it was merged\n")
    expect(0, "1 new cases", "a new case", without, text)
    expect(1, "disagree", "eager and planned runs that differ", text, text + "fusion/x values 1\nfusion/x values.FAULT 2\n")
    expect(1, "(no such line)", "a line more", text, text + "fusion/chain values.scan another\n")
    expect(0, "new sections: values.colour", "a section that the base's program does not know", text,
           text + "fusion/chain values.colour blue\n")
    expect(2, "ended with status 0", "a program that prints nothing", text, "")
    print(f"{failures} failures" if failures else "the verdicts are right")
    return 1 if failures else 0


sys.exit(main())
