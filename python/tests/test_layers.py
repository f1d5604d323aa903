"""Layers against PyTorch's, layers written in Python, the builder, optimisers and schedules."""

import copy
import gc
import weakref

import numpy as np
import pytest

import ferrite
from ferrite import nn, optim

torch = pytest.importorskip("torch")


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def take(theirs, ours):
    """Gives a layer the weights of PyTorch's, through the layout that files have."""
    ferrite.load_state_dict(ours, {k: v.detach().numpy() for k, v in theirs.state_dict().items()})


PAIRS = {  # name: (ours, PyTorch's, input)
    "Linear": (lambda: nn.Linear(4, 3), lambda: torch.nn.Linear(4, 3), (2, 4)),
    "Linear without bias": (lambda: nn.Linear(4, 3, bias=False), lambda: torch.nn.Linear(4, 3, bias=False), (2, 5, 4)),
    "LayerNorm": (lambda: nn.LayerNorm(6, eps=1e-3), lambda: torch.nn.LayerNorm(6, eps=1e-3), (3, 6)),
    "RMSNorm": (lambda: nn.RMSNorm(6), lambda: torch.nn.RMSNorm(6), (3, 6)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 6), lambda: torch.nn.GroupNorm(2, 6), (3, 6, 5)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(6), lambda: torch.nn.BatchNorm1d(6), (3, 6, 5)),
    "BatchNorm2d": (
        lambda: nn.BatchNorm2d(3, momentum=0.2),
        lambda: torch.nn.BatchNorm2d(3, momentum=0.2),
        (2, 3, 4, 5),
    ),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(6), lambda: torch.nn.InstanceNorm1d(6), (3, 6, 5)),
    "Conv1d": (
        lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2),
        lambda: torch.nn.Conv1d(4, 6, 3, 2, 1, groups=2),
        (2, 4, 9),
    ),
    "Conv2d": (
        lambda: nn.Conv2d(3, 5, (3, 2), padding="same"),
        lambda: torch.nn.Conv2d(3, 5, (3, 2), padding="same"),
        (2, 3, 6, 7),
    ),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 2, dilation=2), lambda: torch.nn.Conv3d(2, 3, 2, dilation=2), (1, 2, 5, 5, 5)),
    "ConvTranspose1d": (
        lambda: nn.ConvTranspose1d(4, 3, 3, stride=2),
        lambda: torch.nn.ConvTranspose1d(4, 3, 3, 2),
        (2, 4, 6),
    ),
    "ConvTranspose2d": (
        lambda: nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1),
        lambda: torch.nn.ConvTranspose2d(2, 3, 3, 2, 1, 1),
        (2, 2, 4, 4),
    ),
    "MaxPool1d": (lambda: nn.MaxPool1d(3, stride=2), lambda: torch.nn.MaxPool1d(3, 2), (2, 3, 9)),
    "AvgPool2d": (lambda: nn.AvgPool2d(2), lambda: torch.nn.AvgPool2d(2), (2, 3, 6, 6)),
    "LPPool": (lambda: nn.LpPool1d(2, 3), lambda: torch.nn.LPPool1d(2, 3), (2, 3, 9)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d(3), lambda: torch.nn.AdaptiveAvgPool2d(3), (2, 3, 7, 7)),
    "ELU": (lambda: nn.ELU(0.5), lambda: torch.nn.ELU(0.5), (3, 4)),
    "CELU": (lambda: nn.CELU(0.5), lambda: torch.nn.CELU(0.5), (3, 4)),
    "LeakyReLU": (lambda: nn.LeakyReLU(0.2), lambda: torch.nn.LeakyReLU(0.2), (3, 4)),
    "Hardtanh": (lambda: nn.Hardtanh(-0.5, 0.7), lambda: torch.nn.Hardtanh(-0.5, 0.7), (3, 4)),
    "Softshrink": (lambda: nn.Softshrink(0.3), lambda: torch.nn.Softshrink(0.3), (3, 4)),
    "Hardshrink": (lambda: nn.Hardshrink(lambd=0.3), lambda: torch.nn.Hardshrink(lambd=0.3), (3, 4)),
    "Threshold": (lambda: nn.Threshold(0.1, 5), lambda: torch.nn.Threshold(0.1, 5), (3, 4)),
    "GLU": (lambda: nn.GLU(), lambda: torch.nn.GLU(), (3, 4)),
    "PReLU": (lambda: nn.PReLU(3), lambda: torch.nn.PReLU(3), (2, 3, 4)),
    "Flatten": (lambda: nn.Flatten(), lambda: torch.nn.Flatten(), (2, 3, 4)),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(8, 2), None, (2, 5, 8)),
    "TransformerEncoderLayer": (
        lambda: nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, dropout=0.0),
        lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True),
        (2, 5, 8),
    ),
    **{
        n: ((lambda n=n: getattr(nn, n)()), (lambda n=n: getattr(torch.nn, n)()), (3, 4))
        for n in [
            "ReLU",
            "Tanh",
            "Sigmoid",
            "GELU",
            "SiLU",
            "Softplus",
            "LogSigmoid",
            "SELU",
            "Mish",
            "Hardswish",
            "Hardsigmoid",
            "Softsign",
        ]
    },
    "Softmax": (lambda: nn.Softmax(), lambda: torch.nn.Softmax(-1), (3, 4)),
    "LogSoftmax": (lambda: nn.LogSoftmax(), lambda: torch.nn.LogSoftmax(-1), (3, 4)),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", PAIRS)
