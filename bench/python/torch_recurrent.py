"""Measures how many times as fast as PyTorch's eager mode ferrite.torch is, forward and with the gradient.

    python bench/python/torch_recurrent.py [--kinds GRU LSTM RNN] [--grid] [--installed] [--threads N]

Both sides run in turns in one process, on as many threads as PyTorch uses by default (or N). A figure is the ratio of
the lower quartiles of the two sides. Input size = hidden size; x has no gradient.
"""
import argparse
import itertools
import time

import torch

import ferrite
import ferrite.torch

NAMED = [(16, 100, 1), (64, 100, 1), (128, 50, 32)]
GRID = list(itertools.product((8, 16, 64, 128, 512), (1, 10, 50, 200), (1, 8, 64)))


def forward(m, x):
    with torch.no_grad():
        m(x)


def both(m, x, d):
    y, _ = m(x)
    torch.autograd.backward(y, d)
    for p in m.parameters():
        p.grad = None


def clock(f):
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def low(times):
    """Returns the lower quartile: other programs on the machine only add to a time."""
    return sorted(times)[len(times) // 4]


def quartiles(sides, seconds):
    """Returns the time of each side, run in turns for about `seconds`, at least 5 times."""
    for f in sides:
        f()
    once = sum(clock(f) for f in sides)
    turns = max(5, min(400, int(seconds / once)))
    times = [[] for _ in sides]
    for k in range(turns):
        for i in range(len(sides)):
            i = (i + k) % len(sides)
            times[i].append(clock(sides[i]))
    return [low(t) for t in times]


def measure(kind, H, T, B, installed, seconds):
    """Returns (time of PyTorch, time of Ferrite, why PyTorch ran it) forward and with the gradient."""
    plain = getattr(torch.nn, kind)(H, H)
    ours = getattr(ferrite.torch, kind)(H, H)
    ours.load_state_dict(plain.state_dict())
    x = torch.randn(T, B, H)
    d = torch.randn(T, B, H)
    rows = []
    for f in (lambda m: forward(m, x), lambda m: both(m, x, d)):
        if installed:
            # Switching takes longer than a call, so that blocks of calls take turns.
            a, b = [], []
            n = max(3, min(50, int(seconds / 8 / max(1e-6, clock(lambda: f(plain))))))
            for _ in range(4):
                a += [clock(lambda: f(plain)) for _ in range(n)]
                with ferrite.torch.installed():
                    f(plain)
                    b += [clock(lambda: f(plain)) for _ in range(n)]
                    reason = ferrite.torch.why()
            rows.append((low(a), low(b), reason))
        else:
            a, b = quartiles((lambda: f(plain), lambda: f(ours)), seconds)
            rows.append((a, b, ferrite.torch.why()))
    return rows


def show(kind, cell, rows):
    text = []
    for a, b, reason in rows:
        text.append(f"{a * 1e6:10.1f} {b * 1e6:10.1f} {a / b:7.2f}{'*' if reason else ' '}")
    print(f"{kind:4} {cell[0]:4}/{cell[1]:3}/{cell[2]:2} " + " ".join(text), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="*", default=["GRU", "LSTM", "RNN"])
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--installed", action="store_true", help="measure torch.nn's modules with Ferrite installed")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="threads of both sides")
    parser.add_argument("--seconds", type=float, default=0.5)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    ferrite.set_threads(args.threads)
    print(f"PyTorch {torch.__version__}: {torch.get_num_threads()} threads; Ferrite: {ferrite.thread_count()} threads")
    print("H/T/B; microseconds of PyTorch and Ferrite, their ratio: forward, forward + backward; *: left to PyTorch")
    for kind in args.kinds:
        found = []
        for cell in NAMED + (GRID if args.grid else []):
            rows = measure(kind, *cell, args.installed, args.seconds)
            show(kind, cell, rows)
            found += [(a / b, cell, what) for (a, b, _), what in zip(rows, ("forward", "forward + backward"))]
        for ratio, cell, what in sorted(found)[:6]:
            print(f"  lowest: {ratio:.2f} at {'/'.join(map(str, cell))} {what}")


if __name__ == "__main__":
    main()
