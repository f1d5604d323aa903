#!/usr/bin/env python3
"""Writes linear_recurrences.safetensors and linear_recurrences/*.pt: what the layers of public packages give, in f64, from
inputs and weights that f32 represents, and the gradients of everything.

    python3 -m pip install -r tests/data/requirements.txt einops jaxtyping typeguard==2.13.3 scipy
    python3 -m pip install --no-deps minGRU-pytorch==0.2.1 s5-pytorch==0.2.1 recurrentgemma==1.0.1 mambapy==1.2.0
    python3 tests/data/make_linear_recurrence_fixtures.py [FOLDER]

Case NAME holds NAME.x [B, T, D], NAME.y, the cotangent NAME.dy, the gradient NAME.dx, perhaps an initial state NAME.state
(complex numbers as two real ones) with NAME.dstate and the last one NAME.last, and NAME.d/<parameter>. NAME.pt is the
state_dict in f32. The LRU is the paper's (arXiv 2303.06349), step by step; RG-LRU is the package's for sequences that do
not begin at position 0, where it leaves out a factor. s5-pytorch, recurrentgemma
and mambapy work in f32 where they are not told otherwise, as this script does.
"""
import functools
import importlib.util
import math
import pathlib
import sys
import types

import torch
from safetensors.torch import save_file


def package_without_its_init(name):
    """recurrentgemma imports flax and more, which its PyTorch layers do not need."""
    module = types.ModuleType(name)
    module.__path__ = list(importlib.util.find_spec(name).submodule_search_locations)
    sys.modules[name] = module


package_without_its_init("recurrentgemma")
package_without_its_init("recurrentgemma.torch")

from mambapy.mamba import MambaBlock, MambaConfig  # noqa: E402
from minGRU_pytorch.minGRU import minGRU  # noqa: E402
from minGRU_pytorch.minLSTM import minLSTM  # noqa: E402
from recurrentgemma.torch import layers as griffin_layers  # noqa: E402
from s5 import s5_model  # noqa: E402

s5_model.as_complex = lambda t, dtype=None: torch.complex(t[..., 0].contiguous(), t[..., 1].contiguous())
griffin_layers.rnn_scan = functools.partial(griffin_layers.rnn_scan, acc_dtype=torch.float64)
torch.manual_seed(41)


class Lru(torch.nn.Module):
    def __init__(self, D, N):
        super().__init__()
        r, phase = 0.5 + 0.45 * torch.rand(N), math.pi * torch.rand(N)
        self.nu_log = torch.nn.Parameter(torch.log(-torch.log(r)))
        self.theta_log = torch.nn.Parameter(torch.log(phase))
        self.gamma_log = torch.nn.Parameter(0.5 * torch.log(1 - r**2))
        for name, shape in {"B_re": (N, D), "B_im": (N, D), "C_re": (D, N), "C_im": (D, N), "D": (D,)}.items():
            setattr(self, name, torch.nn.Parameter(torch.randn(shape) / 2))

    def forward(self, x, state=None):
        lam = torch.exp(torch.complex(-torch.exp(self.nu_log), torch.exp(self.theta_log)))
        B = torch.complex(self.B_re, self.B_im) * torch.exp(self.gamma_log)[:, None]
        h = torch.zeros(x.shape[0], lam.shape[0], dtype=lam.dtype) if state is None else state
        ys = []
        for t in range(x.shape[1]):
            h = lam * h + x[:, t].to(lam.dtype) @ B.T
            ys.append((h @ torch.complex(self.C_re, self.C_im).T).real + self.D * x[:, t])
        return torch.stack(ys, 1), h


def real(t):
    return torch.view_as_real(t).flatten(1) if t.is_complex() else t


def double(module):
    """All values representable in f32, kept in f64."""
    for p in module.parameters():
        p.data = p.data.to(torch.complex128 if p.is_complex() else torch.float64)
    return module


