"""Calls that Ferrite does not serve run in PyTorch, with PyTorch's results; each reason has a test."""
import pytest
import torch
from torch.autograd import forward_ad

import ferrite.torch


def layers(kind="GRU", *args, **options):
    """A layer of PyTorch, one of Ferrite with equal weights, and an input."""
    torch.manual_seed(3)
    plain = getattr(torch.nn, kind)(4, 6, *args, **options)
    ours = getattr(ferrite.torch, kind)(4, 6, *args, **options)
    ours.load_state_dict(plain.state_dict())
    return plain, ours, torch.randn(5, 3, 4)


def output(result):
    return result[0]


class First(torch.nn.Module):
    """A module that gives the outputs of a layer, without its states."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


class Counted:
    """Counts the calls that run in a ``with`` statement, by the reason for which PyTorch ran them."""

    def __enter__(self):
        self.before = ferrite.torch.counts()
        return self

    def __exit__(self, *_):
        after = ferrite.torch.counts()
        self.counts = {k: n - self.before[k] for k, n in after.items() if n != self.before[k]}


def check(reason, f, plain, ours):
    """Checks that f(module) is the same for PyTorch's module, on Ferrite, and installed, where `reason` is counted."""
    expected = f(plain)
    with Counted() as module:
        actual = f(ours)
    with Counted() as switch, ferrite.torch.installed():
        switched = f(plain)
    assert set(module.counts) <= {reason} and (module.counts or reason == "compiling")
    assert set(switch.counts) <= {reason} and switch.counts
    for e, a, s in zip(expected, actual, switched):
        torch.testing.assert_close(a, e)
        torch.testing.assert_close(s, e)


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
class TestReasons:
    def test_vmap(self, kind):
        plain, ours, x = layers(kind)
        stacked = torch.stack([x, 2 * x])
        weights = {k: torch.stack([p.detach(), 2 * p.detach()]) for k, p in plain.named_parameters()}

        def f(m):  # PyTorch has no rule for its layers
            with pytest.raises(RuntimeError, match="Batching rule not implemented"):
                torch.func.vmap(lambda v: m(v)[0])(stacked)
            with pytest.raises(RuntimeError, match="Batching rule not implemented"):
                torch.func.vmap(lambda w: torch.func.functional_call(m, w, (x,))[0])(weights)

        f(plain)
        with Counted() as c:
            f(ours)
        assert c.counts == {"transform": 2}
        with Counted() as c, ferrite.torch.installed():
            f(plain)
        assert c.counts == {}

    def test_functionalize(self, kind):
        plain, ours, x = layers(kind)
        f = torch.func.functionalize
        with Counted() as c:
            torch.testing.assert_close(f(lambda v: ours(v)[0])(x), plain(x)[0])
        assert c.counts == {"transform": 1}
        with ferrite.torch.installed():  # the operation arrives with its wrappers removed
            torch.testing.assert_close(f(lambda v: plain(v)[0])(x), plain(x)[0])

    def test_grad_transform(self, kind):
        plain, ours, x = layers(kind)
        check("transform", lambda m: [torch.func.grad(lambda v: m(v)[0].sin().sum())(x)], plain, ours)

    def test_jvp_transform(self, kind):
        plain, ours, x = layers(kind)
        with torch.backends.mkldnn.flags(enabled=False):
            check("transform", lambda m: torch.func.jvp(lambda v: m(v)[0], (x,), (x.cos(),)), plain, ours)

    def test_forward_mode(self, kind):
        plain, ours, x = layers(kind)

        def f(m):
            with forward_ad.dual_level():
                y = m(forward_ad.make_dual(x, x.cos()))[0]
                return [t.clone() for t in forward_ad.unpack_dual(y)]

        with torch.backends.mkldnn.flags(enabled=False):
            check("forward-mode AD", f, plain, ours)

    def test_autocast(self, kind):
        plain, ours, x = layers(kind)

        def f(m):
            with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
                return [m(x)[0]]

        check("autocast", f, plain, ours)

    def test_half_precision(self, kind):
        plain, ours, x = layers(kind)
        plain, ours, x = plain.to(torch.bfloat16), ours.to(torch.bfloat16), x.to(torch.bfloat16)
        check("dtype", lambda m: [m(x)[0]], plain, ours)

    def test_fake_tensors(self, kind):
        plain, ours, x = layers(kind)
        from torch._subclasses.fake_tensor import FakeTensorMode

        def f(m):
            with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                y, _ = m(mode.from_tensor(x))
                assert type(y) is torch._subclasses.FakeTensor and y.shape == (5, 3, 6)

        f(plain)
        with Counted() as c:
            f(ours)
        with Counted() as d, ferrite.torch.installed():
            f(plain)
        assert set(c.counts) <= {"dispatch mode", "function mode"} and c.counts
        assert set(d.counts) <= {"dispatch mode", "subclass"} and d.counts

    def test_subclass_with_torch_function(self, kind):
        plain, ours, x = layers(kind)

        class Loud(torch.Tensor):
            pass

        check("subclass", lambda m: [m(x.as_subclass(Loud))[0].as_subclass(torch.Tensor)], plain, ours)

    def test_subclass_with_torch_dispatch(self, kind):
        plain, ours, x = layers(kind)
        from torch.testing._internal.logging_tensor import LoggingTensor

        with torch.backends.mkldnn.flags(enabled=False), torch.no_grad():
            check("subclass", lambda m: [(lambda y: getattr(y, "elem", y))(m(LoggingTensor(x))[0])], plain, ours)

    def test_dispatch_mode(self, kind):
        plain, ours, x = layers(kind)
        from torch.utils._python_dispatch import TorchDispatchMode

        class Passing(TorchDispatchMode):
            def __torch_dispatch__(self, f, types, args=(), kwargs=None):
                return f(*args, **(kwargs or {}))

        def f(m):
            with Passing():
                return [m(x)[0]]

        check("dispatch mode", f, plain, ours)

    def test_meta(self, kind):
        plain, ours, x = layers(kind)
        plain, ours, x = plain.to("meta"), ours.to("meta"), x.to("meta")
        with Counted() as c:
            assert ours(x)[0].shape == plain(x)[0].shape
        assert c.counts == {"device": 1}
        with ferrite.torch.installed():
            assert plain(x)[0].is_meta

    def test_no_steps_and_no_rows(self, kind):
        plain, ours, x = layers(kind)

        def f(m, given):
            try:
                return [m(given)[0]]
            except Exception as e:
                return [torch.tensor(len(str(e)))]

        for given in (x[:, :0], x[:0]):
            check("empty", lambda m: f(m, given), plain, ours)

    def test_tracing(self, kind):
        plain, ours, x = layers(kind)
        for m, on in ((ours, False), (plain, True)):
            if on:
                ferrite.torch.install()
            traced = torch.jit.trace(First(m), x)
            assert kind.lower() in str(traced.inlined_graph)
            ferrite.torch.uninstall()
            torch.testing.assert_close(traced(2 * x), plain(2 * x)[0])

    def test_scripting(self, kind):
        plain, ours, x = layers(kind)
        torch.testing.assert_close(torch.jit.script(First(ours))(x), plain(x)[0])
        assert type(ours) is getattr(ferrite.torch, kind)
        with Counted() as c, ferrite.torch.installed():
            torch.testing.assert_close(torch.jit.script(First(plain))(x), plain(x)[0])
        assert c.counts == {"ferrite": 2}

    def test_export(self, kind):
        plain, ours, x = layers(kind)
        expected = torch.export.export(plain, (x,), strict=False)
        for m, on in ((ours, False), (plain, True)):
            if on:
                ferrite.torch.install()
            program = torch.export.export(m, (x,), strict=False)
            ferrite.torch.uninstall()
            torch.testing.assert_close(program.module()(2 * x)[0], plain(2 * x)[0])
            assert [n.target for n in program.graph.nodes] == [n.target for n in expected.graph.nodes]

    def test_compile(self, kind):
        plain, ours, x = layers(kind)
        with torch._dynamo.config.patch(allow_rnn=True):
            for m, on in ((ours, False), (plain, True)):
                if on:
                    ferrite.torch.install()
                torch._dynamo.reset()
                compiled = torch.compile(m, backend="aot_eager", fullgraph=True)
                if kind == "LSTM":  # its gradient does not compile in PyTorch
                    with torch.no_grad():
                        torch.testing.assert_close(compiled(x)[0], plain(x)[0])
                    ferrite.torch.uninstall()
                    continue
                y = compiled(x)[0]
                y.sum().backward()
                got = [p.grad.clone() for p in m.parameters()]
                ferrite.torch.uninstall()
                m.zero_grad()
                torch.testing.assert_close(y, plain(x)[0])
                plain(x)[0].sum().backward()
                for a, p in zip(got, plain.parameters()):
                    torch.testing.assert_close(a, p.grad)
                plain.zero_grad()

    def test_compile_with_a_graph_break(self, kind):
        plain, ours, x = layers(kind)
        for m, on in ((ours, False), (plain, True)):
            if on:
                ferrite.torch.install()
            torch._dynamo.reset()
            y = torch.compile(m, backend="aot_eager")(x)[0]
            ferrite.torch.uninstall()
            torch.testing.assert_close(y, plain(x)[0])

    def test_dropout(self, kind):
        plain, ours, x = layers(kind, num_layers=3, dropout=0.4, bidirectional=True)

        def f(m):
            m.zero_grad()
            torch.manual_seed(8)
            y = m(x)[0]
            y.sin().sum().backward()
            return [y, *(p.grad.clone() for p in m.parameters())]

        check("dropout", f, plain, ours)
        plain.eval(), ours.eval()
        with Counted() as c:
            torch.testing.assert_close(ours(x)[0], plain(x)[0])
        assert c.counts == {"ferrite": 1}

    def test_negative_views(self, kind):
        plain, ours, x = layers(kind)
        negative = torch._neg_view(x)
        assert negative.is_neg()
        with Counted() as c:
            torch.testing.assert_close(ours(negative)[0], plain(-x)[0])
        assert c.counts == {"layout": 1}
        with ferrite.torch.installed():
            torch.testing.assert_close(plain(negative)[0], plain(-x)[0])


