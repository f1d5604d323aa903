"""Optimisers and schedules under PyTorch's names."""

import sys

from . import _ferrite

sys.modules[__package__ + "._ferrite._optim"] = _ferrite._optim
from ._ferrite._optim import *  # noqa: E402, F403
