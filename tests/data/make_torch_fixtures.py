#!/usr/bin/env python3
"""Writes torch/*.pt by torch.save and, beside each, torch/*.safetensors with what its tensors must be.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_torch_fixtures.py [FOLDER]
"""
import argparse
import collections
import datetime
import enum
import fractions
import pathlib
import sys
import zipfile

import numpy as np
import torch

from reference import save_file

LOADED = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.uint8: torch.int32,
          torch.int8: torch.int32, torch.int16: torch.int32}


def flattened(value, name=None):
    """Tensors by their dotted names, as the reader flattens them."""
    if isinstance(value, torch.Tensor):
        return {"tensor" if name is None else name: value}
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    found = {}
    for key, item in pairs:
        found |= flattened(item, str(key) if name is None else f"{name}.{key}")
    return found


def words(value, name=""):
    """The plain values beside the tensors in Python's words, as the reader has them in its metadata."""
    if isinstance(value, (str, int, float, torch.device, torch.dtype, type(None))):
        if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            return {name: "an integer of more than 64 bits"}
        return {name: str(value)}
    if isinstance(value, (list, tuple)) and all(isinstance(v, (int, float, type(None))) for v in value):
        return {name: str(tuple(value) if isinstance(value, tuple) else list(value))}
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    found = {}
    for key, item in pairs:
        found |= words(item, f"{name}.{key}" if name else str(key))
    return found


def deflated(path):
    """Packs an archive again with compression, as some tools do."""
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def model():
    torch.manual_seed(2)
    return torch.nn.Sequential(torch.nn.GRU(3, 4, num_layers=2, bidirectional=True), torch.nn.Linear(8, 2))


def all_dtypes():
    torch.manual_seed(3)
    values = torch.randn(5) * 50
    kinds = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
             torch.int8, torch.uint8]
    made = {str(kind).removeprefix("torch."): (values.abs() if kind == torch.uint8 else values).to(kind) for kind in kinds}
    return made | {"bool": values > 0}


def views():
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    half = torch.arange(12).to(torch.bfloat16).reshape(3, 4)
    return {"base": base, "transposed": base.t(), "columns": base[:, ::2], "row": base[2], "block": base[1:3, 2:5],
            "expanded": base[:, :1].expand(4, 7), "deep": base.reshape(2, 2, 3, 2).permute(3, 0, 2, 1),
            "half": half.t(), "strided_bool": (base > 5)[:, 1::3], "empty": base[:, 6:], "element": base[3, 4]}


def checkpoint():
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    net[1](net[0](torch.ones(2, 1, 3))[0]).sum().backward()
    optimizer.step()
    return {"model": net.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(),
            "epoch": 7, "step": 1 << 40, "small": -(1 << 40), "huge": 1 << 70, "loss": 0.125, "best": float("inf"),
            "done": False, "note": "straße", "nothing": None, "history": [0.5, 0.25], "mixed": [1, "two", None],
            "shape": torch.Size([2, 3]), "device": torch.device("cpu"), "dtype": torch.bfloat16, "tags": {"a"},
            "counts": collections.Counter("aab"), "groups": collections.defaultdict(list, {"x": [1]}),
            "raw": b"\x00\xff", "array": bytearray(b"ab"), "z": 1 + 2j, "rng": torch.get_rng_state()[:16].clone()}



class Mode(enum.Enum):
    TRAIN = 3
    EVAL = "eval"


class Flags(enum.IntFlag):
    A = 1
    B = 4


class Level(str, enum.Enum):
    LOW = "low"


class Settings:
    def __init__(self):
        self.rate, self.mode = 0.1, Mode.TRAIN


class Pairs(dict):
    pass


def scalars():
    """Enums and NumPy's numbers: values."""
    kinds = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1")
    extremes = {k: np.iinfo(k).max if k[0] != "f" else -0.1 for k in kinds}
    return {"mode": Mode.TRAIN, "word": Mode.EVAL, "flags": Flags.A | Flags.B, "level": Level.LOW, "best": np.float64(0.1),
            "yes": np.bool_(True), "no": np.bool_(False), "inf": np.float32("inf"), "minus": np.int8(-128),
            "list": [np.int64(1), np.float32(0.5)]} | {k: np.dtype(k).type(v) for k, v in extremes.items()}


def beside():
    """Weights beside what only Python can build."""
    return {"model": torch.nn.Linear(2, 3).state_dict(), "args": argparse.Namespace(lr=0.1, path=pathlib.PurePosixPath("a/b")),
            "path": pathlib.PurePosixPath("/data/run"), "array": np.arange(6.0).reshape(2, 3), "object": Settings(),
            "pairs": Pairs(a=torch.ones(1)), "deque": collections.deque([1, 2]), "date": datetime.datetime(2026, 11, 27),
            "fraction": fractions.Fraction(1, 3), "net": torch.nn.Linear(2, 2), "sparse": torch.eye(2).to_sparse(),
            "function": np.mean, "dtype": np.dtype("f4"), "values": scalars(), Mode.TRAIN: 1, "ema": {"w": torch.arange(3.0)}}


