#!/usr/bin/env python3
"""Writes windows.safetensors: what PyTorch gives for interpolation, unfold and fold, with gradients, in f64 on values
that f32 holds and is stored in.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_window_fixtures.py [FOLDER]

Case NAME holds NAME/x, NAME/out, a cotangent NAME/cot and the gradient NAME/gx; all are linear, so that the gradient of
the gradient by the cotangent is the function itself. NAME/options, f64, is [kind, ...]: kind 0 interpolate [mode,
align_corners, recompute_scale_factor, numbers of sizes, of factors, sizes..., factors...]; 1 unfold of windows and 2 fold
[axes, kernel..., stride..., padding..., dilation..., size...]; 3 unfold of an axis [axis, size, step].
tests/golden/windows_test.cpp reads them.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

torch.manual_seed(19)
FILE = {}
MODES = ["nearest", "nearest-exact", "linear", "cubic", "area"]
LINEAR = [None, "linear", "bilinear", "trilinear"]


def r(*shape):
    return (torch.rand(*shape) * 4 - 2).float().double()


def case(name, shape, f, options):
    x = r(*shape).requires_grad_()
    out = f(x)
    cot = r(*out.shape)
    (gx,) = torch.autograd.grad(out, x, cot)
    FILE.update({f"{name}/x": x, f"{name}/out": out, f"{name}/cot": cot, f"{name}/gx": gx,
                 f"{name}/options": torch.tensor([float(o) for o in options], dtype=torch.float64)})


def interpolate(name, shape, mode, size=(), factor=(), align=False, recompute=False):
    axes = len(shape) - 2
    word = LINEAR[axes] if mode == 2 else "bicubic" if mode == 3 else MODES[mode]
    size, factor = list(size), list(factor)
    case(name, shape, lambda x: F.interpolate(
        x, size or None, (factor if len(factor) > 1 else factor[0]) if factor else None, word,
        align if mode in (2, 3) else None, recompute or None), [0, mode, align, recompute, len(size), len(factor)] + size + factor)


def windows(name, kind, shape, kernel, stride=1, padding=0, dilation=1, size=(1, 1)):
    every = lambda v: [v, v] if isinstance(v, int) else list(v)
    kernel, stride, padding, dilation = every(kernel), every(stride), every(padding), every(dilation)
    f = (lambda x: F.unfold(x, kernel, dilation, padding, stride)) if kind == 1 else (
        lambda x: F.fold(x, size, kernel, dilation, padding, stride))
    case(name, shape, f, [kind, 2] + kernel + stride + padding + dilation + list(size))


for mode, word in enumerate(("nearest", "exact", "linear", "cubic", "area")):
    for axes, shape, larger, smaller in ((1, (2, 2, 5), [8], [3]), (2, (1, 2, 4, 5), [7, 9], [3, 2]),
                                         (3, (1, 1, 3, 2, 4), [4, 5, 6], [2, 1, 3])):
        if mode == 3 and axes != 2:
            continue
        interpolate(f"{word}_larger{axes}", shape, mode, larger)
        interpolate(f"{word}_smaller{axes}", shape, mode, smaller)
        interpolate(f"{word}_factor{axes}", shape, mode, factor=[1.7])
        interpolate(f"{word}_factor_less{axes}", shape, mode, factor=[0.6] if axes < 3 else [0.7, 0.5, 0.6])
        interpolate(f"{word}_recomputed{axes}", shape, mode, factor=[1.7], recompute=True)
        interpolate(f"{word}_twice{axes}", shape, mode, factor=[2])
        if mode in (2, 3):
            interpolate(f"{word}_corners{axes}", shape, mode, larger, align=True)
            interpolate(f"{word}_corners_less{axes}", shape, mode, smaller, align=True)
            interpolate(f"{word}_corners_factor{axes}", shape, mode, factor=[1.7], align=True)
            interpolate(f"{word}_corner_of_one{axes}", shape, mode, [1] * axes, align=True)
            interpolate(f"{word}_same{axes}", shape, mode, list(shape[2:]))
windows("unfold", 1, (2, 2, 4, 5), 2)
windows("unfold_uneven", 1, (1, 2, 6, 7), (2, 3), (2, 1), (1, 2), (1, 2))
windows("unfold_strided", 1, (1, 1, 7, 6), 3, 2, 1)
windows("unfold_far", 1, (1, 1, 5, 5), 2, 3, 0, 2)
windows("fold", 2, (2, 8, 12), 2, size=(4, 5))
windows("fold_uneven", 2, (1, 12, 21), (2, 3), (2, 1), (1, 2), (1, 2), size=(4, 7))
windows("fold_strided", 2, (1, 9, 12), 3, 2, 1, size=(7, 6))
windows("fold_apart", 2, (1, 4, 4), 2, 3, size=(5, 6))
case("axis_overlapping", (3, 7, 2), lambda x: x.unfold(1, 3, 2), [3, 1, 3, 2])
case("axis_apart", (8, 2), lambda x: x.unfold(0, 2, 3), [3, 0, 2, 3])
case("axis_last", (2, 6), lambda x: x.unfold(-1, 4, 1), [3, 1, 4, 1])
case("axis_whole", (5,), lambda x: x.unfold(0, 5, 2), [3, 0, 5, 2])

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
DRAWN = ("/x", "/cot")
save_file({k: (v.float() if k.endswith(DRAWN) else v).detach().contiguous() for k, v in sorted(FILE.items())},
          str(folder / "windows.safetensors"))
