#!/usr/bin/env python3
"""Writes axis_functions.safetensors: what PyTorch gives for functions along an axis (running sums, sorts, choices, scatters),
their gradients and the gradients of these, in f64.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_axis_function_fixtures.py [FOLDER]

Case NAME holds the inputs NAME/in0, ... (floats f64, indices i64), the results NAME/out0, ..., and where the first result
has a gradient a cotangent NAME/cot, the gradients NAME/g0, ... of the float inputs, cotangents of these NAME/v0, ..., and
NAME/h00, NAME/h01, ...: the gradient of <v_j, g_j> with respect to input k under h<j><k>.
tests/golden/axis_functions_test.cpp has the counterpart of every case.
"""
import math
import pathlib
import sys

import torch
from safetensors.torch import save_file

torch.manual_seed(17)
INF, NAN = math.inf, math.nan


def r(*shape, low=-2.0, high=2.0):
    return (torch.rand(*shape) * (high - low) + low).float().double()


def t(*values):
    return torch.tensor(values, dtype=torch.float64)


def i(values):
    return torch.tensor(values, dtype=torch.int64)


ZEROS = t([2.0, 0.0, 3.0, 1.5], [0.0, 0.0, 5.0, 1.0], [0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 4.0, -1.0])
TIES = t([1.0, 3.0, 3.0, 2.0], [2.0, 2.0, 2.0, 2.0], [0.0, -0.0, 0.0, 1.0], [3.0, -2.0, -1.0, 3.0])
NANS = t([1.0, NAN, 3.0, 0.5], [NAN, NAN, 2.0, 2.0], [INF, -INF, NAN, INF])

CUMULATIVE = {
    "cumsum": (lambda a: a.cumsum(1), [r(3, 5)]), "cumsum_first": (lambda a: a.cumsum(0), [r(4, 3)]),
    "cumsum_middle": (lambda a: a.cumsum(-2), [r(2, 4, 3)]), "cumsum_long": (lambda a: a.cumsum(1), [r(2, 29)]),
    "cumsum_i64": (lambda a: a.cumsum(0), [i([3, -1, 4, 1])]),
    "cumprod": (lambda a: a.cumprod(1), [r(3, 5)]), "cumprod_first": (lambda a: a.cumprod(0), [r(4, 3)]),
    "cumprod_zeros": (lambda a: a.cumprod(1), [ZEROS]), "cumprod_zeros_first": (lambda a: a.cumprod(0), [ZEROS]),
    "cummax": (lambda a: a.cummax(1), [r(3, 7)]), "cummax_first": (lambda a: a.cummax(0), [r(5, 3)]),
    "cummax_ties": (lambda a: a.cummax(1), [TIES]), "cummax_nan": (lambda a: a.cummax(1), [NANS]),
    "cummin": (lambda a: a.cummin(1), [r(3, 7)]), "cummin_ties": (lambda a: a.cummin(0), [TIES]),
    "cummin_nan": (lambda a: a.cummin(1), [NANS]), "cummax_i64": (lambda a: a.cummax(0), [i([3, 7, 7, 1])]),
    "logcumsumexp": (lambda a: a.logcumsumexp(1), [r(3, 6)]), "logcumsumexp_first": (lambda a: a.logcumsumexp(0), [r(6, 2)]),
    "logcumsumexp_far": (lambda a: a.logcumsumexp(1), [t([800.0, -800.0, 801.0], [-800.0, 0.0, 5.0])]),
    "diff": (lambda a: a.diff(), [r(3, 5)]), "diff_twice": (lambda a: a.diff(n=2, dim=0), [r(5, 2)]),
    "diff_ends": (lambda a, b, c: a.diff(dim=1, prepend=b, append=c), [r(2, 3), r(2, 2), r(2, 1)]),
    "trapezoid": (lambda y: torch.trapezoid(y, dx=0.25, dim=0), [r(5, 3)]),
    "trapezoid_x": (lambda y, x: torch.trapezoid(y, x), [r(2, 5), r(5)]),
    "trapezoid_positions": (lambda y, x: torch.trapezoid(y, x, dim=1), [r(2, 5, 2), r(2, 5, 2)]),
    "cumulative_trapezoid": (lambda y: torch.cumulative_trapezoid(y, dx=2.0), [r(3, 6)]),
    "cumulative_trapezoid_x": (lambda y, x: torch.cumulative_trapezoid(y, x), [r(2, 5), r(2, 5)]),
}
LONG = r(2, 90)
ROUND = (r(2, 90) * 4).round()

