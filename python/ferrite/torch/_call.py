"""How a call of recurrent layers runs: on Ferrite under autograd, or in PyTorch."""
import torch
from torch.autograd import forward_ad

from .._ferrite import _recurrence

_recurrence.set_up({
    "tensor": torch.Tensor, "parameter": torch.nn.Parameter, "f32": torch.float32, "f64": torch.float64,
    "strided": torch.strided,
    "threads": torch.get_num_threads,
    "transforms": torch._C._functorch.peek_interpreter_stack,
    "modes": torch._C._len_torch_dispatch_stack,
    "functions": torch._C._len_torch_function_stack,
    "autocast": torch.is_autocast_enabled,
    "tracing": torch._C._get_tracing_state,
    "forward_ad": forward_ad,
})
prepare = _recurrence.prepare
_is_grad_enabled = torch.is_grad_enabled

# The kinds of cells, by the numbers that `prepare` takes.
GRU, LSTM, RNN_TANH, RNN_RELU = range(4)
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_PADDED = (torch.ops.aten.gru.input, torch.ops.aten.lstm.input, torch.ops.aten.rnn_tanh.input,
           torch.ops.aten.rnn_relu.input)
_PACKED = (torch.ops.aten.gru.data, torch.ops.aten.lstm.data, torch.ops.aten.rnn_tanh.data,
           torch.ops.aten.rnn_relu.data)


def why():
    """Returns why PyTorch ran the last call of this thread, in a word or two, or None if Ferrite did."""
    return _recurrence.why()


def counts():
    """Returns how many calls Ferrite has run, and how many PyTorch for each reason."""
    return _recurrence.counts()


class Options:
    """The options of a stack of layers that do not change from call to call."""

    __slots__ = ("kind", "bias", "layers", "bidirectional", "batch_first")

    def __init__(self, kind, bias, layers, bidirectional, batch_first):
        self.kind = kind
        self.bias = bias
        self.layers = layers
        self.bidirectional = bidirectional
        self.batch_first = batch_first


def composite(op, *args):
    """Runs PyTorch's own layers, as if nothing were installed."""
    return op._op_dk(_COMPOSITE, *args)


def original(o, x, batch_sizes, h0, c0, weights, dropout=0.0, train=False):
    """Runs PyTorch's own layers with the operands of a call."""
    state = h0 if c0 is None else [h0, c0]
    rest = (weights, o.bias, o.layers, dropout, train, o.bidirectional)
    if batch_sizes is None:
        return composite(_PADDED[o.kind], x, state, *rest, o.batch_first)
    return composite(_PACKED[o.kind], x, batch_sizes, state, *rest)


class _Layers(torch.autograd.Function):
    """Layers on Ferrite with their gradient; the gradient of the gradient is PyTorch's."""

    @staticmethod
    def forward(ctx, call, options, x, batch_sizes, h0, c0, *weights):
        *results, saved = call.forward(x, batch_sizes, h0, c0, weights, True)
        ctx.call = call
        ctx.options = options
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, batch_sizes, h0, c0, saved, *weights)
        return tuple(results)

    @staticmethod
    def backward(ctx, dy, dh, dc=None):
        x, batch_sizes, h0, c0, saved, *weights = ctx.saved_tensors
        need = ctx.needs_input_grad
        wants = (need[2], need[4], need[5], *need[6:])
        found = None
        if not (_is_grad_enabled() or _is_transformed(dy, dh, dc)):
            found = ctx.call.backward(x, batch_sizes, h0, c0, weights, saved, dy, dh, dc, wants)
        if found is None:
            found = _recomputed(ctx.options, x, batch_sizes, h0, c0, weights, (dy, dh, dc), wants)
        return (None, None, found[0], None, *found[1:])


def _is_transformed(*cotangents):
    """Returns whether a transformation such as vmap runs the backward pass."""
    return torch._C._functorch.peek_interpreter_stack() is not None or any(
        d is not None and torch._C._functorch.is_legacy_batchedtensor(d) for d in cotangents)


def _recomputed(o, x, batch_sizes, h0, c0, weights, cotangents, wants):
    """Computes gradients that can be differentiated or transformed again, in PyTorch's operations."""
    create_graph = torch.is_grad_enabled()
    with torch.enable_grad(), torch.backends.mkldnn.flags(enabled=False):  # its layers have no second derivative
        # Aliases, so that a tensor in two places has two gradients.
        given = [t if t is None or not w else t.view_as(t) for t, w in zip((x, h0, c0, *weights), wants)]
        x, h0, c0, *weights = given
        if h0 is None:
            h0, c0 = _zeros(o, x, batch_sizes, weights)
        results = original(o, x if x.dim() == 3 or batch_sizes is not None else x.unsqueeze(1), batch_sizes,
                           *(s if s is None or s.dim() == 3 else s.unsqueeze(1) for s in (h0, c0)), weights)
        if batch_sizes is None and x.dim() == 2:
            results = [r.squeeze(1) for r in results]
        arrived = [(r, d) for r, d in zip(results, cotangents) if d is not None]
        wrt = [t for t, w in zip(given, wants) if w]
        found = iter(torch.autograd.grad([r for r, _ in arrived], wrt, [d for _, d in arrived],
                                         create_graph=create_graph, allow_unused=True))
    return [next(found) if w else None for w in wants]


def _zeros(o, x, batch_sizes, weights):
    """Returns the initial states of a call without any."""
    count = o.layers * (2 if o.bidirectional else 1)
    if batch_sizes is not None:
        shape = (count, int(batch_sizes[0]))
    elif x.dim() == 2:
        shape = (count,)
    else:
        shape = (count, x.size(0 if o.batch_first else 1))
    h = x.new_zeros((*shape, weights[1].size(1)))
    return h, x.new_zeros((*shape, weights[1].size(0) // 4)) if o.kind == LSTM else None


def run(call, o, x, batch_sizes, h0, c0, weights):
    """Runs a call that `prepare` accepted; returns y and the last states."""
    if call.wants_grad:
        return _Layers.apply(call, o, x, batch_sizes, h0, c0, *weights)
    return call.forward(x, batch_sizes, h0, c0, weights, False)


def leave_alone(*functions):
    """Tells torch.compile not to trace functions, nor what they call: there is nothing in them to compile."""
    from torch._C._dynamo import eval_frame

    if hasattr(eval_frame, "set_code_exec_strategy"):
        skip = eval_frame._FrameAction.SKIP
        for f in functions:
            eval_frame.set_code_exec_strategy(f.__code__, eval_frame._FrameExecStrategy(skip, skip))


leave_alone(run, _Layers.forward, _Layers.backward)