def test_layers_are_pytorchs(name, training):
    make, make_theirs, shape = PAIRS[name]
    x, ours = random(*shape), make()
    if make_theirs is None:
        theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        call = lambda t: theirs(t, t, t, need_weights=False)[0]  # noqa: E731
    else:
        theirs = make_theirs()
        call = theirs
    take(theirs, ours)
    ours.train(training), theirs.train(training)
    for _ in range(2):  # batch norms track
        np.testing.assert_allclose(
            np.asarray(ours(x)), call(torch.from_numpy(x)).detach().numpy(), rtol=1e-4, atol=2e-5
        )
    for k, v in theirs.state_dict().items():
        np.testing.assert_allclose(np.asarray(ferrite.state_dict(ours)[k]), v.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", ["GRU", "LSTM", "RNN"])
def test_recurrent_layers_are_pytorchs(name, layers, bidirectional):
    ours = getattr(nn, name)(3, 5, num_layers=layers, bidirectional=bidirectional)
    theirs = getattr(torch.nn, name)(3, 5, layers, bidirectional=bidirectional, batch_first=True)
    take(theirs, ours)
    x, lengths = random(4, 7, 3), [7, 2, 5, 1]
    y, h = theirs(torch.from_numpy(x))
    result = ours.run(x)
    np.testing.assert_allclose(np.asarray(ours(x)), y.detach().numpy(), rtol=1e-4, atol=1e-5)
    h, c = h if name == "LSTM" else (h, None)
    flat = lambda t: t.detach().numpy().reshape(np.asarray(result.state).shape)  # noqa: E731
    np.testing.assert_allclose(np.asarray(result.state), flat(h), rtol=1e-4, atol=1e-5)
    assert (result.cell is None) == (c is None)
    if c is not None:
        np.testing.assert_allclose(np.asarray(result.cell), flat(c), rtol=1e-4, atol=1e-5)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        torch.from_numpy(x), lengths, batch_first=True, enforce_sorted=False
    )
    expected, _ = torch.nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    np.testing.assert_allclose(np.asarray(ours(x, lengths=lengths)), expected.detach().numpy(), rtol=1e-4, atol=1e-5)


EVERY = ["MinGRU", "MinLSTM", "LRU", "S5", "PeepholeLSTM"]


@pytest.mark.parametrize("name", EVERY)
def test_other_sequence_layers(name):
    layer = getattr(nn, name)(4, 6)
    x = random(2, 5, 4)
    y = np.asarray(layer(x))
    assert y.shape[:2] == (2, 5) and np.isfinite(y).all()
    assert np.array_equal(np.asarray(layer(x[:, :3])), y[:, :3])  # causal


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Mamba(4),
        lambda: nn.MLSTM(8, num_heads=2),
        lambda: nn.SLSTM(8, num_heads=2),
        lambda: nn.RGLRU(4),
        lambda: nn.CausalConv1d(4, 6, 3),
        lambda: nn.Standardize(4),
        lambda: nn.SinusoidalPositions(4),
    ],
)
def test_layers_of_one_width(make):
    layer = make()
    x = random(2, 5, 8 if "lstm" in layer.kind else 4)
    assert np.isfinite(np.asarray(layer(x))).all()


def test_embeddings():
    e, tokens = nn.Embedding(10, 3), [[1, 2], [9, 0]]
    assert e(tokens).shape == (2, 2, 3) and np.array_equal(np.asarray(e(tokens))[0, 0], np.asarray(e.weight)[1])
    with pytest.raises(ferrite.ShapeError, match="10"):
        e([[10]])
    assert nn.EmbeddingBag(10, 3)(tokens).shape == (2, 3)