@pytest.mark.parametrize("kind", ["GRU", "RNN"])
def test_few_steps_of_large_layers(kind):
    torch.manual_seed(3)
    plain = getattr(torch.nn, kind)(700, 700)
    ours = getattr(ferrite.torch, kind)(700, 700)
    ours.load_state_dict(plain.state_dict())
    x = torch.randn(1, 2, 700)

    def f(m):
        m.zero_grad()
        y = m(x)[0]
        y.sum().backward()
        return [y, *(p.grad for p in m.parameters())]

    check("slower", f, plain, ours)
    with torch.no_grad(), Counted() as c:
        ours(torch.randn(8, 2, 700))
    assert c.counts == {"ferrite": 1}


def test_threads_are_pytorchs():
    import ferrite

    before = torch.get_num_threads()
    m = ferrite.torch.GRU(64, 64)
    for n in (1, 2):
        torch.set_num_threads(n)
        m(torch.randn(50, 16, 64))
        assert ferrite.thread_count() == n
    torch.set_num_threads(before)


def test_function_mode():
    plain, ours, x = layers()
    with Counted() as c, torch.device("cpu"):
        torch.testing.assert_close(ours(x)[0], plain(x)[0])
    assert c.counts == {"function mode": 1}


def test_wrong_shapes_raise_pytorchs_errors():
    plain, ours, x = layers()
    for args in ((x[..., :3],), (x[None],), (x, torch.zeros(1, 2, 6)), (x[0], torch.zeros(1, 1, 6)),
                 (x, torch.zeros(2, 3, 6))):
        with pytest.raises((RuntimeError, ValueError)) as expected:
            plain(*args)
        with pytest.raises(type(expected.value)) as actual:
            ours(*args)
        assert str(actual.value) == str(expected.value)


