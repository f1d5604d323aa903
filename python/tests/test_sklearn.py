"""The estimators for scikit-learn."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

import ferrite  # noqa: E402
from ferrite import nn  # noqa: E402
from ferrite.sklearn import Classifier, Forecaster, Regressor  # noqa: E402

WEIGHTS = "check_sample_weight_equivalence_on_dense_data"


def not_to_the_bit(estimator):
    """Lists checks that compare within 1e-7, where rounding to float32 is as large, and which examples are held out."""
    if estimator.dtype == "float32" or estimator.early_stopping:
        return {WEIGHTS: "other rounding, or other examples held out"}
    return {}


@parametrize_with_checks(
    [
        Classifier(),
        Regressor(),
        Classifier(dtype="float32"),
        Regressor(dtype="float32"),
        Classifier(hidden_layer_sizes=(16, 8), activation="tanh", early_stopping=True),
        Regressor(early_stopping=True),
        Regressor(standardize=False, epochs=300),
    ],
    expected_failed_checks=not_to_the_bit,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def moons(n=200, seed=0):
    """Returns points that no line separates, and their labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.where(X[:, 0] * X[:, 1] > 0, "same", "other")


def waves(n=60, seed=0, lengths=(10, 11)):
    """Returns sequences [T, 2] that rise or fall, their labels, and their slopes."""
    rng = np.random.default_rng(seed)
    slopes = rng.uniform(0.2, 1, n) * rng.choice([-1, 1], n)
    each = [
        np.stack([s * np.linspace(0, 1, t), rng.standard_normal(t)], 1)
        for s, t in zip(slopes, rng.integers(*lengths, n))
    ]
    return each, (slopes > 0).astype(int), slopes


def test_the_package_does_not_import_scikit_learn():
    code = "import ferrite, sys; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_classifier():
    X, y = moons()
    model = Classifier(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95 and list(model.classes_) == ["other", "same"] and model.n_iter_ == 100
    p = model.predict_proba(X)
    assert p.shape == (200, 2) and np.allclose(p.sum(1), 1)
    assert np.array_equal(model.classes_[p.argmax(1)], model.predict(X))
    assert model.history_["loss"].shape == (100,) and model.history_["loss"][-1] < model.history_["loss"][0] / 3
    # By hand: the network on standardized inputs.
    z = (X - X.mean(0)) / X.std(0)
    logits = model.net_(z).numpy()
    np.testing.assert_allclose(p, np.exp(logits) / np.exp(logits).sum(1, keepdims=True), rtol=1e-9)


def test_regressor_with_one_target_and_two():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = np.stack([1000 + 100 * np.sin(X[:, 0]), X[:, 1] ** 2], 1)
    model = Regressor(random_state=0).fit(X, y)
    assert model.predict(X).shape == (200, 2) and model.score(X, y) > 0.95
    one = Regressor(random_state=0).fit(X, y[:, 0])
    assert one.predict(X).shape == (200,) and one.score(X, y[:, 0]) > 0.95
    np.testing.assert_allclose(one.target_scaling_.mean, y[:, 0].mean())


def test_the_same_random_state_gives_the_same_bits():
    X, y = moons()
    options = {"epochs": 10, "early_stopping": True, "dropout": 0.2}
    a, b, c = (Classifier(random_state=s, **options).fit(X, y).predict_proba(X) for s in (3, 3, 4))
    assert np.array_equal(a, b) and not np.array_equal(a, c)
    states = [np.random.RandomState(7) for _ in range(2)]
    a, b = (Classifier(random_state=s, **options).fit(X, y).predict_proba(X) for s in states)
    assert np.array_equal(a, b)
    model = Classifier(random_state=states[0], **options)
    assert not np.array_equal(model.fit(X, y).predict_proba(X), model.fit(X, y).predict_proba(X))


def test_pipelines_searches_and_folds():
    X, y = moons()
    pipeline = make_pipeline(StandardScaler(), Classifier(random_state=0, epochs=60))
    assert pipeline.fit(X, y).score(X, y) > 0.9
    assert cross_val_score(Classifier(random_state=0), X, y, cv=3).mean() > 0.85
    search = GridSearchCV(Classifier(random_state=0, epochs=60), {"hidden_layer_sizes": [(1,), (32,)]}, cv=3, n_jobs=2)
    search.fit(X, y)
    assert search.best_params_ == {"hidden_layer_sizes": (32,)} and search.best_score_ > 0.8


def test_early_stopping_restores_the_best_weights():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 5)), rng.standard_normal(60)  # noise: every epoch learns by heart
    model = Regressor(random_state=0, epochs=500, early_stopping=True, validation_fraction=0.25, patience=5).fit(X, y)
    val = model.history_["val_loss"]
    assert model.n_iter_ == len(val) < 500 and val.argmin() == len(val) - 7
    assert "val_loss" not in Regressor(epochs=1).fit(X, y).history_
    with pytest.raises(ValueError, match="validation_fraction"):
        Regressor(early_stopping=True, validation_fraction=1.5).fit(X, y)