def test_seeds():
    a, b = nn.Linear(3, 4), nn.Linear(3, 4)
    assert not np.array_equal(np.asarray(a.weight), np.asarray(b.weight))
    nn.manual_seed(0)
    assert np.array_equal(np.asarray(nn.Linear(3, 4).weight), np.asarray(a.weight))
    assert np.array_equal(np.asarray(nn.Linear(3, 4, seed=7).weight), np.asarray(nn.Linear(3, 4, seed=7).weight))
    assert nn.GRU(2, 3, dtype="f64").weight_ih_l0.dtype == ferrite.f64


class Net(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.gru = nn.GRU(3, hidden)
        self.head = nn.Linear(hidden, 1)
        self.scale = ferrite.Parameter(ferrite.ones([1]))
        self.count = ferrite.Buffer(ferrite.zeros([]))

    def forward(self, x, lengths=None):
        return self.head(self.gru(x, lengths=lengths)[:, -1]) * self.scale


def test_a_layer_in_python():
    net = Net()
    assert list(net.named_parameters()) == [
        "gru.weight_ih_l0",
        "gru.weight_hh_l0",
        "gru.bias_ih_l0",
        "gru.bias_hh_l0",
        "head.weight",
        "head.bias",
        "scale",
    ]
    assert list(net.named_buffers()) == ["count"] and net.parameter_count == 3 * 24 + 8 * 24 + 48 + 8 + 1 + 1
    assert net.scale.name == "scale" and net.named_parameters()["gru.weight_ih_l0"] == net.gru.weight_ih_l0
    x = random(2, 5, 3)
    assert net(x).shape == (2, 1)
    net.eval()
    assert not net.gru.training and net.train() is net and net.head.training
    with pytest.raises(ferrite.Error, match="in gru: gru: expects input"):
        net(random(2, 5, 4))
    with pytest.raises(AttributeError, match="missing"):
        net.missing
    with pytest.raises(ferrite.ValueError):
        net.gru = nn.GRU(3, 8)
    assert "gru" in repr(net) and "Net(" in repr(net)


@pytest.mark.parametrize("copied", [lambda n: n.copy(), copy.copy, copy.deepcopy])
def test_copies_are_independent(copied):
    for net in (
        Net(4),
        nn.GRU(3, 4),
        nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)),
        ferrite.sequence(3).gru(4).build(0),
    ):
        net.eval()
        other, x = copied(net), random(2, 5, 3)
        assert not other.training and net.train().training
        assert type(other) is type(net) and np.array_equal(np.asarray(other(x)), np.asarray(net(x)))
        p = other.parameters()[0]
        p.assign(p.value * 0)
        assert not np.array_equal(np.asarray(other(x)), np.asarray(net(x)))


def test_a_module_without_forward():
    class Empty(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match="Empty"):
        Empty()(1)


def test_chains_share_the_layers_that_they_are_made_of():
    first = nn.Linear(3, 4)
    net = nn.Sequential(first, nn.Tanh(), Net.__mro__ and nn.Linear(4, 2))
    x = random(2, 3)
    assert (
        len(net) == 3
        and net[0].weight == first.weight
        and net["2"].weight.name == "2.weight"
        and net[-1].kind == "linear"
    )
    first.weight.assign(ferrite.zeros([3, 4]))
    first.bias.assign(ferrite.zeros([4]))
    assert np.allclose(np.asarray(net(x)), np.asarray(net["2"].bias))
    with pytest.raises(IndexError):
        net[3]
    with pytest.raises(TypeError, match="a layer is needed"):
        nn.Sequential(3)
    named = nn.Sequential({"a": nn.Linear(3, 4), "b": nn.ReLU()})
    assert named["a"].weight.name == "a.weight"
    assert np.allclose(
        np.asarray(nn.Residual(nn.Linear(3, 3, seed=1))(x)), x + np.asarray(nn.Linear(3, 3, seed=1)(x)), atol=1e-6
    )
    assert nn.Concat(nn.Linear(3, 2), nn.Linear(3, 5))(x).shape == (2, 7)
    assert nn.Parallel(nn.Linear(3, 2), nn.Linear(3, 2))(x).shape == (2, 2)


