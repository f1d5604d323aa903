#!/usr/bin/env python3
"""Writes xlstm.safetensors, mlstm.pt and slstm.pt: what the layers of the Python package xlstm give, mLSTMLayer and
sLSTMLayer (backend "vanilla"), with their gradients, in f64 from numbers that f32 holds.

    python3 -m pip install -r tests/data/requirements.txt && python3 -m pip install --no-deps xlstm==2.0.6
    python3 tests/data/make_xlstm_fixtures.py [FOLDER]

Case KIND_NAME holds x [B, T, D], y, the cotangent dy of y, the parameters under p/ by their names in the state_dict, the
gradients of x and of the parameters under g/, and under gap/ how far the package's own result in f32 is from y and from each
gradient (the largest difference over the largest value or 1). mlstm.pt and slstm.pt are state_dicts as torch.save writes them, of the layers
of the cases mlstm_plain and slstm_plain, whose parameters are therefore not in the file. tests/nn/xlstm_test.cpp has the
options of every case.
"""
import pathlib
import sys

import torch
from reference import save_file
from xlstm.blocks.mlstm.layer import mLSTMLayer, mLSTMLayerConfig
from xlstm.blocks.slstm.layer import sLSTMLayer, sLSTMLayerConfig


def r(*shape, low=-1.0, high=1.0):
    return (torch.rand(*shape) * (high - low) + low).float().double()


def mlstm(D, H, multiple, **options):
    config = mLSTMLayerConfig(embedding_dim=D, num_heads=H, context_length=32, **options)
    config._inner_embedding_dim = -(-int(config.proj_factor * D) // multiple) * multiple
    return mLSTMLayer(config)


def slstm(D, H, **options):
    return sLSTMLayer(sLSTMLayerConfig(embedding_dim=D, num_heads=H, backend="vanilla", dtype="float32", **options))


def drawn(layer):
    """The layer in f64 with parameters that f32 holds, none of them 0: first values, and something added."""
    for p in layer.parameters():
        p.data = (p.data + 0.25 * torch.randn(p.shape)).float()
    return layer


def run(layer, x, dy=None):
    """The layer's result and gradients in the dtype of x, by name."""
    layer.to(x.dtype).zero_grad()
    x = x.clone().requires_grad_()
    y = layer(x)
    dy = r(*y.shape) if dy is None else dy
    (y * dy.to(x.dtype)).sum().backward()
    gradients = {f"g/{n}": p.grad.clone() for n, p in layer.named_parameters()}
    return {"y": y, "g/x": x.grad, **gradients}, dy


def case(layer, B, T, D):
    x = 2 * r(B, T, D)
    exact, dy = run(layer, x.double())
    parameters = {f"p/{n}": p.detach().clone() for n, p in layer.named_parameters()}
    rounded, _ = run(layer, x.float(), dy)
    gaps = {f"gap/{n}": (rounded[n].double() - t).abs().max() / t.abs().max().clamp(min=1) for n, t in exact.items()}
    return {"x": x, "dy": dy, **exact, **parameters, **gaps}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    torch.manual_seed(7)
    cases = {
        "mlstm_plain": (mlstm(6, 2, 8, qkv_proj_blocksize=4), 2, 11, 6),
        "mlstm_bias": (mlstm(4, 2, 4, conv1d_kernel_size=2, qkv_proj_blocksize=2, proj_factor=1.6, bias=True), 2, 7, 4),
        "mlstm_long": (mlstm(4, 1, 8, conv1d_kernel_size=3, qkv_proj_blocksize=1, proj_factor=1.5), 1, 29, 4),
        "mlstm_one_step": (mlstm(4, 2, 4), 2, 1, 4),
        "slstm_plain": (slstm(8, 2), 2, 11, 8),
        "slstm_no_conv": (slstm(8, 2, conv1d_kernel_size=0, group_norm_weight=False), 2, 7, 8),
        "slstm_long": (slstm(4, 1, conv1d_kernel_size=2), 1, 29, 4),
        "slstm_one_step": (slstm(4, 1), 2, 1, 4),
    }
    tensors = {}
    for name, (layer, *sizes) in cases.items():
        layer = drawn(layer)
        own_file = name.endswith("_plain")
        if own_file:
            torch.save(layer.state_dict(), folder / f"{name.split('_')[0]}.pt")
        tensors |= {f"{name}/{n}": t for n, t in case(layer, *sizes).items() if not (own_file and n.startswith("p/"))}
    save_file({n: t.detach().contiguous() for n, t in tensors.items()}, folder / "xlstm.safetensors",
              {"torch": torch.__version__, "xlstm": "2.0.6"})


if __name__ == "__main__":
    main()
