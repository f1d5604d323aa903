"""Compiled functions and scans."""
import functools
import gc
import weakref

import ferrite
import numpy as np
import pytest
from ferrite import nn


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_results_have_the_bits_of_the_function():
    def f(x, y):
        return ferrite.tanh(x @ y) * 2 + 1

    fast = ferrite.compile(f)
    a, b = draw(4, 5), draw(5, 3, seed=1)
    for _ in range(3):
        np.testing.assert_array_equal(fast(a, b).numpy(), f(ferrite.tensor(a), ferrite.tensor(b)).numpy())
    assert fast.plans == 1
    fast(a[:2], b)
    assert fast.plans == 2
    assert fast.report().kernels >= 1 and "tanh" in fast.report().text
    assert "tanh" in fast.graph()


def test_the_function_runs_only_while_it_is_traced():
    calls = []

    @ferrite.compile
    def f(x):
        """Doubles."""
        calls.append(1)
        return x + x

    for _ in range(3):
        assert f(np.ones(2, np.float32)).tolist() == [2, 2]
    assert len(calls) == 1
    assert f.__name__ == "f" and f.__doc__ == "Doubles." and f.__wrapped__.__name__ == "f"


def test_structures():
    @ferrite.compile(most_plans=4)
    def f(pair, rest):
        return {"sum": pair[0] + pair[1], "all": [rest["a"], (rest["b"], None)]}

    out = f((1.0, 2.0), {"a": np.zeros(2, np.float32), "b": np.int64(3)})
    assert out["sum"].item() == 3
    assert isinstance(out["all"], list) and isinstance(out["all"][1], tuple)
    assert out["all"][1][0].item() == 3 and out["all"][1][1] is None
    assert ferrite.compile(lambda x: None)(np.zeros(1, np.float32)) is None


def test_structures_may_differ_by_shape():
    @ferrite.compile
    def f(x):
        return x if x.shape[0] == 1 else (x, x)

    one, two = np.zeros(1, np.float32), np.zeros(2, np.float32)
    for _ in range(2):
        assert isinstance(f(one), ferrite.Tensor)
        assert isinstance(f(two), tuple)


def test_keywords_are_constants():
    @ferrite.compile
    def f(x, *, power=1, name=""):
        return x ** power if name == "" else x

    x = np.array([2, 3], np.float32)
    assert f(x).tolist() == [2, 3]
    assert f(x, power=2).tolist() == [4, 9]
    assert f(x, power=2, name="other").tolist() == [2, 3]
    assert f.plans == 3


def test_keywords_that_hold_tensors_are_arguments():
    net = ferrite.sequence(2).gru(3).last_step().build(0)
    fast = ferrite.compile(net)
    x = draw(2, 5, 2)
    for lengths in (np.array([5, 2]), np.array([1, 4])):
        np.testing.assert_array_equal(fast(x, lengths=lengths).numpy(), net(x, lengths=lengths).numpy())
    assert fast.plans == 1
    f = ferrite.compile(lambda x, *, by, more=1: x * by["a"] + more)
    for by in (2.0, 3.0):
        assert f(np.float32(1), by={"a": np.float32(by)}, more=True).item() == by + 1
        assert f(np.float32(1), by={"a": np.float32(by)}).item() == by + 1
    assert f.plans == 2
    with pytest.raises(TypeError, match="unhashable"):
        f(np.float32(1), by={"a": 1.0})


def test_methods():
    class Scaled:
        def __init__(self, by):
            self.by = by

        @ferrite.compile
        def run(self, x):
            return x * self.by

    a, b = Scaled(2.0), Scaled(3.0)
    x = np.ones(1, np.float32)
    assert a.run(x).item() == 2 and b.run(x).item() == 3 and a.run(x).item() == 2
    assert a.run is a.run


def test_variables_are_read_and_written():
    net = nn.Linear(3, 1)
    sgd = ferrite.optim.SGD(net.parameters(), lr=0.1)
    both = ferrite.value_and_grad(lambda x, y: nn.mse_loss(net(x), y), net.parameters())

    def step(x, y):
        loss, grads = both(x, y)
        sgd.step(grads)
        return loss

    x, y = draw(8, 3), draw(8, 1, seed=1)
    start = ferrite.state_dict(net)
    eager = [step(ferrite.tensor(x), ferrite.tensor(y)).item() for _ in range(5)]
    after = ferrite.state_dict(net)
    ferrite.load_state_dict(net, start)
    fast = ferrite.compile(step)
    assert [fast(x, y).item() for _ in range(5)] == eager
    for name, value in ferrite.state_dict(net).items():
        np.testing.assert_array_equal(value.numpy(), after[name].numpy())


def test_gradients_pass_through():
    f = ferrite.compile(lambda x: ferrite.sum(x * x * x))
    x = ferrite.tensor(np.array([1, 2], np.float32))
    assert ferrite.grad(f)(x).tolist() == [3, 12]
    assert ferrite.compile(lambda y: f(y) * 2)(x).item() == 18


