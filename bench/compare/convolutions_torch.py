#!/usr/bin/env python3
"""PyTorch's answers to convolutions.py, lines as bench_convolution takes them, with two numbers: microseconds of the
call, and of oneDNN's convolution inside it alone, by oneDNN's own clock (its verbose mode): without the rearranging of
x, weights and result that the call does around it. The second is "none" where PyTorch does not use oneDNN."""
import os
import statistics
import sys
import tempfile

import torch

from peer import microseconds, undisturbed_median

MKLDNN = torch.backends.mkldnn


def numbers(text):
    return [int(n) for n in text.split("x")]


def call_of(what, x, channels, kernel, stride, before, after, dilation, groups):
    x, kernel = torch.rand(numbers(x)) * 2 - 1, numbers(kernel)
    axes, (stride, before, after, dilation, groups) = len(kernel), map(int, (stride, before, after, dilation, groups))
    if before != after:  # padded outside the timed part
        x, before = torch.nn.functional.pad(x, (before, after)), 0
    w = torch.rand([int(channels), x.shape[1] // groups] + kernel) * 2 - 1
    conv = (torch.conv1d, torch.conv2d)[axes - 1]
    options = dict(stride=stride, padding=before, dilation=dilation, groups=groups)
    if what == "forward":
        return lambda: conv(x, w, **options)
    g = torch.rand_like(conv(x, w, **options))
    mask = [what == "input", what == "weights", False]
    return lambda: torch.ops.aten.convolution_backward(
        g, x, w, None, [stride] * axes, [before] * axes, [dilation] * axes, False, [0] * axes, groups, mask)


def inside(call, calls):
    """Returns microseconds of the convolution itself, as oneDNN prints them."""
    sys.stdout.flush()
    kept = os.dup(1)
    with tempfile.TemporaryFile("w+") as log:
        os.dup2(log.fileno(), 1)
        try:
            with MKLDNN.verbose(MKLDNN.VERBOSE_ON):
                for _ in range(calls):
                    call()
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        log.seek(0)
        times = [float(line.rsplit(",", 1)[1]) for line in log if ",exec,cpu,convolution," in line]
    # Times below the clock's resolution are of no use.
    return 1e3 * (undisturbed_median(times) if min(times) > 0 else statistics.mean(times)) if times else None


def main():
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}", flush=True)
    for line in sys.stdin:
        *job, seconds = line.split()
        with torch.no_grad():
            call = call_of(*job)
            us = microseconds(call, float(seconds))
            print(us, inside(call, max(5, min(200, int(1e6 * float(seconds) / us)))) or "none", flush=True)


if __name__ == "__main__":
    main()
