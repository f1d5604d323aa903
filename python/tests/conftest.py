"""What the tests of the Python package share."""

import mmap
import os
import tempfile

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir

import ferrite

set_hypothesis_home_dir(os.path.join(tempfile.gettempdir(), "hypothesis"))  # nothing is left among the sources
settings.register_profile("ferrite", database=None, deadline=None, derandomize=True, max_examples=60)
settings.load_profile("ferrite")


@pytest.fixture
def guarded():
    """Returns a function that copies an array so that its last byte is the last one before a page nobody may read."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    kept = []

    def put(array):
        size = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        memory = mmap.mmap(-1, size + mmap.PAGESIZE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        assert libc.mprotect(address + size, mmap.PAGESIZE, 0) == 0
        out = np.frombuffer(memory, dtype=array.dtype, count=array.size, offset=size - array.nbytes).reshape(
            array.shape
        )
        out[...] = array
        kept.append((memory, address + size))
        return out

    yield put
    for memory, address in kept:
        assert libc.mprotect(address, mmap.PAGESIZE, 3) == 0


@pytest.fixture(autouse=True)
def seeds():
    ferrite.nn.manual_seed(0)
