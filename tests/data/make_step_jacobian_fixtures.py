#!/usr/bin/env python3
"""Writes step_jacobians.safetensors: the Jacobians of a step of a GRU, an LSTM and a GRU with a linear layer, in f64.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_step_jacobian_fixtures.py [FOLDER]

Case NAME: the parameters NAME/... as PyTorch names them, inputs NAME/x and NAME/h (and NAME/c), and for each result a
(y, h, c) and input b the Jacobian NAME/da_db, [elements of a, elements of b], by torch.func.jacrev. The counterparts are in
tests/exchange/frozen_derivatives_test.cpp.
"""
import pathlib
import sys

import torch
from reference import save_file
from torch.func import jacrev

torch.manual_seed(23)
torch.set_default_dtype(torch.float64)


class WithHead(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = torch.nn.GRU(2, 4, batch_first=True)
        self.head = torch.nn.Linear(4, 1)


def step(name, net):
    def gru(x, h):
        y, hn = net(x[:, None], h)
        return y[:, 0], hn

    def lstm(x, h, c):
        y, (hn, cn) = net(x[:, None], (h, c))
        return y[:, 0], hn, cn

    def head(x, h):
        y, hn = net.gru(x[:, None], h)
        return net.head(y[:, 0]), hn

    return {"gru": gru, "lstm": lstm, "head": head}[name]


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    tensors = {}
    nets = {"gru": torch.nn.GRU(2, 4, batch_first=True), "lstm": torch.nn.LSTM(2, 4, batch_first=True), "head": WithHead()}
    for name, net in nets.items():
        names = ["x", "h", "c"][: 3 if name == "lstm" else 2]
        inputs = [torch.rand(1, 2) * 2 - 1] + [torch.rand(1, 1, 4) * 2 - 1 for _ in names[1:]]
        for n, p in net.named_parameters():
            tensors[f"{name}/{n}"] = p.detach().clone()
        for n, x in zip(names, inputs):
            tensors[f"{name}/{n}"] = x
        f = step(name, net)
        results = f(*inputs)
        blocks = jacrev(f, argnums=tuple(range(len(inputs))))(*inputs)
        for a, y, row in zip(["y", "h", "c"], results, blocks):
            for b, x, j in zip(names, inputs, row):
                tensors[f"{name}/d{a}_d{b}"] = j.detach().reshape(y.numel(), x.numel()).contiguous()
    save_file(tensors, folder / "step_jacobians.safetensors", {"torch": torch.__version__})


if __name__ == "__main__":
    main()
