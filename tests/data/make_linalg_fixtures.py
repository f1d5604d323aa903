#!/usr/bin/env python3
"""Writes linalg.safetensors: what PyTorch gives for functions of small matrices, in f64 on values that f32 holds.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_linalg_fixtures.py [FOLDER]

twice.py says what a case holds. tests/golden/linalg_test.cpp has the counterpart of every case. Symmetric matrices are
made inside, (A + A^T) / 2, where torch would read one triangle alone.
"""
import pathlib
import sys

import torch

import twice

torch.manual_seed(29)
L = torch.linalg


def r(*shape, low=-1.0, high=1.0):
    return (torch.rand(*shape) * (high - low) + low).float().double()


def square(*shape):
    """Well conditioned."""
    return (r(*shape) + 2 * torch.eye(shape[-1]).double()).float().double()


def positive(*shape):
    a = r(*shape)
    return (a @ a.mT + 0.5 * torch.eye(shape[-1]).double()).float().double()


def apart(*shape):
    """With eigenvalues that differ."""
    return (0.3 * r(*shape) + torch.diag(torch.arange(1.0, shape[-1] + 1))).float().double()


def sym(a):
    return (a + a.mT) / 2


def signed(v):
    """Eigenvectors whose largest element is positive."""
    largest = v.gather(-2, v.abs().argmax(-2, keepdim=True))
    return v * largest.sign().detach()


def ill(n):
    """Hilbert's matrix."""
    i = torch.arange(n).double()
    return (1 / (i[:, None] + i[None, :] + 1)).float().double()


def both(a, b):
    return torch.cat([a.flatten(), b.flatten()])


CASES = {
    "cholesky": (lambda a: L.cholesky(sym(a)), [positive(4, 4)]), "cholesky_upper": (lambda a: L.cholesky(sym(a), upper=True), [positive(3, 3)]),
    "cholesky_batch": (lambda a: L.cholesky(sym(a)), [positive(2, 2, 3, 3)]), "cholesky_one": (lambda a: L.cholesky(sym(a)), [positive(1, 1)]),
    "cholesky_8": (lambda a: L.cholesky(sym(a)), [positive(8, 8)]),
    "qr": (lambda a: both(*L.qr(a)), [square(3, 3)]), "qr_tall": (lambda a: both(*L.qr(a)), [r(5, 3)]),
    "qr_wide": (lambda a: both(*L.qr(a)), [r(3, 5)]), "qr_batch": (lambda a: both(*L.qr(a)), [r(2, 4, 2)]),
    "qr_q_alone": (lambda a: L.qr(a)[0], [r(4, 3)]), "qr_r_alone": (lambda a: L.qr(a)[1], [r(4, 3)]), "qr_9": (lambda a: both(*L.qr(a)), [square(9, 9)]),
    "eigh": (lambda a: (lambda w, v: both(w, signed(v)))(*L.eigh(sym(a))), [apart(4, 4)]),
    "eigh_batch": (lambda a: (lambda w, v: both(w, signed(v)))(*L.eigh(sym(a))), [apart(2, 3, 3)]),
    "eigh_function": (lambda a: (lambda w, v: v @ torch.diag_embed(w.exp()) @ v.mT)(*L.eigh(sym(a))), [apart(5, 5)]),
    "eigh_vectors": (lambda a: signed(L.eigh(sym(a))[1]), [apart(3, 3)]), "eigvalsh": (lambda a: L.eigvalsh(sym(a)), [apart(6, 6)]),
    "solve": (L.solve, [square(3, 3), r(3, 2)]), "solve_vector": (L.solve, [square(4, 4), r(4)]),
    "solve_batch_of_vectors": (L.solve, [square(2, 3, 3), r(2, 3)]), "solve_broadcast": (L.solve, [square(2, 1, 3, 3), r(4, 3, 2)]),
    "solve_7": (L.solve, [square(7, 7), r(7, 5)]),
    "triangular_lower": (lambda a, b: L.solve_triangular(a, b, upper=False), [square(3, 3), r(3, 2)]),
    "triangular_upper": (lambda a, b: L.solve_triangular(a, b, upper=True), [square(4, 4), r(4, 3)]),
    "triangular_right": (lambda a, b: L.solve_triangular(a, b, upper=True, left=False), [square(3, 3), r(2, 3)]),
    "triangular_right_lower": (lambda a, b: L.solve_triangular(a, b, upper=False, left=False), [square(3, 3), r(2, 3)]),
    "triangular_unit": (lambda a, b: L.solve_triangular(a, b, upper=False, unitriangular=True), [square(3, 3), r(3, 2)]),
    "triangular_right_unit": (lambda a, b: L.solve_triangular(a, b, upper=False, left=False, unitriangular=True), [square(3, 3), r(1, 3)]),
    "triangular_broadcast": (lambda a, b: L.solve_triangular(a, b, upper=True), [square(3, 3), r(2, 3, 1)]),
    "inverse": (L.inv, [square(3, 3)]), "inverse_batch": (L.inv, [square(2, 2, 2, 2)]), "inverse_one": (L.inv, [square(1, 1)]),
    "inverse_8": (L.inv, [square(8, 8)]), "inverse_ill": (lambda a: L.inv(a) * 1e-4, [ill(4)]),
    "lstsq": (lambda a, b: L.lstsq(a, b).solution, [r(5, 3), r(5, 2)]), "lstsq_square": (lambda a, b: L.lstsq(a, b).solution, [square(3, 3), r(3, 1)]),
    "lstsq_wide": (lambda a, b: a.mT @ L.solve(a @ a.mT, b), [r(2, 4), r(2, 3)]), "lstsq_batch": (lambda a, b: L.lstsq(a, b).solution, [r(2, 4, 2), r(2, 4, 1)]),
    "det": (L.det, [square(3, 3)]), "det_batch": (L.det, [r(2, 3, 2, 2)]), "det_6": (L.det, [square(6, 6)]), "det_one": (L.det, [r(1, 1)]),
    "slogdet": (lambda a: L.slogdet(a)[1], [square(3, 3)]), "slogdet_batch": (lambda a: L.slogdet(a)[1] * L.slogdet(a)[0], [r(4, 3, 3)]),
    "power_3": (lambda a: L.matrix_power(a, 3), [r(3, 3)]),
    "power_minus_2": (lambda a: L.matrix_power(a, -2), [square(3, 3)]), "power_7": (lambda a: L.matrix_power(a, 7), [r(2, 2, 2)]),
    "norm_frobenius": (lambda a: L.matrix_norm(a), [r(2, 3, 4)]), "norm_one": (lambda a: L.matrix_norm(a, 1) ** 2, [r(2, 3, 4)]),
    "norm_minus_one": (lambda a: L.matrix_norm(a, -1) ** 2, [r(3, 4)]), "norm_infinity": (lambda a: L.matrix_norm(a, float("inf")) ** 2, [r(2, 3, 4)]),
    "norm_minus_infinity": (lambda a: L.matrix_norm(a, -float("inf"), keepdim=True) ** 2, [r(2, 3, 4)]),
}


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    twice.write(folder / "linalg.safetensors", CASES)
