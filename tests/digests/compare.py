#!/usr/bin/env python3
"""Compares what two builds of tests/digests print and fails where a line differs. Started by scripts/digests.

    python3 tests/digests/compare.py --pair NAME BASE_PROGRAM PRESENT_PROGRAM [--pair ...] [--explained FILE]
                                     [--show 10] [--full 3] [--keep FOLDER] [-- OPTION...]

Both programs of a pair run side by side with the options behind `--`. Every line is "<case> <section> <text>"; lines
that differ are shown by what they tell of: values, gradients, second gradients, graphs, plans, scans, what is saved,
costs. For a few cases whose values, programs or plans differ the programs are asked again, in full, and the difference
is printed.

FILE explains differences: lines "<case> <section>: <reason>" with shell patterns for case and section, # for comments.
An entry that explains nothing in any pair fails, too, and so does a case that the present program has lost. Cases and
sections that only the present program has are counted.

Exit status: 0 nothing differs but what is explained; 1 something does; 2 a program or file could not be used.
"""
import argparse
import collections
import difflib
import fnmatch
import pathlib
import re
import subprocess
import sys
import tempfile

KINDS = ["values", "gradients", "second", "graph", "export", "plan", "scan", "saved", "cost", "FAULT"]
TITLES = {"values": "values", "gradients": "gradients", "second": "second gradients", "graph": "graphs",
          "export": "exported programs", "plan": "plans", "scan": "scans", "saved": "what a tape saves", "cost": "allocations and locks",
          "FAULT": "eager and planned runs disagree"}


class Entry:
    """A line of the file of explanations."""

    def __init__(self, number, line):
        match = re.fullmatch(r"(\S+) ([^\s:]+): (\S.*)", line)
        if not match:
            raise SystemExit(f"line {number} explains nothing: {line}")
        self.line, self.used = line, False
        self.case, self.section, self.reason = match.groups()

    def explains(self, case, section):
        return fnmatch.fnmatchcase(case, self.case) and fnmatch.fnmatchcase(section, self.section)


def read_entries(path):
    lines = path.read_text().splitlines() if path else []
    return [Entry(n, line) for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]


def kind_of(section):
    parts = section.split(".")
    for kind in ("FAULT", "cost", "scan", "plan", "export"):
        if kind in parts:
            return kind
    if "traced" in parts or "graph" in parts:
        return "graph"
    return parts[0] if parts[0] in KINDS else "values"


def read_lines(path):
    """{case: {section: [text, ...]}}"""
    cases = {}
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            case, section, *text = line.rstrip("\n").split(" ", 2)
            cases.setdefault(case, {}).setdefault(section, []).append(text[0] if text else "")
    return cases


def run_both(programs, options, folder):
    """Runs both at once; gives their files and whether each ended as it should, [(path, status), ...]."""
    paths = [folder / name for name in ("base.txt", "present.txt")]
    running = [subprocess.Popen([program, *options], stdout=open(path, "wb")) for program, path in zip(programs, paths)]
    return [(path, process.wait()) for path, process in zip(paths, running)]


def differences(base, present):
    """[(case, section, base texts, present texts), ...], [lost cases], [new cases], {new sections}"""
    found = []
    known = {section for sections in base.values() for section in sections}
    new = {s for sections in present.values() for s in sections if s not in known and "FAULT" not in s}
    for case, sections in present.items():
        old = base.get(case)
        if old is None or old == sections:
            continue
        for section in [*sections, *(s for s in old if s not in sections)]:
            if section not in new and old.get(section, []) != sections.get(section, []):
                found.append((case, section, old.get(section, []), sections.get(section, [])))
    return found, [c for c in base if c not in present], [c for c in present if c not in base], new


def words_of(text):
    return [part for part in re.split(r" \| |; ", text) if part]


def show_difference(old, new, indent="      "):
    """The parts of a line that are not in both."""
    for before, after in zip(old + ["(no such line)"] * (len(new) - len(old)), new + ["(no such line)"] * (len(old) - len(new))):
        if before == after:
            continue
        for line in difflib.ndiff(words_of(before), words_of(after)):
            if line[0] in "-+":
                print(indent + line.rstrip()[:400])


