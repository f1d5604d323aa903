"""Data sets, training in one call, callbacks, metrics and checkpoints."""

import sys

from . import _ferrite

sys.modules[__package__ + "._ferrite._train"] = _ferrite._train
from ._ferrite._train import *  # noqa: E402, F403
