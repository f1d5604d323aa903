"""Ferrite: trains and runs small neural networks, recurrent ones above all, on the CPU.

Tensors are immutable; `grad`, `value_and_grad` and `Tape` differentiate; `sequence`, `features`, `image` and `tokens`
begin a network of the builder; `ferrite.nn` has layers and losses, `ferrite.optim` optimisers and schedules.
"""

from ._ferrite import *  # noqa: F403
from . import _ferrite
from . import nn, optim, train
from ._gradients import grad, value_and_grad
from .train import Callback, DataLoader, Dataset, History, evaluate, fit, predict  # noqa: F401
from .guards import FlushDenormals, detect_anomaly, log_to, no_grad  # noqa: F401

__version__ = _ferrite._version
for _error in vars(_ferrite).values():
    if isinstance(_error, type) and issubclass(_error, Exception):
        _error.__module__ = "ferrite"

float32, float64, int32, int64 = f32, f64, i32, i64  # noqa: F405
float16, bfloat16, int8 = f16, bf16, i8  # noqa: F405


def _unpickled(array, dtype):
    return cast(tensor(array), dtype)  # noqa: F405
