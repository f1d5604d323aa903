#!/usr/bin/env python3
"""Writes halves.safetensors: checksums of what PyTorch converts to and from float16 and bfloat16.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_half_fixtures.py [FOLDER]

NAME/to_float is the CRC-32 over the floats of all 65,536 patterns in order, NAME/from_float the one over the patterns
of the floats whose bits are k * 1024 and k * 1024 + 1, k from 0 to 2^22 - 1: every tie and what lies above it. All NaNs
are one, 0x7fc00000 as a float and 0x7fff as a pattern. tests/golden/halves_golden_test.cpp computes the same.
"""
import pathlib
import sys
import zlib

import numpy
import torch
from safetensors.torch import save_file


def crc(array):
    return torch.tensor(zlib.crc32(array.tobytes()), dtype=torch.int64)


def to_float(dtype):
    patterns = torch.from_numpy(numpy.arange(65536, dtype=numpy.uint16).view(numpy.int16)).view(dtype)
    floats = patterns.float().numpy()
    bits = floats.view(numpy.uint32).copy()
    bits[numpy.isnan(floats)] = 0x7FC00000
    return bits


def from_float(dtype):
    k = numpy.arange(1 << 22, dtype=numpy.uint32) << 10
    bits = numpy.stack([k, k + 1], axis=1).reshape(-1)
    converted = torch.from_numpy(bits.view(numpy.float32)).to(dtype)
    patterns = converted.view(torch.int16).numpy().view(numpy.uint16).copy()
    patterns[torch.isnan(converted).numpy()] = 0x7FFF
    return patterns


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    tensors = {}
    for name, dtype in {"f16": torch.float16, "bf16": torch.bfloat16}.items():
        tensors[f"{name}/to_float"] = crc(to_float(dtype))
        tensors[f"{name}/from_float"] = crc(from_float(dtype))
    save_file(tensors, folder / "halves.safetensors")


main()
