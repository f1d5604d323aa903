#!/usr/bin/env python3
"""PyTorch's answers to catalogue.py: lines "job a b c d seconds" with microseconds. catalogue_torch.py default|fused:
`fused` times only optimisers, in their fused form."""
import sys

import torch
import torch.nn.functional as F

from peer import Absent, microseconds

OPTIM = torch.optim
OPTIMIZERS = {
    "sgd": (OPTIM.SGD, {}), "sgd_momentum": (OPTIM.SGD, {"momentum": 0.9}),
    "sgd_nesterov": (OPTIM.SGD, {"momentum": 0.9, "nesterov": True}),
    "sgd_dampening": (OPTIM.SGD, {"momentum": 0.9, "dampening": 0.1}),
    "adam": (OPTIM.Adam, {}), "adam_amsgrad": (OPTIM.Adam, {"amsgrad": True}),
    "adamw": (OPTIM.AdamW, {"weight_decay": 0.01}), "nadam": (OPTIM.NAdam, {}), "radam": (OPTIM.RAdam, {}),
    "adamax": (OPTIM.Adamax, {}), "rmsprop": (OPTIM.RMSprop, {}),
    "rmsprop_centered": (OPTIM.RMSprop, {"momentum": 0.9, "centered": True}),
    "adagrad": (OPTIM.Adagrad, {}), "adadelta": (OPTIM.Adadelta, {}), "adafactor": (OPTIM.Adafactor, {}),
}
FUSED = ("sgd", "adam", "adagrad")


def optimizer(job, count, rows, columns, fused):
    if job not in OPTIMIZERS or (fused and not job.startswith(FUSED)):
        raise Absent("no such optimiser")
    parameters = [torch.nn.Parameter(torch.ones(rows, columns)) for _ in range(count)]
    for p in parameters:
        p.grad = torch.rand(rows, columns) * 2 - 1
    make, options = OPTIMIZERS[job]
    # By default a loop over the parameters: PyTorch uses its foreach form on GPUs only.
    if fused:
        options = options | {"fused": True}
    return make(parameters, lr=1e-3, **options).step


def with_gradient(x, f, gradient):
    if not gradient:
        def forward():
            with torch.no_grad():
                return f(x)

        return forward
    x = x.requires_grad_()

    def both():
        y = f(x)
        return torch.autograd.grad(y, x, torch.ones_like(y))

    return both


def ctc(T, B, C, S, gradient):
    scores = torch.log_softmax(torch.rand(T, B, C) * 4 - 2, -1)
    y = torch.tensor([1 + i * 7 % 13 % (C - 1) for i in range(B * S)]).reshape(B, S)
    lengths = torch.full((B,), T), torch.full((B,), S)
    return with_gradient(scores, lambda x: F.ctc_loss(x, y, *lengths), gradient)


def transform(job, n, batch):
    if job == "irfft":
        x = torch.randn(batch, n // 2 + 1, dtype=torch.complex64)
        return with_gradient(x, lambda t: torch.fft.irfft(t, n), False)
    if job == "fft":
        return with_gradient(torch.randn(batch, n, dtype=torch.complex64), torch.fft.fft, False)
    x = torch.rand(batch, n)
    if job == "rfft":
        return with_gradient(x, torch.fft.rfft, False)
    window = torch.hann_window(512)
    return with_gradient(x, lambda t: torch.view_as_real(torch.stft(t, 512, 128, window=window, return_complex=True)),
                         job == "stft_grad")


def indexing(job, rows, columns, places):
    x = torch.rand(rows, columns)
    if job.startswith("gather"):
        at = (torch.arange(places * columns) * 7919 % rows).reshape(places, columns)
        return with_gradient(x, lambda t: torch.gather(t, 0, at), job == "gather_grad")
    at = torch.arange(places) * 7919 % rows
    if job == "index_add":
        source = torch.rand(places, columns)
        return with_gradient(x, lambda t: torch.index_add(t, 0, at, source), False)
    if job.startswith("embedding"):
        return with_gradient(x, lambda t: F.embedding(at, t), job == "embedding_grad")
    return with_gradient(x, lambda t: torch.index_select(t, 0, at), job == "index_select_grad")


def call_of(job, a, b, c, d, fused):
    if job in ("sweep", "lion") or job.startswith("rnnt"):
        raise Absent("not here")
    if job in OPTIMIZERS:
        return optimizer(job, a, b, c, fused)
    if fused:
        raise Absent("nothing is fused")
    if job.startswith("ctc"):
        return ctc(a, b, c, d, job == "ctc_grad")
    if "fft" in job or "stft" in job:
        return transform(job, a, b)
    return indexing(job, a, b, c)


def main():
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    fused = sys.argv[1] == "fused"
    print(f"torch {torch.__version__}", flush=True)
    for line in sys.stdin:
        job, *rest = line.split()
        try:
            print(microseconds(call_of(job, *map(int, rest[:4]), fused), float(rest[4])), flush=True)
        except Absent as reason:
            print("none", reason, flush=True)


if __name__ == "__main__":
    main()
