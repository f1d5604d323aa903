"""Ferrite: trains and runs small neural networks, recurrent ones above all, on the CPU."""
from ._ferrite import *  # noqa: F403
from .guards import FlushDenormals, detect_anomaly, log_to, no_grad  # noqa: F401


def _unpickled(array, dtype):
    return cast(tensor(array), dtype)  # noqa: F405
