"""Judges the functions that tests/accuracy/evaluate.cpp computes against 50 digits, and prints the table.

table.py PROGRAM [--levels avx2,sse2] [--only NAME,...] [--write]
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from mpmath import mp, mpf

from functions import FUNCTIONS, Function

BEGIN, END = "<!-- scripts/accuracy -->", "<!-- end -->"
PAGE = "docs/numerics.md"
FORMATS = {np.float32: (23, -126, 127), np.float64: (52, -1022, 1023)}  # digits behind the point, exponents
DENSE_STRIDE = 1021  # of the bit patterns of f32, all of which the first pass goes through in such steps
WORST = 60  # so many of the first pass are judged with 50 digits, and so many of the denormal results


def told(program: str, word: str) -> list[str]:
    return subprocess.run([program, word], check=True, capture_output=True, text=True).stdout.split()


def computed(program: str, name: str, operands: list[np.ndarray], level: str) -> np.ndarray:
    """What the library gives for arguments at an instruction set."""
    kind = operands[0].dtype
    with tempfile.TemporaryDirectory() as folder:
        given, made = pathlib.Path(folder, "x"), pathlib.Path(folder, "y")
        np.concatenate(operands).tofile(given)
        width = "f32" if kind == np.float32 else "f64"
        subprocess.run([program, name, width, given, made], check=True, env={**os.environ, "FERRITE_ISA": level})
        return np.fromfile(made, kind)


def every_exponent(kind: type) -> np.ndarray:
    """Numbers of every exponent, denormals too, both signs; mantissas at the ends and one that differs each time."""
    digits = FORMATS[kind][0]
    unsigned = np.uint32 if kind == np.float32 else np.uint64
    most = (1 << digits) - 1
    per = 4 if kind == np.float32 else 1
    bits = []
    for e in range(255 if kind == np.float32 else 2047):
        for k in range(per):
            bits.append(e << digits | int(((e * per + k) * 0.6180339887498949 % 1) * most))
        if e % 8 == 0:
            bits += [e << digits, e << digits | most, e << digits | 1]
    x = np.array([b for b in bits if b], unsigned).view(kind)
    return np.concatenate([x, -x])


def near_points(points: tuple, kind: type) -> np.ndarray:
    """The neighbours of points, closest ones and further ones."""
    out = []
    for p in points:
        c = kind(p)
        for direction in (kind(-np.inf), kind(np.inf)):
            v = c
            for _ in range(8):
                out.append(v)
                v = np.nextafter(v, direction)
        for k in range(2, FORMATS[kind][0], 2):
            out += [kind(p * (1 + 2.0**-k)), kind(p * (1 - 2.0**-k)), kind(p + 2.0**-k), kind(p - 2.0**-k)]
    return np.array(out, kind)


def in_range(low: float, high: float, n: int, kind: type, random: np.random.Generator) -> np.ndarray:
    """Evenly spread, and with exponents evenly spread."""
    even = random.uniform(low, high, n)
    size = 2.0 ** random.uniform(-24, np.log2(max(abs(low), abs(high))), n)
    signs = np.where(random.random(n) < 0.5, -1.0, 1.0) if low < 0 < high else np.full(n, 1.0 if high > 0 else -1.0)
    fine = size * signs
    return np.concatenate([even, fine[(fine >= low) & (fine <= high)]]).astype(kind)


def arguments(f: Function, kind: type, scale: float) -> list[np.ndarray]:
    """What is judged with 50 digits in any case."""
    random = np.random.default_rng(1)
    n = int(1000 * scale)
    if f.operands == 1:
        x = np.concatenate([every_exponent(kind), near_points(f.near, kind), in_range(*f.range, n, kind, random)])
        return [x]
    usual = [in_range(*r, n, kind, random) for r in f.ranges]
    for x in usual:
        random.shuffle(x)
    count = min(len(x) for x in usual)
    a, b = (every_exponent(kind)[::2] for _ in range(2))
    random.shuffle(b)
    far = [a, b]
    exponent = np.log2(np.abs(a.astype(np.float64)))
    with np.errstate(over="ignore"):
        close = a * random.uniform(0.25, 4, len(a)).astype(kind)  # of one size
    span = FORMATS[kind][2] / np.where(np.abs(exponent) < 1e-2, 1, exponent)
    powers = (random.uniform(-1, 1, len(a)) * span).astype(kind)
    whole = random.integers(-12, 12, len(a)).astype(kind)
    tilted = [np.concatenate([a, a, a]), np.concatenate([close, powers, whole])]
    parts = [np.concatenate([u[:count], v, w]) for u, v, w in zip(usual, far, tilted)]
    ok = np.isfinite(parts[0]) & np.isfinite(parts[1])
    return [p[ok] for p in parts]


def dense(f: Function) -> list[np.ndarray]:
    """Arguments in f32 for the first pass."""
    bits = np.arange(DENSE_STRIDE // 2, 1 << 32, DENSE_STRIDE, dtype=np.uint64).astype(np.uint32)
    x = bits.view(np.float32)
    x = x[np.isfinite(x)]
    random = np.random.default_rng(2)
    if f.operands == 1:
        return [np.concatenate([x, random.uniform(*f.range, 1_000_000).astype(np.float32)])]
    a, b = (random.uniform(*r, 2_000_000).astype(np.float32) for r in f.ranges)
    x = x[::4]
    y = x.copy()
    random.shuffle(y)
    return [np.concatenate([a, x]), np.concatenate([b, y])]


def units(y, exact: mpf, kind: type, at_least: mpf) -> tuple[float, bool]:
    """|y - exact| in units of the last place of the exact value or of `at_least`, and whether that is a denormal number.
    What overflows counts as the power of two behind the largest number."""
    digits, least, most = FORMATS[kind]
    end = mpf(2) ** (most + 1)
    exact = min(max(exact, -end), end)
    if np.isnan(y):
        return float("inf"), False
    value = mpf(float(y)) if np.isfinite(y) else (end if y > 0 else -end)
    size = max(abs(exact), at_least)
    mantissa, power = mpf(size).man_exp
    exponent = power + int(mantissa).bit_length() - 1 if mantissa else least
    denormal = exponent < least
    return float(abs(value - exact) / mpf(2) ** (max(exponent, least) - digits)), denormal


def worst_of_first_pass(y: np.ndarray, wide: np.ndarray) -> np.ndarray:
    """The places where f32 is farthest from f64, normal results and denormal ones."""
    with np.errstate(all="ignore"):
        near = np.abs(wide).astype(np.float32)
        off = np.abs(y - wide) / np.spacing(np.minimum(near, np.finfo(np.float32).max))
    off[np.isinf(y) & np.isinf(near) | ~np.isfinite(wide)] = 0
    off[np.isnan(off)] = np.inf
    normal = near >= np.finfo(np.float32).tiny
    picks = []
    for mask in (normal, ~normal):
        places = np.flatnonzero(mask & (off > 0.5))
        if len(places) > WORST:
            places = places[np.argpartition(off[places], -WORST)[-WORST:]]
        picks.append(places)
    return np.concatenate(picks)


class Worst:
    """The largest error of normal results and of denormal ones, and where."""

    def __init__(self):
        self.normal, self.at = 0.0, None
        self.denormal, self.denormal_at = 0.0, None

    def see(self, off: float, denormal: bool, at: tuple):
        if denormal:
            if off > self.denormal:
                self.denormal, self.denormal_at = off, at
        elif off > self.normal:
            self.normal, self.at = off, at


def measure(program: str, name: str, levels: list[str], scale: float) -> dict[tuple[str, str], Worst]:
    """By width and level."""
    f = FUNCTIONS[name]
    found: dict[tuple[str, str], Worst] = {}
    for kind in (np.float32, np.float64):
        width = "f32" if kind == np.float32 else "f64"
        x = arguments(f, kind, scale)
        if kind == np.float32:
            many = dense(f)
            wide = computed(program, name, [m.astype(np.float64) for m in many], levels[-1])
            picks = np.unique(np.concatenate(
                [worst_of_first_pass(computed(program, name, many, level), wide) for level in levels]))
            x = [np.concatenate([a, m[picks]]) for a, m in zip(x, many)]
        results = {level: computed(program, name, x, level) for level in levels}
        for level in levels:
            found[width, level] = Worst()
        for i, at in enumerate(zip(*x)):
            numbers = [mpf(float(v)) for v in at]
            exact = f.exact(*numbers)
            if exact is None:
                continue
            with np.errstate(over="ignore"):
                nearest = kind(float(exact))
            for level in levels:
                worst, y = found[width, level], results[level][i]
                if y == nearest and worst.normal > 0.5:
                    continue
                off, denormal = units(y, exact, kind, f.least(*numbers) if f.least else 0)
                worst.see(off, denormal, at)
    return found


def number(off: float) -> str:
    if off == float("inf"):
        return "NaN"
    return f"{off:.2f}" if off < 99.5 else f"{off:.0f}" if off < 1e6 else f"{off:.1e}"


def place(at) -> str:
    if at is None:
        return ""
    texts = [f"{float(v):.9g}" if isinstance(v, np.float32) else f"{float(v):.17g}" for v in at]
    return ", ".join(texts)


def row(name: str, found: dict, columns: list) -> str:
    cells = [f"`{name}`"]
    for column in columns:
        w = found[column]
        cells.append(f"{number(w.normal)} at {place(w.at)}" if w.at is not None else "0")
    return "| " + " | ".join(cells) + " |"


def denormal_results(name: str, found: dict, columns: list) -> list[str]:
    """Those whose error is larger than that of normal results."""
    return [f"`{name}` {width}, {level} {number(w.denormal)} at {place(w.denormal_at)}" for width, level in columns
            if (w := found[width, level]).denormal > max(1.0, w.normal)]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("program")
    options.add_argument("--levels", default="")
    options.add_argument("--only", default="")
    options.add_argument("--scale", type=float, default=1.0, help="how many arguments more or less")
    options.add_argument("--write", action="store_true")
    given = options.parse_args()
    levels = given.levels.split(",") if given.levels else told(given.program, "levels")
    listed = told(given.program, "list")
    if sorted(listed) != sorted(FUNCTIONS):
        print("functions of one side only:", set(listed) ^ set(FUNCTIONS))
        return 1
    names = given.only.split(",") if given.only else list(FUNCTIONS)
    columns = [(width, level) for width in ("f32", "f64") for level in levels]
    lines = ["| function | " + " | ".join(f"{width}, {level}" for width, level in columns) + " |",
             "|---" * (1 + len(columns)) + "|"]
    small, notes = [], []
    for name in names:
        found = measure(given.program, name, levels, given.scale)
        lines.append(row(name, found, columns))
        small += denormal_results(name, found, columns)
        if FUNCTIONS[name].note:
            notes.append(f"`{name}` {FUNCTIONS[name].note}")
        print(lines[-1], *denormal_results(name, found, columns), flush=True)
    if small:
        lines += ["", f"Results below the least normal number, in units of the least denormal one: {'; '.join(small)}."]
    if notes:
        lines += ["", "Errors count in units of the last place of another number where that is larger than the result: "
                  f"{'; '.join(notes)}."]
    text = "\n".join(lines)
    if given.write:
        page = pathlib.Path(PAGE).read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        pathlib.Path(PAGE).write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
