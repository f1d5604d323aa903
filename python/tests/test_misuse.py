"""Misuse raises Python's errors and leaves the process alive."""

import threading
import time

import numpy as np
import pytest

import ferrite
from ferrite import nn, optim


def gradient_works():
    return ferrite.grad(lambda x: (x * x).sum())(np.ones(2, "float32")).tolist() == [2, 2]


def test_objects_that_were_not_constructed():
    class Callback(ferrite.Callback):
        def __init__(self):
            pass

    class Layer(nn.Module):
        def __init__(self):
            pass

    net = ferrite.features(3).linear(2).build()
    data = np.ones((20, 3), "float32"), np.zeros(20, "int64")
    with pytest.raises(TypeError, match="super"):
        ferrite.fit(net, data, "cross_entropy", optim.Adam(net.parameters()), epochs=1, callbacks=[Callback()])
    with pytest.raises(TypeError, match="super"):
        nn.Sequential(Layer())
    for made in (ferrite.Parameter, ferrite.Variable):
        empty = made.__new__(made)
        for use in (repr, ferrite.tanh, lambda p: p + 1, abs):
            with pytest.raises(TypeError):
                use(empty)
    for call in (
        lambda: nn._Module.train(42),
        lambda: ferrite.Builder.gru(42, 3),
        lambda: nn.Sequential.add(1, "a", net),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError, match="super"):
        ferrite.Builder.__new__(ferrite.Builder).linear(3)


def test_a_builder_of_a_part_ends_with_its_part():
    kept = []
    ferrite.features(3).residual(lambda b: kept.append(b) or b.linear(3)).build()
    with pytest.raises(TypeError):
        kept[0].linear(3)


def test_guards_of_threads_and_generators():
    @ferrite.no_grad()
    def slow(x):
        time.sleep(0.002)
        return x * 2

    threads = [threading.Thread(target=lambda: [slow(ferrite.ones([2])) for _ in range(10)]) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()

    def generator():
        with ferrite.no_grad():
            yield 1

    first, second = generator(), generator()
    next(first), next(second)
    first.close(), second.close()
    assert gradient_works()
    guard, seen = ferrite.no_grad(), []
    guard.__enter__()

    def leave():
        try:
            guard.__exit__(None, None, None)
        except RuntimeError as e:
            seen.append(str(e))

    t = threading.Thread(target=leave)
    t.start()
    t.join()
    assert "thread" in seen[0]
    guard.__exit__(None, None, None)
    assert gradient_works()
    with pytest.raises(RuntimeError):
        ferrite.no_grad().__exit__(None, None, None)


def test_lists_that_contain_themselves():
    own, mixed, table = [], [np.ones(2)], {}
    own.append(own), mixed.append(mixed)
    table["a"] = table
    for call in (
        lambda: ferrite.compile(lambda x, k: x)(1.0, k=own),
        lambda: ferrite.tensor(own),
        lambda: ferrite.tensor(mixed),
        lambda: ferrite.compile(lambda x: x)(own),
        lambda: ferrite.compile(lambda x: x)(table),
    ):
        with pytest.raises((RecursionError, ValueError)):
            call()


def test_numpys_bools_are_bools():
    t, a = ferrite.tensor([10.0, 20, 30]), np.array([1.0, -1, 1])
    assert t[[v > 0 for v in a]].tolist() == [10, 30]
    assert ferrite.tensor([np.True_, np.False_]).dtype == ferrite.bool_
    b = ferrite.tensor([True, False])
    assert (
        (b == 3).tolist() == [False, False] and (b < 3).tolist() == [True, True] and (b >= 1).tolist() == [True, False]
    )


def test_an_index_that_numpy_orders_differently_is_refused():
    n = np.arange(24).reshape(2, 3, 4)
    t = ferrite.tensor(n)
    for key in [(0, slice(None), [0, 1]), ([0, 1], None, 1), ([0], Ellipsis, 1)]:
        with pytest.raises(ferrite.ValueError, match="two steps"):
            t[key]
    for key in [(0, [0, 1]), ([1, 0], 2), (slice(None), [0, 2], 1), (slice(None), 1, [0, 2])]:
        assert np.array_equal(np.asarray(t[key]), n[key])


def test_a_layer_of_the_library_keeps_its_forward():
    with pytest.raises(TypeError, match="ferrite.nn.Module"):

        class Mine(nn.GRU):
            def forward(self, x):
                return x


def test_parts_keep_their_modes_in_copies():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop, self.head = nn.Dropout(0.5), nn.Linear(2, 2)

    net = Net()
    net.drop.eval()
    other = net.copy()
    assert not other.drop.training and other.head.training
