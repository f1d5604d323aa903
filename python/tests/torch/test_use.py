"""Layers on Ferrite in programs: weights that change, files, copies, checkpoints, threads and training."""
import copy
import io
import pickle
import subprocess
import sys
import threading

import pytest
import torch

import ferrite.torch


def pair(**options):
    plain = torch.nn.GRU(4, 6, **options)
    ours = ferrite.torch.GRU(4, 6, **options)
    ours.load_state_dict(plain.state_dict())
    return plain, ours, torch.randn(5, 3, 4)


def same(plain, ours, x):
    torch.testing.assert_close(ours(x)[0], plain(x)[0])
    assert ferrite.torch.why() is None


def test_changed_weights_are_seen_at_once():
    plain, ours, x = pair(num_layers=2)
    same(plain, ours, x)
    for m in (plain, ours):
        m.weight_hh_l0.data.mul_(0.5)  # does not count as a new version
        m.weight_ih_l1.data[2, 3] = 4
        m.bias_hh_l1.data = torch.ones(18)
    same(plain, ours, x)
    for m in (plain, ours):
        optimizer = torch.optim.Adam(m.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            m(x)[0].square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(ours(x)[0], plain(x)[0], rtol=1e-3, atol=1e-4)
    other = torch.nn.GRU(4, 6, num_layers=2)
    ours.load_state_dict(other.state_dict())
    same(other, ours, x)
    state = ours.state_dict()
    plain.load_state_dict(state)
    same(plain, ours, x)
    with torch.no_grad():
        ours.weight_hh_l0.zero_()
        plain.weight_hh_l0.zero_()
    same(plain, ours, x)


def test_weights_changed_before_the_backward_pass_raise_an_error():
    for m in pair()[:2]:
        y = m(torch.randn(5, 3, 4))[0]
        with torch.no_grad():
            m.weight_hh_l0.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_outputs_may_be_changed_in_place():
    plain, ours, x = pair()
    for m in (plain, ours):
        y = m(x)[0]
        y.relu_()
        y.sum().backward()
    for a, e in zip(ours.parameters(), plain.parameters()):
        torch.testing.assert_close(a.grad, e.grad)


def test_the_graph_can_be_kept():
    plain, ours, x = pair()
    for m in (plain, ours):
        loss = m(x)[0].sin().sum()
        loss.backward(retain_graph=True)
        loss.backward()
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()
    for a, e in zip(ours.parameters(), plain.parameters()):
        torch.testing.assert_close(a.grad, e.grad)


def test_copies_and_files():
    _, ours, x = pair(batch_first=True, bidirectional=True)
    y = ours(x)[0]
    for other in (copy.deepcopy(ours), copy.copy(ours), pickle.loads(pickle.dumps(ours))):
        assert torch.equal(other(x)[0], y) and ferrite.torch.why() is None
    file = io.BytesIO()
    torch.save(ours, file)
    file.seek(0)
    assert torch.equal(torch.load(file, weights_only=False)(x)[0], y)


def test_checkpoints():
    from torch.utils.checkpoint import checkpoint

    plain, ours, x = pair()
    for reentrant in (False, True):
        grads = []
        for f in (lambda v: plain(v)[0], lambda v: checkpoint(lambda u: ours(u)[0], v, use_reentrant=reentrant)):
            v = x.clone().requires_grad_()
            f(v).sin().sum().backward()
            grads.append(v.grad)
        torch.testing.assert_close(grads[1], grads[0])


def test_saved_tensor_hooks():
    plain, ours, x = pair()
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t.clone(), lambda t: t):
        y = ours(x)[0]
    y.sum().backward()
    plain(x)[0].sum().backward()
    assert packed
    for a, e in zip(ours.parameters(), plain.parameters()):
        torch.testing.assert_close(a.grad, e.grad)


