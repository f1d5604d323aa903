"""Estimators for scikit-learn: a classifier, a regressor and a forecaster, each a small network.

    from ferrite.sklearn import Classifier
    model = Classifier(hidden_layer_sizes=(64,), early_stopping=True, random_state=0).fit(X, y)

They go wherever scikit-learn's own do: pipelines, grid searches, cross-validation, pickles. X is a table [n, D], or
sequences: an array [n, T, D], or a list of arrays [T, D] of different lengths.
"""

import collections
import inspect
import threading

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from . import _ferrite, nn, optim, train

__all__ = ["Backtest", "Classifier", "Forecaster", "Regressor"]

Backtest = collections.namedtuple("Backtest", "forecasts actual")
Backtest.__doc__ = "The forecasts of a backtest, and the values that came: [origins, horizon] or [origins, horizon, D]."

_PARAMETERS = """
    Parameters
    ----------
    hidden_layer_sizes : tuple of int, default=(32,)
        The sizes of the hidden layers: linear layers for a table, GRUs for sequences.
    network : function or class, default=None
        Another network. A function of one argument gets a builder that reads the inputs and returns it with more
        layers; the output layer is added: ``lambda b: b.lstm(32).last_step()``. A function of two arguments, or a
        class, gets the numbers of inputs and outputs and returns a layer, which is the whole network.
    activation : str, default="relu"
        The word of the builder after each linear layer, such as "relu", "tanh" or "gelu".
    dropout : float, default=0.0
        The probability of dropout after each hidden layer.
    epochs, batch_size : int, default=100 and 32
        The number of passes over the data, at most, and the number of examples in a batch.
    learning_rate, weight_decay : float, default=0.003 and 0.0
        The options of AdamW.
    standardize : bool, default=True
        Whether inputs, and targets that are numbers, are scaled to mean 0 and deviation 1 for the network.
    early_stopping : bool, default=False
        Whether training ends when the loss on held-out examples has not improved for more than ``patience`` epochs. The
        best weights are restored.
    validation_fraction : float, default=0.1
        The part of the data that early stopping holds out.
    patience : int, default=10
        The number of epochs without improvement before early stopping.
    warm_start : bool, default=False
        Whether ``fit`` continues from the weights and the scaling of the last fit.
    random_state : int, RandomState or None, default=None
        The source of first weights, order and held-out examples. The same int gives the same bits.
    dtype : str, default=None
        The type of the numbers in the network: "float32" or "float64". None: float64 for tables, where it costs hardly
        anything, and float32 for sequences. A network from a function of two arguments, or a class, has its own.
    verbose : bool, default=False
        Whether progress is printed.

    Attributes
    ----------
    net_ : layer
        The network, which computes with standardized numbers: ``ferrite.save(model.net_, "net.safetensors")``.
    input_scaling_, target_scaling_ : objects with the arrays ``mean`` and ``deviation``
        The numbers that inputs, and targets that are numbers, are standardized with.
    history_ : dict
        The losses of every epoch: "loss", and with early stopping "val_loss".
    n_iter_ : int
        The number of epochs that were run.
    n_features_in_ : int
        The number of features D.
"""

_WINDOWS = """    window : int, default=24
        The number of values that a forecast is made from.
    steps : int, default=1
        The number of values that the network predicts at once.
"""
_CLASSES = """    classes_ : array
        The labels, in the order of the columns of ``predict_proba``.
"""

_seeding = threading.Lock()  # manual_seed holds for all threads


def _documented(before="", after=""):
    """Appends the shared parameters to the docstring of a class, with more ones before and after them."""

    def document(cls):
        first = "    hidden_layer_sizes :"
        shared = _PARAMETERS.replace(first, before + first) + after
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__)}\n\n{inspect.cleandoc(shared)}\n"
        return cls

    return document


