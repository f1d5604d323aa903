#!/usr/bin/env python3
"""Writes pooling.safetensors: what PyTorch gives for pooling, its gradients and the gradients of these, in f64 on values
that f32 holds and is stored in.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_pooling_fixtures.py [FOLDER]

Case NAME holds NAME/x, NAME/out, NAME/indices where the function gives or takes some, a cotangent NAME/cot, the
gradient NAME/gx, and NAME/hx and NAME/hc: the gradients of the sum of gx sin(k), k the number of an element, by x and by
the cotangent; without NAME/hx they are zeros. NAME/options is [kind, axes, ceil_mode, include_pad, divisor, norm, kernel..., stride..., padding...,
dilation..., size...]: kind 0 max, 1 average, 2 norm, 3 adaptive average, 4 adaptive max, 5 unpooling; -1 in a size keeps
the extent. tests/golden/pooling_test.cpp reads them.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

torch.manual_seed(18)
FILE = {}
MAX, AVERAGE, NORM, ADAPTIVE, ADAPTIVE_MAX, UNPOOL = range(6)


def r(*shape):
    return (torch.rand(*shape) * 4 - 2).float().double()


def case(name, x, kind, kernel=1, stride=0, padding=0, dilation=1, size=1, ceil=False, include=True, divisor=0, norm=2):
    axes = int(name[-1])
    every = lambda v: [v] * axes if isinstance(v, int) else list(v)
    kernel, padding, dilation, size = every(kernel), every(padding), every(dilation), every(size)
    stride = every(stride) if stride else kernel
    x = (x if torch.is_tensor(x) else r(*x)).requires_grad_()
    f = lambda n: getattr(F, f"{n}{axes}d")
    sizes = [None if s == -1 else s for s in size]
    indices = None
    if kind == MAX:
        out, indices = f("max_pool")(x, kernel, stride, padding, dilation, ceil, return_indices=True)
    elif kind == AVERAGE and axes == 1:
        out = F.avg_pool1d(x, kernel, stride, padding, ceil, include)
    elif kind == AVERAGE:
        out = f("avg_pool")(x, kernel, stride, padding, ceil, include, divisor or None)
    elif kind == NORM:
        out = f("lp_pool")(x, float(norm), kernel if axes > 1 else kernel[0], stride if axes > 1 else stride[0], ceil)
    elif kind == ADAPTIVE:
        out = f("adaptive_avg_pool")(x, sizes if axes > 1 else [sizes[0] or x.shape[-1]])
    elif kind == ADAPTIVE_MAX:
        out, indices = f("adaptive_max_pool")(x, sizes if axes > 1 else [sizes[0] or x.shape[-1]], return_indices=True)
    else:
        with torch.no_grad():
            _, indices = f("max_pool")(r(*size_before(x.shape, kernel, stride, padding, size)), kernel, stride, padding,
                                       return_indices=True)
        out = f("max_unpool")(x, indices, kernel, stride, padding, None if size[0] == 0 else size)
    cot = r(*out.shape).requires_grad_()
    (gx,) = torch.autograd.grad(out, x, cot, create_graph=True)
    k = torch.arange(gx.numel(), dtype=torch.float64).reshape(gx.shape)
    hx, hc = torch.autograd.grad((gx * k.sin()).sum(), [x, cot], allow_unused=True)
    FILE.update({f"{name}/x": x, f"{name}/out": out, f"{name}/cot": cot, f"{name}/gx": gx, f"{name}/hc": hc,
                 f"{name}/options": torch.tensor([kind, axes, ceil, include, divisor, norm] + kernel + stride + padding +
                                                 dilation + size)})
    if hx is not None and hx.any():
        FILE[f"{name}/hx"] = hx
    if indices is not None:
        FILE[f"{name}/indices"] = indices


def size_before(shape, kernel, stride, padding, size):
    axes = len(kernel)
    extents = size if size[0] else [(n - 1) * s - 2 * p + k for n, s, p, k in zip(shape[-axes:], stride, padding, kernel)]
    return list(shape[:-axes]) + list(extents)


ties = lambda *shape: r(*shape).round()
nan = r(1, 2, 5, 6)
nan[0, 0, 1, 2] = nan[0, 0, 1, 3] = nan[0, 1, 4, 5] = float("nan")
infinite = torch.full((1, 1, 4, 4), float("-inf")).double()
for axes, shape in ((1, (1, 2, 9)), (2, (1, 2, 5, 7)), (3, (1, 1, 4, 4, 5))):
    case(f"max{axes}", shape, MAX, 2)
    case(f"max_alone{axes}", shape[1:], MAX, 3, 2, 1)
    case(f"max_padded{axes}", shape, MAX, 3, 1, 1)
    case(f"max_ceil{axes}", shape, MAX, 2, 2, 0, ceil=True)
    case(f"max_ceil_padded{axes}", shape, MAX, 3, 2, 1, ceil=True)
    case(f"max_ties{axes}", ties(*shape), MAX, 3, 1, 1)
    case(f"average{axes}", shape, AVERAGE, 2)
    case(f"average_alone{axes}", shape[1:], AVERAGE, 3, 2)
    case(f"average_padded{axes}", shape, AVERAGE, 3, 2, 1)
    case(f"average_without_padding{axes}", shape, AVERAGE, 3, 2, 1, include=False)
    case(f"average_ceil{axes}", shape, AVERAGE, 2, 2, ceil=True)
    case(f"average_ceil_padded{axes}", shape, AVERAGE, 4, 3, 2, ceil=True)
    case(f"average_ceil_without_padding{axes}", shape, AVERAGE, 3, 2, 1, ceil=True, include=False)
    case(f"norm{axes}", (r(*shape).abs() + 0.1).float().double(), NORM, 2, norm=3)
    case(f"norm_ceil{axes}", shape, NORM, 2, 2, ceil=True, norm=2)
    case(f"adaptive{axes}", shape, ADAPTIVE, size=3)
    case(f"adaptive_max{axes}", shape, ADAPTIVE_MAX, size=3)
    case(f"adaptive_ties{axes}", ties(*shape), ADAPTIVE_MAX, size=2)
    case(f"adaptive_whole{axes}", shape, ADAPTIVE, size=1)
case("adaptive_keeps2", (2, 2, 7, 4), ADAPTIVE, size=(-1, 3))
case("adaptive_more2", (1, 2, 3, 4), ADAPTIVE, size=(5, 7))
case("adaptive_max_more2", (1, 2, 3, 4), ADAPTIVE_MAX, size=(5, 2))
case("max_dilated1", (2, 2, 13), MAX, 3, 2, 1, 2)
case("max_dilated2", (1, 2, 9, 10), MAX, (2, 3), (1, 2), (1, 0), (3, 2))
case("max_dilated_ceil2", (1, 2, 9, 10), MAX, (2, 3), (3, 2), (0, 1), (2, 3), ceil=True)
case("max_nan2", nan, MAX, 2, 1)
case("max_infinite2", infinite, MAX, 3, 2, 1)
case("max_stride_beyond1", (1, 2, 11), MAX, 2, 4)
case("max_stride_beyond2", (1, 2, 9, 9), MAX, 1, 3)
case("average_divisor2", (1, 2, 5, 6), AVERAGE, (2, 3), (1, 2), (1, 1), divisor=5)
case("average_divisor3", (1, 1, 4, 4, 4), AVERAGE, 2, 2, 1, divisor=3, ceil=True)
case("average_uneven2", (1, 2, 6, 7), AVERAGE, (1, 4), (2, 3), (0, 2))
case("norm_one2", (1, 2, 6, 5), NORM, (3, 2), 2, norm=1)
case("norm_even_ceil1", (1, 2, 8), NORM, 3, 2, ceil=True, norm=4)
case("unpool1", (2, 2, 4), UNPOOL, 2, size=0)
case("unpool2", (1, 2, 3, 2), UNPOOL, 2, size=0)
case("unpool_alone2", (2, 3, 2), UNPOOL, 2, size=0)
case("unpool_size2", (1, 2, 2, 3), UNPOOL, 2, size=(5, 7))
case("unpool_overlapping3", (1, 1, 2, 2, 2), UNPOOL, 2, size=0)

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
DRAWN = ("/x", "/cot")
save_file({k: (v.float() if k.endswith(DRAWN) else v).detach().contiguous() for k, v in sorted(FILE.items())},
          str(folder / "pooling.safetensors"))
