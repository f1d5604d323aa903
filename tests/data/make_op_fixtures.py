#!/usr/bin/env python3
"""Writes ops.safetensors: what PyTorch gives for operations and their gradients, in f64 on values that f32 holds.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_op_fixtures.py [FOLDER]

Case NAME holds NAME/in0, NAME/in1, ... (f64, indices i64), NAME/out, a cotangent NAME/cot and the gradients NAME/g0, ...
of the inputs that are floats. tests/golden/ops_golden_test.cpp has the counterpart of every case.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

torch.manual_seed(7)


def r(*shape, low=-2.0, high=2.0):
    return (torch.rand(*shape) * (high - low) + low).float().double()


def positive(*shape):
    return r(*shape, low=0.25, high=3.0)


def i(values):
    return torch.tensor(values, dtype=torch.int64)


A, B = r(3, 4), r(3, 4)
MASK = r(3, 4) > 0

CASES = {
    "add": (lambda a, b: a + b, [A, B]), "add_broadcast": (lambda a, b: a + b, [r(3, 1, 4), r(2, 1)]),
    "sub": (lambda a, b: a - b, [A, B]), "mul": (lambda a, b: a * b, [A, B]),
    "mul_broadcast": (lambda a, b: a * b, [r(2, 3, 4), r(4)]), "div": (lambda a, b: a / b, [A, positive(3, 4)]),
    "literals": (lambda a: (2.5 - a) * 3 / (a + 7) + 1, [A]), "neg": (lambda a: -a, [A]),
    "pow": (torch.pow, [positive(3, 4), B]), "pow_literal": (lambda a: a**3, [A]), "pow_base": (lambda a: 2.5**a, [A]),
    "maximum": (torch.maximum, [A, B]), "maximum_tie": (torch.maximum, [A, torch.where(MASK, A, B)]),
    "minimum": (torch.minimum, [A, B]), "abs": (torch.abs, [A]), "sign": (torch.sign, [A]), "square": (torch.square, [A]),
    "clamp": (lambda a: a.clamp(-0.5, 0.75), [A]), "sqrt": (torch.sqrt, [positive(3, 4)]),
    "rsqrt": (torch.rsqrt, [positive(3, 4)]), "reciprocal": (torch.reciprocal, [positive(3, 4)]),
    "exp": (torch.exp, [A]), "exp2": (torch.exp2, [A]), "expm1": (torch.expm1, [A]), "log": (torch.log, [positive(3, 4)]),
    "log1p": (torch.log1p, [positive(3, 4)]), "log2": (torch.log2, [positive(3, 4)]), "sin": (torch.sin, [A]),
    "cos": (torch.cos, [A]), "tanh": (torch.tanh, [A]), "sigmoid": (torch.sigmoid, [A]), "relu": (torch.relu, [A]),
    "gelu": (F.gelu, [A]), "gelu_tanh": (lambda a: F.gelu(a, approximate="tanh"), [A]), "softplus": (F.softplus, [A]),
    "erf": (torch.erf, [A]), "silu": (F.silu, [A]), "log_sigmoid": (F.logsigmoid, [A]),
    "where": (lambda a, b: torch.where(a > 0, a * b, b), [A, B]), "sum_all": (torch.sum, [r(2, 3, 4)]),
    "sum_axes": (lambda a: a.sum((0, 2)), [r(2, 3, 4)]), "sum_keepdim": (lambda a: a.sum(1, keepdim=True), [r(2, 3, 4)]),
    "mean": (lambda a: a.mean((-1,)), [r(2, 3, 4)]), "amax": (lambda a: a.amax(1), [r(3, 5)]),
    "amax_tie": (lambda a: a.amax(1), [r(3, 5).round()]), "amin": (lambda a: a.amin((0, 1)), [r(3, 5)]),
    "prod": (lambda a: a.prod(1), [r(3, 4)]), "prod_zero": (lambda a: a.prod(1), [torch.tensor([[1.0, 0, 2], [0, 0, 3.0]]).double()]),
    "logsumexp": (lambda a: a.logsumexp(1), [r(3, 5, low=-40, high=40)]), "var": (lambda a: a.var(1), [r(3, 5)]),
    "var_biased": (lambda a: a.var((0, 1), correction=0), [r(3, 5)]), "softmax": (lambda a: a.softmax(-1), [r(3, 5)]),
    "softmax_axis0": (lambda a: a.softmax(0), [r(3, 5)]), "log_softmax": (lambda a: a.log_softmax(1), [r(3, 5, low=-20, high=20)]),
    "argmax": (lambda a: a.argmax(1).double(), [r(3, 5)]), "argmin": (lambda a: a.argmin(0).double(), [r(3, 5)]),
    "matmul": (torch.matmul, [r(3, 4), r(4, 5)]), "matmul_vectors": (torch.matmul, [r(7), r(7)]),
    "matmul_matrix_vector": (torch.matmul, [r(3, 7), r(7)]), "matmul_vector_matrix": (torch.matmul, [r(3), r(3, 7)]),
    "matmul_batched": (torch.matmul, [r(2, 3, 4), r(2, 4, 5)]), "matmul_folded": (torch.matmul, [r(2, 3, 4), r(4, 5)]),
    "matmul_broadcast": (torch.matmul, [r(2, 1, 3, 4), r(5, 4, 2)]),
    "matmul_transposed": (lambda a, b: a.T @ b.T, [r(4, 3), r(5, 4)]), "reshape": (lambda a: a.reshape(4, 3) * 2, [A]),
    "permute": (lambda a: a.permute(2, 0, 1), [r(2, 3, 4)]), "transpose": (lambda a: a.transpose(0, 2), [r(2, 3, 4)]),
    "slice": (lambda a: a[1:, :-1], [r(4, 5)]), "slice_step": (lambda a: a[:, 1::2], [r(3, 7)]),
    "slice_negative_step": (lambda a: a.flip(0)[::3], [r(8, 2)]), "select": (lambda a: a[:, -2], [r(3, 4)]),
    "expand": (lambda a: a.expand(2, 3, 4), [r(3, 1)]), "squeeze": (lambda a: a.squeeze(1), [r(3, 1, 4)]),
    "unsqueeze": (lambda a: a.unsqueeze(1), [A]), "flip": (lambda a: a.flip((0, 1)), [A]),
    "concat": (lambda a, b: torch.cat([a, b], 1), [r(3, 2), r(3, 4)]), "stack": (lambda a, b: torch.stack([a, b], 1), [A, B]),
    "split": (lambda a: a.split(2, 1)[0] * 2 + a.split(2, 1)[1], [r(3, 5)]), "chunk": (lambda a: a.chunk(3, 0)[2], [r(7, 2)]),
    "unbind": (lambda a: a.unbind(1)[2], [A]), "pad": (lambda a: F.pad(a, (1, 2, 0, 3), value=1.5), [A]),
    "pad_crop": (lambda a: F.pad(a, (-1, 2)), [A]), "gather": (lambda a, n: a.gather(1, n), [A, i([[0, 0], [3, 1], [2, 2]])]),
    "index_select": (lambda a, n: a.index_select(0, n), [A, i([2, 0, 2, 1])]),
    "scatter_add": (lambda a, n, s: a.scatter_add(0, n, s), [A, i([[0, 1, 2, 0], [0, 0, 2, 1]]), r(2, 4)]),
    "one_hot": (lambda n: F.one_hot(n, 5).double(), [i([[0, 4], [2, 1]])]), "embedding": (lambda w, n: F.embedding(n, w), [r(6, 3), i([[1, 1], [5, 0]])]),
    "layer_norm": (lambda a: F.layer_norm(a, (5,)), [r(3, 5)]), "layer_norm_2": (lambda a: F.layer_norm(a, (3, 5)), [r(2, 3, 5)]),
    "cross_entropy": (lambda a, n: F.cross_entropy(a, n), [r(4, 5, low=-6, high=6), i([1, 0, 4, 4])]),
    "cross_entropy_sum": (lambda a, n: F.cross_entropy(a, n, reduction="sum"), [r(4, 5), i([1, 0, 4, 4])]),
    "cross_entropy_none": (lambda a, n: F.cross_entropy(a, n, reduction="none"), [r(4, 5), i([1, 0, 4, 4])]),
    "mse_loss": (F.mse_loss, [A, B]), "l1_loss": (F.l1_loss, [A, B]),
    "bce_with_logits": (F.binary_cross_entropy_with_logits, [A * 4, r(3, 4, low=0, high=1)]),
    "linear": (lambda x, w, b: F.linear(x, w, b), [r(2, 3, 4), r(5, 4), r(5)]),
}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    tensors = {}
    for name, (f, inputs) in CASES.items():
        inputs = [t.clone().requires_grad_(t.is_floating_point()) for t in inputs]
        out = f(*inputs)
        tensors[f"{name}/out"] = out
        for k, t in enumerate(inputs):
            tensors[f"{name}/in{k}"] = t
        if not out.requires_grad:
            continue
        cotangent = torch.randn_like(out).float().double()
        tensors[f"{name}/cot"] = cotangent
        floats = [k for k, t in enumerate(inputs) if t.requires_grad]
        grads = torch.autograd.grad(out, [inputs[k] for k in floats], cotangent)
        for k, g in zip(floats, grads):
            tensors[f"{name}/g{k}"] = g
    save_file({name: t.detach().clone().contiguous() for name, t in tensors.items()}, folder / "ops.safetensors",
              {"torch": torch.__version__})
    print(len(CASES), "cases")


if __name__ == "__main__":
    main()