class _Scaling:
    """The mean and the deviation of every feature, by which values are standardized."""

    def __init__(self, values, weight, active):
        values = values.astype(np.float64)
        features = values.shape[1]
        if not active:
            self.mean, self.deviation = np.zeros(features), np.ones(features)
            return
        self.mean = np.average(values, axis=0, weights=weight)
        deviation = np.sqrt(np.average((values - self.mean) ** 2, axis=0, weights=weight))
        constant = deviation <= 10 * np.finfo(np.float64).eps * np.abs(self.mean)
        self.deviation = np.where(constant, 1.0, deviation)

    def apply(self, values, dtype):
        return ((values - self.mean) / self.deviation).astype(dtype)

    def undo(self, values):
        return values.astype(np.float64) * self.deviation + self.mean


def _sequences(X):
    """Returns X as a list of arrays [T, D] if it holds sequences, and None for a table."""
    is_list = isinstance(X, (list, tuple)) or isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1
    try:
        nested = len(X) > 0 and np.ndim(X[0]) == 2 if is_list else getattr(X, "ndim", 0) == 3
    except ValueError:  # the first row is ragged
        nested = False
    if not nested:
        return None
    return [check_array(x, dtype=np.float64, input_name="X") for x in X]


def _is_factory(network):
    """Returns whether a network's function takes the numbers of inputs and outputs, and not a builder."""
    if inspect.isclass(network):
        return True
    needed = [
        p
        for p in inspect.signature(network).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(needed) not in (1, 2):
        raise ValueError(f"network takes {len(needed)} arguments, neither one (a builder) nor two (inputs and outputs)")
    return len(needed) == 2


_BUILDING = ("hidden_layer_sizes", "network", "activation", "dropout", "dtype")


def _build(options, sequences, inputs, outputs, seed):
    """Returns a new network from inputs [B, inputs], or sequences of them, to [B, outputs]."""
    network, activation = options["network"], options["activation"]
    if network is not None and _is_factory(network):
        with _seeding:
            nn.manual_seed(seed)
            net = network(inputs, outputs)
        if not isinstance(net, nn._Layer):
            raise ValueError(f"network returned a {type(net).__name__}, not a layer")
        return net
    dtype = options["dtype"] or ("float32" if sequences else "float64")
    builder = _ferrite.sequence(inputs) if sequences else _ferrite.features(inputs)
    if network is not None:
        builder = network(builder)
        if not isinstance(builder, _ferrite.Builder):
            raise ValueError(f"network returned a {type(builder).__name__}, not the builder that it was given")
        return builder.linear(outputs).build(seed, dtype=dtype)
    if not hasattr(_ferrite.Builder, activation):
        raise ValueError(f'activation: the builder has no word "{activation}"')
    for size in np.atleast_1d(np.asarray(options["hidden_layer_sizes"], dtype=np.int64)):
        if sequences:
            builder.gru(int(size))
        else:
            getattr(builder.linear(int(size)), activation)()
        if options["dropout"]:
            builder.dropout(options["dropout"])
    if sequences:
        builder.last_step()
    return builder.linear(outputs).build(seed, dtype=dtype)


class _Estimator(BaseEstimator):
    """What the estimators share: the network, its training, and pickling."""

    def __init__(
        self,
        hidden_layer_sizes=(32,),
        *,
        network=None,
        activation="relu",
        dropout=0.0,
        epochs=100,
        batch_size=32,
        learning_rate=3e-3,
        weight_decay=0.0,
        standardize=True,
        early_stopping=False,
        validation_fraction=0.1,
        patience=10,
        warm_start=False,
        random_state=None,
        dtype=None,
        verbose=False,
    ):
        self.hidden_layer_sizes = hidden_layer_sizes
        self.network = network
        self.activation = activation
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.standardize = standardize
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.dtype = dtype
        self.verbose = verbose

    def _column(self, x):
        """Returns standardized inputs as a column of a data set."""
        if not self._made_for[0]:
            return self.input_scaling_.apply(x, self._dtype)
        each = [self.input_scaling_.apply(s, self._dtype) for s in x]
        same = all(len(s) == len(each[0]) for s in each)
        return np.stack(each) if same else train.sequences(each)

    def _standardize(self, x, y, weight, rows):
        """Takes means and deviations from some rows of inputs, and of targets that are numbers."""
        each = None if weight is None else weight[rows]
        if y.ndim == 2:
            self.target_scaling_ = _Scaling(y[rows], each, self.standardize)
        if isinstance(x, list):
            if each is not None:
                each = np.repeat(each, [len(x[i]) for i in rows])
            self.input_scaling_ = _Scaling(np.concatenate([x[i] for i in rows]), each, self.standardize)
        else:
            self.input_scaling_ = _Scaling(x[rows], each, self.standardize)

    def _fit(self, x, y, weight, outputs, loss, held_out):
        """Trains on inputs, targets and weights (or None); `held_out(random, rows)` chooses some for validation."""
        sequences = isinstance(x, list)
        made_for = (sequences, self.n_features_in_, outputs)
        random = check_random_state(self.random_state)
        seed = int(random.randint(np.iinfo(np.int32).max))
        kept = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
        if len(kept) == 0:
            raise ValueError("sample_weight: every weight is zero")
        validating = held_out(random, kept) if self.early_stopping else np.arange(0)
        training = np.setdiff1d(kept, validating)
        if self.warm_start and hasattr(self, "net_"):
            if self._made_for != made_for:
                raise ValueError("warm_start: the network was made for other numbers of inputs or outputs")
        else:
            self._made_for = made_for
            self._standardize(x, y, weight, training)
            self._made_by = {name: getattr(self, name) for name in _BUILDING}
            self.net_ = _build(self._made_by, *made_for, seed)
            self._dtype = next((p.numpy().dtype.name for p in self.net_.parameters()), "float32")
        if y.ndim == 2:
            y = self.target_scaling_.apply(y, self._dtype)

        def data(rows):
            columns = [self._column([x[i] for i in rows] if sequences else x[rows]), y[rows]]
            return train.Dataset(*columns, *([] if weight is None else [weight[rows].astype(self._dtype)]))

        if weight is not None:
            loss = train.LossOfSums(_weighted(loss))
        options = {}
        if len(validating):
            stopping = train.EarlyStopping("val_loss", patience=self.patience)
            options = {"validation": data(validating), "callbacks": [stopping]}
        history = train.fit(
            self.net_,
            train.DataLoader(data(training), batch_size=self.batch_size, seed=seed),
            loss,
            optim.AdamW(self.net_.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay),
            self.epochs,
            progress=bool(self.verbose),
            **options,
        )
        self.history_ = history.to_dict()
        self.n_iter_ = history.epochs
        return self

    def _hold_out(self, random, rows, strata=None):
        """Draws rows for validation, in the proportions of strata where it can."""
        size = self._held_out_size(len(rows))
        if strata is not None:
            counts = np.unique(strata[rows], return_counts=True)[1]
            possible = counts.min() >= 2 and len(counts) <= min(size, len(rows) - size)
            strata = strata[rows] if possible else None
        return train_test_split(rows, test_size=size, random_state=random, stratify=strata)[1]

    def _held_out_size(self, count):
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction is {self.validation_fraction}; it lies between 0 and 1")
        if count < 2:
            raise ValueError(f"early_stopping needs at least two samples; n_samples = {count}")
        return min(max(1, round(self.validation_fraction * count)), count - 1)

    def _outputs(self, x):
        """Returns the network's outputs [n, outputs] for validated inputs."""
        return train.predict(self.net_, train.Dataset(self._column(x))).numpy()

    def __getstate__(self):
        state = dict(super().__getstate__())
        if "net_" in state:
            state["net_"] = {name: value.numpy() for name, value in _ferrite.state_dict(self.net_).items()}
        return state

    def __setstate__(self, state):
        state = dict(state)
        weights = state.pop("net_", None)
        super().__setstate__(state)
        if weights is not None:
            self.net_ = _build(self._made_by, *self._made_for, 0)
            _ferrite.load_state_dict(self.net_, weights)


def _weighted(loss):
    """Returns the function that a named loss is with weights in the third field: the sum of losses, and of weights."""
    if loss == "cross_entropy":
        return lambda prediction, batch: (
            nn.cross_entropy(prediction, batch.y, reduction="sum", element_weight=batch[2]),
            _ferrite.sum(batch[2]),
        )

    def squares(prediction, batch):
        weight = _ferrite.expand(_ferrite.unsqueeze(batch[2], 1), prediction.shape)
        return nn.mse_loss(prediction, batch.y, reduction="sum", element_weight=weight), _ferrite.sum(weight)

    return squares


class _Supervised(_Estimator):
    """What Classifier and Regressor share: their inputs."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def _validated(self, X, y, **check):
        sequences = _sequences(X)
        if sequences is None:
            return validate_data(self, X, y, dtype=[np.float64, np.float32], **check)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        y = check_array(y, ensure_2d=False, dtype="numeric" if check.get("y_numeric") else None, input_name="y")
        check_consistent_length(sequences, y)
        features = {s.shape[1] for s in sequences}
        if len(features) > 1:
            raise ValueError(f"X: sequences have different numbers of features: {sorted(features)}")
        self.n_features_in_ = features.pop()
        self.__dict__.pop("feature_names_in_", None)
        return sequences, y

    @staticmethod
    def _weights(sample_weight, x):
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)

    def _predicted(self, X):
        check_is_fitted(self, "net_")
        sequences = _sequences(X)
        if (sequences is not None) != self._made_for[0]:
            raise ValueError("X: the estimator was fitted to " + ("sequences" if self._made_for[0] else "a table"))
        if sequences is None:
            return self._outputs(validate_data(self, X, dtype=[np.float64, np.float32], reset=False))
        for s in sequences:
            if s.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {s.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input"
                )
        return self._outputs(sequences)


@_documented(after=_CLASSES)
class Classifier(ClassifierMixin, _Supervised):
    """A classifier: a small network that is trained with cross-entropy.

        model = Classifier(early_stopping=True, random_state=0).fit(X, y)
        model.predict_proba(X)

    X is a table or sequences, y holds labels of any kind. With a ``random_state`` training is repeatable bit for bit.
    """

    def fit(self, X, y, sample_weight=None):
        """Trains on X and the labels y [n]. A weight multiplies the loss of its sample."""
        x, y = self._validated(X, y)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
        if self.warm_start and hasattr(self, "net_") and not np.array_equal(classes, self.classes_):
            raise ValueError("warm_start: y has other classes than in the last fit")
        self.classes_ = classes
        weight = self._weights(sample_weight, x)

        def hold_out(random, rows):
            return self._hold_out(random, rows, labels)

        return self._fit(x, labels.astype(np.int64), weight, len(classes), "cross_entropy", hold_out)

    def predict(self, X):
        """Returns the most probable label of each sample, [n]."""
        logits = self._predicted(X)
        return self.classes_[np.argmax(logits, axis=1)]

    def predict_proba(self, X):
        """Returns the probabilities of the classes, [n, classes]."""
        logits = self._predicted(X).astype(np.float64)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)


@_documented()
class Regressor(RegressorMixin, _Supervised):
    """A regressor: a small network that is trained with squared errors, for one target or several.

        model = Regressor(hidden_layer_sizes=(64, 64), random_state=0).fit(X, y)
        model.predict(X)

    X is a table or sequences, y is [n] or [n, targets]. With a ``random_state`` training is repeatable bit for bit.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X, y, sample_weight=None):
        """Trains on X and the numbers y, [n] or [n, targets]. A weight multiplies the loss of its sample."""
        x, y = self._validated(X, y, multi_output=True, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        self._flat = y.ndim == 1
        y = y.reshape(len(y), -1)
        weight = self._weights(sample_weight, x)
        return self._fit(x, y, weight, y.shape[1], "mse", self._hold_out)

    def predict(self, X):
        """Returns the predicted numbers, in the shape of y."""
        scaled = self._predicted(X)
        out = self.target_scaling_.undo(scaled)
        return out[:, 0] if self._flat else out


@_documented(before=_WINDOWS)
class Forecaster(_Estimator):
    """A forecaster of series: a GRU that reads a window and predicts the values after it.

        model = Forecaster(window=24, random_state=0).fit(series[:-50])
        model.predict(10)                       # the ten values after the series
        model.backtest(series[-100:], horizon=5)

    A series is [n], or [n, D] for several that are forecast together. Forecasts of more than ``steps`` values continue
    from the first ones.
    """

    def __init__(
        self,
        window=24,
        steps=1,
        hidden_layer_sizes=(32,),
        *,
        network=None,
        activation="relu",
        dropout=0.0,
        epochs=100,
        batch_size=32,
        learning_rate=3e-3,
        weight_decay=0.0,
        standardize=True,
        early_stopping=False,
        validation_fraction=0.1,
        patience=10,
        warm_start=False,
        random_state=None,
        dtype=None,
        verbose=False,
    ):
        super().__init__(
            hidden_layer_sizes,
            network=network,
            activation=activation,
            dropout=dropout,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            standardize=standardize,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            patience=patience,
            warm_start=warm_start,
            random_state=random_state,
            dtype=dtype,
            verbose=verbose,
        )
        self.window = window
        self.steps = steps

    def fit(self, series, y=None):
        """Trains on the windows of a series. Early stopping holds out the last windows."""
        series = check_array(series, ensure_2d=False, dtype=np.float64, input_name="series")
        self._flat = series.ndim == 1
        series = series.reshape(len(series), -1)
        if len(series) < self.window + self.steps:
            raise ValueError(f"series: {len(series)} values; a window and its target have {self.window + self.steps}")
        self.n_features_in_ = series.shape[1]
        windows = self._windows(series, self.window + self.steps)
        x, y = list(windows[:, : self.window]), windows[:, self.window :].reshape(len(windows), -1)
        self._fit(x, y, None, y.shape[1], "mse", lambda _, rows: rows[-self._held_out_size(len(rows)) :])
        self._last = series[-self.window :].copy()
        return self

    @staticmethod
    def _windows(series, length):
        return np.moveaxis(np.lib.stride_tricks.sliding_window_view(series, length, axis=0), 2, 1)

    def _validated(self, series, least):
        check_is_fitted(self, "net_")
        series = check_array(series, ensure_2d=False, dtype=np.float64, input_name="series")
        if series.ndim == 1 != self._flat or series.reshape(len(series), -1).shape[1] != self.n_features_in_:
            raise ValueError(
                f"series: shape {series.shape}; the forecaster was fitted to "
                + ("[n]" if self._flat else f"[n, {self.n_features_in_}]")
            )
        if len(series) < least:
            raise ValueError(f"series: {len(series)} values; at least {least} are needed")
        return series.reshape(len(series), -1)

    def _forecast(self, windows, horizon):
        """Returns the values after windows [k, window, D], [k, horizon, D]."""
        if horizon < 1:
            raise ValueError(f"horizon is {horizon}; it is at least 1")
        known = windows
        for _ in range(-(-horizon // self.steps)):
            y = self.target_scaling_.undo(self._outputs(list(known[:, -self.window :])))
            known = np.concatenate([known, y.reshape(len(known), self.steps, -1)], axis=1)
        return known[:, self.window : self.window + horizon]

    def predict(self, horizon=1, series=None):
        """Returns the ``horizon`` values after a series, by default the one of ``fit``: [horizon] or [horizon, D]."""
        check_is_fitted(self, "net_")
        last = self._last if series is None else self._validated(series, self.window)[-self.window :]
        out = self._forecast(last[None], horizon)[0]
        return out[:, 0] if self._flat else out

    def backtest(self, series, horizon=1, stride=1):
        """Forecasts ``horizon`` values from every ``stride``-th place of a series, each from the window before it.

        Returns the forecasts and the actual values, a Backtest: [origins, horizon] or [origins, horizon, D].
        """
        series = self._validated(series, self.window + horizon)
        windows = self._windows(series, self.window + horizon)[::stride]
        forecasts, actual = self._forecast(windows[:, : self.window], horizon), windows[:, self.window :].copy()
        return Backtest(forecasts[..., 0], actual[..., 0]) if self._flat else Backtest(forecasts, actual)

    def score(self, series, y=None, horizon=1):
        """Returns the R^2 of the forecasts of a backtest: 1 if all are right, 0 for those of the mean."""
        forecasts, actual = self.backtest(series, horizon)
        return r2_score(actual.reshape(len(actual), -1), forecasts.reshape(len(forecasts), -1))
