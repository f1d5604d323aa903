"""Runs a net through the C interface with Python's ctypes: ctypes_test.py LIBRARY NET."""

import ctypes
import math
import sys


class Description(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("inputs", ctypes.c_int64),
        ("outputs", ctypes.c_int64),
        ("parameters", ctypes.c_int64),
        ("rate", ctypes.c_double),
        ("streams", ctypes.c_int32),
        ("stride", ctypes.c_int64),
        ("delay", ctypes.c_int64),
    ]


library = ctypes.CDLL(sys.argv[1])
library.ferrite_error.restype = ctypes.c_char_p
library.ferrite_version.restype = ctypes.c_char_p


def check(status):
    if status != 0:
        raise RuntimeError(library.ferrite_error().decode())


model = ctypes.c_void_p()
check(library.ferrite_load(sys.argv[2].encode(), ctypes.byref(model)))
description = Description(size=ctypes.sizeof(Description))
check(library.ferrite_describe(model, ctypes.byref(description)))
assert (description.inputs, description.outputs, description.streams, description.stride) == (1, 1, 1, 1)
assert description.parameters > 0

n = 200
Values = ctypes.c_float * n
x = Values(*(math.sin(0.1 * t) for t in range(n)))
whole, y = Values(), Values()
values = ctypes.c_size_t()
check(library.ferrite_run(model, ctypes.c_int64(1), ctypes.c_int64(n), x, whole, ctypes.c_size_t(n), ctypes.byref(values)))
assert values.value == n

stream = ctypes.c_void_p()
check(library.ferrite_stream_new(model, ctypes.c_int64(1), ctypes.byref(stream)))
check(library.ferrite_stream_steps(stream, ctypes.c_int64(n), x, y))
assert list(y) == list(whole) and any(y)

try:
    check(library.ferrite_load(b"no such file", ctypes.byref(ctypes.c_void_p())))
    raise SystemExit("a missing file was not noticed")
except RuntimeError as error:
    assert "no such file" in str(error)
library.ferrite_stream_free(stream)
library.ferrite_free(model)
print("ferrite", library.ferrite_version().decode())
