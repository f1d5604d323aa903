#!/usr/bin/env python3
"""Model predictive control with a frozen GRU: CasADi and IPOPT plan with its C code and its derivatives.

    build/release/examples/frozen_tank . && cc -O2 -march=native -fPIC -shared gru_step*.c -lm -o gru_step.so
    python3 -m pip install casadi numpy && python3 examples/freeze/mpc.py ./gru_step.so tank.safetensors

A tank follows a level. Its inflow depends on the valve through a GRU(2 -> 32) with a linear layer, learned from data:
the model's states are h [32] and the level p,

    y, h' = gru_step([u, p], h);  p' = p + dt y

LIBRARY is the frozen net as a shared library (exchange::freeze_casadi), whose function `gru_step` takes x [2] and h
[32]; WEIGHTS holds its parameters (safetensors, by PyTorch's names), from which the same net is written in CasADi's own
language, and with --compiled as C that CasADi generates and compiles. All plan 20 steps by multiple shooting to IPOPT's
tolerance of 1e-8. The script fails unless all solves succeed and the plans agree to 1e-6 (l4casadi, which computes in
f32, is only reported). It prints iterations, times of solves, and times of one evaluation of the net and its Jacobian:
medians of interleaved repetitions.
"""
import argparse
import json
import statistics
import time

import casadi as ca
import numpy as np

STEPS, HIDDEN, DT = 20, 32, 0.25


def read_weights(path):
    """Returns the tensors of a safetensors file by name: a length of 8 bytes, JSON, then f32."""
    data = open(path, "rb").read()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    span = {name: [begin + k for k in t["data_offsets"]] for name, t in header.items()}
    return {name: np.frombuffer(data[slice(*span[name])], "<f4").reshape(t["shape"]) for name, t in header.items()}


def symbolic_step(weights, kind):
    """Returns the net in CasADi's language, of SX or MX, from PyTorch's parameters."""
    w = {name: ca.DM(np.asarray(value, dtype=float)) for name, value in weights.items()}
    x, h = kind.sym("x", 2), kind.sym("h", HIDDEN)
    i = w["gru.weight_ih_l0"] @ x + w["gru.bias_ih_l0"]
    s = w["gru.weight_hh_l0"] @ h + w["gru.bias_hh_l0"]
    sigmoid = lambda t: 1 / (1 + ca.exp(-t))
    r = sigmoid(i[:HIDDEN] + s[:HIDDEN])
    z = sigmoid(i[HIDDEN : 2 * HIDDEN] + s[HIDDEN : 2 * HIDDEN])
    n = ca.tanh(i[2 * HIDDEN :] + r * s[2 * HIDDEN :])
    h_next = n + z * (h - n)
    y = w["head.weight"] @ h_next + w["head.bias"]
    return ca.Function("symbolic_step", [x, h], [y, h_next], ["x", "h"], ["y", "h_next"])


def compiled(step, name):
    """Returns a function of CasADi with its first and second derivatives as C that CasADi writes and gcc compiles."""
    import subprocess

    x, h = step.mx_in()
    step = ca.Function(name, [x, h], step(x, h), step.name_in(), step.name_out())
    generator = ca.CodeGenerator(name + ".c")
    adjoint = step.reverse(1)
    for f in (step, step.jacobian(), adjoint, adjoint.jacobian()):
        generator.add(f)
    generator.generate()
    flags = ["-O2", "-march=native", "-fPIC", "-shared"]
    subprocess.run(["gcc", *flags, name + ".c", "-lm", "-o", name + ".so"], check=True)
    return ca.external(name, f"./{name}.so")