def test_a_carry_is_an_argument():
    net = nn.GRU(2, 3)
    carry, other = nn.Carry(net, 1), nn.Carry(net, 1)
    x = draw(1, 4, 2)
    run = functools.partial(lambda x, c: net(x, carry=c))
    fast = ferrite.compile(run)
    first = np.asarray(fast(x, carry))
    second = np.asarray(fast(x, carry))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(np.asarray(fast(x, other)), first)


def test_reading_values_raises():
    with pytest.raises(ferrite.TraceError):
        ferrite.compile(lambda x: x if x.item() > 0 else -x)(np.float32(1))
    with pytest.raises(KeyError, match="mine"):
        ferrite.compile(lambda x: {}["mine"])(np.float32(1))
    with pytest.raises(ferrite.ValueError, match="str"):
        ferrite.compile(lambda x: x)("text")
    with pytest.raises(TypeError):
        ferrite.compile(3)


def test_verify_notices_changed_values():
    by = 2.0
    f = ferrite.compile(lambda x: x * by)
    x = np.ones(1, np.float32)
    assert f(x).item() == 2
    f.verify(x)
    by = 3.0
    assert f(x).item() == 2
    with pytest.raises(ferrite.TraceError):
        f.verify(x)


def test_a_cycle_is_collected():
    class Holder:
        pass

    h = Holder()
    h.f = ferrite.compile(lambda x: (h, x)[1])
    h.f(np.zeros(1, np.float32))
    gone = weakref.ref(h)
    del h
    gc.collect()
    assert gone() is None


def step_by_hand(w, u, h, xs):
    ys = []
    for x in xs:
        h = np.tanh(x @ w + h @ u)
        ys.append(h)
    return h, np.stack(ys)


@pytest.mark.parametrize("scan", [ferrite.scan, lambda body, *a, **k: ferrite.Scan(body)(*a, **k)])
def test_scan(scan):
    w, u, h, xs = draw(3, 4), draw(4, 4, seed=1) / 2, draw(2, 4, seed=2), draw(6, 2, 3, seed=3)
    tw, tu = ferrite.tensor(w), ferrite.tensor(u)

    def body(h, x):
        h = ferrite.tanh(x @ tw + h @ tu)
        return h, h

    carry, ys = scan(body, h, xs)
    last, all_ = step_by_hand(w, u, h, xs)
    np.testing.assert_allclose(carry.numpy(), last, atol=1e-5)
    np.testing.assert_allclose(ys.numpy(), all_, atol=1e-5)
    carry, ys = scan(body, h, xs, reverse=True)
    last, all_ = step_by_hand(w, u, h, xs[::-1])
    np.testing.assert_allclose(ys.numpy(), all_[::-1], atol=1e-5)
    carry, ys = scan(body, h, xs, lengths=np.array([6, 2]))
    assert (ys.numpy()[2:, 1] == 0).all() and (ys.numpy()[2:, 0] != 0).all()


def test_scan_structures_and_gradients():
    def body(carry, x):
        return {"sum": carry["sum"] + x["a"], "n": carry["n"] + 1.0}, (carry["sum"], None)

    xs = {"a": np.array([1, 2, 3], np.float32)}
    carry, (before, nothing) = ferrite.scan(body, {"sum": 0.0, "n": 0.0}, xs)
    assert carry["sum"].item() == 6 and carry["n"].item() == 3
    assert before.tolist() == [0, 1, 3] and nothing is None
    carry, y = ferrite.scan(lambda c, x: (c * 2, None), 1.0, steps=5)
    assert carry.item() == 32 and y is None
    squares = ferrite.grad(lambda x: ferrite.scan(lambda c, v: (c + v * v, None), 0.0, x)[0])
    assert squares(ferrite.tensor(np.array([1, 2], np.float32))).tolist() == [2, 4]


def test_scan_report_and_errors():
    linear = ferrite.Scan(lambda c, x: (c * 0.5 + x, c))
    assert linear.is_linear(np.zeros(2, np.float32), np.zeros((4, 2), np.float32))
    assert "linear" in linear.report(np.zeros(2, np.float32), np.zeros((4, 2), np.float32))
    with pytest.raises(ferrite.ValueError, match="tuple"):
        ferrite.scan(lambda c, x: c, 0.0, np.zeros(3, np.float32))
    with pytest.raises(ferrite.ValueError, match="structure"):
        ferrite.scan(lambda c, x: ((c, c), c), 0.0, np.zeros(3, np.float32))
    with pytest.raises(ferrite.ShapeError):
        ferrite.scan(lambda c, x: (c, c), 0.0, [np.zeros(3, np.float32), np.zeros(4, np.float32)])
    with pytest.raises(ZeroDivisionError):
        ferrite.scan(lambda c, x: 1 / 0, 0.0, np.zeros(3, np.float32))
