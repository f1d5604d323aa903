"""Functions of tensors against PyTorch's, and that all that the C++ library has are here."""

import pathlib
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ferrite
from ferrite import nn

torch = pytest.importorskip("torch")
F = torch.nn.functional

UNARY = {  # name: (PyTorch's function, low, high)
    "abs": (torch.abs, -9, 9),
    "acos": (torch.acos, -0.875, 0.875),
    "asin": (torch.asin, -0.875, 0.875),
    "atan": (torch.atan, -9, 9),
    "ceil": (torch.ceil, -9, 9),
    "cos": (torch.cos, -9, 9),
    "cosh": (torch.cosh, -3, 3),
    "erf": (torch.erf, -3, 3),
    "exp": (torch.exp, -5, 5),
    "expm1": (torch.expm1, -5, 5),
    "floor": (torch.floor, -9, 9),
    "log": (torch.log, 0.125, 9),
    "log1p": (torch.log1p, -0.875, 9),
    "log2": (torch.log2, 0.125, 9),
    "neg": (torch.neg, -9, 9),
    "reciprocal": (torch.reciprocal, 0.125, 9),
    "relu": (torch.relu, -9, 9),
    "round": (torch.round, -9, 9),
    "rsqrt": (torch.rsqrt, 0.125, 9),
    "sigmoid": (torch.sigmoid, -9, 9),
    "sign": (torch.sign, -9, 9),
    "silu": (F.silu, -9, 9),
    "sin": (torch.sin, -9, 9),
    "sinh": (torch.sinh, -3, 3),
    "softplus": (F.softplus, -9, 9),
    "softsign": (F.softsign, -9, 9),
    "sqrt": (torch.sqrt, 0.125, 9),
    "square": (torch.square, -9, 9),
    "tan": (torch.tan, -1, 1),
    "tanh": (torch.tanh, -9, 9),
    "gelu": (F.gelu, -5, 5),
    "elu": (F.elu, -5, 5),
    "selu": (F.selu, -5, 5),
    "mish": (F.mish, -5, 5),
    "hardswish": (F.hardswish, -5, 5),
    "hardsigmoid": (F.hardsigmoid, -5, 5),
    "log_sigmoid": (F.logsigmoid, -5, 5),
    "trunc": (torch.trunc, -9, 9),
    "lgamma": (torch.lgamma, 0.5, 9),
    "erfc": (torch.erfc, -3, 3),
}


def close(got, expected, rtol=2e-5, atol=2e-6):
    got, expected = np.asarray(got), expected.detach().numpy()
    assert got.shape == expected.shape and got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", UNARY)
@given(data=st.data())
def test_functions_of_one_tensor(name, data):
    theirs, low, high = UNARY[name]
    a = data.draw(
        hnp.arrays(
            "float32", hnp.array_shapes(min_dims=0, max_dims=3, max_side=5), elements=st.floats(low, high, width=32)
        )
    )
    close(getattr(ferrite, name)(a), theirs(torch.from_numpy(a)), 1e-4, 1e-5)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "prod", "var", "logsumexp"])
@given(data=st.data())
def test_reductions(name, data):
    a = data.draw(
        hnp.arrays("float64", hnp.array_shapes(min_dims=1, max_dims=4, max_side=4), elements=st.integers(-3, 3))
    )
    axes = data.draw(st.lists(st.integers(0, a.ndim - 1), unique=True, min_size=1, max_size=a.ndim))
    if name == "prod":
        axes = axes[:1]
    keep = data.draw(st.booleans())
    close(
        getattr(ferrite, name)(a, axes, keepdim=keep),
        getattr(torch, name)(torch.from_numpy(a), axes if name != "prod" else axes[0], keepdim=keep),
        1e-9,
        1e-9,
    )
    assert getattr(ferrite.tensor(a), name)(axes[0]).shape == a.shape[: axes[0]] + a.shape[axes[0] + 1 :]


