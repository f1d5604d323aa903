"""Reads the programs that the tests write, and compares results."""
import pathlib
import sys

import numpy as np


def cases(folder, read=lambda path: path.with_suffix(".mlir").read_text()):
    """Yields (name, program, arguments, wanted results, tolerance); a program is what `read` makes of its path."""
    folder = pathlib.Path(folder)
    for line in (folder / "cases.txt").read_text().splitlines():
        number, tolerance, name = line.split("\t")
        with np.load(folder / f"{number}.npz") as arrays:
            parts = {kind: [arrays[f"{kind}{i}"] for i in range(sum(k.startswith(kind) for k in arrays))]
                     for kind in ("argument", "result")}
        yield name, read(folder / number), parts["argument"], parts["result"], float(tolerance)


def error(got, wanted):
    """max |a - b| / max(1, |b|), element by element; infinite for another shape, dtype, special value or integer."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return np.inf
    if wanted.dtype.kind != "f":
        return 0 if np.array_equal(got, wanted) else np.inf
    got, wanted = (np.atleast_1d(a).astype(np.float64) for a in (got, wanted))
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(got - wanted) / np.maximum(1, np.abs(wanted))
    gap[(got == wanted) | (np.isnan(got) & np.isnan(wanted))] = 0
    return float(np.nan_to_num(gap, nan=np.inf).max(initial=0))


def worst_place(got, wanted):
    """Where results of one shape differ most, in words."""
    for number, (g, w) in enumerate(zip(got, wanted)):
        if g.shape == w.shape and g.size and error(g, w) > 0:
            each = [error(np.asarray(a), np.asarray(b)) for a, b in zip(g.ravel(), w.ravel())]
            at = int(np.argmax(each))
            return f"; result {number}, element {at}: {g.ravel()[at]!r} for {w.ravel()[at]!r}"
    return ""


def run(folder, evaluate, skip=lambda name: False, **options):
    """Evaluates every program, prints what failed and the largest errors; gives the exit code. Those that `skip` names
    are evaluated too, but their numbers are not judged."""
    count, failed, skipped, largest = 0, 0, 0, {}
    for name, program, arguments, wanted, tolerance in cases(folder, **options):
        count += 1
        got = []
        try:
            got = evaluate(program, arguments, wanted)
            worst = max((error(g, w) for g, w in zip(got, wanted)), default=0) if len(got) == len(wanted) else np.inf
        except Exception as fault:  # any fault is a failure of that program, and the others are still tried
            worst = np.inf
            print(f"{name}: {type(fault).__name__}: {str(fault)[:1200]}\n{str(program)[:1500]}", file=sys.stderr)
        if skip(name) and worst > tolerance:
            skipped += 1
            continue
        largest[tolerance] = max(largest.get(tolerance, 0), worst)
        if not worst <= tolerance:
            failed += 1
            print(f"FAILED {name}: error {worst:.3g}, at most {tolerance:g}{worst_place(got, wanted)}", file=sys.stderr)
    operations = len({name.split()[0] for name, *_ in cases(folder, **options)})
    print(f"{count} programs, {operations} kinds, {failed} failed, {skipped} known to differ; largest errors:",
          ", ".join(f"{worst:.3g} (at most {tolerance:g})" for tolerance, worst in sorted(largest.items())))
    return 1 if failed or not count else 0
