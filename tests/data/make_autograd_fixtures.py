#!/usr/bin/env python3
"""Writes autograd.safetensors: what torch.autograd.functional gives in f64 for functions of several kinds, and how
torch.utils.checkpoint, torch.nn.utils and hooks behave.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_autograd_fixtures.py [FOLDER]

Case NAME, a function of inputs NAME/in0, ...: its result NAME/out; tangents NAME/v0, ... and the jvp NAME/jvp; a cotangent
NAME/u and the vjp NAME/vjp0, ...; the Jacobians NAME/j0, .... For the function's weighted sum of squares, sum(w f^2):
NAME/w, the Hessian's blocks NAME/h00, ..., its products NAME/hvp0, ..., and third derivatives NAME/t0, ...: the gradient
of <v, H v>. tests/golden/autograd_golden_test.cpp has the counterpart of every case.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F
from reference import save_file
from torch.autograd import functional as A

torch.manual_seed(17)


def r(*shape):
    return torch.rand(shape, dtype=torch.float64) * 2 - 1


def t(*values):
    return torch.tensor(values, dtype=torch.float64)


INDEX = torch.tensor([[0, 2, 2], [1, 0, 1]])

CASES = {
    "square": (lambda x: x * x, [r(4)]),
    "tanh_of_product": (lambda x, w: torch.tanh(x @ w), [r(2, 3), r(3, 2)]),
    "mlp": (lambda x, w, b, v: torch.tanh(x @ w + b) @ v, [r(2, 3), r(3, 4), r(4), r(4, 2)]),
    "softmax": (lambda x: torch.softmax(x, -1), [r(2, 4)]),
    "log_softmax": (lambda x: torch.log_softmax(x, 0), [r(3, 2)]),
    "logsumexp": (lambda x: torch.logsumexp(x, 1), [r(2, 4)]),
    # Composed: the third derivative of torch's own operation takes mean and deviation for constants.
    "layer_norm": (lambda x: (x - x.mean(-1, True)) / (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt(), [r(2, 4)]),
    "gelu": (F.gelu, [r(5)]),
    "silu": (F.silu, [r(5)]),
    "sigmoid": (torch.sigmoid, [r(5)]),
    "softplus": (F.softplus, [r(5)]),
    "exp_sin": (lambda x, y: torch.exp(torch.sin(x) * y), [r(3), r(3)]),
    "quotient": (lambda x, y: x / (2 + y * y), [r(2, 3), r(3)]),
    "power": (lambda x: (2 + x) ** 1.5, [r(4)]),
    "pow_both": (lambda x, y: torch.pow(2 + x, y), [r(3), r(3)]),
    "broadcast": (lambda x, y: x * y + y, [r(2, 1, 3), r(2, 1)]),
    "prod": (lambda x: x.prod(1), [r(2, 3)]),
    "prod_with_zero": (lambda x: x.prod(), [t(2.0, 0.0, 3.0)]),
    "var": (lambda x: x.var(1), [r(2, 4)]),
    "amax_of_distinct": (lambda x: x.amax(1) * x.sum(1), [t([1.0, 3.0, 2.0], [-1.0, -2.0, -3.0])]),
    "gather": (lambda x: torch.gather(x, 1, INDEX) ** 2, [r(2, 3)]),
    "scatter_add": (lambda x, s: torch.scatter_add(x, 1, INDEX, s) ** 2, [r(2, 3), r(2, 3)]),
    "where": (lambda x, y: torch.where(x > 0, x * y, y * y), [t(0.5, -0.5, 1.0, -1.0), r(4)]),
    "relu": (lambda x: torch.relu(x) * x, [t(0.5, -0.5, 1.0, -1.0)]),
    "clamp": (lambda x: x.clamp(-0.5, 0.5) * x, [t(0.25, -0.75, 1.0, -0.25)]),
    "pad_slice_concat": (lambda x, y: torch.cat([F.pad(x, (1, 2))[1:5], y]) ** 3, [r(3), r(2)]),
    "permute_reshape": (lambda x: (x.permute(2, 0, 1).reshape(4, 3)) ** 2, [r(1, 3, 4)]),
    "rank_0": (lambda x, y: x * torch.cos(y), [r(), r()]),
    "one_element": (lambda x: torch.log(x * x + 1), [r(1, 1)]),
    "tall": (lambda x: torch.outer(x, x).flatten(), [r(3)]),
    "wide": (lambda x: (x @ x.T).sum(0)[:1], [r(3, 3)]),
    "independent": (lambda x, y: x * 2, [r(2), r(3)]),
    "batched_product": (lambda a, b: a @ b, [r(2, 2, 3), r(3, 2)]),
    "cross_entropy": (lambda x: F.cross_entropy(x, torch.tensor([1, 0]), reduction="none"), [r(2, 3)]),
    "bce": (lambda x, y: F.binary_cross_entropy_with_logits(x, torch.sigmoid(y), reduction="none"), [r(3), r(3)]),
    "recurrence": (lambda h, w: torch.tanh(torch.tanh(torch.tanh(h @ w) @ w) @ w), [r(2), r(2, 2)]),
}


def case(name, f, inputs):
    inputs, v = tuple(inputs), tuple(r(*x.shape) for x in inputs)
    options = {"strict": False}
    out, jvp = A.jvp(f, inputs, v, **options)
    u, w = r(*out.shape), r(*out.shape)
    found = {f"{name}/in{k}": x for k, x in enumerate(inputs)} | {f"{name}/v{k}": x for k, x in enumerate(v)}
    found |= {f"{name}/out": out, f"{name}/jvp": jvp, f"{name}/u": u, f"{name}/w": w}
    found |= {f"{name}/vjp{k}": g for k, g in enumerate(A.vjp(f, inputs, u, **options)[1])}
    found |= {f"{name}/j{k}": j for k, j in enumerate(A.jacobian(f, inputs, **options))}

    def loss(*x):
        return (w * f(*x) ** 2).sum()

    for i, row in enumerate(A.hessian(loss, inputs, **options)):
        found |= {f"{name}/h{i}{k}": h for k, h in enumerate(row)}
    found |= {f"{name}/hvp{k}": h for k, h in enumerate(A.hvp(loss, inputs, v, **options)[1])}

    def curvature(*x):
        products = A.hvp(loss, x, v, create_graph=True, **options)[1]
        return sum((a * b).sum() for a, b in zip(products, v))

    found |= {f"{name}/t{k}": g for k, g in enumerate(A.vjp(curvature, inputs, **options)[1])}
    return {key: value.detach().clone().contiguous() for key, value in found.items()}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    tensors = {}
    for name, (f, inputs) in CASES.items():
        tensors |= case(name, f, inputs)
    save_file(tensors, folder / "autograd.safetensors", {"torch": torch.__version__})
    print(len(CASES), "cases of", torch.__version__)


main()
