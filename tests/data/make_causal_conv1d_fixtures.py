#!/usr/bin/env python3
"""Writes causal_conv1d.safetensors: causal convolutions over time by torch.nn.functional.conv1d, with their gradients,
in f64 from numbers that f32 holds; and causal_conv1d.pt, the state_dict of a net of two of them.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_causal_conv1d_fixtures.py [FOLDER]

Case kK_dD_gG_oO_tT holds x [B, T, C], weight [O, C / G, K], the bias [O] if T is not 3, y [B, T, O], the cotangent dy of
y, and the gradient of each input under g/<input>. net/x [B, T, 3] and net/y [B, T, 2] are of the net.
"""
import pathlib
import sys

import torch
from torch.nn.functional import conv1d, pad

from reference import save_file


def causal(x, weight, bias, dilation, groups):
    """x [B, T, C] -> [B, T, O]."""
    before = (weight.shape[2] - 1) * dilation
    return conv1d(pad(x.transpose(1, 2), (before, 0)), weight, bias, dilation=dilation, groups=groups).transpose(1, 2)


def case(B, T, C, O, K, D, G):
    draw = lambda *shape: (torch.rand(shape) * 2 - 1).double()
    inputs = {"x": draw(B, T, C), "weight": draw(O, C // G, K)}
    if T != 3:
        inputs["bias"] = draw(O)
    for t in inputs.values():
        t.requires_grad_()
    y = causal(inputs["x"], inputs["weight"], inputs.get("bias"), D, G)
    dy = draw(*y.shape)
    (y * dy).sum().backward()
    return {**inputs, "y": y, "dy": dy, **{f"g/{name}": t.grad for name, t in inputs.items()}}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv1d(3, 8, 3, dilation=2)
        self.second = torch.nn.Conv1d(8, 6, 2, groups=2, bias=False)
        self.head = torch.nn.Linear(6, 2)

    def forward(self, x):
        for conv in (self.first, self.second):
            x = torch.tanh(causal(x, conv.weight, conv.bias, conv.dilation[0], conv.groups))
        return self.head(x)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    torch.manual_seed(19)
    tensors = {}
    for K in (1, 2, 3, 5):
        for D in (1, 2, 4):
            for G, O in ((1, 6), (2, 6), (4, 4), (4, 8)):
                for T in (1, 3, 11):  # 3 and often 11 steps are fewer than the taps span
                    name = f"k{K}_d{D}_g{G}_o{O}_t{T}"
                    tensors |= {f"{name}/{key}": t for key, t in case(2, T, 4, O, K, D, G).items()}
    net = Net()
    torch.save(net.state_dict(), folder / "causal_conv1d.pt")
    x = (torch.rand(2, 9, 3) * 2 - 1).double()
    tensors |= {"net/x": x, "net/y": net.double()(x)}
    save_file({name: t.detach().contiguous() for name, t in tensors.items()}, folder / "causal_conv1d.safetensors",
              {"torch": torch.__version__})


if __name__ == "__main__":
    main()