def planner(step, hessian, name):
    """Returns the solver of the planning problem, with bounds and the first guess that a start gives."""
    u = ca.MX.sym("u", STEPS)
    p = ca.MX.sym("p", STEPS + 1)
    h = ca.MX.sym("h", HIDDEN, STEPS + 1)
    start, level = ca.MX.sym("start", HIDDEN + 1), ca.MX.sym("level")
    gaps = [p[0] - start[0], h[:, 0] - start[1:]]
    cost = 0
    for t in range(STEPS):
        y, h_next = step(ca.vertcat(u[t], p[t]), h[:, t])
        gaps += [p[t] + DT * y - p[t + 1], h_next - h[:, t + 1]]
        change = u[t] - u[t - 1] if t > 0 else u[t]
        cost += (p[t + 1] - level) ** 2 + 0.01 * u[t] ** 2 + 0.1 * change**2
    unknown = ca.vertcat(u, p, ca.vec(h))
    problem = {"x": unknown, "p": ca.vertcat(start, level), "f": cost, "g": ca.vertcat(*gaps)}
    options = {
        "print_time": False,
        "ipopt": {"tol": 1e-8, "print_level": 0, "sb": "yes", "hessian_approximation": hessian, "max_iter": 1000},
    }
    return ca.nlpsol(name, "ipopt", problem, options)


def solve(solver, p0, level):
    """Returns the plan, the iterations, the seconds and IPOPT's verdict of one solve from a cold start."""
    n = STEPS + (STEPS + 1) * (1 + HIDDEN)
    bound = np.full(n, np.inf)
    bound[:STEPS] = 1
    guess = np.zeros(n)
    guess[STEPS : 2 * STEPS + 1] = p0
    parameters = np.concatenate([[p0], np.zeros(HIDDEN), [level]])
    begin = time.perf_counter()
    result = solver(x0=guess, lbx=-bound, ubx=bound, lbg=0, ubg=0, p=parameters)
    seconds = time.perf_counter() - begin
    stats = solver.stats()
    return np.asarray(result["x"]).ravel(), stats["iter_count"], seconds, stats["return_status"]


def timed(call, least=0.02):
    """Returns the seconds of one call, over enough calls to take `least` seconds."""
    n = 1
    while True:
        begin = time.perf_counter()
        for _ in range(n):
            call()
        seconds = time.perf_counter() - begin
        if seconds >= least:
            return seconds / n
        n *= 4


def evaluations(step):
    """Returns calls of the net and of its Jacobian without Python's cost per call: on CasADi's buffers."""

    def raw(f, inputs):
        buffer, run = f.buffer()
        kept = [np.ascontiguousarray(i, dtype=float) for i in inputs]
        everything = [buffer, kept]  # must live as long as the calls
        for i, value in enumerate(list(kept)):
            buffer.set_arg(i, memoryview(value))
        for i in range(f.n_out()):
            out = np.zeros(f.nnz_out(i))
            kept.append(out)
            buffer.set_res(i, memoryview(out))
        return lambda: (run(), everything)

    rng = np.random.default_rng(0)
    x, h = rng.normal(size=2), rng.uniform(-1, 1, HIDDEN)
    j = step.jacobian()
    return raw(step, [x, h]), raw(j, [x, h, np.zeros(max(j.nnz_in(2), 1)), np.zeros(max(j.nnz_in(3), 1))])


