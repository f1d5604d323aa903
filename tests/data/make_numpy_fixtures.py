#!/usr/bin/env python3
"""Writes numpy/*.npy and *.npz with NumPy, for comparison with what we read and, byte by byte, with what we write.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_numpy_fixtures.py [FOLDER]

Element i of every array, counted in C order, is i / 2 - 3 for floats, i - 5 for signed integers, i for unsigned ones and
i % 3 == 0 for bool; complex numbers count their parts: tests/io/numpy_test.cpp has the same formula.
"""
import io
import pathlib
import sys
import zipfile

import numpy as np


def values(dtype, shape):
    i = np.arange(int(np.prod(shape)))
    kind = np.dtype(dtype).kind
    if kind == "c":
        parts = values(np.empty(0, dtype).real.dtype, (*shape, 2))
        return (parts[..., 0] + 1j * parts[..., 1]).astype(dtype)
    array = {"f": i / 2 - 3, "i": i - 5, "u": i, "b": i % 3 == 0}[kind]
    return array.astype(dtype).reshape(shape)


class Stream(io.RawIOBase):
    """A file without a position: zipfile then writes sizes behind the members."""

    def __init__(self, file):
        self.file = file

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)


def main():
    folder = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent) / "numpy"
    folder.mkdir(exist_ok=True)
    arrays = {f"same_{d}": values(d, (2, 3)) for d in ("f4", "f8", "i4", "i8", "b1")}
    arrays |= {
        "same_scalar": np.array(-3.0, "f4"),
        "same_one_axis": values("f4", (5,)),
        "same_empty": values("f4", (0, 3)),
        "same_eight_axes": values("f8", (1, 2, 1, 3, 1, 1, 2, 1)),
        "same_long_header": np.zeros((0,) + (10**3,) * 5 + (1, 1), "f4"),
        "f2": values("f2", (2, 3)),
        "u1": values("u1", (2, 3)),
        "fortran_f4": np.asfortranarray(values("f4", (2, 3, 4))),
        "fortran_b1": np.asfortranarray(values("b1", (3, 5))),
        "fortran_empty": np.zeros((3, 0, 2), "f4", order="F"),
        "fortran_big_i4": np.asfortranarray(values(">i4", (2, 3))),
    }
    arrays |= {f"big_{d}": values(">" + d, (2, 3)) for d in ("f2", "f4", "f8", "i4", "i8")}
    arrays |= {d: values(d, (2, 3)) for d in ("u2", "u4", "u8", "c8", "c16")}
    arrays |= {f"big_{d}": values(">" + d, (2, 3)) for d in ("u2", "u4", "u8", "c8")}
    arrays |= {"complex_scalar": values("c8", ()), "complex_empty": np.zeros((2, 0), "c8"),
               "fortran_c8": np.asfortranarray(values("c8", (2, 3, 4))), "fortran_big_c16": np.asfortranarray(values(">c16", (3, 2)))}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    for version in ((1, 0), (2, 0), (3, 0)):
        with open(folder / f"version_{version[0]}.npy", "wb") as file:
            np.lib.format.write_array(file, values("f4", (2, 3)), version=version)

    refused = {
        "c32": np.zeros(2, "c32"),
        "objects": np.array([{"a": 1}, None], dtype=object),
        "text": np.array(["a", "bcd"]),
        "times": np.zeros(2, "M8[s]"),
        "fields": np.zeros(2, [("x", "f4"), ("y", "i4")]),
    }
    for name, array in refused.items():
        np.save(folder / f"refused_{name}.npy", array)

    members = {
        "x": np.asfortranarray(values("f4", (2, 3))),
        "y": values("b1", (4,)),
        "straße": values("i8", ()),
        "folder/name": values(">f8", (3, 2)),
    }
    np.savez(folder / "stored.npz", **members)
    np.savez_compressed(folder / "deflated.npz", **members)
    np.savez(folder / "mixed.npz", x=members["x"], objects=refused["objects"], text=refused["text"])
    np.savez(folder / "empty.npz")
    with open(folder / "streamed.npz", "wb") as file, zipfile.ZipFile(Stream(file), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in members.items():
            with archive.open(name + ".npy", "w", force_zip64=name == "x") as member:
                np.lib.format.write_array(member, array)


if __name__ == "__main__":
    main()
