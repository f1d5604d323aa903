#!/usr/bin/env python3
"""PyTorch's times of the jobs of bench_convolution, one thread: forward, the gradient of the input and that of the
weights, in microseconds. With `blocked`, forward on oneDNN's own layouts alone.

    python3 bench/compare/torch_convolution.py [blocked]
"""
import sys
import time

import torch

torch.set_num_threads(1)
# Shape of x, channels of the result, kernel, stride, before, after, dilation, groups: as in bench_convolution.cpp.
JOBS = {
    "3x3, 3 to 16, 32 x 32": ([8, 3, 32, 32], 16, [3, 3], 1, 1, 1, 1),
    "3x3, 16 to 16, 32 x 32": ([8, 16, 32, 32], 16, [3, 3], 1, 1, 1, 1),
    "3x3, 32 to 32, 16 x 16": ([8, 32, 16, 16], 32, [3, 3], 1, 1, 1, 1),
    "3x3, 64 to 64, 14 x 14": ([8, 64, 14, 14], 64, [3, 3], 1, 1, 1, 1),
    "3x3, 64 to 64, 7 x 7": ([8, 64, 7, 7], 64, [3, 3], 1, 1, 1, 1),
    "3x3 / 2, 32 to 64, 28 x 28": ([8, 32, 28, 28], 64, [3, 3], 2, 1, 1, 1),
    "1x1, 64 to 64, 28 x 28": ([4, 64, 28, 28], 64, [1, 1], 1, 0, 1, 1),
    "5x5, 1 to 6, 28 x 28": ([32, 1, 28, 28], 6, [5, 5], 1, 2, 1, 1),
    "causal 3 x 8, 16 to 16, 2048": ([1, 16, 2048], 16, [3], 1, -16, 8, 1),
    "causal 3, 32 to 32, 1024": ([4, 32, 1024], 32, [3], 1, -2, 1, 1),
    "9, 64 to 64, 256": ([8, 64, 256], 64, [9], 1, 4, 1, 1),
    "16 / 4, 1 to 32, 8192": ([2, 1, 8192], 32, [16], 4, 6, 1, 1),
    "depthwise 3x3, 64, 32 x 32": ([8, 64, 32, 32], 64, [3, 3], 1, 1, 1, 64),
    "depthwise 3x3, 128, 14 x 14": ([8, 128, 14, 14], 128, [3, 3], 1, 1, 1, 128),
    "depthwise 3x3 / 2, 64, 28 x 28": ([8, 64, 28, 28], 64, [3, 3], 2, 1, 1, 64),
    "depthwise causal 4, 64, 1024": ([4, 64, 1024], 64, [4], 1, -3, 1, 64),
}


def microseconds(f):
    f()
    calls, spent = 1, 0.0
    while spent < 2e-3:
        start = time.perf_counter()
        for _ in range(calls):
            f()
        spent = time.perf_counter() - start
        calls *= 2
    calls //= 2
    samples = []
    for _ in range(11):
        start = time.perf_counter()
        for _ in range(calls):
            f()
        samples.append((time.perf_counter() - start) / calls)
    return sorted(samples)[len(samples) // 2] * 1e6


blocked = "blocked" in sys.argv
for name, (shape, channels, kernel, stride, padding, dilation, groups) in JOBS.items():
    axes = len(kernel)
    x = torch.rand(shape)
    if padding < 0:  # causal: padded before, outside of what is timed
        x, padding = torch.nn.functional.pad(x, (-padding, 0)), 0
    w = torch.rand([channels, shape[1] // groups] + kernel)
    conv = [torch.conv1d, torch.conv2d][axes - 1]
    options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    y = conv(x, w, **options)
    back = lambda mask: torch.ops.aten.convolution_backward(
        y, x, w, None, [stride] * axes, [padding] * axes, [dilation] * axes, False, [0] * axes, groups, mask)
    with torch.no_grad():
        if blocked:
            own = x.to_mkldnn()
            print(f"{name:31} | {microseconds(lambda: torch.mkldnn_convolution(own, w, None, [padding] * axes, [stride] * axes, [dilation] * axes, groups)):8.1f}")
            continue
        times = [microseconds(lambda: conv(x, w, **options)), microseconds(lambda: back([True, False, False])),
                 microseconds(lambda: back([False, True, False]))]
    print(f"{name:31} | " + " | ".join(f"{t:8.1f}" for t in times), flush=True)
