#!/usr/bin/env python3
"""Writes metrics.safetensors: what scikit-learn says of predictions, for tests/train/metrics_golden_test.cpp.

    python3 -m pip install -r tests/data/requirements.txt scikit-learn==1.9.1
    python3 tests/data/make_metric_fixtures.py [FOLDER]

Case NAME holds NAME/prediction, NAME/target and, of padded sequences, NAME/lengths; NAME/<metric> is f64 and of one element.
What lies behind the lengths or is ignored (-100) is cut out before scikit-learn sees it. Scores have ties: they are
multiples of 1/8.
"""
import pathlib
import sys

import numpy as np
import torch
from sklearn import metrics
from sklearn.model_selection import KFold, TimeSeriesSplit

from reference import save_file

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
random = np.random.default_rng(23)
tensors = {}


def put(case, prediction, target, values, lengths=None):
    tensors[f"{case}/prediction"] = torch.tensor(prediction)
    tensors[f"{case}/target"] = torch.tensor(target)
    if lengths is not None:
        tensors[f"{case}/lengths"] = torch.tensor(lengths)
    for name, value in values.items():
        tensors[f"{case}/{name}"] = torch.tensor([value], dtype=torch.float64)


def eighths(*shape):
    return (random.integers(-16, 17, shape) / 8).astype(np.float32)


SCORES = {"precision": metrics.precision_score, "recall": metrics.recall_score, "f1": metrics.f1_score}
AVERAGES = {"": "macro", "_micro": "micro", "_weighted": "weighted", "_binary": "binary"}


def of_counts(y, best, averages):
    return {name + end: score(y, best, average=AVERAGES[end], zero_division=0)
            for name, score in SCORES.items() for end in averages}


def of_classes(scores, y, C):
    """Of scores [N, C] and classes [N]. Of equal scores the first counts as the largest."""
    best = scores.argmax(1)
    order = np.argsort(-scores, axis=1, kind="stable")
    rank = (order == y[:, None]).argmax(1)
    log_p = torch.log_softmax(torch.tensor(scores, dtype=torch.float64), 1).numpy()
    return {
        "accuracy": metrics.accuracy_score(y, best),
        "top2": float((rank < 2).mean()),
        "top3": float((rank < 3).mean()),
        **of_counts(y, best, ("", "_micro", "_weighted")),
        "perplexity": float(np.exp(metrics.log_loss(y, np.exp(log_p), labels=list(range(C))))),
    }


def of_numbers(p, y):
    p, y = p.astype(np.float64).ravel(), y.astype(np.float64).ravel()
    return {
        "mae": metrics.mean_absolute_error(y, p),
        "mse": metrics.mean_squared_error(y, p),
        "rmse": metrics.root_mean_squared_error(y, p),
        "r2": metrics.r2_score(y, p),
    }


scores, y = eighths(60, 5), random.integers(0, 5, 60)
put("classes", scores, y, of_classes(scores, y, 5))

y = random.choice([0, 0, 0, 0, 1, 3], 60)  # class 2 is predicted and never there; class 4 neither
scores = eighths(60, 5)
scores[:, 4] = -9
put("rare", scores, y, of_classes(scores, y, 5))

y = random.integers(0, 5, 60)
some = y.copy()
some[::3] = -100
scores = eighths(60, 5)
put("ignored", scores, some, of_classes(scores[some >= 0], some[some >= 0], 5))

scores, y, lengths = eighths(7, 9, 4), random.integers(0, 4, (7, 9)), np.array([9, 1, 4, 0, 7, 2, 9])
inside = np.arange(9)[None, :] < lengths[:, None]
put("padded", scores, y, of_classes(scores[inside], y[inside], 4), lengths)

y[2, 1] = y[4, 3] = -100
inside &= y >= 0
put("padded_and_ignored", scores, y, of_classes(scores[inside], y[inside], 4), lengths)

scores, y = eighths(50), random.integers(0, 2, 50)
best = (scores > 0).astype(np.int64)
put("binary", scores, y, {
    "accuracy": metrics.accuracy_score(y, best),
    **of_counts(y, best, ("", "_binary")),
    "auc": metrics.roc_auc_score(y, scores),
})

scores, y = eighths(6, 8), random.integers(0, 2, (6, 8))
lengths = np.array([8, 3, 5, 1, 0, 6])
inside = np.arange(8)[None, :] < lengths[:, None]
put("binary_padded", scores, y, {
    "accuracy": metrics.accuracy_score(y[inside], scores[inside] > 0),
    "auc": metrics.roc_auc_score(y[inside], scores[inside]),
}, lengths)

p, y = random.normal(size=40).astype(np.float32), random.normal(size=40).astype(np.float32)
put("numbers", p, y, of_numbers(p, y))

p, y = random.normal(size=(40, 3)).astype(np.float32), (1e4 + random.normal(size=(40, 3))).astype(np.float32)
put("far_from_zero", p + np.float32(1e4), y, of_numbers(p + np.float32(1e4), y))  # one R2 of all elements

p, y = random.normal(size=(6, 8, 2)).astype(np.float32), random.normal(size=(6, 8, 2)).astype(np.float32)
put("numbers_padded", p, y, of_numbers(p[inside], y[inside]), lengths)

for n, k in ((10, 3), (23, 4), (6, 5)):
    for f, (training, validation) in enumerate(TimeSeriesSplit(k).split(np.zeros(n))):
        tensors[f"time/{n}/{k}/{f}/training"] = torch.tensor(training)
        tensors[f"time/{n}/{k}/{f}/validation"] = torch.tensor(validation)
    # KFold gives the first n % k folds one example more; ours are spread, so that only the sizes are compared.
    tensors[f"folds/{n}/{k}"] = torch.tensor(sorted(len(v) for _, v in KFold(k).split(np.zeros(n))))

save_file(tensors, FOLDER / "metrics.safetensors", {})
