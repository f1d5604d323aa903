#!/usr/bin/env python3
"""Compares a frozen net in CasADi with the same net in CasADi's own language: values, Jacobian, adjoint and Hessian.

    python3 tests/exchange/check_casadi.py LIBRARY WEIGHTS

LIBRARY and WEIGHTS are those of examples/freeze/mpc.py: the GRU(2 -> 32) with a linear layer of
examples/freeze/tank.cpp.
"""
import pathlib
import sys

import casadi as ca
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples" / "freeze"))
import mpc


def gap(a, b):
    return max(float(ca.norm_inf(ca.vec(ca.densify(p) - ca.densify(q)))) for p, q in zip(a, b))


def main():
    library, weights = sys.argv[1:]
    frozen = ca.external("gru_step", library)
    own = mpc.symbolic_step(mpc.read_weights(weights), ca.SX)
    rng = np.random.default_rng(3)
    families = {
        "values": (frozen, own),
        "jacobian": (frozen.jacobian(), own.jacobian()),
        "adjoint": (frozen.reverse(1), own.reverse(1)),
        "hessian": (frozen.reverse(1).jacobian(), own.reverse(1).jacobian()),
    }
    for name, (f, g) in families.items():
        worst = 0
        for _ in range(10):
            inputs = [
                rng.uniform(-1, 1, g.size_in(i)) if g.nnz_in(i) else ca.DM(*g.size_in(i)) for i in range(g.n_in())
            ]
            worst = max(worst, gap(f.call(inputs), g.call(inputs)))
        print(f"{name}: {worst:.1e}")
        assert worst < 1e-14, name
    x, h = rng.normal(size=2), rng.uniform(-1, 1, mpc.HIDDEN)
    step, j = 1e-6, frozen.jacobian()(x, h, 0, 0)[3]
    for k in range(mpc.HIDDEN):
        e = step * np.eye(mpc.HIDDEN)[k]
        column = (frozen(x, h + e)[1] - frozen(x, h - e)[1]) / (2 * step)
        assert float(ca.norm_inf(column - j[:, k])) < 1e-8
    left_out = frozen(x=x)
    assert gap([left_out["y"]], [own(x, ca.DM.zeros(mpc.HIDDEN))[0]]) < 1e-14
    many = [ca.DM(rng.normal(size=(2, 64))), ca.DM(rng.uniform(-1, 1, (mpc.HIDDEN, 64)))]
    assert gap(frozen.map(64, "thread", 2).call(many), own.map(64).call(many)) < 1e-14
    print("finite differences, inputs left out, and two threads: as CasADi's own")


if __name__ == "__main__":
    main()
