"""PyTorch's own cases for its recurrent modules pass with Ferrite installed or not, and for Ferrite's modules."""
import contextlib

import pytest
import torch

import ferrite.torch

pytest.importorskip("expecttest")
from torch.testing._internal.common_modules import module_db  # noqa: E402

NAMES = ("GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell")
INFOS = [i for i in module_db if i.module_cls.__name__ in NAMES]


def test_all_modules_have_cases():
    assert {i.module_cls.__name__ for i in INFOS} == set(NAMES)


def flat(o):
    if isinstance(o, torch.nn.utils.rnn.PackedSequence):
        return [o.data]
    return [o] if isinstance(o, torch.Tensor) else [t for each in o for t in flat(each)]


def leaves(o):
    if isinstance(o, torch.Tensor):
        return [o] if o.is_floating_point() else []
    if isinstance(o, torch.nn.utils.rnn.PackedSequence):
        return [o.data]
    return [t for each in o for t in leaves(each)] if isinstance(o, (tuple, list)) else []


def inputs_of(info, cls, dtype, training):
    torch.manual_seed(1)
    return info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)


def run(info, cls, dtype, training):
    """Returns the results and gradients of all cases of a module, and checks those that have a reference."""
    all_results = []
    for case in inputs_of(info, cls, dtype, training):
        torch.manual_seed(2)
        args, kwargs = case.constructor_input.args, case.constructor_input.kwargs
        m = cls(*args, **{"dtype": dtype, **kwargs}).train(training)
        given = case.forward_input
        if given is None:
            continue
        torch.manual_seed(3)
        result = m(*given.args, **given.kwargs)
        tensors = flat(result)
        torch.autograd.backward([t for t in tensors if t.requires_grad],
                                [torch.ones_like(t) for t in tensors if t.requires_grad])
        grads = [p.grad for p in m.parameters()]
        for t in leaves(given.args):
            grads.append(t.grad if t.is_leaf else None)
            if t.is_leaf:
                t.grad = None
        if case.reference_fn is not None:
            expected = case.reference_fn(m, *given.args, **given.kwargs)
            for e, t in zip(flat(expected), tensors):
                torch.testing.assert_close(t, e)
        all_results.append((tensors, grads))
    return all_results


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("info", INFOS, ids=lambda i: i.name)
def test_cases(info, dtype, training):
    cls = info.module_cls
    ways = [(cls, contextlib.nullcontext()), (cls, ferrite.torch.installed())]
    if hasattr(ferrite.torch, cls.__name__):
        ways.append((getattr(ferrite.torch, cls.__name__), contextlib.nullcontext()))
    found = []
    for which, on in ways:
        with on:
            before = ferrite.torch.counts()["ferrite"]
            found.append(run(info, which, dtype, training))
            served = ferrite.torch.counts()["ferrite"] - before
        assert (served > 0) == (len(found) > 1 and "Cell" not in cls.__name__)
    assert found[0]
    for other in found[1:]:
        for (results, grads), (expected, expected_grads) in zip(other, found[0]):
            for a, e in zip(results + grads, expected + expected_grads):
                assert (a is None) == (e is None)
                if e is not None:
                    torch.testing.assert_close(a, e, rtol=1e-4, atol=1e-5)
