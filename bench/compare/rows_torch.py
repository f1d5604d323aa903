#!/usr/bin/env python3
"""PyTorch's answers to rows.py: lines "job rows n seconds" with microseconds."""
import sys

import torch
import torch.nn.functional as F

from peer import microseconds

OF_ROWS = {
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "sum": lambda x: x.sum(-1),
    "var": lambda x: x.var(-1),
    "var_columns": lambda x: x.var(0),
    "stddev": lambda x: x.std(-1),
    "norm_1": lambda x: torch.linalg.vector_norm(x, 1, -1),
    "norm_2": lambda x: torch.linalg.vector_norm(x, 2, -1),
    "norm_inf": lambda x: torch.linalg.vector_norm(x, float("inf"), -1),
    "norm_3": lambda x: torch.linalg.vector_norm(x, 3, -1),
    "cumsum": lambda x: torch.cumsum(x, -1),
    "cumsum_columns": lambda x: torch.cumsum(x, 0),
    "cumprod": lambda x: torch.cumprod(x, -1),
    "cummax": lambda x: torch.cummax(x, -1).values,
    "logcumsumexp": lambda x: torch.logcumsumexp(x, -1),
    "sort": lambda x: torch.sort(x, stable=True).values,
    "argsort": lambda x: torch.argsort(x, stable=True),
    "topk_4": lambda x: torch.topk(x, 4).values,
    "kthvalue": lambda x: torch.kthvalue(x, x.shape[1] // 2).values,
}
OF_LINES = {"max_pool1d_2": lambda x: F.max_pool1d(x, 2), "avg_pool1d_2": lambda x: F.avg_pool1d(x, 2)}
OF_PLANES = {
    "max_pool2d_2": lambda x: F.max_pool2d(x, 2),
    "max_pool2d_3": lambda x: F.max_pool2d(x, 3, stride=2, padding=1),
    "avg_pool2d_2": lambda x: F.avg_pool2d(x, 2),
    "avg_pool2d_3": lambda x: F.avg_pool2d(x, 3, stride=1, padding=1),
}


def call_of(name, rows, n):
    function = name.removesuffix("_grad")
    for jobs, shape in ((OF_ROWS, [rows, n]), (OF_LINES, [rows // 8, 8, n]), (OF_PLANES, [rows // 8, 8, n, n])):
        if function in jobs:
            f, x = jobs[function], 0.9 + 0.2 * torch.rand(shape)
    if name == function:
        def forward():
            with torch.no_grad():
                return f(x)
        return forward
    x.requires_grad_()
    cotangent = torch.rand_like(f(x))
    return lambda: torch.autograd.grad(f(x), x, cotangent)


torch.set_num_threads(1)
torch.set_flush_denormal(True)
print("torch " + torch.__version__, flush=True)
for line in sys.stdin:
    job, rows, n, seconds = line.split()
    print(microseconds(call_of(job, int(rows), int(n)), float(seconds)), flush=True)
