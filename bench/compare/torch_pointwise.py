#!/usr/bin/env python3
"""Compares elementwise functions and activations with PyTorch, one thread each: the jobs of bench_pointwise and PyTorch
take turns. Prints nanoseconds an element, forward and with the gradient, of 1e3, 1e5 and 1e7 floats.

    python3 bench/compare/torch_pointwise.py [--build build/release] [--rounds 3] [--out FILE.json] [NAME ...]
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import confirm  # noqa: E402
SIZES = [1000, 100000, 10000000]
WEIGHT = torch.full([1], 0.25)
# Bounds of the operands, the function, whether it has a gradient: as in bench_pointwise.cpp.
WIDE, ABOVE, INSIDE = (-4, 4), (0.1, 4), (-0.99, 0.99)
ONE = {
    "relu": (WIDE, F.relu), "gelu": (WIDE, F.gelu), "gelu_tanh": (WIDE, lambda x: F.gelu(x, approximate="tanh")),
    "silu": (WIDE, F.silu), "sigmoid": (WIDE, torch.sigmoid), "tanh": (WIDE, torch.tanh),
    "softplus": (WIDE, F.softplus), "log_sigmoid": (WIDE, F.logsigmoid), "softsign": (WIDE, F.softsign),
    "leaky_relu": (WIDE, F.leaky_relu), "elu": (WIDE, F.elu), "selu": (WIDE, F.selu),
    "celu": (WIDE, lambda x: F.celu(x, 0.5)), "hardtanh": (WIDE, F.hardtanh), "relu6": (WIDE, F.relu6),
    "hardsigmoid": (WIDE, F.hardsigmoid), "hardswish": (WIDE, F.hardswish), "mish": (WIDE, F.mish),
    "softshrink": (WIDE, F.softshrink), "hardshrink": (WIDE, F.hardshrink), "tanhshrink": (WIDE, F.tanhshrink),
    "threshold": (WIDE, lambda x: F.threshold(x, 0.5, -3)), "prelu": (WIDE, lambda x: F.prelu(x, WEIGHT)),
    "glu": (WIDE, F.glu), "exp": (WIDE, torch.exp), "expm1": (WIDE, torch.expm1), "log": (ABOVE, torch.log),
    "log1p": (ABOVE, torch.log1p), "log2": (ABOVE, torch.log2), "log10": (ABOVE, torch.log10),
    "sqrt": (ABOVE, torch.sqrt), "sin": (WIDE, torch.sin), "cos": (WIDE, torch.cos), "tan": (WIDE, torch.tan),
    "asin": (INSIDE, torch.asin), "acos": (INSIDE, torch.acos), "atan": (WIDE, torch.atan), "sinh": (WIDE, torch.sinh),
    "cosh": (WIDE, torch.cosh), "asinh": (WIDE, torch.asinh), "acosh": ((1.1, 4), torch.acosh),
    "atanh": (INSIDE, torch.atanh), "sinc": (WIDE, torch.sinc), "erf": (WIDE, torch.erf), "erfc": (WIDE, torch.erfc),
    "erfinv": (INSIDE, torch.erfinv), "lgamma": ((0.1, 20), torch.lgamma), "digamma": ((0.1, 20), torch.digamma),
    "logit": ((0.01, 0.99), torch.logit), "floor": (WIDE, torch.floor), "round": (WIDE, torch.round),
    "trunc": (WIDE, torch.trunc), "frac": (WIDE, torch.frac), "nan_to_num": (WIDE, torch.nan_to_num),
}
TWO = {
    "atan2": (ABOVE, torch.atan2), "hypot": (ABOVE, torch.hypot), "pow": (ABOVE, torch.pow), "fmod": (ABOVE, torch.fmod),
    "remainder": (ABOVE, torch.remainder), "floor_divide": (ABOVE, torch.floor_divide),
    "logaddexp": (WIDE, torch.logaddexp), "xlogy": (ABOVE, torch.xlogy),
    "lerp": (WIDE, lambda a, b: torch.lerp(a, b, 0.25)), "copysign": (WIDE, torch.copysign),
}
TESTS = {"isnan": lambda a, b: torch.isnan(a), "isinf": lambda a, b: torch.isinf(a),
         "isfinite": lambda a, b: torch.isfinite(a), "isclose": torch.isclose}
NAMES = [*ONE, *TWO, *TESTS]


def seconds(f, samples):
    f()
    calls, spent = 1, 0.0
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            f()
        spent = time.perf_counter() - start
        if spent > 1e-3:
            break
        calls *= 2
    times = []
    for _ in range(samples):
        start = time.perf_counter()
        for _ in range(calls):
            f()
        times.append((time.perf_counter() - start) / calls)
    undisturbed = [t for t in times if t <= 1.15 * min(times)]
    return statistics.median(undisturbed)


def peer(name, n):
    """Returns nanoseconds an element: forward, with the gradient."""
    torch.manual_seed(1)
    low, high = (ONE | TWO)[name][0] if name not in TESTS else WIDE
    a, b = (torch.rand(n) * (high - low) + low for _ in range(2))
    operands = [a] if name in ONE else [a, b]
    f = TESTS[name] if name in TESTS else (ONE | TWO)[name][1]
    samples = 5 if n > 1000000 else 11
    with torch.no_grad():
        back = torch.rand_like(f(*operands), dtype=torch.float32)
        times = [seconds(lambda: f(*operands), samples)]
    if name not in TESTS and name != "floor_divide":  # floor_divide has no gradient in PyTorch
        variables = [x.requires_grad_() for x in operands]
        times.append(seconds(lambda: torch.autograd.grad(f(*variables), variables, back), samples))
    return [t / n * 1e9 for t in times]


def ours(program, name):
    """Returns nanoseconds an element in bench_pointwise, by the number of elements."""
    text = subprocess.run([program, name], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()[1:]]
    return {int(row[1]): [float(t) for t in row[2:]] for row in rows}


def confirmed(rounds):
    """Returns the median of every column, or None where no second round is within a tenth of it."""
    out = []
    for column in zip(*rounds):
        ordered = sorted(column)
        middle = ordered.pop(len(ordered) // 2)
        out.append(middle if any(confirm.agree(middle, other) for other in ordered) else None)
    return out


def shown(t):
    return "-" if t is None else f"{t:.3f}" if t < 10 else f"{t:.1f}"


def cell(times):
    """Returns our and PyTorch's times of one size, forward and with the gradient; lost ones are in bold."""
    pairs = zip(times["ours"], times["torch"])
    lost = lambda a, b: a is not None and b is not None and a > b
    return "; ".join(f"**{shown(a)} / {shown(b)}**" if lost(a, b) else f"{shown(a)} / {shown(b)}" for a, b in pairs)


