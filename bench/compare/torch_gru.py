#!/usr/bin/env python3
"""Times torch.nn.GRU: answers lines "forward H T B" and "train H T B" with microseconds, one thread."""
import sys
import time

import torch


def seconds(f):
    """The median of three samples of at least 5 ms."""
    f()
    calls, spent = 1, 0.0
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            f()
        spent = time.perf_counter() - start
        if spent > 5e-3:
            break
        calls *= 2
    samples = []
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(calls):
            f()
        samples.append((time.perf_counter() - start) / calls)
    return sorted(samples)[1]


def measure(mode, H, T, B):
    gru = torch.nn.GRU(H, H, batch_first=True)
    x = torch.rand(B, T, H) * 2 - 1

    def forward():
        with torch.no_grad():
            gru(x)

    def train():
        gru.zero_grad()
        y, _ = gru(x)
        (y * y).sum().backward()

    return 1e6 * seconds(forward if mode == "forward" else train)


def main():
    torch.set_num_threads(1)
    print(torch.__version__, flush=True)
    for line in sys.stdin:
        mode, *sizes = line.split()
        print(measure(mode, *map(int, sizes)), flush=True)


if __name__ == "__main__":
    main()