SHAPED = {
    "softmax": (lambda m, x: m.softmax(x, -1)),
    "log_softmax": (lambda m, x: m.log_softmax(x, 1)),
    "cumsum": lambda m, x: m.cumsum(x, 0),
    "flip": lambda m, x: m.flip(x, [0, 2]),
    "permute": lambda m, x: m.permute(x, [2, 0, 1]),
    "tril": lambda m, x: m.tril(x),
    "triu": lambda m, x: m.triu(x),
    "transpose": lambda m, x: m.transpose(x, 0, 2),
    "unsqueeze": lambda m, x: m.unsqueeze(x, 1),
    "reshape": lambda m, x: m.reshape(x, (4, -1)),
    "flatten": lambda m, x: m.flatten(x, 1),
    "roll": lambda m, x: m.roll(x, (1, 2), (0, 1)),
    "select": lambda m, x: m.select(x, 1, 2),
    "diff": lambda m, x: m.diff(x),
    "argmax": lambda m, x: m.argmax(x, 1),
    "stack": lambda m, x: m.stack([x, x * 2], 1),
    "clamp": lambda m, x: m.clamp(x, -1, 1),
    "maximum": lambda m, x: m.maximum(x, -x),
    "where": lambda m, x: m.where(x > 0, x, -x),
    "matmul": lambda m, x: m.matmul(x, m.transpose(x, 1, 2)),
    "sort": lambda m, x: m.sort(x)[0],
    "topk": lambda m, x: m.topk(x, 2)[1],
    "argsort": lambda m, x: m.argsort(x),
    "einsum": lambda m, x: m.einsum("abc,dbc->ad", [x, x] if m is ferrite else x, *([] if m is ferrite else [x])),
    "unbind": lambda m, x: m.unbind(x)[1],
    "split": lambda m, x: m.split(x, 2)[1],
    "chunk": lambda m, x: m.chunk(x, 3)[0],
    "gather": lambda m, x: m.gather(x, 2, m.argsort(x)),
    "logsumexp": lambda m, x: m.logsumexp(x, 1),
    "std": lambda m, x: (m.stddev if m is ferrite else m.std)(x, 0),
    "expand": lambda m, x: ferrite.expand(x[:1], [4, 3, 5]) if m is ferrite else x[:1].expand(4, 3, 5),
    "pow": lambda m, x: m.pow(m.abs(x), 1.5),
    "outer": lambda m, x: m.outer(x[0, 0], x[1, 1]),
    "diagonal": lambda m, x: m.diagonal(x, 1, 1, 2),
}


@pytest.mark.parametrize("name", SHAPED)
def test_functions_of_shapes(name):
    a = np.random.default_rng(0).standard_normal((4, 3, 5)).astype("float32")
    close(SHAPED[name](ferrite, ferrite.tensor(a)), SHAPED[name](torch, torch.from_numpy(a)), 1e-4, 1e-5)


LOSSES = {
    "mse_loss": {},
    "l1_loss": {},
    "smooth_l1_loss": {"beta": 0.5},
    "huber_loss": {"delta": 0.7},
    "kl_div": {},
    "soft_margin_loss": {},
    "poisson_nll_loss": {},
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, reduction):
    r = np.random.default_rng(1)
    p, t = r.standard_normal((5, 3)).astype("float32"), r.uniform(0.1, 1, (5, 3)).astype("float32")
    if name == "soft_margin_loss":
        t = np.sign(t - 0.5)
    close(
        getattr(nn, name)(p, t, reduction=reduction, **LOSSES[name]),
        getattr(F, name)(torch.from_numpy(p), torch.from_numpy(t), reduction=reduction, **LOSSES[name]),
    )