SORTING = {
    "sort": (lambda a: a.sort(dim=1, stable=True), [r(3, 7)]),
    "sort_descending": (lambda a: a.sort(dim=0, descending=True, stable=True), [r(5, 3)]),
    "sort_ties": (lambda a: a.sort(dim=-1, stable=True), [TIES]),
    "sort_ties_descending": (lambda a: a.sort(dim=-1, descending=True, stable=True), [TIES]),
    "sort_nan": (lambda a: a.sort(dim=1, stable=True), [NANS]),
    "sort_nan_descending": (lambda a: a.sort(dim=1, descending=True, stable=True), [NANS]),
    "sort_long": (lambda a: a.sort(dim=1, stable=True), [ROUND]),
    "sort_long_descending": (lambda a: a.sort(dim=1, descending=True, stable=True), [ROUND]),
    "sort_i64": (lambda a: a.sort(dim=0, stable=True), [i([3, -1, 4, 1, -1])]),
    "argsort": (lambda a: a.argsort(dim=0, stable=True), [TIES]),
    "topk": (lambda a: a.topk(3, 1), [r(3, 7)]), "topk_first": (lambda a: a.topk(2, 0), [r(5, 3)]),
    "topk_smallest": (lambda a: a.topk(4, 1, largest=False), [LONG]), "topk_long": (lambda a: a.topk(40, 1), [LONG]),
    "topk_all": (lambda a: a.topk(5, 0), [r(5, 2)]), "topk_nan": (lambda a: a.detach().topk(2, 1)[0], [NANS]),
    "kthvalue": (lambda a: a.kthvalue(3, 1), [r(3, 7)]), "kthvalue_keepdim": (lambda a: a.kthvalue(5, 0, True), [r(5, 3)]),
    "kthvalue_long": (lambda a: a.kthvalue(44, 1), [LONG]), "kthvalue_nan": (lambda a: a.kthvalue(3, 1)[0], [NANS]),
    "median": (lambda a: a.median(1), [r(3, 7)]), "median_even": (lambda a: a.median(0, True), [r(4, 3)]),
    "median_nan": (lambda a: a.median(1), [NANS]), "median_all": (lambda a: a.median(), [r(4, 3)]),
    "median_all_ties": (lambda a: a.median(), [TIES]), "median_i64": (lambda a: a.median(0)[0], [i([5, 3, 9, 3])]),
    **{f"quantile_{how}": (lambda a, q, how=how: a.quantile(q, 1, interpolation=how), [r(3, 6), t(0.0, 0.25, 0.5, 0.9, 1.0, 0.3)])
       for how in ["linear", "lower", "higher", "nearest", "midpoint"]},
    "quantile_scalar": (lambda a: a.quantile(0.35), [r(3, 5)]),
    "quantile_keepdim": (lambda a, q: a.quantile(q, 0, True), [r(5, 3), t(0.1, 0.8)]),
    "quantile_keepdim_all": (lambda a: a.quantile(0.6, keepdim=True), [r(2, 3)]),
    "quantile_nan": (lambda a: a.quantile(0.5, 1), [NANS]), "quantile_ties": (lambda a: a.quantile(0.4, 1), [TIES]),
    "searchsorted": (lambda s, v: torch.searchsorted(s.detach(), v.detach()), [t(1.0, 2.0, 2.0, 5.0), t([0.0, 2.0, 3.0], [5.0, 9.0, NAN])]),
    "searchsorted_right": (lambda s, v: torch.searchsorted(s.detach(), v.detach(), right=True), [t([1.0, 2.0, 2.0], [0.0, 0.0, 4.0]), t([2.0, 1.0], [0.0, 5.0])]),
    "searchsorted_i64": (lambda s, v: torch.searchsorted(s, v), [i([1, 4, 9]), i([4, 10, -3])]),
    "bucketize": (lambda v, b: torch.bucketize(v.detach(), b.detach()), [r(2, 5), t(-1.0, 0.0, 0.5)]),
    "bucketize_right": (lambda v, b: torch.bucketize(v.detach(), b.detach(), right=True), [t(0.0, 0.5, -1.0), t(-1.0, 0.0, 0.5)]),
    "histc": (lambda a: a.detach().histc(5, -1, 1.5), [r(4, 9)]), "histc_range": (lambda a: a.detach().histc(4), [r(30)]),
    "histc_one_value": (lambda a: a.detach().histc(3), [t(2.0, 2.0)]),
    "histc_ends": (lambda a: a.detach().histc(4, 0, 2), [t(0.0, 0.5, 1.0, 2.0, 2.5, -0.5, 1.5)]),
    "bincount": (torch.bincount, [i([0, 3, 3, 1])]), "bincount_weights": (lambda n, w: n.bincount(w.detach(), minlength=6), [i([0, 3, 3, 1]), r(4)]),
    "unique": (lambda a: a.detach().unique(return_inverse=True, return_counts=True), [TIES]),
    "unique_nan": (lambda a: a.detach().unique(return_inverse=True, return_counts=True)[0], [NANS]),
    "unique_consecutive": (lambda a: a.detach().unique_consecutive(return_inverse=True, return_counts=True), [TIES]),
}

TWICE = i([[0, 2, 2, 0], [1, 1, 0, 2]])  # two for one place in the first and last column
ONCE = i([[0, 2, 1, 0], [1, 1, 0, 2]])
ROWS = i([2, 0, 2])


def reduced(how, include_self=True):
    return lambda a, n, s: a.scatter_reduce(0, n, s, how, include_self=include_self)