def test_a_python_layer_in_a_chain():
    class Double(nn.Module):
        def forward(self, x):
            return x * 2

    class Wrong(nn.Module):
        def forward(self, x):
            return "text"

    x = random(2, 3)
    assert np.allclose(np.asarray(nn.Sequential(Double(), Double())(x)), x * 4)
    with pytest.raises(ferrite.ValueError, match="Wrong: forward returned a str"):
        nn.Sequential(Wrong())(x)


def test_modules_are_freed():
    net = Net()
    seen = weakref.ref(net)
    net(random(1, 2, 3))
    del net
    gc.collect()
    assert seen() is None


def test_dropout_only_while_training():
    d, x = nn.Dropout(0.5), np.ones((1000,), "float32")
    y = np.asarray(d(x))
    assert set(np.unique(y)) == {0, 2} and not np.array_equal(np.asarray(d(x)), y)
    assert np.array_equal(np.asarray(d.eval()(x)), x)


def test_parameters_count_in_arithmetic():
    w = ferrite.Parameter([1.0, 2.0])
    for got in (w + 1, 1 + w, w * w, -w, ferrite.exp(w), w[0], np.asarray(w), w @ w, 2 / w, w < 2):
        assert got is not None
    assert w.value.tolist() == [1, 2] and len(w) == 2 and w.numpy().tolist() == [1, 2]
    with pytest.raises(ferrite.ShapeError):
        w.assign(ferrite.ones([3]))
    other = ferrite.Parameter([5.0, 6.0])
    w.tie(other)
    other.assign(ferrite.zeros([2]))
    assert w.value.tolist() == [0, 0] and w == other


# ---- the builder ----


def test_the_builder():
    net = (
        ferrite.sequence(3)
        .causal_conv1d(8, 3, dilation=2)
        .gru(16, num_layers=2, dropout=0.1)
        .residual(lambda b: b.linear(16).tanh())
        .concat([lambda b: b.linear(4), lambda b: b.linear(5)])
        .layer_norm()
        .last_step()
        .linear(2, name="out")
        .build(seed=3)
    )
    assert net(random(4, 6, 3)).shape == (4, 2) and "out.weight" in net.named_parameters()
    assert "total" in net.summary() and len(net) == 7
    same = ferrite.sequence(3).gru(4).build(seed=1)
    assert np.array_equal(
        np.asarray(same[0].weight_ih_l0), np.asarray(ferrite.sequence(3).gru(4).build(seed=1)[0].weight_ih_l0)
    )
    assert ferrite.image(1, 8, 8).conv2d(4, 3, padding="same").relu().max_pool2d(2).flatten().linear(10).build()(
        random(2, 1, 8, 8)
    ).shape == (2, 10)
    assert ferrite.tokens(20).embedding(8).positions().attention(2, causal=True).mean_over_time().linear(3).build()(
        [[1, 2, 3]]
    ).shape == (1, 3)
    assert ferrite.features(4).repeat(3, lambda b: b.linear(8).relu()).add(nn.Linear(8, 1)).build()(
        random(2, 4)
    ).shape == (2, 1)
    with pytest.raises(ferrite.ShapeError):
        ferrite.features(4).add(nn.Linear(5, 1)).build()
    with pytest.raises(ZeroDivisionError):
        ferrite.features(4).residual(lambda b: 1 / 0).build()


# ---- optimisers and schedules ----

OPTIMISERS = {
    "SGD": dict(lr=0.1, momentum=0.9, nesterov=True),
    "Adam": dict(lr=0.05, betas=(0.8, 0.95), amsgrad=True),
    "AdamW": dict(lr=0.05, weight_decay=0.1),
    "RMSprop": dict(lr=0.01, momentum=0.5, centered=True),
    "Adagrad": dict(lr=0.1, lr_decay=0.01),
    "Adadelta": dict(lr=1.0, rho=0.8),
    "Adamax": dict(lr=0.05),
    "NAdam": dict(lr=0.05),
    "RAdam": dict(lr=0.05),
    "Adafactor": dict(lr=0.05),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers_are_pytorchs(name):
    a, w = random(6, 4), random(4, 3, seed=1)
    ours, theirs = ferrite.Parameter(w), torch.nn.Parameter(torch.from_numpy(w.copy()))
    o, t = getattr(optim, name)([ours], **OPTIMISERS[name]), getattr(torch.optim, name)([theirs], **OPTIMISERS[name])
    step = ferrite.value_and_grad(lambda: ((ferrite.tensor(a) @ ours) ** 2.0).mean(), [ours])
    for _ in range(20):
        t.zero_grad()
        loss = ((torch.from_numpy(a) @ theirs) ** 2).mean()
        loss.backward()
        t.step()
        value, grads = step()
        assert o.step(grads)
        assert np.isclose(value.item(), loss.item(), rtol=1e-4)
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-3, atol=1e-5)