def show_in_full(programs, case, most=60):
    """Asks both programs for a case in words and shows what differs."""
    with tempfile.TemporaryDirectory() as folder:
        run_both(programs, ["--full", "--cases", "=" + case, *seeds_of(case)], pathlib.Path(folder))
        texts = [[part for line in (pathlib.Path(folder) / name).read_text(errors="replace").splitlines()
                  for part in line.split(" | ")] for name in ("base.txt", "present.txt")]
    print(f"\n  {case} in full (base -, present +):")
    lines = list(difflib.unified_diff(*texts, lineterm="", n=2))[2:]
    for line in lines[:most]:
        print("    " + line[:300])
    if len(lines) > most:
        print(f"    ... and {len(lines) - most} more lines")


def seeds_of(case):
    return ["--seeds", case.split("/")[1], "1"] if re.fullmatch(r"random/\d+", case) else ["--seeds", "1", "0"]


def compare(name, programs, options, entries):
    """Prints the differences of a pair; gives whether there are any without an explanation."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep / name if options.keep else pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        (base_path, base_status), (present_path, present_status) = run_both(programs, options.rest, folder)
        base, present = read_lines(base_path), read_lines(present_path)
    for program, status, cases in ((programs[0], base_status, base), (programs[1], present_status, present)):
        if status not in (0, 1) or not cases:
            raise SystemExit(f"{program} ended with status {status}, last case: {list(cases)[-1] if cases else 'none'}")
    found, lost, new, sections = differences(base, present)
    explained = collections.Counter()
    open_ones = []
    for item in found:
        entry = next((e for e in entries if e.explains(item[0], item[1])), None)
        if entry:
            entry.used = True
            explained[entry.line] += 1
        else:
            open_ones.append(item)
    lines = sum(len(texts) for sections in present.values() for texts in sections.values())
    print(f"{name}: {lines} lines of {len(present)} cases; {len(open_ones)} lines differ, {sum(explained.values())} more "
          f"are explained; {len(new)} new cases" + (f", new sections: {', '.join(sorted(sections))}" if sections else ""))
    for line, count in explained.items():
        print(f"  {count} explained by: {line}")
    show(open_ones, options.show)
    shown = []
    for case, section, *_ in sorted(open_ones, key=lambda d: len(d[0])):
        if len(shown) < options.full and kind_of(section) != "cost" and case not in shown:
            shown.append(case)
            show_in_full(programs, case)
    lost = [c for c in lost if not any(e.explains(c, "lost") and use(e) for e in entries)]
    for case in lost:
        print(f"  lost: {case}")
    faults = sum("FAULT" in section for sections in present.values() for section in sections)
    if faults:
        print(f"  {faults} times the present program's eager and planned (compiled, streamed) runs disagree:")
        for case, section in [(c, s) for c, sections in present.items() for s in sections if "FAULT" in s][:options.show]:
            print(f"    {case} {section}")
    return bool(open_ones or lost or faults)


def use(entry):
    entry.used = True
    return True


def show(found, most):
    for kind in KINDS:
        of = [item for item in found if kind_of(item[1]) == kind]
        if not of:
            continue
        print(f"  {TITLES[kind]}: {len(of)} lines differ")
        for case, section, old, new in of[:most]:
            print(f"    {case} {section}")
            show_difference(old, new)
        if len(of) > most:
            print(f"    ... and {len(of) - most} more: {' '.join(sorted({item[0] for item in of[most:]})[:12])} ...")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pair", nargs=3, action="append", required=True, metavar=("NAME", "BASE", "PRESENT"))
    parser.add_argument("--explained", type=pathlib.Path)
    parser.add_argument("--show", type=int, default=10, help="so many lines of each kind")
    parser.add_argument("--full", type=int, default=3, help="so many cases in full")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for all lines")
    own = sys.argv[1:]
    rest = []
    if "--" in own:
        own, rest = own[:own.index("--")], own[own.index("--") + 1:]
    options = parser.parse_args(own)
    options.rest = rest
    entries = read_entries(options.explained)
    different = False
    for name, base, present in options.pair:
        different |= compare(name, (base, present), options, entries)
        sys.stdout.flush()
    unused = [] if "--cases" in rest else [e for e in entries if not e.used]
    for entry in unused:
        print(f"explains nothing: {entry.line}")
    print("DIFFERENT" if different or unused else "the same")
    return 1 if different or unused else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (SystemExit, OSError) as e:
        if isinstance(e, OSError) or isinstance(e.code, str):
            print(e, file=sys.stderr)
            sys.exit(2)
        raise
