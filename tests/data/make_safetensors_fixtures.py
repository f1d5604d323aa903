#!/usr/bin/env python3
"""Writes safetensors/*.safetensors by the reference writer, for comparison byte by byte with ours.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_safetensors_fixtures.py [FOLDER]
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file


def main():
    folder = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent) / "safetensors"
    folder.mkdir(exist_ok=True)
    torch.manual_seed(1)
    dtypes = {"f32": torch.float32, "f64": torch.float64, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}
    mixed = {f"{name}.{k}": torch.arange(2 + k).to(dtype) for name, dtype in dtypes.items() for k in (1, 0, 2)}
    files = {
        "empty": ({}, None),
        "scalar": ({"s": torch.tensor(1.5)}, None),
        "zero_size": ({"none": torch.zeros(0, 3), "one": torch.ones(1)}, None),
        "mixed": (mixed, None),
        "metadata": ({"a": torch.arange(3)}, {"format": "pt"}),
        "unicode": ({"straße": torch.ones(2), "重み": torch.zeros(2), 'quote"\\': torch.ones(1)}, None),
        "gru": (torch.nn.GRU(3, 4).state_dict(), None),
        "halves": ({"f16": torch.randn(5).half(), "bf16": torch.randn(3, 2).bfloat16(), "u8": torch.arange(7).to(torch.uint8)}, None),
        "stored": ({name: (torch.arange(5) / 3 - 1).to(dtype) for name, dtype in
                    {"f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8, "f32": torch.float32}.items()}, None),
    }
    for name, (tensors, metadata) in files.items():
        save_file(tensors, folder / f"{name}.safetensors", metadata)


if __name__ == "__main__":
    main()
