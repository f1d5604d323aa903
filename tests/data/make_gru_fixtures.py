#!/usr/bin/env python3
"""Writes gru.safetensors: what torch.nn.GRU gives, in f64 on values that f32 holds exactly.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_gru_fixtures.py [FOLDER]

Case NN holds NN/x [B, T, D], NN/h0 [B, H] (where an initial state is given), the parameters NN/w_ih [3H, D],
NN/w_hh [3H, H], NN/b_ih, NN/b_hh, the results NN/y [B, T, H] and NN/h_n [B, H], cotangents NN/cy and NN/ch, the
gradients NN/gx, NN/gh0, NN/gw_ih, ... of sum(y cy) + sum(h_n ch), and in some cases the directions NN/u_x,
NN/u_w_ih, ... with the gradients NN/d_x, NN/d_w_ih, ... of the sum of <g, u>: double backward. NN/y32, NN/h_n32, NN/gx32,
... are how far torch's own f32 is from these, in the metric of docs/numerics.md: [on this machine, with baseline
instructions, which do not fuse multiplication and addition]. The metadata's "cases" lists the sizes as JSON.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch

from reference import save_file

# (D, H, B, T, initial state, double backward, largest |x|)
CASES = [
    (1, 1, 1, 1, False, True, 1), (1, 1, 1, 1, True, True, 1), (3, 1, 2, 4, True, True, 1), (1, 5, 2, 3, False, True, 1),
    (4, 5, 1, 7, True, True, 1), (5, 4, 3, 1, False, True, 1), (2, 3, 2, 2, False, True, 1), (7, 6, 2, 5, True, True, 1),
    (3, 8, 4, 3, True, True, 1), (6, 7, 3, 6, False, True, 1), (7, 16, 2, 6, False, False, 1), (12, 15, 5, 4, True, False, 1),
    (9, 17, 1, 20, False, False, 1), (16, 16, 4, 8, True, False, 1), (33, 31, 2, 5, False, False, 1),
    (5, 33, 9, 3, True, False, 1), (12, 48, 1, 7, False, False, 1), (20, 64, 2, 4, True, False, 1),
    (4, 65, 3, 5, False, False, 1), (1, 32, 8, 10, True, False, 1), (3, 9, 9, 9, True, False, 1),
    (8, 12, 2, 12, False, False, 50), (31, 2, 7, 11, True, False, 1), (10, 10, 1, 2, True, False, 1),
]
FIELDS = ("D", "H", "B", "T", "initial_state", "double_backward", "largest_x")
NAMES = {"w_ih": "weight_ih_l0", "w_hh": "weight_hh_l0", "b_ih": "bias_ih_l0", "b_hh": "bias_hh_l0"}


def exact(t):
    """Rounded to what f32 holds, as f64."""
    return t.detach().float().double()


def gap(narrow, wide):
    wide = wide.detach()
    return ((narrow.detach().double() - wide).abs().max() / max(1.0, float(wide.abs().max()))).reshape(1)


BASELINE = {"ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "ONEDNN_MAX_CPU_ISA": "SSE41"}


def case(number, D, H, B, T, given, double, scale):
    torch.manual_seed(number)
    gru = torch.nn.GRU(D, H, batch_first=True).double()
    for p in gru.parameters():
        p.data = exact(p * 2)
    values = {"x": exact((torch.rand(B, T, D) * 2 - 1) * scale).requires_grad_()}
    if given:
        values["h0"] = exact(torch.rand(B, H) * 2 - 1).requires_grad_()
    y, h_n = gru(values["x"], values["h0"][None] if given else None)
    out = {"y": y, "h_n": h_n[0], "cy": exact(torch.randn(B, T, H)), "ch": exact(torch.randn(B, H))}
    variables = dict(values) | {short: getattr(gru, name) for short, name in NAMES.items()}
    loss = (y * out["cy"]).sum() + (h_n[0] * out["ch"]).sum()
    grads = torch.autograd.grad(loss, list(variables.values()), create_graph=True)
    for name, g in zip(variables, grads):
        out["g" + name] = g
    if double:
        total = 0
        for name, g in zip(variables, grads):
            out["u_" + name] = exact(torch.randn_like(g))
            total = total + (g * out["u_" + name]).sum()
        for name, d in zip(variables, torch.autograd.grad(total, list(variables.values()))):
            out["d_" + name] = d
    narrow = gru.float()
    inputs = {name: t.detach().float().requires_grad_() for name, t in values.items()}
    y32, h_n32 = narrow(inputs["x"], inputs["h0"][None] if given else None)
    loss32 = (y32 * out["cy"].float()).sum() + (h_n32[0] * out["ch"].float()).sum()
    leaves = list(inputs.values()) + [getattr(narrow, name) for name in NAMES.values()]
    gaps = {"y32": gap(y32, out["y"]), "h_n32": gap(h_n32[0], out["h_n"])}
    for name, g in zip(variables, torch.autograd.grad(loss32, leaves)):
        gaps[f"g{name}32"] = gap(g, out["g" + name])
    out |= {name: t.detach().clone() for name, t in variables.items()} | gaps
    return {f"{number:02}/{name}": t.detach().contiguous() for name, t in out.items()}


def cases():
    tensors = {}
    for number, arguments in enumerate(CASES):
        tensors |= case(number, *arguments)
    return tensors


def main():
    if sys.argv[1:2] == ["--gaps"]:  # this script, started by itself with baseline instructions
        torch.save({name: t for name, t in cases().items() if name.endswith("32")}, sys.argv[2])
        return
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    tensors = cases()
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([sys.executable, __file__, "--gaps", file.name], env=os.environ | BASELINE, check=True)
        for name, t in torch.load(file.name).items():
            tensors[name] = torch.cat([tensors[name], t])
    save_file(tensors, folder / "gru.safetensors", {"torch": torch.__version__, "cases": json.dumps([dict(zip(FIELDS, c)) for c in CASES])})
    print(len(CASES), "cases")


if __name__ == "__main__":
    main()
