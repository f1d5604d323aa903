"""Layers on Ferrite give PyTorch's results and gradients, for random layers and calls."""
import pytest
import torch
from layers import Case, close

import ferrite.torch

EACH = 25


def compare(case, expected, actual):
    about = f"{case.name} {case.options} {case.form} x {tuple(case.x.shape)} reads {case.reads}"
    assert expected[3] == actual[3], about
    for e, a in zip(expected[2], actual[2]):
        assert (e is None) == (a is None) and (e is None or torch.equal(e, a)), about
    for what in (0, 1):
        assert len(expected[what]) == len(actual[what])
        for k, (e, a) in enumerate(zip(expected[what], actual[what])):
            assert (e is None) == (a is None), f"{about}: {'a result' if what == 0 else 'gradient'} {k} is missing"
            if e is not None:
                assert close(a, e, case.dtype), f"{about}: {'result' if what == 0 else 'gradient'} {k}"


@pytest.mark.parametrize("seeds", range(60))
def test_modules_give_pytorchs_results_and_gradients(seeds):
    for seed in range(seeds * EACH, (seeds + 1) * EACH):
        case = Case(seed)
        expected = case.call(case.module)
        actual = case.call(case.ours())
        assert ferrite.torch.why() is None
        compare(case, expected, actual)


@pytest.mark.parametrize("seeds", range(60, 100))
def test_pytorchs_layers_give_the_same_results_on_ferrite(seeds):
    for seed in range(seeds * EACH, (seeds + 1) * EACH):
        case = Case(seed)
        expected = case.call(case.module)
        with ferrite.torch.installed():
            actual = case.call(case.module)
        # The aten operations see unbatched sequences with a batch of one row.
        assert ferrite.torch.why() is None
        compare(case, expected, actual)


def test_results_have_pytorchs_strides():
    for batch_first in (False, True):
        ours = ferrite.torch.GRU(4, 6, batch_first=batch_first)
        plain = torch.nn.GRU(4, 6, batch_first=batch_first)
        x = torch.randn(3, 5, 4)
        for a, b in zip(ours(x), plain(x)):
            assert a.stride() == b.stride() and a.shape == b.shape