def test_missing_gradients_of_the_mixed_dtype():
    plain, ours, x = layers()
    with pytest.raises((RuntimeError, ValueError)):
        plain(x.double())
    with pytest.raises((RuntimeError, ValueError)):
        ours(x.double())
    assert ferrite.torch.why() == "dtype"


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
@pytest.mark.parametrize("packed", [False, True])
def test_second_derivatives(kind, packed):
    plain, ours, x = layers(kind, num_layers=2)
    plain, ours, x = plain.double(), ours.double(), x.double()

    def penalty(m):
        v = x.clone().requires_grad_()
        given = torch.nn.utils.rnn.pack_padded_sequence(v, [5, 3, 1]) if packed else v
        y = m(given)[0]
        (g,) = torch.autograd.grad((y.data if packed else y).sin().sum(), v, create_graph=True)
        return torch.autograd.grad(g.square().sum(), [v, *m.parameters()])

    with torch.backends.mkldnn.flags(enabled=False):
        expected = penalty(plain)
    actual = penalty(ours)
    with ferrite.torch.installed():
        switched = penalty(plain)
    for e, a, s in zip(expected, actual, switched):
        torch.testing.assert_close(a, e)
        torch.testing.assert_close(s, e)


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
def test_gradients_of_batches_of_cotangents(kind):
    plain, ours, x = layers(kind)
    x.requires_grad_()
    d = torch.randn(4, 5, 3, 6)
    with torch.backends.mkldnn.flags(enabled=False):
        expected = torch.autograd.grad(plain(x)[0], x, d, is_grads_batched=True)[0]
        actual = torch.autograd.grad(ours(x)[0], x, d, is_grads_batched=True)[0]
        torch.testing.assert_close(actual, expected)
        jacobian = torch.autograd.functional.jacobian(lambda v: ours(v)[0], x.detach(), vectorize=True)
        torch.testing.assert_close(jacobian, torch.autograd.functional.jacobian(lambda v: plain(v)[0], x.detach()))


def test_gradcheck():
    _, ours, x = layers("LSTM", proj_size=3)
    ours, x = ours.double(), x.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda v: (lambda y, s: (y, *s))(*ours(v)), x)
    assert torch.autograd.gradgradcheck(lambda v: ours(v)[0], x[:2, :1].detach().requires_grad_())