def test_sample_weights():
    X = np.zeros((40, 1))
    y = np.repeat([0, 1], 20)
    weight = np.where(y == 1, 3.0, 1.0)
    model = Classifier(random_state=0, epochs=300, batch_size=40).fit(X, y, weight)
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], [0.25, 0.75], atol=1e-2)
    mean = Regressor(random_state=0, epochs=300, batch_size=40).fit(X, y.astype(float), weight).predict(X[:1])[0]
    np.testing.assert_allclose(mean, 0.75, atol=1e-2)
    series, labels, _ = waves()
    Classifier(epochs=2, early_stopping=True).fit(series, labels, np.arange(60))
    few = np.zeros(60)
    few[:3] = 1
    Classifier(epochs=2, early_stopping=True, validation_fraction=0.5).fit(series, labels, few)
    with pytest.raises(ValueError, match="zero"):
        Regressor().fit(X, y, np.zeros(40))


@pytest.mark.parametrize("model", [Classifier, Regressor])
def test_pickles_and_clones(model):
    X, y = moons()
    y = y if model is Classifier else X[:, 0] * X[:, 1]
    fitted = model(random_state=0, epochs=10, network=net_of_normed).fit(X, y)
    for other in (pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(X, y)):
        assert np.array_equal(other.predict(X), fitted.predict(X))
    expected = fitted.predict(X)
    fitted.set_params(hidden_layer_sizes=(3,), network=None, dtype="float32")  # for the next fit
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), expected)
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(X)


def net_of_normed(builder):
    return builder.linear(16).batch_norm().relu()