def test_losses_of_classes():
    r = np.random.default_rng(2)
    logits, classes = r.standard_normal((6, 4)).astype("float32"), r.integers(0, 4, 6)
    weight = r.uniform(0.5, 2, 4).astype("float32")
    close(nn.cross_entropy(logits, classes), F.cross_entropy(torch.from_numpy(logits), torch.from_numpy(classes)))
    close(
        nn.cross_entropy(logits, classes, class_weight=weight, label_smoothing=0.1, reduction="sum"),
        F.cross_entropy(
            torch.from_numpy(logits),
            torch.from_numpy(classes),
            torch.from_numpy(weight),
            label_smoothing=0.1,
            reduction="sum",
        ),
    )
    with pytest.raises(ValueError, match='unknown value "average"'):
        nn.mse_loss(logits, logits, reduction="average")


def test_signals():
    a = np.random.default_rng(3).standard_normal(64).astype("float32")
    close(ferrite.hann_window(16), torch.hann_window(16))
    ours = np.asarray(ferrite.rfft(a))
    theirs = torch.view_as_real(torch.fft.rfft(torch.from_numpy(a))).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_convolutions():
    r = np.random.default_rng(4)
    x, w = r.standard_normal((2, 4, 9)).astype("float32"), r.standard_normal((6, 2, 3)).astype("float32")
    close(
        ferrite.conv1d(x, w, None, stride=2, padding=1, groups=2),
        F.conv1d(torch.from_numpy(x), torch.from_numpy(w), None, 2, 1, 1, 2),
        1e-4,
        1e-5,
    )


def test_draws_follow_their_keys():
    a = np.asarray(ferrite.normal([1000], seed=3))
    assert (
        np.array_equal(a, np.asarray(ferrite.normal([1000], seed=3))) and abs(a.mean()) < 0.1 and abs(a.std() - 1) < 0.1
    )
    assert not np.array_equal(a, np.asarray(ferrite.normal([1000], seed=4)))
    assert not np.array_equal(a, np.asarray(ferrite.normal([1000], seed=3, stream=1)))
    assert sorted(ferrite.permutation(20, seed=1).tolist()) == list(range(20))


# Operations that only gradients, plans and optimisers use, or that have another form in Python.
PARTS = re.compile(
    r"_(grad|gradient|indices)$|^(adam_begin|rule_update|recompute|compiled|scan|scan_checkpointed|gated|pad_mode"
    r"|custom_gradient|gradient_hook|pool_\w+|plane_\w+|pass_\w+|\w+_windows|unfold_axis|scatter_\w+|prod_others|rank_index"
    r"|round_decimals|trigamma|resample|\w*(gru|lstm|rnn)\w*_(sequence|step)|gelu_tanh)$"
)
OTHER_NAMES = {
    "attention": "scaled_dot_product_attention",
    "convolution": "conv1d",
    "convolution_transposed": "conv_transpose1d",
    "avg_pool": "avg_pool1d",
    "max_pool": "max_pool1d",
    "lp_pool": "lp_pool1d",
    "equal": "eq",
    "less": "lt",
    "less_equal": "le",
    "logical_and": "Tensor",
    "logical_or": "Tensor",
    "logical_not": "Tensor",
    "convolution_weights": "conv1d",
}


def test_every_operation_of_the_library_is_here():
    page = pathlib.Path(__file__).parents[2] / "docs" / "operations.md"
    names = {OTHER_NAMES.get(n, n) for n in re.findall(r"^\| `(\w+)` \|", page.read_text(), re.M)}
    assert len(names) > 300
    missing = sorted(n for n in names if not hasattr(ferrite, n) and not hasattr(nn, n) and not PARTS.search(n))
    assert not missing


def test_docstrings_are_those_of_the_headers():
    assert "without overflow at either end" in ferrite.sigmoid.__doc__
    assert "Hendrycks" in ferrite.gelu.__doc__ or "normal distribution" in ferrite.gelu.__doc__
    undocumented = [
        n
        for n in dir(ferrite._ferrite)
        if not n.startswith("_")
        and callable(getattr(ferrite, n, None))
        and len((getattr(ferrite, n).__doc__ or "").strip().split("\n\n", 1)) < 2
        and not isinstance(getattr(ferrite, n), type)
    ]
    assert len(undocumented) < 5, undocumented