def parameters():
    plain = torch.nn.Parameter(torch.arange(3.0))
    marked = torch.nn.Parameter(torch.arange(2.0))
    marked.note = "kept by PyTorch, passed over by us"
    tensor = torch.arange(4.0)
    tensor.note = 1
    return {"plain": plain, "frozen": torch.nn.Parameter(torch.ones(1), requires_grad=False), "marked": marked,
            "tensor": tensor}


def main():
    folder = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent) / "torch"
    folder.mkdir(exist_ok=True)
    state = model().state_dict()
    norm = torch.nn.BatchNorm1d(3).state_dict()
    tied = torch.arange(6.0)
    odd_names = {"": torch.ones(1), "straße.重み": torch.zeros(2), "n" * 300: torch.ones(3), 'quote"\\\n': torch.ones(1)}
    shapes = {"scalar": torch.tensor(1.5), "empty": torch.zeros(0, 3), "none": torch.zeros(0),
              "rank6": torch.arange(64.0).reshape(2, 2, 2, 2, 2, 2), "rank8": torch.arange(3.0).reshape(1, 1, 1, 3, 1, 1, 1, 1)}
    unsupported = {"a": torch.ones(2), "complex": torch.ones(2, dtype=torch.complex64),
                   "double_complex": torch.ones(2, dtype=torch.complex128), "u16": torch.ones(2, dtype=torch.uint16),
                   "f8": torch.ones(2).to(torch.float8_e4m3fn)}
    x = torch.complex(torch.arange(12.0), -torch.arange(12.0) - 0.5).reshape(3, 4)
    complex_numbers = {"plain": x, "transposed": x.T[1:], "scalar": x[1, 2].clone(), "double": x.to(torch.complex128), "empty": x[:0]}
    files = {f"protocol_{p}": (state, {"pickle_protocol": p}) for p in (2, 3, 4, 5)}
    files |= {
        "legacy": (state, {"_use_new_zipfile_serialization": False}),
        "legacy_views": (views(), {"_use_new_zipfile_serialization": False}),
        "legacy_dtypes": (all_dtypes(), {"_use_new_zipfile_serialization": False, "pickle_protocol": 4}),
        "dtypes": (all_dtypes(), {}),
        "views": (views(), {}),
        "views_4": (views(), {"pickle_protocol": 4}),
        "norm": (norm, {}),
        "parameters": (parameters(), {}),
        "checkpoint": (checkpoint(), {}),
        "checkpoint_4": (checkpoint(), {"pickle_protocol": 4}),
        "tied": ({"embedding": tied, "decoder": tied, "half": tied[3:]}, {}),
        "names": (odd_names, {}),
        "shapes": (shapes, {}),
        "many": ({f"layer.{i}.weight": row for i, row in enumerate(torch.arange(1500.0).reshape(1500, 1))}, {}),
        "deflated": (views(), {}),
        "bare": (torch.arange(4.0), {}),
        "bare_parameter": (torch.nn.Parameter(torch.arange(4.0)), {}),
        "list": ([torch.ones(1), (torch.zeros(2), {"x": torch.ones(3)})], {}),
        "empty": ({}, {}),
        "complex": (complex_numbers, {}),
        "unsupported": (unsupported, {}),
    }
    for name, (value, options) in files.items():
        torch.save(value, folder / f"{name}.pt", **options)
        tensors = {k: v.detach().to(LOADED.get(v.dtype, v.dtype)).contiguous().clone() for k, v in flattened(value).items()}
        if name == "complex":
            tensors = {k: torch.view_as_real(v).contiguous().clone() for k, v in tensors.items()}
        if name == "unsupported":
            tensors = {"a": tensors["a"]}
        if name in ("many", "deflated"):
            deflated(folder / f"{name}.pt")
        if name != "many":  # its tensors are [0], [1], [2], ...
            save_file(tensors, folder / f"{name}.safetensors", words(value) or None)


    torch.manual_seed(4)
    everything = beside()
    for protocol, name in ((2, "beside"), (4, "beside_4")):
        torch.save(everything, folder / f"{name}.pt", pickle_protocol=protocol)
    said = {k: (v.value if isinstance(v, enum.Enum) else v.item() if isinstance(v, np.generic) else v) for k, v in scalars().items()}
    said = words({k: v for k, v in said.items() if k != "list"}) | {"list.0": "1", "list.1": "0.5", "u8": str(2**64 - 1)}
    save_file(flattened({"model": everything["model"], "ema": everything["ema"]}), folder / "beside.safetensors", said)


if __name__ == "__main__":
    main()