def drawn(*shape):
    return torch.randn(shape).double()


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    files = folder / "linear_recurrences"
    files.mkdir(parents=True, exist_ok=True)
    tensors = {}

    def case(name, module, x, call, state=None):
        torch.save({k: v.clone() for k, v in module.state_dict().items()}, files / f"{name}.pt")
        double(module)
        x = x.requires_grad_()
        if state is not None:
            state = state.requires_grad_()
        y, last = call(module, x, state)
        dy = drawn(*y.shape)
        parameters = dict(module.named_parameters())
        inputs = [x, *([] if state is None else [state]), *parameters.values()]
        grads = torch.autograd.grad((y * dy).sum(), inputs)
        out = {"x": x, "y": y, "dy": dy, "dx": grads[0]}
        if state is not None:
            out |= {"state": real(state), "dstate": real(grads[1])}
        if last is not None:
            out["last"] = real(last)
        offset = 1 if state is None else 2
        out |= {f"d/{k}": (torch.view_as_real(g.resolve_conj()) if g.is_complex() else g) for k, g in zip(parameters, grads[offset:])}
        tensors.update({f"{name}.{k}": v.detach().contiguous().clone() for k, v in out.items()})

    def minimal(module, x, state):
        y, last = module(x, None if state is None else state[:, None], return_next_prev_hidden=True)
        return y, last[:, 0]

    case("min_gru", minGRU(5), drawn(2, 7, 5), minimal)
    case("min_gru_wide", minGRU(4, expansion_factor=2.5, proj_out=False), drawn(3, 9, 4), minimal, torch.rand(3, 10).double() + 0.1)
    case("min_gru_projected", minGRU(4, expansion_factor=3.0), drawn(2, 6, 4), minimal)
    case("min_gru_step", minGRU(5), drawn(3, 1, 5), minimal, torch.randn(3, 5).double())
    case("min_lstm", minLSTM(5), drawn(2, 7, 5), minimal)
    case("min_lstm_projected", minLSTM(4, expansion_factor=2.0), drawn(2, 6, 4), minimal)
    case("min_lstm_step", minLSTM(5), drawn(3, 1, 5), minimal, torch.randn(3, 5).double())

    def s5(module, x, state):
        y, last = module(x, state=state, return_state=True)
        return y, last

    def complex_state(B, P):
        return torch.complex(drawn(B, P), drawn(B, P))

    def s5_of(D, P, **options):
        return s5_model.S5(D, P, **options)

    case("s5", s5_of(3, 6), drawn(2, 11, 3), s5)
    case("s5_state", s5_of(4, 8, block_count=2, dt_max=0.5), drawn(2, 5, 4), s5, complex_state(2, 8))
    module = s5_of(3, 4)
    module.seq.discretize = s5_model.discretize_bilinear
    case("s5_bilinear", module, drawn(2, 6, 3), s5)
    case("s5_bidirectional", s5_of(3, 4, bidir=True), drawn(2, 6, 3), lambda m, x, s: (m(x), None))
    case("s5_scaled", s5_of(3, 4), drawn(2, 6, 3), lambda m, x, s: (m(x, step_scale=2.0), None))

    case("lru", Lru(3, 5), drawn(2, 8, 3), lambda m, x, s: m(x, s), complex_state(2, 5))
    case("lru_zero", Lru(4, 19), drawn(1, 9, 4), lambda m, x, s: m(x, s))

    def griffin(module, x, state):
        positions = torch.arange(1, x.shape[1] + 1).expand(x.shape[0], -1)
        return module(x, positions, cache=torch.zeros(x.shape[0], x.shape[2], dtype=x.dtype) if state is None else state)

    def rg_lru(D, heads):
        m = griffin_layers.RGLRU(D, heads)
        torch.nn.init.normal_(m.input_gate.b), torch.nn.init.normal_(m.a_gate.b), torch.nn.init.normal_(m.a_param, -3.0, 1.0)
        return m

    case("rg_lru", rg_lru(6, 2), drawn(2, 7, 6), griffin)
    case("rg_lru_state", rg_lru(5, 1), drawn(3, 4, 5), griffin, drawn(3, 5))
    def mamba(D, **options):
        m = MambaBlock(MambaConfig(d_model=D, n_layers=1, pscan=False, **options))
        torch.nn.init.normal_(m.D)
        return m

    torch.Tensor.float = lambda self: self  # MambaBlock.ssm would round what it computes in f64
    case("mamba", mamba(4, d_state=3), drawn(2, 7, 4), lambda m, x, s: (m(x), None))
    case("mamba_wide", mamba(5, d_state=2, expand_factor=1, d_conv=2, dt_rank=3, bias=True), drawn(2, 5, 5), lambda m, x, s: (m(x), None))
    save_file(tensors, folder / "linear_recurrences.safetensors")


if __name__ == "__main__":
    main()
