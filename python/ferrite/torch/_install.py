"""The switch that makes PyTorch's own recurrent layers run on Ferrite."""
import contextlib

import torch

from . import _call
from ._call import Options, composite, leave_alone, prepare, run

_is_grad_enabled = torch.is_grad_enabled
_library = None


def _kernels(kind):
    """Returns the functions that replace a kind's layers on padded and on packed sequences."""
    lstm = kind == _call.LSTM

    def padded(x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        h0, c0 = hx if lstm and len(hx) == 2 else (hx, None)
        call = prepare(kind, x, None, h0, c0, params, has_biases, num_layers, bidirectional, batch_first,
                       _is_grad_enabled(), False)
        if call is None:
            return composite(_call._PADDED[kind], x, hx, params, has_biases, num_layers, dropout, train, bidirectional,
                             batch_first)
        return run(call, Options(kind, has_biases, num_layers, bidirectional, batch_first), x, None, h0, c0, params,
                   dropout if train else 0)

    def packed(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
        h0, c0 = hx if lstm and len(hx) == 2 else (hx, None)
        call = prepare(kind, data, batch_sizes, h0, c0, params, has_biases, num_layers, bidirectional, False,
                       _is_grad_enabled(), False)
        if call is None:
            return composite(_call._PACKED[kind], data, batch_sizes, hx, params, has_biases, num_layers, dropout, train,
                             bidirectional)
        return run(call, Options(kind, has_biases, num_layers, bidirectional, False), data, batch_sizes, h0, c0, params,
                   dropout if train else 0)

    leave_alone(padded, packed)
    return padded, packed


def install():
    """Makes PyTorch's recurrent layers (torch.nn.GRU, LSTM, RNN, also inside other modules) run on Ferrite from now on,
    on the CPU. Does nothing if they do already."""
    global _library
    if _library is not None:
        return
    library = torch.library.Library("aten", "IMPL")
    for kind, name in enumerate(("gru", "lstm", "rnn_tanh", "rnn_relu")):
        padded, packed = _kernels(kind)
        # Gradients pass through the kernel of AutogradCPU; the one of CPU runs in inference mode.
        for key in ("AutogradCPU", "CPU"):
            library.impl(f"{name}.input", padded, key)
            library.impl(f"{name}.data", packed, key)
    _library = library


def uninstall():
    """Returns PyTorch's recurrent layers to PyTorch."""
    global _library
    if _library is not None:
        _library._destroy()
        _library = None


def is_installed():
    """Returns whether PyTorch's recurrent layers run on Ferrite."""
    return _library is not None


@contextlib.contextmanager
def installed():
    """Runs the body of a ``with`` statement with PyTorch's recurrent layers on Ferrite."""
    before = is_installed()
    install()
    try:
        yield
    finally:
        if not before:
            uninstall()
