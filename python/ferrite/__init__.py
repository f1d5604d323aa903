"""Ferrite: trains and runs small neural networks, recurrent ones above all, on the CPU."""
from ._ferrite import *  # noqa: F403


def _unpickled(array, dtype):
    return cast(tensor(array), dtype)  # noqa: F405
