#!/usr/bin/env python3
"""Writes gguf/*.gguf by the package gguf, and gguf/expected.safetensors: what its dequantize gives of each tensor.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_gguf_fixtures.py [FOLDER]

types.gguf has a tensor of every type that is read: random blocks, whose scales are any finite f16, and blocks at the
corners: all bits clear and set below the scale, scales of zero, minus zero, the smallest and largest denormal, one and
the largest f16, infinite ones and NaN. written.gguf has numbers in F32, F16, BF16, Q8_0 and Q4_0 as its quantize packs
them: what we write equals it byte by byte. unsupported.gguf has a tensor of type IQ4_NL.
"""
import pathlib
import struct
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import save_file

# Where the f16 scales are in a block of so many bytes.
SCALES = {Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0],
          Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208]}
CORNERS = [0x0000, 0x8000, 0x0001, 0x03FF, 0x3C00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00]


def blocks_of(kind, rng):
    """Two rows of blocks, as bytes."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = [bytearray(rng.integers(0, 256, size, dtype=np.uint8)) for _ in range(2 * len(CORNERS) + 4)]
    for i, block in enumerate(blocks):
        for at in SCALES[kind]:
            scale = np.float16(rng.normal() * 0.1).view(np.uint16) if i >= 2 * len(CORNERS) else CORNERS[i // 2]
            block[at:at + 2] = struct.pack("<H", int(scale))
        if i < 2 * len(CORNERS) and i % 2:
            fill = 0x00 if i % 4 == 1 else 0xFF
            block[:] = bytes(block[j] if any(at <= j < at + 2 for at in SCALES[kind]) else fill for j in range(size))
    return np.frombuffer(b"".join(blocks), np.uint8).reshape(2, -1)


def writer(path):
    w = gguf.GGUFWriter(path, "test")
    w.add_bool("test.bool", True)
    w.add_array("test.bools", [True, False])
    w.add_float32("test.f32", 0.1)
    w.add_float64("test.f64", 0.1)
    w.add_array("test.floats", [0.5, -1.5])
    w.add_int16("test.i16", -2)
    w.add_int32("test.i32", -3)
    w.add_int64("test.i64", -(2**40))
    w.add_int8("test.i8", -1)
    w.add_array("test.ints", [1, -2, 3])
    w.add_string("test.text", "straße")
    w.add_array("test.tokens", ["<s>", "", "a b"])
    w.add_uint16("test.u16", 65535)
    w.add_uint32("test.u32", 2**32 - 1)
    w.add_uint64("test.u64", 2**64 - 1)
    w.add_uint8("test.u8", 255)
    return w


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    folder = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent) / "gguf"
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    expected = {}

    w = writer(folder / "types.gguf")
    x = rng.normal(size=(3, 5)).astype(np.float32)
    for name, array in {"F32": x, "F16": x.astype(np.float16), "F64": x.astype(np.float64),
                        "I8": np.arange(-3, 4, dtype=np.int8), "I16": np.arange(-3, 4, dtype=np.int16),
                        "I32": np.arange(-3, 4, dtype=np.int32), "I64": np.arange(-3, 4, dtype=np.int64) * 2**33}.items():
        w.add_tensor(name, array)
        expected[name] = array
    bf16 = gguf.quants.quantize(x, Type.BF16)
    w.add_tensor("BF16", bf16, raw_dtype=Type.BF16)
    expected["BF16"] = gguf.quants.dequantize(bf16, Type.BF16)
    for kind in SCALES:
        blocks = blocks_of(kind, rng)
        w.add_tensor(kind.name, blocks, raw_dtype=kind)
        with np.errstate(all="ignore"):
            expected[kind.name] = gguf.quants.dequantize(blocks, kind)
    finish(w)

    w = writer(folder / "written.gguf")
    values = (rng.normal(size=(4, 64)) * np.array([[1], [1e-3], [100], [0]])).astype(np.float32)
    values[0, :4] = [0.5, -0.5, 0, -0.0]
    values[1, 32:] = np.linspace(-127, 127, 32)
    expected["values"] = values
    w.add_tensor("f32", values)
    w.add_tensor("f16", values.astype(np.float16))
    for kind in (Type.BF16, Type.Q8_0, Type.Q4_0):
        w.add_tensor(kind.name.lower(), gguf.quants.quantize(values, kind), raw_dtype=kind)
    w.add_tensor("vector", values[0, :5])
    finish(w)

    w = gguf.GGUFWriter(folder / "unsupported.gguf", "test")
    w.add_custom_alignment(64)
    w.add_tensor("b", np.zeros((1, 18), np.uint8), raw_dtype=Type.IQ4_NL)
    w.add_tensor("a", x)
    finish(w)
    save_file(expected, folder / "expected.safetensors")


if __name__ == "__main__":
    main()
