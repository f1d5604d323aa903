#!/usr/bin/env python3
"""Writes normalization.safetensors: what PyTorch gives for functions of tensor/normalization.h, in f64 on values that f32
holds. twice.py says what a case holds.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_normalization_fixtures.py [FOLDER]

tests/golden/normalization_test.cpp has the counterpart of every case.
"""
import pathlib
import sys

import torch
import torch.nn.functional as F

import twice

torch.manual_seed(31)


def r(*shape, low=-2.0, high=2.0):
    return (torch.rand(*shape) * (high - low) + low).float().double()


def p(n):
    return r(n, low=0.5, high=2.0)


def given(x, m, v, w=None, b=None, eps=1e-5):
    """PyTorch has no gradients of the statistics."""
    return F.batch_norm(x, m.detach(), v.detach(), w, b, eps=eps)


def trained(x, w, b, eps=1e-5):
    return F.batch_norm(x, None, None, w, b, training=True, eps=eps)


CASES = {
    "batch": (lambda x, m, v: given(x, m, v) ** 2, [r(3, 4, 5), r(4), p(4)]),
    "batch_affine": (given, [r(2, 3, 2, 4), r(3), p(3), r(3), r(3)]),
    "batch_flat": (lambda x, m, v, w, b: given(x, m, v, w, b, 0.1), [r(6, 3), r(3), p(3), r(3), r(3)]),
    "batch_weight": (given, [r(2, 3, 4), r(3), p(3), r(3)]),
    "batch_training": (trained, [r(4, 3, 5), r(3), r(3)]), "batch_training_flat": (trained, [r(5, 2), r(2), r(2)]),
    "batch_training_volume": (lambda x, w, b: trained(x, w, b, 0.01), [r(2, 2, 2, 3, 2), r(2), r(2)]),
    "group": (lambda x: F.group_norm(x, 2), [r(2, 4, 5)]), "group_one": (lambda x: F.group_norm(x, 1), [r(3, 3, 2, 2)]),
    "group_affine": (lambda x, w, b: F.group_norm(x, 3, w, b, 1e-3), [r(2, 6, 3, 2), r(6), r(6)]),
    "group_flat": (lambda x, w, b: F.group_norm(x, 2, w, b), [r(3, 8), r(8), r(8)]),
    "group_bias": (lambda x, b: F.group_norm(x, 4) + b[None, :, None], [r(1, 4, 6), r(4)]),
    "instance": (lambda x: F.instance_norm(x), [r(2, 3, 6)]),
    "instance_affine": (lambda x, w, b: F.instance_norm(x, weight=w, bias=b, eps=0.01), [r(2, 3, 3, 4), r(3), r(3)]),
    "rms": (lambda x: F.rms_norm(x, (5,)), [r(3, 5)]), "rms_weight": (lambda x, w: F.rms_norm(x, (4,), w, 1e-6), [r(2, 3, 4), r(4)]),
    "rms_axes": (lambda x, w: F.rms_norm(x, (3, 4), w, 0.1), [r(2, 3, 4), r(3, 4)]),
    "response": (lambda x: F.local_response_norm(x, 3, 0.5), [r(2, 5, 4)]),
    "response_even": (lambda x: F.local_response_norm(x, 4, alpha=1.0, beta=0.5, k=2.0), [r(1, 6, 3, 2)]),
    "response_wide": (lambda x: F.local_response_norm(x, 9, alpha=0.3), [r(2, 3, 4)]),
}

if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    twice.write(folder / "normalization.safetensors", CASES)
