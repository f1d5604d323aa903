#!/usr/bin/env python3
"""Writes causal_conv1d.safetensors: causal convolutions over time by torch.nn.functional.conv1d, with their gradients,
in f64 from numbers that f32 holds; and causal_conv1d.pt, the state_dict of a net of two of them;
causal_conv1d_strided.safetensors, those with strides.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_causal_conv1d_fixtures.py [FOLDER]

Case kK_dD_gG_oO_tT holds x [B, T, C], weight [O, C / G, K], the bias [O] if T is not 3, y [B, T, O], the cotangent dy of
y, and the gradient of each input under g/<input>. net/x [B, T, 3] and net/y [B, T, 2] are of the net.

Of strides: case kK_dD_gG_sS_tT holds the same with O = 8 and, for each input, a direction under v/ and under h/ the
gradient of the sum of <g, v>. packed/ is a convolution with a stride of 3 (conv.weight, conv.bias) before a GRU that runs
on packed sequences: x, the lengths, those that are left, y with zeros behind them, and likewise of x and the parameters.
"""
import pathlib
import sys

import torch
from torch.nn.functional import conv1d, pad

from reference import save_file


def causal(x, weight, bias, dilation, groups, stride=1):
    """x [B, T, C] -> [B, T / stride, O]."""
    before = (weight.shape[2] - 1) * dilation
    return conv1d(pad(x.transpose(1, 2), (before, 0)), weight, bias, stride, dilation=dilation, groups=groups).transpose(1, 2)


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


def draw(*shape):
    return (torch.rand(shape) * 2 - 1).double()


def orders(inputs, y):
    """y with gradients of first and second order."""
    dy = draw(*y.shape)
    grads = torch.autograd.grad(y, list(inputs.values()), dy, create_graph=True)
    directions = [draw(*t.shape) for t in grads]
    second = torch.autograd.grad(sum((g * v).sum() for g, v in zip(grads, directions)), list(inputs.values()),
                                 allow_unused=True, materialize_grads=True)
    of_each = zip(inputs, grads, directions, second)
    return {**inputs, "y": y, "dy": dy} | {f"{kind}/{name}": t for name, *rest in of_each for kind, t in zip("gvh", rest)}


def strided(T, K, D, G, S):
    inputs = {"x": draw(2, T, 4), "weight": draw(8, 4 // G, K), "bias": draw(8)}
    for t in inputs.values():
        t.requires_grad_()
    return orders(inputs, causal(inputs["x"], inputs["weight"], inputs["bias"], D, G, S))


def packed():
    gru = torch.nn.GRU(8, 5, batch_first=True).double()
    conv = torch.nn.Conv1d(4, 8, 3, dilation=2).double()
    x, lengths = draw(3, 11, 4).requires_grad_(), torch.tensor([11, 4, 9])
    left = (lengths + 2) // 3
    frames = causal(x, conv.weight, conv.bias, 2, 1, 3)
    steps = torch.nn.utils.rnn.pack_padded_sequence(frames, left, batch_first=True, enforce_sorted=False)
    y = torch.nn.utils.rnn.pad_packed_sequence(gru(steps)[0], batch_first=True)[0]
    inputs = {"x": x, "conv.weight": conv.weight, "conv.bias": conv.bias} | {f"gru.{n}": p for n, p in gru.named_parameters()}
    return orders(inputs, y) | {"lengths": lengths, "left": left}


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

    torch.manual_seed(20)
    tensors = {}
    for K in (1, 3):
        for D in (1, 2):
            for G in (1, 2, 4):
                for S, T in ((2, 9), (3, 9), (5, 4)):
                    name = f"k{K}_d{D}_g{G}_s{S}_t{T}"
                    tensors |= {f"{name}/{key}": t for key, t in strided(T, K, D, G, S).items()}
    tensors |= {f"packed/{key}": t for key, t in packed().items()}
    save_file({name: t.detach().contiguous() for name, t in tensors.items()}, folder / "causal_conv1d_strided.safetensors",
              {"torch": torch.__version__})


if __name__ == "__main__":
    main()
