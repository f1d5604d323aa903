#!/usr/bin/env python3
"""Writes convolution.safetensors: what PyTorch gives for convolutions, their gradients and the gradients of these, in
f64 on values that f32 holds and is stored in.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_convolution_fixtures.py [FOLDER]

Case NAME holds NAME/x, NAME/w and, where there is one, NAME/b; NAME/out, a cotangent NAME/cot, the gradients NAME/gx,
NAME/gw and NAME/gb; and NAME/hx, NAME/hw: the gradients of the sum of gx sin(k) + gw cos(k), k the number of an
element. NAME/options is [kind, axes, groups, mode, stride..., padding..., dilation..., output_padding...]: kind 0
conv, 1 transposed; mode 0 zeros, 1 reflect, 2 replicate, 3 circular; a padding of -1 is "same".
tests/golden/convolution_test.cpp reads them.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

torch.manual_seed(17)
MODES = ["constant", "reflect", "replicate", "circular"]
CONV = [None, F.conv1d, F.conv2d, F.conv3d]
TRANSPOSED = [None, F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d]


def r(*shape):
    return (torch.rand(*shape) * 2 - 1).float().double()


def apply(kind, axes, groups, mode, stride, padding, dilation, more, x, w, b):
    if kind == 1:
        return TRANSPOSED[axes](x, w, b, stride, padding, more, groups, dilation)
    if mode == 0:
        return CONV[axes](x, w, b, stride, "same" if padding[0] == -1 else padding, dilation, groups)
    sides = []
    for i in reversed(range(axes)):
        total = dilation[i] * (w.shape[i + 2] - 1)
        sides += [total // 2, total - total // 2] if padding[0] == -1 else [padding[i], padding[i]]
    return CONV[axes](F.pad(x, sides, mode=MODES[mode]), w, b, stride, 0, dilation, groups)


FILE = {}


def case(name, shape, weight, bias=True, kind=0, groups=1, mode=0, stride=1, padding=0, dilation=1, more=0):
    axes = len(weight) - 2
    every = lambda v: [v] * axes if isinstance(v, int) else list(v)
    stride, padding, dilation, more = every(stride), every(padding), every(dilation), every(more)
    x, w = r(*shape).requires_grad_(), r(*weight).requires_grad_()
    b = r(weight[1] * groups if kind else weight[0]).requires_grad_() if bias else None
    out = apply(kind, axes, groups, mode, stride, padding, dilation, more, x, w, b)
    cot = r(*out.shape)
    inputs = [x, w] + ([b] if bias else [])
    grads = torch.autograd.grad(out, inputs, cot, create_graph=True)
    k = lambda t: torch.arange(t.numel(), dtype=torch.float64).reshape(t.shape)
    second = torch.autograd.grad((grads[0] * k(x).sin()).sum() + (grads[1] * k(w).cos()).sum(), [x, w])
    FILE.update({f"{name}/x": x, f"{name}/w": w, f"{name}/out": out, f"{name}/cot": cot, f"{name}/gx": grads[0],
                 f"{name}/gw": grads[1], f"{name}/hx": second[0], f"{name}/hw": second[1],
                 f"{name}/options": torch.tensor([kind, axes, groups, mode] + stride + padding + dilation + more)})
    if bias:
        FILE.update({f"{name}/b": b, f"{name}/gb": grads[2]})


case("plain1", (2, 2, 7), (3, 2, 3))
case("plain2", (2, 2, 4, 5), (3, 2, 3, 2))
case("plain3", (1, 2, 3, 3, 4), (3, 2, 2, 3, 2))
case("alone1", (3, 7), (2, 3, 3), padding=1)
case("alone2", (2, 4, 5), (3, 2, 3, 3), bias=False)
case("alone3", (2, 3, 3, 3), (1, 2, 2, 2, 2))
case("one_by_one", (2, 5, 3, 4), (3, 5, 1, 1))
case("stride2", (2, 2, 9), (3, 2, 3), stride=2, padding=1)
case("stride3_wide", (1, 2, 11, 8), (2, 2, 2, 3), stride=(3, 2), padding=(0, 1))
case("stride_beyond_kernel", (1, 1, 9), (2, 1, 2), stride=4)
case("dilated", (2, 2, 13), (3, 2, 3), dilation=3, padding=2)
case("dilated_strided", (1, 2, 9, 10), (2, 2, 3, 2), dilation=(2, 3), stride=(2, 3), padding=(2, 1))
case("dilation_meets_stride", (1, 2, 12), (2, 2, 3), dilation=2, stride=2)
case("grouped", (1, 4, 4, 5), (4, 2, 3, 3), groups=2, padding=1)
case("grouped_strided", (1, 6, 11), (9, 2, 3), groups=3, stride=2, dilation=2, padding=3)
case("depthwise", (1, 2, 5, 6), (2, 1, 3, 3), groups=2, padding=1)
case("depthwise1", (1, 4, 20), (4, 1, 5), groups=4, padding=2)
case("depthwise_multiplied", (1, 3, 6, 5), (6, 1, 3, 3), groups=3, stride=2, padding=1, bias=False)
case("depthwise3", (1, 2, 3, 3, 4), (2, 1, 3, 3, 3), groups=2, padding=1)
case("same_even", (1, 2, 8), (3, 2, 4), padding=-1)
case("same_even_dilated", (1, 2, 7, 9), (2, 2, 4, 3), padding=-1, dilation=(1, 2))
case("same3", (1, 1, 4, 5, 3), (2, 1, 3, 2, 3), padding=-1)
for mode in (1, 2, 3):
    case(f"mode{mode}_1", (1, 2, 6), (3, 2, 3), mode=mode, padding=2)
    case(f"mode{mode}_2", (1, 4, 5, 6), (2, 2, 3, 3), mode=mode, padding=(1, 2), dilation=(1, 2), groups=2, stride=(2, 1))
    case(f"mode{mode}_same", (1, 2, 7, 6), (2, 2, 2, 3), mode=mode, padding=-1)
case("replicate3", (1, 1, 3, 3, 4), (2, 1, 3, 3, 3), mode=2, padding=(2, 1, 1))
case("wide_rows", (1, 1, 3, 35), (4, 1, 3, 3), padding=1)
case("many_channels", (1, 29, 2, 3), (1, 29, 3, 3), padding=1)
case("long_row", (1, 1, 35), (9, 1, 4), padding=3)
case("small_planes", (1, 1, 7, 7), (9, 1, 3, 3), padding=1)
case("whole_kernel", (2, 2, 4, 4), (3, 2, 4, 4))
case("one_channel", (2, 1, 6, 6), (1, 1, 3, 3))
case("transposed1", (2, 3, 5), (3, 4, 3), kind=1)
case("transposed2", (1, 3, 4, 5), (3, 2, 3, 2), kind=1)
case("transposed3", (1, 2, 2, 3, 3), (2, 3, 2, 2, 3), kind=1)
case("transposed_alone", (3, 5), (3, 2, 4), kind=1, stride=2)
case("transposed_stride", (2, 3, 5), (3, 2, 4), kind=1, stride=3, padding=1)
case("transposed_stride_beyond", (1, 2, 4), (2, 3, 2), kind=1, stride=5)
case("transposed_more", (1, 2, 4, 5), (2, 3, 3, 3), kind=1, stride=2, padding=1, more=1)
case("transposed_more_than_stride", (1, 2, 6), (2, 2, 3), kind=1, dilation=3, more=2, padding=2)
case("transposed_dilated", (1, 2, 4, 4), (2, 2, 3, 2), kind=1, dilation=(2, 3), stride=(1, 2), padding=(2, 0))
case("transposed_grouped", (2, 6, 4), (6, 2, 3), kind=1, groups=3, stride=2, padding=1, more=1)
case("transposed_depthwise", (1, 4, 4, 3), (4, 1, 3, 3), kind=1, groups=4, stride=2, bias=False)
case("transposed_strided3", (1, 2, 3, 2, 3), (2, 2, 3, 3, 2), kind=1, stride=(2, 1, 2), padding=(1, 1, 0), more=(1, 0, 1))

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
# What was drawn is stored as the f32 that it is.
DRAWN = ("/x", "/w", "/b", "/cot")
save_file({k: (v.float() if k.endswith(DRAWN) else v).detach().contiguous() for k, v in sorted(FILE.items())}, str(folder / "convolution.safetensors"))