def table(result):
    """Returns the Markdown table of a result that `--out` has written."""
    head = " | ".join(f"n = {float(n):.0e}" for n in result["memcpy"])
    lines = [f"| ns an element: Ferrite / torch {result['torch']} | {head} |",
             "|---" * (1 + len(result["memcpy"])) + "|",
             "| a copy | " + " | ".join(shown(t) for t in result["memcpy"].values()) + " |"]
    lost, cells = 0, 0
    for name, row in result["functions"].items():
        lines.append(f"| {name} | " + " | ".join(cell(times) for times in row.values()) + " |")
        for times in row.values():
            known = [(a, b) for a, b in zip(times["ours"], times["torch"]) if a is not None and b is not None]
            lost, cells = lost + sum(a > b for a, b in known), cells + len(known)
    return "\n".join([*lines, "", f"Lost: {lost} of {cells} figures, in bold."])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--rounds", type=int, default=confirm.RUNS)
    parser.add_argument("--out", type=pathlib.Path, help="JSON; what other functions have in it stays")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    program = options.build / "bench" / "bench_pointwise"
    result = {"torch": torch.__version__, "unit": "ns an element", "memcpy": {}, "functions": {}}
    if options.out and options.out.exists() and options.names:
        result = json.loads(options.out.read_text())
    if not result["memcpy"]:
        result["memcpy"] = {str(n): t[0] for n, t in ours(program, "memcpy").items()}
    for name in options.names or NAMES:
        rounds = [(ours(program, name), {n: peer(name, n) for n in SIZES}) for _ in range(options.rounds)]
        result["functions"][name] = {str(n): {"ours": confirmed([mine[n] for mine, _ in rounds]),
                                              "torch": confirmed([other[n] for _, other in rounds])} for n in SIZES}
        print(f"{name:13} | " + " | ".join(cell(times) for times in result["functions"][name].values()), flush=True)
        if options.out:
            options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
