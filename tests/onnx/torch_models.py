#!/usr/bin/env python3
"""Writes small PyTorch nets, exported by torch.onnx at several opsets, with PyTorch's own results, as folders that
tests/onnx/published_test.cpp reads: FOLDER/torch_NET_OPSET/model.onnx, input_K.pb, output_K.pb, tolerances.txt.

    python3 tests/onnx/torch_models.py FOLDER
"""
import pathlib
import sys
import warnings

import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional as F

warnings.simplefilter("ignore")


class Of(nn.Module):
    """A function with the modules that it uses."""

    def __init__(self, f, *parts):
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.f = f

    def forward(self, *x):
        return self.f(*self.parts, *x)


def attention(q, k, v, x):
    split = lambda y: y.reshape(y.shape[0], y.shape[1], 4, 8).transpose(1, 2)
    scores = split(q(x)) @ split(k(x)).transpose(-1, -2) / 8**0.5
    return (scores.softmax(-1) @ split(v(x))).transpose(1, 2).flatten(2)


def nets():
    image, signal, row = torch.randn(2, 4, 12, 12), torch.randn(2, 6, 24), torch.randn(3, 32)
    steps = torch.randn(2, 10, 32)
    yield "mlp", nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 4), nn.Sigmoid()), (row,)
    yield "activations", Of(lambda x: torch.cat([F.elu(x), F.leaky_relu(x), F.selu(x), F.softplus(x), F.silu(x),
                                                 F.hardtanh(x), F.relu6(x), F.softsign(x), F.gelu(x)], 1)), (row,)
    yield "conv2d", nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(8, 8, 3, groups=8, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten()), (image,)
    yield "conv1d", nn.Sequential(nn.ConstantPad1d((4, 0), 0.0), nn.Conv1d(6, 8, 3, dilation=2), nn.Tanh(),
                                  nn.Conv1d(8, 6, 1)), (signal,)
    yield "transposed", nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1),
                                      nn.PReLU(6), nn.AvgPool2d(3, 2, 1)), (image,)
    yield "conv3d", nn.Sequential(nn.Conv3d(2, 3, 2), nn.ReLU(), nn.MaxPool3d(2)), (torch.randn(1, 2, 6, 6, 6),)
    yield "norms", nn.Sequential(nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.LayerNorm([12, 12])), (image,)
    yield "lrn", nn.LocalResponseNorm(3), (image,)
    yield "residual", Of(lambda a, b, x: F.relu(x + b(F.relu(a(x)))), nn.Conv2d(4, 4, 3, padding=1),
                         nn.Conv2d(4, 4, 3, padding=1)), (image,)
    yield "attention", Of(attention, nn.Linear(32, 32), nn.Linear(32, 32), nn.Linear(32, 32)), (steps,)
    yield "embedding", Of(lambda e, l, i: l(e(i).mean(1)), nn.Embedding(20, 8), nn.Linear(8, 5)), (
        torch.randint(0, 20, (3, 7)),)
    yield "gru", Of(lambda r, x: r(x)[0], nn.GRU(32, 12, batch_first=True)), (steps,)
    yield "lstm", Of(lambda r, x: r(x)[0], nn.LSTM(32, 12, num_layers=2, bidirectional=True)), (steps,)
    yield "rnn", Of(lambda r, x: r(x)[0], nn.RNN(32, 12, nonlinearity="relu")), (steps,)
    yield "movement", Of(lambda x: torch.stack([x.transpose(1, 2)[:, ::2, 1:3], x.permute(0, 2, 1)[:, 1::2, -2:]], 1)
                         .unsqueeze(-1).expand(-1, -1, -1, -1, 3).flatten(1)), (signal,)
    yield "reductions", Of(lambda x: torch.cat([x.sum((1, 2)), x.mean((1, 2)), x.amax((1, 2)), x.norm(dim=(1, 2)),
                                                x.logsumexp((1, 2)), x.prod(2).sum(1)])), (signal,)
    yield "softmaxes", Of(lambda x: F.softmax(x, 1) + F.log_softmax(x, 2)), (signal,)
    yield "compare", Of(lambda x: torch.where((x > 0) & (x < 1) | (x == 2), x.clamp(-0.5, 0.5), x.abs().sqrt())), (row,)
    yield "order", Of(lambda x: x.topk(3, 1)[0] + x.argmax(1, keepdim=True).float()), (row,)
    yield "gather", Of(lambda x, i: x.gather(1, i) + x.index_select(1, i[0])), (row, torch.randint(0, 32, (3, 5)))
    yield "upsample", Of(lambda x: F.interpolate(x, scale_factor=2.0, mode="nearest")), (image,)
    yield "bilinear", Of(lambda x: F.interpolate(x, size=(20, 17), mode="bilinear", align_corners=False)), (image,)
    yield "pads", Of(lambda x: F.pad(F.pad(x, (1, 2, 3, 1), mode="reflect"), (1, 1), value=0.5)), (image,)
    yield "shuffle", nn.PixelShuffle(2), (image,)
    yield "powers", Of(lambda x: x.pow(2) + x.abs().pow(0.5) + torch.exp(-x) * torch.log(x.abs() + 1) + x.sin()), (row,)


def tensors(value):
    return [value] if isinstance(value, torch.Tensor) else [t for v in value for t in tensors(v)]


def main(folder):
    torch.manual_seed(1)
    made, refused = 0, []
    for name, net, inputs in nets():
        net.eval()
        with torch.no_grad():
            outputs = tensors(net(*inputs))
        for opset in (9, 11, 13, 17, 20, 23):
            if (name, opset) == ("bilinear", 9):
                continue  # Upsample has no half pixels: the file says something else than PyTorch computes
            to = folder / f"torch_{name}_{opset}"
            to.mkdir(parents=True, exist_ok=True)
            try:
                torch.onnx.export(net, inputs, str(to / "model.onnx"), opset_version=opset, dynamo=opset > 20,
                                  **({"external_data": False} if opset > 20 else {}))
            except Exception as e:  # the exporter has no form of it in that opset
                refused.append(f"{name} {opset}: {type(e).__name__}")
                for f in to.iterdir():
                    f.unlink()
                to.rmdir()
                continue
            for kind, values in (("input", inputs), ("output", outputs)):
                for i, value in enumerate(values):
                    (to / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(value.numpy()).SerializeToString())
            (to / "tolerances.txt").write_text("1e-5 1e-5\n")
            made += 1
    print(f"torch {torch.__version__}: {made} nets; not exported by torch: {', '.join(refused) or 'none'}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
