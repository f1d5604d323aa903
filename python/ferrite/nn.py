"""Layers under PyTorch's names, losses, and `Module`, the base of layers written in Python."""

import sys

from . import _ferrite
from ._ferrite import Parameter, Buffer

sys.modules[__package__ + "._ferrite._nn"] = _ferrite._nn
from ._ferrite._nn import *  # noqa: E402, F403
from ._ferrite._nn import _Layer, _Module  # noqa: E402


class Module(_Layer):
    """The base of layers that are written in Python: assign layers and parameters as attributes, and define `forward`.

        class Net(ferrite.nn.Module):
            def __init__(self):
                super().__init__()
                self.gru = ferrite.nn.GRU(3, 16)
                self.head = ferrite.nn.Linear(16, 1)

            def forward(self, x):
                return self.head(self.gru(x)[:, -1])

    `copy` and the copies that `copy.copy` and `copy.deepcopy` make are made by calling the class again with the
    same arguments; they have the same values. A layer is assigned once: its parameters then belong to the module,
    under dotted names such as "gru.weight_ih_l0".
    """

    def __init_subclass__(cls, **options):
        pass

    def __init__(self):
        super().__init__()

    def __new__(cls, *args, **options):
        made = super().__new__(cls)
        object.__setattr__(made, "_made_with", (args, options))
        return made

    def __setattr__(self, name, value):
        if isinstance(value, _Module):
            self._adopt(name, value)
        elif isinstance(value, (Parameter, Buffer)):
            value = self._register(name, value)
        object.__setattr__(self, name, value)

    def __call__(self, *inputs, **options):
        return self.forward(*inputs, **options)

    def forward(self, *inputs, **options):
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def _another(self):
        args, options = self._made_with
        made = type(self)(*args, **options)
        made._copy_values(self)
        made._set_modes(self._modes())
        return made

    def __repr__(self):
        rows = [
            f"  ({name}): " + repr(part).replace("\n", "\n  ")
            for name, part in vars(self).items()
            if isinstance(part, _Module)
        ]
        return type(self).__name__ + ("(\n" + "\n".join(rows) + "\n)" if rows else "()")


def _check_subclass(cls, **options):
    if "forward" in vars(cls):
        raise TypeError(f"{cls.__name__}: a layer of the library keeps its own forward; derive from ferrite.nn.Module "
                        "and hold the layer as an attribute")


_Layer.__init_subclass__ = classmethod(_check_subclass)


def _activation(name, kind, doc):
    def make():
        return Activation(kind)  # noqa: F405

    make.__name__ = make.__qualname__ = name
    make.__doc__ = doc
    return make


for _name, _kind in {
    "ReLU": "relu",
    "Tanh": "tanh",
    "Sigmoid": "sigmoid",
    "GELU": "gelu",
    "SiLU": "silu",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "LogSigmoid": "log_sigmoid",
    "SELU": "selu",
    "Mish": "mish",
    "Hardswish": "hardswish",
    "Hardsigmoid": "hardsigmoid",
    "Softmax": "softmax",
    "LogSoftmax": "log_softmax",
}.items():
    globals()[_name] = _activation(_name, _kind, f"Makes the layer of the activation `{_kind}`.")
