#!/usr/bin/env python3
"""Writes corners.safetensors: what PyTorch gives for operations, their gradients and the gradients of these, in f64, at the
points that random values never meet: zeros, ties, equal elements, ends of domains, exponents 0, infinities.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_corner_fixtures.py [FOLDER]

Case NAME holds the inputs NAME/in0, ... (f64), NAME/out, a cotangent NAME/cot, the gradients NAME/g0, ..., cotangents of
these NAME/v0, ..., and NAME/h00, NAME/h01, ...: the gradient of <v_j, g_j> with respect to input k under h<j><k>.
tests/golden/corners_golden_test.cpp has the counterpart of every case, and says where our convention is another.
"""
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

torch.manual_seed(11)
INF = math.inf


def t(*values):
    return torch.tensor(values, dtype=torch.float64)


def grid(a, b):
    """All pairs."""
    pairs = torch.cartesian_prod(t(*a), t(*b))
    return [pairs[:, 0].contiguous(), pairs[:, 1].contiguous()]


ALL = t(0.0, -0.0, 1.0, -1.0, INF, -INF, 1e-300, -1e-300, 30.0, -30.0, 800.0, -800.0)
POSITIVE = t(0.0, 1.0, INF, 1e-300, 1e300)
SMALL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0]
ZEROS = t([2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0], [1.0, 2.0, 4.0], [-0.0, 1.0, 1.0])
TIES = t([1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [0.0, -0.0, 0.0], [-1.0, -2.0, -1.0], [0.0, 0.0, 5.0])
FAR = t([0.0, 0.0, 0.0], [800.0, 800.0, -800.0], [-800.0, 0.0, 800.0], [1e300, 0.0, 1e300], [-INF, 0.0, 0.0])

CASES = {
    "abs": (torch.abs, [ALL]), "sign": (torch.sign, [ALL]), "square": (torch.square, [t(*SMALL)]),
    "neg": (torch.neg, [ALL]), "sqrt": (torch.sqrt, [POSITIVE]), "rsqrt": (torch.rsqrt, [t(1.0, 4.0, INF, 0.0)]),
    "reciprocal": (torch.reciprocal, [t(0.0, 1.0, -1.0, INF)]), "exp": (torch.exp, [ALL]), "exp2": (torch.exp2, [ALL]),
    "expm1": (torch.expm1, [t(0.0, -0.0, 1.0, -INF, -800.0)]), "log": (torch.log, [POSITIVE]),
    "log1p": (torch.log1p, [t(0.0, -0.0, -1.0, INF)]), "log2": (torch.log2, [POSITIVE]),
    "sin": (torch.sin, [t(0.0, -0.0, 1.0)]), "cos": (torch.cos, [t(0.0, -0.0, 1.0)]), "tanh": (torch.tanh, [ALL]),
    "sigmoid": (torch.sigmoid, [ALL]), "relu": (torch.relu, [ALL]), "erf": (torch.erf, [ALL]),
    "gelu": (F.gelu, [t(0.0, -0.0, 1.0, -1.0, 30.0, -30.0)]), "softplus": (lambda a: F.softplus(a, threshold=1e9), [t(0.0, -0.0, 1.0, -1.0, 30.0, -30.0, 700.0, -700.0)]),
    "silu": (F.silu, [t(0.0, -0.0, 1.0, 800.0, -800.0)]), "log_sigmoid": (F.logsigmoid, [t(0.0, -0.0, 1.0, 800.0, -800.0)]),
    "gelu_tanh": (lambda a: F.gelu(a, approximate="tanh"), [t(0.0, -0.0, 1.0, 30.0, -30.0)]),
    "add": (torch.add, grid(SMALL, SMALL)), "sub": (torch.sub, grid(SMALL, SMALL)), "mul": (torch.mul, grid(SMALL, SMALL)),
    "mul_itself": (lambda a: a * a, [t(*SMALL)]), "div": (torch.div, grid(SMALL, [1.0, -2.0])),
    "div_by_zero": (torch.div, grid([1.0, -1.0, 0.0], [0.0])), "div_itself": (lambda a: a / a, [t(1.0, -2.0)]),
    "pow": (torch.pow, grid([0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0])), "pow_half": (torch.pow, grid([1.0, 2.0], [0.5])),
    "pow_of_negative": (torch.pow, grid([-1.0, -2.0], [1.0, 2.0, 3.0])),
    "pow_negative_exponent": (torch.pow, grid([1.0, 2.0], [-1.0, -2.0])),
    "pow_of_0_to_the_minus_1": (torch.pow, [t(0.0), t(-1.0)]),
    **{f"pow_{name}": (lambda a, n=n: a**n, [t(0.0, -0.0, 1.0, -1.0, 2.0, -2.0)]) for name, n in
       {"to_the_0": 0, "to_the_1": 1, "to_the_2": 2, "to_the_3": 3}.items()},
    "pow_to_the_half": (lambda a: a**0.5, [t(0.0, 1.0, 4.0)]), "pow_to_the_minus_1": (lambda a: a**-1, [t(1.0, -1.0, 2.0)]),
    "pow_of_2": (lambda a: 2.0**a, [t(0.0, 1.0, -1.0, 800.0)]), "pow_of_1": (lambda a: 1.0**a, [t(0.0, 1.0, -1.0)]),
    "pow_of_0": (lambda a: 0.0**a, [t(0.0, 1.0, 2.0, 0.5)]), "pow_itself": (torch.pow, [t(1.0, 2.0), t(1.0, 2.0)]),
    "maximum": (torch.maximum, grid(SMALL, SMALL)), "minimum": (torch.minimum, grid(SMALL, SMALL)),
    "clamp": (lambda a: a.clamp(-1, 1), [ALL]), "clamp_to_a_point": (lambda a: a.clamp(0, 0), [t(*SMALL)]),
    "where": (lambda a, b: torch.where(a > 0, a * b, b), grid(SMALL, SMALL)),
    "masked_sqrt": (lambda a: torch.where(a > 0, torch.where(a > 0, a, 1).sqrt(), 0), [t(0.0, -1.0, 4.0)]),
    "sum": (lambda a: a.sum(1), [ZEROS]), "mean": (lambda a: a.mean(1), [ZEROS]), "prod": (lambda a: a.prod(1), [ZEROS]),
    "prod_all": (torch.prod, [t(2.0, 0.0, 3.0, 0.0)]), "prod_one_zero": (torch.prod, [t(2.0, 0.0, 3.0)]),
    "prod_axes": (lambda a: a.prod(0).prod(0), [torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]], dtype=torch.float64)]),
    "amax": (lambda a: a.amax(1), [TIES]), "amin": (lambda a: a.amin(1), [TIES]), "amax_all": (lambda a: a.amax(), [TIES]),
    "logsumexp": (lambda a: a.logsumexp(1), [torch.cat([TIES, FAR[:3], FAR[4:]])]), "var": (lambda a: a.var(1), [TIES]),
    "softmax": (lambda a: a.softmax(1), [torch.cat([TIES, FAR])]), "log_softmax": (lambda a: a.log_softmax(1), [torch.cat([TIES, FAR[:4]])]),
    "layer_norm": (lambda a: F.layer_norm(a, (3,)), [TIES]), "matmul": (torch.matmul, [ZEROS, ZEROS.T.contiguous()]),
    "mse_loss": (F.mse_loss, [t(*SMALL), t(*SMALL)]), "l1_loss": (F.l1_loss, [t(*SMALL), t(0.0, 0.0, 1.0, 1.0, 2.0, 2.0)]),
    "bce_with_logits": (F.binary_cross_entropy_with_logits, grid([0.0, 30.0, -30.0, 800.0, -800.0], [0.0, 1.0, 0.5])),
}


def case(name, f, inputs):
    xs = [x.clone().requires_grad_() for x in inputs]
    out = f(*xs)
    found = {f"{name}/in{k}": x.detach() for k, x in enumerate(xs)} | {f"{name}/out": out.detach()}
    cot = (torch.rand_like(out) + 0.5).detach()
    found[f"{name}/cot"] = cot
    gradients = torch.autograd.grad(out, xs, cot, create_graph=True, allow_unused=True, materialize_grads=True)
    for j, g in enumerate(gradients):
        v = (torch.rand_like(g) + 0.5).detach()
        found |= {f"{name}/g{j}": g.detach(), f"{name}/v{j}": v}
        again = [torch.zeros_like(x) for x in xs]
        if g.requires_grad:
            again = torch.autograd.grad(g, xs, v, retain_graph=True, allow_unused=True, materialize_grads=True)
        for k, h in enumerate(again):
            found[f"{name}/h{j}{k}"] = h.detach()
    return {key: value.clone().contiguous() for key, value in found.items()}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    tensors = {}
    for name, (f, inputs) in CASES.items():
        tensors |= case(name, f, inputs)
    save_file(tensors, folder / "corners.safetensors")
    print(len(CASES), "cases of", torch.__version__)


main()