def test_threads_at_once():
    plain, ours, _ = pair()
    failures = []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(50):
            x = torch.randn(7, 2, 4, generator=generator, requires_grad=True)
            y = ours(x)[0]
            (g,) = torch.autograd.grad(y.sin().sum(), x)
            with torch.no_grad():
                if not torch.allclose(y, plain(x)[0], atol=1e-5) or not g.isfinite().all():
                    failures.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_memory_before_a_page_that_cannot_be_read():
    import ctypes
    import mmap

    size = mmap.PAGESIZE
    memory = mmap.mmap(-1, 2 * size)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address + size), size, 0) != 0:
        pytest.skip("memory cannot be protected here")
    for kind in ("GRU", "LSTM", "RNN"):
        plain = getattr(torch.nn, kind)(5, 7, num_layers=2)
        ours = getattr(ferrite.torch, kind)(5, 7, num_layers=2)
        ours.load_state_dict(plain.state_dict())

        def at_end(t):
            n = t.numel()
            view = (ctypes.c_float * n).from_address(address + size - 4 * n)
            out = torch.frombuffer(view, dtype=torch.float32).view(t.shape)
            out.copy_(t)
            return out

        for name in ["x", "h", "c", "dy", *dict(plain.named_parameters())]:
            given = {"x": torch.randn(3, 2, 5), "h": torch.randn(2, 2, 7), "c": torch.randn(2, 2, 7),
                     "dy": torch.randn(3, 2, 7)}
            if name in given:
                given[name] = at_end(given[name])
            else:
                getattr(ours, name).data = at_end(getattr(plain, name).detach())
            x = given["x"].requires_grad_()
            grads = []
            for m in (plain, ours):
                x.grad = None
                y = m(x, (given["h"], given["c"]) if kind == "LSTM" else given["h"])[0]
                y.backward(given["dy"])
                grads.append(x.grad)
            torch.testing.assert_close(grads[1], grads[0])
            ours.load_state_dict(plain.state_dict())
            if name not in given:
                getattr(ours, name).data = getattr(plain, name).detach().clone()
    libc.mprotect(ctypes.c_void_p(address + size), size, 3)


TRAINING = """
import sys, torch
if sys.argv[1] == "on":
    import ferrite.torch
    ferrite.torch.install()
torch.manual_seed(0)
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.GRU(3, 16, batch_first=True, bidirectional=True)
        self.b = torch.nn.LSTM(32, 12, num_layers=2, dropout=0.2)
        self.c = torch.nn.Linear(12, 1)
        self.d = torch.nn.Dropout(0.1)
    def forward(self, x):
        y = self.d(self.a(x)[0])
        return self.c(self.b(y.transpose(0, 1))[0][-1])
m = Model()
optimizer = torch.optim.Adam(m.parameters(), 1e-2)
for step in range(40):
    x = torch.randn(8, 12, 3)
    loss = torch.nn.functional.mse_loss(m(x), x.sum((1, 2))[:, None] / 6)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
if sys.argv[1] == "on":
    n = ferrite.torch.counts()
    assert n["ferrite"] == 40 * 4, n  # one of the GRU, the whole LSTM, and each of its layers
"""


def test_training_gives_the_same_losses():
    losses = []
    for on in ("off", "on"):
        out = subprocess.run([sys.executable, "-c", TRAINING, on], capture_output=True, text=True, timeout=200)
        assert out.returncode == 0, out.stderr
        losses.append([float(v) for v in out.stdout.split()])
    assert len(losses[0]) == 40
    torch.testing.assert_close(torch.tensor(losses[1]), torch.tensor(losses[0]), rtol=2e-3, atol=1e-3)


def test_ferrite_does_not_import_torch():
    code = "import ferrite, sys; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("kind", ["GRU", "RNN"])
def test_second_derivatives_of_a_weight_in_two_places(kind):
    """One tensor is the weight of both directions: each place has its own part of the gradient."""
    found = []
    for module in (torch.nn, ferrite.torch):
        torch.manual_seed(0)
        layer = getattr(module, kind)(3, 4, bidirectional=True).double()
        layer.weight_hh_l0_reverse = layer.weight_hh_l0
        x = torch.randn(5, 2, 3, dtype=torch.float64, requires_grad=True)
        (g,) = torch.autograd.grad((layer(x)[0] ** 2).sum(), layer.weight_hh_l0, create_graph=True)
        found.append([g, *torch.autograd.grad((g ** 2).sum(), (x, layer.weight_hh_l0))])
    for a, b in zip(*found):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
def test_replaced_weights_are_used(kind):
    """functional_call and parametrizations put other tensors in the place of the parameters."""
    m = getattr(ferrite.torch, kind)(3, 5)
    x = torch.randn(4, 2, 3)
    other = {k: torch.zeros_like(v, requires_grad=True) for k, v in m.named_parameters()}
    plain = getattr(torch.nn, kind)(3, 5)
    for operand in (x, torch.nn.utils.rnn.pack_padded_sequence(x, [4, 2])):
        y, expected = (torch.func.functional_call(k, other, (operand,))[0] for k in (m, plain))
        y, expected = (v if isinstance(v, torch.Tensor) else v.data for v in (y, expected))
        torch.testing.assert_close(y, expected)
    torch.nn.utils.parametrizations.weight_norm(m, "weight_hh_l0")
    before = m(x)[0]
    before.sum().backward()
    originals = m.parametrizations.weight_hh_l0
    assert originals.original0.grad is not None and originals.original1.grad is not None
    with torch.no_grad():
        originals.original0.zero_()
    assert not torch.equal(m(x)[0], before)