def with_l4casadi(weights):
    """Returns the net as l4casadi 2.0 runs it: TorchScript in f32, called from a shared library that l4casadi compiles for it."""
    import l4casadi
    import torch

    torch.set_num_threads(1)

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell, self.head = torch.nn.GRUCell(2, HIDDEN), torch.nn.Linear(HIDDEN, 1)
            state = {"cell." + n[4:].removesuffix("_l0"): v for n, v in weights.items() if n.startswith("gru.")}
            state |= {n: v for n, v in weights.items() if n.startswith("head.")}
            self.load_state_dict({n: torch.tensor(np.asarray(v)) for n, v in state.items()})

        def forward(self, row):
            h = self.cell(row[:, :2], row[:, 2:])
            return torch.cat([self.head(h), h], 1)

    net = l4casadi.L4CasADi(Step(), batched=True, name="l4casadi_step", device="cpu")
    x, h = ca.MX.sym("x", 2), ca.MX.sym("h", HIDDEN)
    y = net(ca.vertcat(x, h).T).T
    return ca.Function("l4casadi_step", [x, h], [y[0], y[1:]], ["x", "h"], ["y", "h_next"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("weights")
    parser.add_argument("--solves", type=int, default=5, help="repetitions, of which medians are printed")
    parser.add_argument("--compiled", action="store_true", help="also plan with C that CasADi generates, with gcc")
    parser.add_argument("--l4casadi", action="store_true", help="also plan with l4casadi")
    o = parser.parse_args()
    weights = read_weights(o.weights)
    frozen = ca.external("gru_step", o.library)
    expanded, symbolic = symbolic_step(weights, ca.SX), symbolic_step(weights, ca.MX)
    ways = {
        "frozen net": (frozen, "limited-memory"),
        "frozen net, exact Hessian": (frozen, "exact"),
        "CasADi SX": (expanded, "limited-memory"),
        "CasADi MX": (symbolic, "limited-memory"),
        "CasADi SX, exact Hessian": (expanded, "exact"),
        "CasADi MX, exact Hessian": (symbolic, "exact"),
    }
    if o.compiled:
        fast = compiled(symbolic, "generated_step")  # of SX it has 8 MB, for gcc to compile for minutes
        ways |= {"CasADi's C": (fast, "limited-memory"), "CasADi's C, exact Hessian": (fast, "exact")}
    if o.l4casadi:
        ways["l4casadi"] = (with_l4casadi(weights), "limited-memory")
    solvers = {way: planner(step, hessian, f"solver_{i}") for i, (way, (step, hessian)) in enumerate(ways.items())}
    starts = [(0.0, 0.5), (0.4, -0.3)]
    seconds = {way: [] for way in ways}
    iterations, plans, verdicts = {}, {}, {}
    for _ in range(o.solves):
        for way, solver in solvers.items():
            found = [solve(solver, *start) for start in starts]
            plans[way], iterations[way] = [f[0] for f in found], [f[1] for f in found]
            verdicts[way] = {f[3] for f in found}
            seconds[way].append(sum(f[2] for f in found) / len(found))
    gaps = {
        way: max(np.abs(mine - other).max() for mine, other in zip(plans["frozen net"], plans[way])) for way in ways
    }
    for way in ways:
        if way != "l4casadi":  # in f32
            assert verdicts[way] == {"Solve_Succeeded"}, f"{way}: {verdicts[way]}"
            assert gaps[way] < 1e-6, f"{way}: its plan differs by {gaps[way]}"
    calls = {way: evaluations(step) for way, (step, hessian) in ways.items() if hessian == "limited-memory"}
    costs = {way: [[], []] for way in calls}
    for _ in range(max(o.solves, 5)):
        for way, both in calls.items():
            for k, call in enumerate(both):
                costs[way][k].append(timed(call))
    print(f"{'':28}{'iterations':>12}{'solve [ms]':>12}{'net [us]':>10}{'Jacobian [us]':>15}")
    for way in ways:
        row = f"{way:28}{'/'.join(map(str, iterations[way])):>12}{1e3 * statistics.median(seconds[way]):12.1f}"
        if way in costs:
            row += "".join(f"{1e6 * statistics.median(c):{n}.2f}" for c, n in zip(costs[way], (10, 15)))
        print(row)
    worst = max(gap for way, gap in gaps.items() if way != "l4casadi")
    print(f"tolerance 1e-8: all solves succeeded; plans differ by at most {worst:.1e}")
    if o.l4casadi:
        print(f"l4casadi: {', '.join(verdicts['l4casadi'])}; its plans differ by {gaps['l4casadi']:.1e}")


if __name__ == "__main__":
    main()
