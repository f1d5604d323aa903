#!/usr/bin/env python3
"""Writes selective_scan.safetensors: selective_scan_seq of mambapy, Mamba's scan one step after the other, in f64 on values
that f32 holds, with gradients of first and second order.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_selective_scan_fixtures.py [FOLDER]

Cases are those of twice.py; the inputs are x, delta, A, B, C, D. tests/tensor/selective_scan_test.cpp reads them.
"""
import pathlib
import sys
import types

import torch
from mambapy.mamba import MambaBlock
from twice import write

torch.set_default_dtype(torch.float64)


def r(*shape, low=-1.0, high=1.0):
    return (torch.rand(*shape) * (high - low) + low).float().double()


def scan(x, delta, A, B, C, D):
    sizes = types.SimpleNamespace(config=types.SimpleNamespace(d_inner=A.shape[0], d_state=A.shape[1]))
    return MambaBlock.selective_scan_seq(sizes, x, delta, A, B, C, D)


def case(rows, steps, channels, states):
    inputs = [r(rows, steps, channels), r(rows, steps, channels, low=0.01, high=0.5)]
    inputs.append(r(channels, states, low=-4.0, high=-0.25))
    return scan, inputs + [r(rows, steps, states), r(rows, steps, states), r(channels)]


def main(folder):
    torch.manual_seed(20)
    cases = {
        "one": case(1, 1, 1, 1),
        "batch": case(3, 9, 5, 4),
        "wide": case(1, 3, 35, 3),
        "long": case(1, 40, 3, 4),
        "usual": case(1, 18, 6, 16),
    }
    write(folder / "selective_scan.safetensors", cases)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent))
