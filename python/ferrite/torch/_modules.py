"""PyTorch's recurrent modules on Ferrite."""
from operator import is_

import torch
from torch.nn.utils.rnn import PackedSequence

from . import _call
from ._call import Options, leave_alone, prepare, run

_is_grad_enabled = torch.is_grad_enabled
_is_compiling = torch.compiler.is_compiling


class _OnFerrite:
    """The forward pass that GRU, LSTM and RNN share."""

    def _kind(self):
        return {"GRU": _call.GRU, "LSTM": _call.LSTM, "RNN_TANH": _call.RNN_TANH, "RNN_RELU": _call.RNN_RELU}[self.mode]

    def forward(self, input, hx=None):
        if _is_compiling():
            return super().forward(input, hx)
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        o = self.__dict__.get("_options")
        if o is None or o.batch_first is not self.batch_first:
            o = self._set_options()
        h0, c0 = hx if o.kind == _call.LSTM and type(hx) is tuple and len(hx) == 2 else (hx, None)
        weights = self._weights()
        if (h0 is None or isinstance(h0, torch.Tensor)) and (c0 is not None or h0 is None or o.kind != _call.LSTM):
            call = prepare(o.kind, input, None, h0, c0, weights, o.bias, o.layers, o.bidirectional, o.batch_first,
                           _is_grad_enabled(), True)
            if call is not None:
                out = run(call, o, input, None, h0, c0, weights, self.dropout if self.training else 0)
                return out if o.kind != _call.LSTM else (out[0], (out[1], out[2]))
        return super().forward(input, hx)

    def _weights(self):
        """Returns the weights in PyTorch's order, also where other tensors have replaced the parameters, as functional_call
        and parametrizations do. PyTorch's own check takes as long as the call of a small layer."""
        parameters = self._parameters
        weights = self._flat_weights
        if len(parameters) == len(weights) and all(map(is_, parameters.values(), weights)):
            return weights
        self._update_flat_weights()
        return self._flat_weights

    def _packed(self, input, hx):
        o = self.__dict__.get("_options") or self._set_options()
        data, batch_sizes, order, back = input
        given = hx
        if hx is not None:
            self.check_forward_args(data, hx, batch_sizes)
            given = self.permute_hidden(hx, order)
        h0, c0 = given if o.kind == _call.LSTM and given is not None else (given, None)
        weights = self._weights()
        call = prepare(o.kind, data, batch_sizes, h0, c0, weights, o.bias, o.layers, o.bidirectional, False,
                       _is_grad_enabled(), True)
        if call is None:
            return super().forward(input, hx)
        y, *states = run(call, o, data, batch_sizes, h0, c0, weights, self.dropout if self.training else 0)
        states = tuple(states) if o.kind == _call.LSTM else states[0]
        return PackedSequence(y, batch_sizes, order, back), self.permute_hidden(states, back)

    def _set_options(self):
        o = Options(self._kind(), self.bias, self.num_layers, self.bidirectional, self.batch_first)
        self.__dict__["_options"] = o
        return o

    def __getstate__(self):
        state = super().__getstate__() if hasattr(super(), "__getstate__") else self.__dict__
        return {k: v for k, v in state.items() if k != "_options"}

    def __prepare_scriptable__(self):
        """Returns PyTorch's module with the same parameters, for torch.jit.script."""
        own = type(self).__mro__[2]
        plain = own.__new__(own)
        plain.__dict__.update(self.__dict__)
        plain.__dict__.pop("_options", None)
        return plain


leave_alone(_OnFerrite._packed)


class GRU(_OnFerrite, torch.nn.GRU):
    """A torch.nn.GRU that runs on Ferrite: same arguments, parameters and results."""


class LSTM(_OnFerrite, torch.nn.LSTM):
    """A torch.nn.LSTM that runs on Ferrite: same arguments, parameters and results."""


class RNN(_OnFerrite, torch.nn.RNN):
    """A torch.nn.RNN that runs on Ferrite: same arguments, parameters and results."""