def test_groups_freezing_and_rates():
    a, b = ferrite.Parameter([1.0]), ferrite.Parameter([1.0])
    o = optim.SGD([a], lr=0.5)
    o.add_group([b], lr=0.1)
    g = [ferrite.ones([1]), ferrite.ones([1])]
    o.step(g)
    assert a.item() == 0.5 and np.isclose(b.item(), 0.9) and o.groups == 2 and o.learning_rate(1) == 0.1
    o.freeze([a])
    o.step(g)
    assert a.item() == 0.5 and o.frozen(a)
    o.unfreeze([a])
    o.lr = 0.25
    assert o.step([g[0], None]) and a.item() == 0.25
    with pytest.raises(ferrite.ValueError):
        o.step([g[0]])
    with pytest.raises(ferrite.ValueError):
        optim.Adam([], lr=0.1)
    with pytest.raises(ferrite.ValueError):
        optim.Adam([a], betas=(1.5, 0.9))
    s = optim.SGD([a], lr=1.0, skip_nonfinite=True)
    assert not s.step([ferrite.tensor([float("nan")])]) and a.item() == 0.25


SCHEDULES = {
    "StepLR": dict(step_size=3, gamma=0.5),
    "MultiStepLR": dict(milestones=[2, 5], gamma=0.3),
    "ExponentialLR": dict(gamma=0.9),
    "CosineAnnealingLR": dict(T_max=7, eta_min=0.01),
    "LinearLR": dict(start_factor=0.5, total_iters=4),
    "ConstantLR": dict(factor=0.5, total_iters=3),
    "PolynomialLR": dict(total_iters=6, power=2.0),
    "CosineAnnealingWarmRestarts": dict(T_0=3, T_mult=2),
    "LambdaLR": dict(lr_lambda=lambda n: 1 / (n + 1)),
    "OneCycleLR": dict(max_lr=0.5, total_steps=12),
    "CyclicLR": dict(base_lr=0.1, max_lr=0.5, step_size_up=3),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_pytorchs(name):
    ours, theirs = (
        optim.SGD([ferrite.Parameter([1.0])], lr=0.4, momentum=0.9),
        torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.4, momentum=0.9),
    )
    s, t = (
        getattr(optim, name)(ours, **SCHEDULES[name]),
        getattr(torch.optim.lr_scheduler, name)(theirs, **SCHEDULES[name]),
    )
    for _ in range(11):
        assert np.isclose(ours.lr, theirs.param_groups[0]["lr"], rtol=1e-6)
        theirs.step(), t.step(), s.step()
    assert s.steps == 11


def test_plateau():
    o = optim.SGD([ferrite.Parameter([1.0])], lr=1.0)
    s = optim.ReduceLROnPlateau(o, patience=1, factor=0.5)
    for metric in [1.0, 1.0, 1.0, 1.0]:
        s.step(metric)
    assert o.lr == 0.5


def test_averages_accumulation_and_lbfgs():
    w = ferrite.Parameter([4.0])
    average = optim.WeightAverage([w])
    for v in (1.0, 3.0):
        w.assign([v])
        average.update()
    average.swap()
    assert w.item() == 2 and average.swapped
    average.swap()
    assert w.item() == 3
    sums = optim.GradientAccumulator(2)
    assert not sums.add([ferrite.ones([1])]) and sums.add([ferrite.ones([1])]) and sums.take()[0].item() == 2
    step = ferrite.value_and_grad(lambda: ((w - 5) ** 2.0).sum(), [w])
    solver = optim.LBFGS([w], strong_wolfe=True)

    def closure():
        value, grads = step()
        return value.item(), grads

    solver.step(closure)
    assert np.isclose(w.item(), 5, atol=1e-4)


def test_a_fit_by_hand_learns():
    net, x = Net(), random(16, 6, 3)
    y = x.sum((1, 2), keepdims=True)[:, 0] * 0.1
    o = optim.Adam(net.parameters(), lr=0.02)
    step = ferrite.value_and_grad(lambda: nn.mse_loss(net(x), y), net.parameters())
    losses = []
    for _ in range(60):
        value, grads = step()
        o.step(grads)
        losses.append(value.item())
    assert losses[-1] < 0.1 * losses[0]
