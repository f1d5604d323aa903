"""Cases with gradients of first and second order, as tests/golden/twice.h reads them.

Case NAME holds NAME/in0, ..., NAME/out, a cotangent NAME/cot, the gradients NAME/g0, ... of the inputs, directions
NAME/v0, ... and NAME/h0, ..., the gradients of the sum of <g_k, v_k>.
"""
import torch
from safetensors.torch import save_file


def tensors_of(cases):
    """cases: name -> (function, inputs)."""
    tensors = {}
    for name, (f, inputs) in cases.items():
        inputs = [t.clone().requires_grad_() for t in inputs]
        out = f(*inputs)
        cotangent = torch.randn_like(out).float().double()
        grads = torch.autograd.grad(out, inputs, cotangent, create_graph=True, allow_unused=True,
                                    materialize_grads=True)
        directions = [torch.randn_like(t).float().double() for t in inputs]
        total = sum((g * v).sum() for g, v in zip(grads, directions))
        linear = not total.requires_grad
        second = [None] * len(inputs) if linear else torch.autograd.grad(total, inputs, allow_unused=True)
        tensors |= {f"{name}/out": out, f"{name}/cot": cotangent}
        for k, t in enumerate(inputs):
            h = torch.zeros_like(t) if second[k] is None else second[k]
            tensors |= {f"{name}/in{k}": t, f"{name}/g{k}": grads[k], f"{name}/v{k}": directions[k], f"{name}/h{k}": h}
    return tensors


def write(path, cases, more={}):
    tensors = more | tensors_of(cases)
    save_file({name: t.detach().clone().contiguous() for name, t in tensors.items()}, path, {"torch": torch.__version__})
    print(len(cases), "cases" + (f", {len(more)} constants" if more else ""))
