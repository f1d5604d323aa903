"""Gradients of Python functions against closed forms and PyTorch's."""
import threading

import numpy as np
import pytest

import ferrite
from ferrite import nn

torch = pytest.importorskip("torch")


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def test_grad_of_one_input():
    x = random(3, 4)
    assert np.allclose(np.asarray(ferrite.grad(lambda t: (t * t * t).sum())(x)), 3 * x ** 2)
    value, g = ferrite.value_and_grad(lambda t: t.exp().sum())(x)
    assert np.allclose(value.item(), np.exp(x).sum()) and np.allclose(np.asarray(g), np.exp(x))


def test_grad_of_several_inputs():
    a, b = random(2, 3), random(3, 4, seed=1)
    ga, gb = ferrite.grad(lambda s, t: (s @ t).sum())(a, b)
    assert np.allclose(np.asarray(ga), np.ones((2, 4)) @ b.T) and np.allclose(np.asarray(gb), a.T @ np.ones((2, 4)))


def test_grad_of_parameters():
    w, unread = ferrite.Parameter(random(4)), ferrite.Parameter(random(2))
    value, grads = ferrite.value_and_grad(lambda x: (w * x).sum(), [w, unread])(random(4, seed=1))
    assert np.allclose(np.asarray(grads[0]), random(4, seed=1)) and grads[1] is None and value.shape == ()


def test_second_derivatives():
    f = lambda t: (t ** 4.0).sum()  # noqa: E731
    x = np.array([1.0, 2, -3])
    assert np.allclose(np.asarray(ferrite.hessian(f, x)), np.diag(12 * x ** 2))
    assert np.allclose(np.asarray(ferrite.grad(lambda t: ferrite.grad(f)(t).sum())(x)), 12 * x ** 2)
    value, product = ferrite.hvp(f, x, np.ones(3))
    assert np.allclose(value.item(), (x ** 4).sum()) and np.allclose(np.asarray(product), 12 * x ** 2)


@pytest.mark.parametrize("by", ["rows", "columns", "smaller"])
def test_jacobian(by):
    a, x = random(3, 5), random(5, seed=1)
    j = np.asarray(ferrite.jacobian(lambda t: ferrite.tanh(ferrite.tensor(a) @ t), x, by=by))
    assert np.allclose(j, (1 - np.tanh(a @ x) ** 2)[:, None] * a)


def test_products_with_jacobians():
    a, x, v, u = random(3, 5), random(5, seed=1), random(5, seed=2), random(3, seed=3)
    f = lambda t: ferrite.tensor(a) @ t  # noqa: E731
    assert np.allclose(np.asarray(ferrite.jvp(f, x, v).tangent), a @ v)
    assert np.allclose(np.asarray(ferrite.vjp(f, x, u).gradient), a.T @ u)


def test_tape():
    x = ferrite.tensor(random(3))
    with ferrite.Tape() as tape:
        w = tape.watch(x)
        y = (w * w).sum()
        first = tape.grad(y, w, create_graph=True)
        second = tape.grad(first.sum(), w)
    assert np.allclose(np.asarray(first), 2 * np.asarray(x)) and np.allclose(np.asarray(second), 2)
    with pytest.raises(ferrite.TapeError):
        tape.watch(x)
    with ferrite.Tape() as tape:
        tape.watch(x)
        with pytest.raises(RuntimeError):
            tape.grad(x.sum(), x)
        with pytest.raises(ferrite.DtypeError):
            tape.watch(ferrite.arange(3))


def test_no_grad():
    w = ferrite.Parameter(ferrite.ones([2]))
    with ferrite.Tape() as tape:
        a = (w * 3).sum()
        with ferrite.no_grad():
            b = (w * 5).sum()
        assert np.allclose(np.asarray(tape.grad(a + b, [w])[0]), 3)


def test_hooks_and_checkpoints():
    x, seen = random(3), []

    def look(g):
        seen.append(np.asarray(g).copy())
        return g * 10
    g = ferrite.grad(lambda t: (ferrite.hook_gradient(t * 2, look) * 3).sum())(x)
    assert np.allclose(seen[0], 3) and np.allclose(np.asarray(g), 60)
    calls = []

    def part(t):
        calls.append(1)
        return ferrite.sin(t)
    g = ferrite.grad(lambda t: ferrite.checkpoint(part, [t])[0].sum())(x)
    assert np.allclose(np.asarray(g), np.cos(x)) and len(calls) == 2


def test_errors_inside_functions_come_through():
    class Mine(Exception):
        pass

    def f(t):
        raise Mine("here")
    for call in (ferrite.grad(f), lambda x: ferrite.jacobian(f, x), lambda x: ferrite.vjp(f, x, x)):
        with pytest.raises(Mine, match="here"):
            call(ferrite.ones([2]))
    with pytest.raises(ferrite.ShapeError):
        ferrite.grad(lambda t: t)(ferrite.ones([2]))
    # nothing is left on a tape
    assert ferrite.grad(lambda t: t.sum())(ferrite.ones([2])).tolist() == [1, 1]


def test_tapes_of_threads_are_their_own():
    x, wrong = ferrite.normal([32], seed=1), []

    def work(k):
        for _ in range(100):
            g = ferrite.grad(lambda t: (t * t * k).sum())(x)
            if not np.allclose(np.asarray(g), 2 * k * np.asarray(x)):
                wrong.append(k)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("layer", ["GRU", "LSTM", "RNN"])
def test_gradients_of_recurrent_layers_are_pytorchs(layer):
    ours, theirs = getattr(nn, layer)(3, 5, dtype="f64"), getattr(torch.nn, layer)(3, 5, batch_first=True).double()
    copy_weights(theirs, ours)
    x = random(2, 7, 3)
    t = torch.tensor(x, requires_grad=True)
    (theirs(t)[0] ** 2).sum().backward()
    value, grads = ferrite.value_and_grad(lambda: (ours(x) ** 2.0).sum(), ours.parameters())()
    for p, g in zip(ours.parameters(), grads):
        expected = getattr(theirs, p.name).grad.numpy()
        assert np.allclose(np.asarray(g), expected.T if expected.ndim == 2 else expected, atol=1e-9)
    assert np.allclose(np.asarray(ferrite.grad(lambda s: (ours(s) ** 2.0).sum())(x)), t.grad.numpy(), atol=1e-9)


def copy_weights(theirs, ours):
    """Gives a layer the weights of PyTorch's: matrices are the other way round."""
    theirs = dict(theirs.named_parameters())
    for name, p in ours.named_parameters().items():
        w = theirs[name].detach().numpy()
        p.assign(w.T.copy() if w.ndim == 2 and "embedding" not in name else w)