SCATTER = {
    "take_along_axis": (lambda a, n: torch.take_along_dim(a, n, 1), [r(3, 4), i([[0, 0], [3, 1], [2, 2]])]),
    "take_along_axis_broadcast": (lambda a, n: torch.take_along_dim(a, n, 1), [r(2, 4, 3), i([[[3], [0]]])]),
    "take": (torch.take, [r(3, 4), i([[0, -1], [5, 5]])]),
    "scatter": (lambda a, n, s: a.scatter(0, n, s), [r(3, 4), ONCE, r(2, 4)]),
    "scatter_last": (lambda a, n, s: a.scatter(1, n, s), [r(2, 4), i([[3, 0], [1, 2]]), r(2, 2)]),
    "scatter_value": (lambda a, n: a.scatter(0, n, 2.5), [r(3, 4), TWICE]),
    **{f"scatter_{how}{'' if own else '_alone'}": (reduced(how, own), [r(3, 4), TWICE, r(2, 4)])
       for how in ["sum", "prod", "mean", "amax", "amin"] for own in [True, False]},
    # With include_self=False PyTorch counts x's element among the equal ones, and loses its share of the gradient; ours
    # does not (tests/tensor/axis_functions_test.cpp).
    **{f"scatter_{how}_ties": (reduced(how), [TIES[:3], TWICE, TIES[1:3]]) for how in ["amax", "amin"]},
    "scatter_mean_last": (lambda a, n, s: a.scatter_reduce(1, n, s, "mean"), [r(2, 3), i([[0, 0, 1], [2, 2, 2]]), r(2, 3)]),
    "scatter_sum_i64": (reduced("sum"), [i([[1, 2]]), i([[0, 0], [0, 0]]), i([[5, 6], [7, 8]])]),
    "scatter_wider_source": (lambda a, n, s: a.scatter_reduce(0, n, s[:2], "sum"), [r(3, 4), TWICE, r(3, 4)]),
    "index_add": (lambda a, n, s: a.index_add(0, n, s, alpha=-1.5), [r(3, 4), ROWS, r(3, 4)]),
    "index_add_last": (lambda a, n, s: a.index_add(1, n, s), [r(2, 4), ROWS, r(2, 3)]),
    "index_copy": (lambda a, n, s: a.index_copy(0, n, s), [r(3, 2), i([2, 0]), r(2, 2)]),
    "index_fill": (lambda a, n: a.index_fill(1, n, 0.5), [r(2, 4), ROWS]),
    "index_put": (lambda a, j, k, v: a.index_put((j, k), v), [r(3, 4), i([0, 2, 2]), i([1, -1, 0]), r(3)]),
    "index_put_rows": (lambda a, j, v: a.index_put((j,), v), [r(3, 4), i([0, -1]), r(4)]),
    "index_put_accumulate": (lambda a, j, k, v: a.index_put((j, k), v, accumulate=True), [r(3, 4, 2), i([[0], [2]]), i([1, 1]), r(2, 2, 2)]),
    "index_at": (lambda a, n: a[n], [r(3, 4), ROWS]),
    "index_at_pairs": (lambda a, j, k: a[:, j, k], [r(2, 3, 4), i([[0], [2]]), i([1, -1])]),
    "nonzero": (lambda a: a.detach().nonzero(), [ZEROS]), "nonzero_size": (lambda a: torch.nonzero_static(a.detach(), size=20), [ZEROS]),
    "masked_select": (lambda a: a.masked_select(torch.tensor([True, False, True, True])), [r(3, 4)]),
    "masked_scatter": (lambda a, s: a.masked_scatter(torch.tensor([True, False, True, True]), s), [r(3, 4), r(11)]),
}
CASES = {**CUMULATIVE, **SORTING, **SCATTER}


def case(name, f, inputs):
    """All tensors of a case, by name."""
    inputs = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    outs = f(*inputs)
    outs = [outs] if isinstance(outs, torch.Tensor) else list(outs)
    found = {f"{name}/in{k}": x for k, x in enumerate(inputs)} | {f"{name}/out{k}": y for k, y in enumerate(outs)}
    if outs[0].requires_grad:
        floats = [(k, x) for k, x in enumerate(inputs) if x.requires_grad]
        wrt = [x for _, x in floats]
        cotangent = torch.randn_like(outs[0]).float().double()
        found[f"{name}/cot"] = cotangent
        grads = torch.autograd.grad(outs[0], wrt, cotangent, create_graph=True, materialize_grads=True)
        for (j, _), g in zip(floats, grads):
            v = torch.randn_like(g).float().double()
            found[f"{name}/g{j}"], found[f"{name}/v{j}"] = g, v
            second = [torch.zeros_like(x) for x in wrt]
            if g.requires_grad:
                second = torch.autograd.grad(g, wrt, v, retain_graph=True, materialize_grads=True)
            for (k, _), h in zip(floats, second):
                if h.abs().max() > 0:  # otherwise there is none: zeros
                    found[f"{name}/h{j}{k}"] = h
    return {key: x.detach().clone().contiguous() for key, x in found.items()}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    tensors = {}
    for name, (f, inputs) in CASES.items():
        tensors |= case(name, f, inputs)
    save_file(tensors, folder / "axis_functions.safetensors", {"torch": torch.__version__})
    print(len(CASES), "cases")


if __name__ == "__main__":
    main()