class Gated(nn.Module):
    """A network written in Python."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.value = nn.Linear(inputs, 32)
        self.gate = nn.Linear(inputs, 32)
        self.out = nn.Linear(32, outputs)

    def forward(self, x):
        return self.out(self.value(x) * ferrite.sigmoid(self.gate(x)))


def test_networks_of_ones_own():
    X, y = moons()
    assert Classifier(network=net_of_normed, random_state=0).fit(X, y).score(X, y) > 0.9
    a, b = (Classifier(network=Gated, random_state=s, epochs=50).fit(X, y) for s in (0, 0))
    assert a.score(X, y) > 0.95 and np.array_equal(a.predict_proba(X), b.predict_proba(X))
    assert np.array_equal(pickle.loads(pickle.dumps(a)).predict_proba(X), a.predict_proba(X))
    chain = Regressor(network=lambda i, o: nn.Sequential(nn.Linear(i, o)), random_state=0, epochs=200)
    assert chain.fit(X, X @ [1.0, 2.0]).score(X, X @ [1.0, 2.0]) > 0.999
    for network, message in [(lambda: 0, "0 arguments"), (lambda b: 3, "int"), (lambda i, o: 3, "int")]:
        with pytest.raises(ValueError, match=message):
            Classifier(network=network).fit(X, y)
    with pytest.raises(ValueError, match="relux"):
        Classifier(activation="relux").fit(X, y)


def test_warm_starts_continue():
    X, y = moons()
    model = Classifier(random_state=0, epochs=5, warm_start=True).fit(X, y)
    first = model.history_["loss"][-1]
    assert model.fit(X, y).history_["loss"][0] < first
    assert Classifier(random_state=0, epochs=5).fit(X, y).fit(X, y).history_["loss"][-1] == first
    with pytest.raises(ValueError, match="classes"):
        model.fit(X, np.arange(200) % 3)
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(X[:, :1], y)


def test_progress_is_printed(capsys):
    X, y = moons()
    Classifier(epochs=2).fit(X, y)
    assert capsys.readouterr().out == ""
    Classifier(epochs=2, verbose=True).fit(X, y)
    assert "loss" in capsys.readouterr().out


# ---- sequences ---------------------------------------------------------------------------------------


def test_sequences_of_one_length():
    series, labels, slopes = waves()
    X = np.stack(series)
    model = Classifier(random_state=0, epochs=40).fit(X, labels)
    assert model.score(X, labels) > 0.95 and model.n_features_in_ == 2
    assert np.array_equal(model.predict_proba(series), model.predict_proba(X))
    regressor = Regressor(random_state=0, epochs=60).fit(X, slopes)
    assert regressor.score(X, slopes) > 0.9
    both = Regressor(random_state=0, epochs=2).fit(X, np.stack([slopes, -slopes], 1))
    assert both.predict(X).shape == (60, 2)
    assert cross_val_score(Classifier(random_state=0, epochs=40), X, labels, cv=3).mean() > 0.85


@pytest.mark.parametrize("kind", ["list", "objects"])
def test_sequences_of_different_lengths(kind):
    series, labels, _ = waves(lengths=(5, 20))
    X = series
    if kind == "objects":
        X = np.empty(len(series), object)
        X[:] = series
    model = Classifier(random_state=0, epochs=40, early_stopping=True).fit(X, labels)
    assert model.score(X, labels) > 0.95
    alone = np.concatenate([model.predict_proba([s]) for s in series])
    np.testing.assert_allclose(model.predict_proba(X), alone, atol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert cross_val_score(model, X, labels, cv=3).mean() > 0.85


def test_networks_over_sequences():
    series, labels, _ = waves(lengths=(5, 20))
    model = Classifier(network=lambda b: b.lstm(8, bidirectional=True).mean_over_time(), random_state=0, epochs=40)
    assert model.fit(series, labels).score(series, labels) > 0.95


def test_wrong_sequences():
    series, labels, _ = waves()
    model = Classifier(epochs=1).fit(series, labels)
    with pytest.raises(ValueError, match="fitted to sequences"):
        model.predict(series[0])
    with pytest.raises(ValueError, match="fitted to a table"):
        Classifier(epochs=1).fit(*moons()).predict(series)
    with pytest.raises(ValueError, match="1 features"):
        model.predict([s[:, :1] for s in series])
    with pytest.raises(ValueError, match="different numbers of features"):
        Classifier().fit([series[0], series[1][:, :1]], [0, 1])
    with pytest.raises(ValueError, match="NaN"):
        model.predict([np.full((3, 2), np.nan)])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(series, labels[:-1])


# ---- forecasts ---------------------------------------------------------------------------------------


def test_a_forecaster_beats_the_naive_forecast_of_a_sine():
    t = np.arange(400)
    series = 5 + np.sin(2 * np.pi * t / 20) + np.random.default_rng(0).normal(0, 0.05, 400)
    model = Forecaster(window=20, random_state=0, epochs=30).fit(series[:300])
    ahead = model.predict(20)
    assert ahead.shape == (20,)
    expected = 5 + np.sin(2 * np.pi * t[300:320] / 20)
    naive = np.full(20, series[299])
    assert np.sqrt(np.mean((ahead - expected) ** 2)) < 0.3 * np.sqrt(np.mean((naive - expected) ** 2))
    rest = series[280:]
    forecasts, actual = model.backtest(rest, horizon=5)
    assert forecasts.shape == actual.shape == (96, 5)
    last = np.stack([np.full(5, rest[i + 19]) for i in range(96)])
    assert np.abs(forecasts - actual).mean() < 0.3 * np.abs(last - actual).mean()
    assert model.score(rest) > 0.95 and model.score(rest, horizon=5) > 0.9
    np.testing.assert_array_equal(actual[3], rest[23:28])
    np.testing.assert_allclose(model.predict(5, series=rest[:23]), forecasts[3], rtol=1e-5)


def test_forecasts_of_several_series():
    t = np.arange(300)
    series = np.stack([np.sin(t / 3), 10 * np.cos(t / 3)], 1)
    model = Forecaster(window=12, steps=3, random_state=0, epochs=20, early_stopping=True).fit(series)
    ahead = model.predict(7)
    assert ahead.shape == (7, 2) and "val_loss" in model.history_
    expected = np.stack([np.sin(np.arange(300, 307) / 3), 10 * np.cos(np.arange(300, 307) / 3)], 1)
    assert np.abs(ahead - expected).max(0)[0] < 0.2 and np.abs(ahead - expected).max(0)[1] < 2
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(7), ahead) and np.array_equal(clone(model).fit(series).predict(7), ahead)
    assert model.backtest(series, horizon=4, stride=10).forecasts.shape == (29, 4, 2)
    cheap = GridSearchCV(Forecaster(epochs=1), {"window": [4, 8]}, cv=[(np.arange(200), np.arange(200, 300))])
    assert cheap.fit(series).best_params_["window"] in (4, 8)


def test_wrong_series():
    model = Forecaster(window=4, epochs=1)
    with pytest.raises(NotFittedError):
        model.predict(3)
    with pytest.raises(ValueError, match="a window and its target have 5"):
        model.fit(np.arange(4.0))
    model.fit(np.sin(np.arange(50.0)))
    for wrong in (
        lambda: model.predict(0),
        lambda: model.predict(1, series=np.zeros(3)),
        lambda: model.predict(1, series=np.zeros((9, 2))),
    ):
        with pytest.raises(ValueError, match="horizon|at least 4|fitted to"):
            wrong()
