#!/usr/bin/env python3
"""Writes elementwise.safetensors, PyTorch's activations, norms and rearrangements, and math.safetensors, its elementwise
functions, with their first and second derivatives, in f64 on values that f32 holds.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_elementwise_fixtures.py [FOLDER]

Case FAMILY.NAME holds in0, in1, ... (f64, or what the function takes), `out` (several results: flattened and joined), `g`
and `h`: the gradients of sum(c out) with respect to the inputs that are floats, and those of sum(v_k g_k), with respect
to the same inputs and to c; both flattened and joined. c = weights(numel, 7, 11), v_k = weights(numel, 5, 9 + k).
tests/golden/elementwise_cases.h has the same weights.
Cases at kinks, where
the second derivative is not defined, and functions that PyTorch differentiates once have no `h`.
"""
import math
import pathlib
import sys

import torch
import torch.nn.functional as F

from reference import save_file

torch.manual_seed(17)
INF, NAN = math.inf, math.nan


def r(*shape, low=-2.0, high=2.0):
    return (torch.rand(shape) * (high - low) + low).float().double()


def v(*values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


def i(values, dtype=torch.int64):
    return torch.tensor(values, dtype=dtype)


def joined(*tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


def weights(n, step, period):
    return torch.tensor([((k * step + 3) % period - period // 2) / 8 for k in range(n)], dtype=torch.float64)


def hardsigmoid(a):
    """PyTorch's own has the gradient 1 / 6 rounded to f32."""
    return F.relu6(a + 3) / 6


A, B = r(3, 4), r(3, 4)
KINKS = v(-3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0, 6.0, NAN)
FAR = v(-INF, -200.0, 200.0, INF)

ACTIVATIONS = {
    "leaky_relu": (F.leaky_relu, (), {}), "leaky_relu_slope": (F.leaky_relu, (), {"negative_slope": -0.3}),
    "elu": (F.elu, (), {}), "elu_alpha": (F.elu, (), {"alpha": 0.7}), "selu": (F.selu, (), {}),
    "celu": (F.celu, (), {}), "celu_alpha": (F.celu, (), {"alpha": 0.5}), "rrelu": (F.rrelu, (), {}),
    "hardtanh": (F.hardtanh, (), {}), "hardtanh_bounds": (F.hardtanh, (-0.5, 3.0), {}), "relu6": (F.relu6, (), {}),
    "hardsigmoid": (hardsigmoid, (), {}), "hardswish": (F.hardswish, (), {}), "mish": (F.mish, (), {}),
    "softshrink": (F.softshrink, (), {}), "softshrink_lambda": (F.softshrink, (1.0,), {}),
    "hardshrink": (F.hardshrink, (), {}), "hardshrink_lambda": (F.hardshrink, (1.0,), {}),
    "tanhshrink": (F.tanhshrink, (), {}), "threshold": (F.threshold, (0.5, -3.0), {}),
    "softmin": (F.softmin, (), {"dim": -1}), "glu": (F.glu, (), {}),
}

CASES = {}
for name, (f, args, options) in ACTIVATIONS.items():
    whole = lambda a, f=f, args=args, options=options: f(a, *args, **options)
    CASES["activations." + name] = (whole, [r(3, 4, low=-7, high=7)])
    if name not in ("softmin", "glu"):
        CASES["activations." + name + "_kinks"] = (whole, [KINKS], False)
        if name not in ("mish", "hardswish"):  # PyTorch has NaN there
            CASES["activations." + name + "_far"] = (whole, [FAR], False)
CASES |= {
    "activations.glu_axis0": (lambda a: F.glu(a, 0), [r(4, 3)]), "activations.softmin_axis0": (lambda a: F.softmin(a, 0), [A]),
    "activations.prelu": (F.prelu, [r(2, 3, 2), r(3)]), "activations.prelu_one": (F.prelu, [A, r(1)]),
    "activations.prelu_vector": (F.prelu, [r(4), r(1)]), "activations.prelu_matrix": (F.prelu, [A, r(4)]),
}

X3 = r(2, 3, 4)
ZERO_ROW = torch.cat([torch.zeros(1, 4).double(), r(2, 4)])
TIES = v(1.0, -2.0, 2.0, 0.0, 0.0, 0.0, -1.0, 1.0, 1.0).reshape(3, 3)
HOLES = v(1.0, NAN, 2.0, NAN, NAN, NAN, 0.0, 3.0, -1.0).reshape(3, 3)
norm = torch.linalg.vector_norm
for text, p in {"2": 2, "1": 1, "0": 0, "inf": INF, "minus_inf": -INF, "3": 3, "1_5": 1.5, "0_5": 0.5, "minus_2": -2}.items():
    CASES["norms.norm_" + text] = (lambda a, p=p: norm(a, p, (1,)), [X3], p != 0)
    CASES["norms.norm_keepdim_" + text] = (lambda a, p=p: norm(a, p, (0, 2), keepdim=True), [X3], p != 0)
    CASES["norms.norm_all_" + text] = (lambda a, p=p: norm(a, p), [A], p != 0)
    if p >= 0:
        CASES["norms.norm_zeros_" + text] = (lambda a, p=p: norm(a, p, (1,)), [ZERO_ROW], False)
        CASES["norms.norm_ties_" + text] = (lambda a, p=p: norm(a, p, (1,)), [TIES], False)
CASES |= {
    "norms.stddev": (lambda a: a.std(1), [X3]), "norms.stddev_biased": (lambda a: a.std((0, 2), correction=0, keepdim=True), [X3]),
    "norms.stddev_equal": (lambda a: a.std(1), [ZERO_ROW], False), "norms.stddev_correction": (lambda a: a.std(1, correction=2.5), [A]),
    "norms.normalize": (F.normalize, [A]), "norms.normalize_p1": (lambda a: F.normalize(a, p=1, dim=0), [A]),
    "norms.normalize_p3": (lambda a: F.normalize(a, p=3.0, dim=-1), [X3]),
    "norms.normalize_inf": (lambda a: F.normalize(a, p=INF, dim=1), [A]),
    "norms.normalize_epsilon": (lambda a: F.normalize(a, eps=3.0), [r(3, 4)]),
    "norms.normalize_zero": (F.normalize, [ZERO_ROW], False),
    "norms.cosine_similarity": (F.cosine_similarity, [A, B]), "norms.cosine_similarity_axis0": (lambda a, b: F.cosine_similarity(a, b, 0), [A, B]),
    "norms.cosine_similarity_broadcast": (lambda a, b: F.cosine_similarity(a, b, -1), [X3, r(1, 4)]),
    "norms.cosine_similarity_rows": (lambda a, b: F.cosine_similarity(a, b, 0), [r(3, 2), r(1, 2)]),
    "norms.cosine_similarity_zero": (F.cosine_similarity, [ZERO_ROW, B], False),
    "norms.pairwise_distance": (F.pairwise_distance, [A, B]), "norms.pairwise_distance_p1": (lambda a, b: F.pairwise_distance(a, b, p=1.0), [A, B]),
    "norms.pairwise_distance_keepdim": (lambda a, b: F.pairwise_distance(a, b, p=3.0, eps=0.5, keepdim=True), [X3, r(4)]),
    "norms.pairwise_distance_inf": (lambda a, b: F.pairwise_distance(a, b, p=INF), [A, B]),
    "norms.cdist_2": (torch.cdist, [r(3, 4), r(2, 4)]), "norms.cdist_1": (lambda a, b: torch.cdist(a, b, p=1.0), [r(3, 4), r(2, 4)], False),
    "norms.cdist_3": (lambda a, b: torch.cdist(a, b, p=3.0), [r(3, 4), r(2, 4)], False),
    "norms.cdist_inf": (lambda a, b: torch.cdist(a, b, p=INF), [r(3, 4), r(2, 4)], False),
    "norms.cdist_0": (lambda a, b: torch.cdist(a, b, p=0.0), [r(3, 4), r(2, 4)], False),
    "norms.cdist_batches": (torch.cdist, [r(2, 1, 3, 2), r(3, 2, 2)]), "norms.cdist_same": (torch.cdist, [ZERO_ROW, ZERO_ROW[:2]], False),
    "norms.nansum": (lambda a: a.nansum(1), [HOLES]), "norms.nansum_all": (torch.nansum, [HOLES]),
    "norms.nanmean": (lambda a: a.nanmean(1), [HOLES[::2]]), "norms.nanmean_keepdim": (lambda a: a.nanmean((0, 1), keepdim=True), [HOLES]),
    "norms.any": (lambda a: a.any(1).double(), [HOLES]), "norms.all": (lambda a: a.all(1).double(), [HOLES]),
    "norms.any_all": (lambda a: joined(a.any().double(), a.all().double()), [i([0, 0, 3])]),
    "norms.count_nonzero": (lambda a: a.count_nonzero(0).double(), [TIES]),
    "norms.aminmax": (lambda a: joined(*torch.aminmax(a, dim=1)), [r(3, 5)]),
    "norms.aminmax_all": (lambda a: joined(*torch.aminmax(a)), [TIES], False),
}

CASES |= {
    "shapes.tril": (torch.tril, [A]), "shapes.tril_above": (lambda a: a.tril(1), [X3]), "shapes.tril_below": (lambda a: a.tril(-2), [A]),
    "shapes.triu": (torch.triu, [A]), "shapes.triu_above": (lambda a: a.triu(2), [X3]), "shapes.triu_below": (lambda a: a.triu(-1), [A]),
    "shapes.diagonal": (torch.diagonal, [A]), "shapes.diagonal_above": (lambda a: a.diagonal(2), [A]),
    "shapes.diagonal_below": (lambda a: a.diagonal(-1, -1, 0), [X3]), "shapes.diagonal_axes": (lambda a: a.diagonal(1, 2, 1), [X3]),
    "shapes.diag_embed": (torch.diag_embed, [A]), "shapes.diag_embed_above": (lambda a: torch.diag_embed(a, 1, 0, 2), [r(2, 3)]),
    "shapes.diag_embed_below": (lambda a: torch.diag_embed(a, -2, 2, 1), [r(2, 3)]),
    "shapes.diag_vector": (lambda a: a.diag(1), [r(3)]), "shapes.diag_matrix": (lambda a: a.diag(-1), [A]),
    "shapes.trace": (torch.trace, [A]), "shapes.roll": (lambda a: a.roll(2), [A]), "shapes.roll_axes": (lambda a: a.roll((-1, 5), (0, 1)), [A]),
    "shapes.roll_twice": (lambda a: a.roll((1, 1), (1, 1)), [A]), "shapes.rot90": (torch.rot90, [A]),
    "shapes.rot90_back": (lambda a: a.rot90(-1, (2, 0)), [X3]), "shapes.rot90_half": (lambda a: a.rot90(2), [A]),
    "shapes.tile": (lambda a: a.tile(2, 3), [r(2, 2)]), "shapes.tile_last": (lambda a: a.tile(2), [A]),
    "shapes.tile_leading": (lambda a: a.tile(2, 1, 2), [r(2, 2)]), "shapes.repeat": (lambda a: a.repeat(2, 1, 2), [r(2, 2)]),
    "shapes.repeat_interleave": (lambda a: a.repeat_interleave(2), [r(2, 2)]),
    "shapes.repeat_interleave_axis": (lambda a: a.repeat_interleave(3, 1), [A]),
    "shapes.repeat_interleave_counts": (lambda a: a.repeat_interleave(i([2, 0, 1]), 0), [A]),
    "shapes.meshgrid": (lambda a, b: joined(*torch.meshgrid(a, b, indexing="ij")), [r(2), r(3)]),
    "shapes.meshgrid_xy": (lambda a, b, c: joined(*torch.meshgrid(a, b, c, indexing="xy")), [r(2), r(3), r(2)]),
    "shapes.masked_fill": (lambda a, m: a.masked_fill(m, 2.5), [A, i([True, False, False, True], torch.bool)]),
    "shapes.masked_fill_tensor": (lambda a, m, x: a.masked_fill(m, x), [A, i([[True], [False], [True]], torch.bool), r()]),
    "shapes.movedim": (lambda a: a.movedim((0, 2), (2, 1)), [X3]), "shapes.swapaxes": (lambda a: a.swapaxes(0, 2), [X3]),
    "shapes.unflatten": (lambda a: a.unflatten(1, (2, -1)), [A]),
    "shapes.broadcast_tensors": (lambda a, b: joined(*torch.broadcast_tensors(a, b)), [r(3, 1), r(2)]),
    "shapes.atleast_1d": (torch.atleast_1d, [r()]), "shapes.atleast_2d": (torch.atleast_2d, [r(3)]),
    "shapes.atleast_3d": (torch.atleast_3d, [r(3)]), "shapes.atleast_3d_matrix": (torch.atleast_3d, [A]),
    "shapes.hstack": (lambda a, b: torch.hstack([a, b]), [A, r(3, 1)]), "shapes.hstack_vectors": (lambda a, b: torch.hstack([a, b]), [r(3), r(2)]),
    "shapes.vstack": (lambda a, b: torch.vstack([a, b]), [A, r(4)]),
    "shapes.tensordot": (torch.tensordot, [r(2, 3, 2), r(3, 2, 4)]),
    "shapes.tensordot_0": (lambda a, b: torch.tensordot(a, b, 0), [r(2), r(3)]),
    "shapes.tensordot_axes": (lambda a, b: torch.tensordot(a, b, ([2, 0], [0, 1])), [r(2, 3, 4), r(4, 2, 3)]),
    "shapes.outer": (torch.outer, [r(3), r(2)]), "shapes.bmm": (torch.bmm, [r(2, 3, 4), r(2, 4, 2)]), "shapes.mv": (torch.mv, [A, r(4)]),
    "shapes.dot": (torch.dot, [r(5), r(5)]), "shapes.cross": (torch.linalg.cross, [r(2, 3), r(2, 3)]),
    "shapes.cross_axis0": (lambda a, b: torch.linalg.cross(a, b, dim=0), [r(3, 2), r(3, 1)]), "shapes.kron": (torch.kron, [r(2, 3), r(2, 2)]),
    "shapes.kron_ranks": (torch.kron, [r(2, 1, 2), r(3)]), "shapes.vander": (lambda a: torch.linalg.vander(a).flip(1), [r(3)]),
    "shapes.vander_increasing": (lambda a: torch.linalg.vander(a, N=4), [v(0.0, -1.5, 2.0)], False),
}
EQUATIONS = {
    "matmul": ("ij,jk->ik", [r(2, 3), r(3, 4)]), "batched": ("bij,bjk->bik", [r(2, 3, 2), r(2, 2, 3)]), "diagonal": ("ii->i", [r(3, 3)]),
    "trace": ("ii", [r(3, 3)]), "transpose": ("ji", [r(2, 3)]), "sum": ("ij->", [r(2, 3)]), "outer": ("i,j->ji", [r(2), r(3)]),
    "dot": ("i,i", [r(4), r(4)]), "implied": ("bA,Ac", [r(2, 3), r(3, 2)]), "ellipsis": ("...ij,...jk->...ik", [r(2, 1, 2, 3), r(4, 3, 2)]),
    "ellipsis_implied": ("i...,...j", [r(2, 3), r(3, 2)]), "ellipsis_summed": ("...i->i", [r(2, 3, 2)]),
    "chain": ("ij,jk,kl->il", [r(2, 3), r(3, 2), r(2, 2)]), "bilinear": ("bn,anm,bm->ba", [r(2, 3), r(2, 3, 2), r(2, 2)]),
    "repeated": ("iji,jk->kj", [r(2, 3, 2), r(3, 2)]), "attention": ("bhqd,bhkd->bhqk", [r(2, 2, 3, 2), r(2, 2, 2, 2)]),
    "hadamard": ("ij,ij->ij", [r(2, 3), r(2, 3)]), "extent_1": ("ij,ij->ij", [r(2, 3), r(1, 3)]), "scalar": (",i->i", [r(), r(3)]),
    "alone": ("ij,k->i", [r(2, 3), r(4)]), "blanks": (" i j , j -> i ", [r(2, 3), r(3)]), "empty": ("ij,jk->ik", [r(2, 0), r(0, 3)]),
}
for name, (equation, inputs) in EQUATIONS.items():
    CASES["shapes.einsum_" + name] = (lambda *a, e=equation: torch.einsum(e, *a), inputs)


MATH = {}
INSIDE, ABOVE, ANY = r(3, 4, low=-0.95, high=0.95), r(3, 4, low=1.1, high=9), r(3, 4, low=-4, high=4)
ENDS = v(-INF, -3.0, -1.0, -0.0, 0.0, 1.0, 2.0, INF, NAN)
UNARY = {
    "tan": (torch.tan, INSIDE), "asin": (torch.asin, INSIDE), "acos": (torch.acos, INSIDE), "atan": (torch.atan, ANY),
    "sinh": (torch.sinh, ANY), "cosh": (torch.cosh, ANY), "asinh": (torch.asinh, ANY), "acosh": (torch.acosh, ABOVE),
    "atanh": (torch.atanh, INSIDE), "sinc": (torch.sinc, ANY), "floor": (torch.floor, ANY), "ceil": (torch.ceil, ANY),
    "round": (torch.round, ANY), "trunc": (torch.trunc, ANY), "frac": (torch.frac, ANY), "lgamma": (torch.lgamma, ANY),
    "digamma": (torch.digamma, ANY), "polygamma_1": (lambda a: torch.polygamma(1, a), ABOVE + 9),
    "polygamma_2": (lambda a: torch.polygamma(2, a), ABOVE), "polygamma_5": (lambda a: torch.polygamma(5, a), ABOVE),
    "erfc": (torch.erfc, ANY), "erfinv": (torch.erfinv, INSIDE), "logit": (torch.logit, (INSIDE + 1) / 2),
    "logit_epsilon": (lambda a: torch.logit(a, 0.25), ANY / 2), "log10": (torch.log10, ABOVE), "exp10": (lambda a: 10**a, ANY),
    "nan_to_num": (torch.nan_to_num, ANY), "nan_to_num_options": (lambda a: torch.nan_to_num(a, 1.0, 2.0, -3.0), ANY),
}
for name, (f, x) in UNARY.items():
    MATH["math." + name] = (f, [x])
    # Values alone where a slope there is a question of its own, or the function is periodic.
    smooth = name not in ("acosh", "atanh", "sinc", "lgamma", "digamma", "polygamma_1", "polygamma_2", "polygamma_5", "frac",
                          "logit", "logit_epsilon", "log10", "erfinv", "exp10", "tan")
    if not name.startswith("polygamma"):  # PyTorch is off by 1e-10 near 1 and misses poles below 0 and infinity
        MATH["math." + name + "_ends"] = (f, [ENDS], False) if smooth else (lambda a, f=f: f(a.detach()), [ENDS])
SIZES = v(5.0, -5.0, 5.0, -5.0, 1.0, 0.0, -0.0, 7.5, 0.3, INF, 2.0)
DIVISORS = v(3.0, 3.0, -3.0, -3.0, 0.1, 2.0, -2.0, INF, -INF, 2.0, 0.0)
BITS = i([5, -5, 12, 0, 1 << 40, -1])
OTHER = i([3, 6, -9, 7, 1 << 39, -1])
BINARY = {
    "atan2": torch.atan2, "hypot": torch.hypot, "fmod": torch.fmod, "remainder": torch.remainder, "logaddexp": torch.logaddexp,
    "logaddexp2": torch.logaddexp2, "copysign": torch.copysign,
}
for name, f in BINARY.items():
    MATH["math." + name] = (f, [ANY, r(4, low=0.5, high=3)])
    MATH["math." + name + "_signs"] = (f, [r(3, 1), r(4)])
for name in ("fmod", "remainder", "floor_divide"):
    f = getattr(torch, name)
    MATH["math." + name + "_values"] = (lambda a, b, f=f: f(a.detach(), b.detach()), [SIZES, DIVISORS])
    MATH["math." + name + "_integers"] = (lambda a, b, f=f: f(a, b).double(), [i([7, -7, 7, -7, 6, 0]), i([3, 3, -3, -3, 2, 5])])
MATH |= {
    "math.fmod_literal": (lambda a: torch.fmod(a, 1.5), [ANY]), "math.remainder_literal": (lambda a: torch.remainder(a, -1.5), [ANY]),
    "math.remainder_of_literal": (lambda a: torch.remainder(torch.tensor(2.0).double(), a), [r(5, low=0.5, high=3)]),
    "math.logaddexp_ties": (torch.logaddexp, [A, torch.where(B > 0, A, B)]),
    "math.logaddexp_infinite": (lambda a, b: torch.logaddexp(a.detach(), b.detach()), [v(INF, -INF, INF, -INF, 1, NAN), v(INF, -INF, 1, 2, -INF, 0)]),
    "math.logaddexp2_infinite": (lambda a, b: torch.logaddexp2(a.detach(), b.detach()), [v(INF, -INF, INF, -INF, 1, NAN), v(INF, -INF, 1, 2, -INF, 0)]),
    "math.copysign_zeros": (lambda a, b: 1 / torch.copysign(a.detach(), b.detach()), [v(0.0, 0.0, -0.0, 2.0, 2.0), v(1.0, -0.0, 0.0, -0.0, NAN)]),
    "math.copysign_at_zero": (torch.copysign, [v(0.0, -0.0, 3.0), v(-1.0, 1.0, -2.0)], False),
    "math.xlogy": (torch.xlogy, [ANY, r(3, 4, low=0.5, high=3)]),
    "math.xlogy_zeros": (lambda a, b: torch.xlogy(a, b.detach()), [v(0.0, 0.0, 0.0, 2.0), v(0.0, 2.0, -1.0, 3.0)], False),
    "math.lerp": (lambda a, b: torch.lerp(a, b, 0.25), [A, B]), "math.lerp_far": (lambda a, b: torch.lerp(a, b, 0.75), [A, B]),
    "math.lerp_tensor": (torch.lerp, [A, B, r(4, low=-0.5, high=1.5)]),
    "math.heaviside": (lambda a, b: torch.heaviside(a.detach(), b.detach()), [ENDS, v(0.5)]),
    "math.isnan": (lambda a: a.isnan().double(), [ENDS]), "math.isinf": (lambda a: a.isinf().double(), [ENDS]),
    "math.isfinite": (lambda a: a.isfinite().double(), [ENDS]),
    "math.isclose": (lambda a, b: torch.isclose(a, b).double(), [ENDS, torch.where(ENDS > 1, ENDS * (1 + 1e-6), ENDS)]),
    "math.isclose_nan": (lambda a, b: torch.isclose(a, b, 0.1, 0.5, equal_nan=True).double(), [ENDS, ENDS.roll(1)]),
    "math.isclose_integers": (lambda a, b: torch.isclose(a, b, 0.25, 0).double(), [i([4, 8, 9]), i([5, 9, 20])]),
    "math.logical_xor": (lambda a, b: torch.logical_xor(a, b).double(), [ENDS, v(0.0)]),
    "math.bitwise_and": (lambda a, b: (a & b).double(), [BITS, OTHER]), "math.bitwise_or": (lambda a, b: (a | b).double(), [BITS, OTHER]),
    "math.bitwise_xor": (lambda a, b: (a ^ b).double(), [BITS, OTHER]), "math.bitwise_not": (lambda a: (~a).double(), [BITS]),
    "math.bitwise_bool": (lambda a, b: torch.stack([a & b, a | b, a ^ b, ~a]).double(), [BITS > 0, OTHER > 0]),
    "math.bitwise_left_shift": (lambda a, b: (a << b).double(), [BITS, i([0, 1, 3, 70, 5, 62])]),
    "math.bitwise_right_shift": (lambda a, b: (a >> b).double(), [BITS, i([0, 1, 3, 70, 5, 62])]),
}


def record(tensors, name, f, inputs, twice=True):
    inputs = [t.clone().requires_grad_(t.is_floating_point()) for t in inputs]
    out = f(*inputs)
    for k, t in enumerate(inputs):
        tensors[f"{name}/in{k}"] = t
    tensors[f"{name}/out"] = out
    if not out.requires_grad:
        return
    floats = [t for t in inputs if t.requires_grad]
    cotangent = weights(out.numel(), 7, 11).reshape(out.shape).requires_grad_()
    grads = torch.autograd.grad(out, floats, cotangent, create_graph=twice, materialize_grads=True)
    tensors[f"{name}/g"] = joined(*grads)
    if not twice:
        return
    total = sum(x.sum() * 0 for x in floats) + sum((g * weights(g.numel(), 5, 9 + k).reshape(g.shape)).sum() for k, g in enumerate(grads))
    try:
        second = torch.autograd.grad(total, floats + [cotangent], materialize_grads=True)
    except RuntimeError as e:
        if "is not implemented" not in str(e):
            raise
        print(name, "has no second derivative in PyTorch")
        return
    tensors[f"{name}/h"] = joined(*second)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    for file, cases in (("elementwise", CASES), ("math", MATH)):
        tensors = {}
        for name, case in cases.items():
            record(tensors, name, *case)
        save_file({name: t.detach().clone().contiguous() for name, t in tensors.items()}, folder / (file + ".safetensors"),
                  {"torch": torch.__version__})
        print(len(cases), "cases")


if __name__ == "__main__":
    main()
