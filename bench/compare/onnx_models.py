#!/usr/bin/env python3
"""The nets of onnx_nets.py as ONNX files, exported by torch.onnx with fixed seeds: onnx_models.py FOLDER

Nets from packages of PyPI are added if these variables name folders: FERRITE_DFN (with enc.onnx, erb_dec.onnx and
df_dec.onnx of DeepFilterNet 3) and FERRITE_SILERO (with silero_vad_16k_op15.onnx).
"""
import os
import pathlib
import shutil
import sys

import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self, kind, features, units):
        super().__init__()
        self.layer = kind(features, units, batch_first=True)

    def forward(self, x):
        return self.layer(x)[0]


class Causal(nn.Module):
    """A temporal convolution net: blocks of dilated causal convolutions with residual connections."""

    def __init__(self, channels=32, kernel=3, blocks=6):
        super().__init__()
        self.first = nn.Conv1d(1, channels, 1)
        self.blocks = nn.ModuleList(nn.Conv1d(channels, channels, kernel, dilation=2**i) for i in range(blocks))
        self.last = nn.Conv1d(channels, 1, 1)
        self.kernel = kernel

    def forward(self, x):
        y = self.first(x)
        for i, block in enumerate(self.blocks):
            y = y + torch.relu(block(nn.functional.pad(y, ((self.kernel - 1) * 2**i, 0))))
        return self.last(y)


def nets():
    picture = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                            nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 7 * 7, 10))
    return {
        "gru_256": (Recurrent(nn.GRU, 256, 256), (1, 100, 256)),
        "gru_128": (Recurrent(nn.GRU, 128, 128), (1, 50, 128)),
        "lstm_256": (Recurrent(nn.LSTM, 256, 256), (1, 100, 256)),
        "rnn_128": (Recurrent(nn.RNN, 128, 128), (1, 100, 128)),
        "tcn": (Causal(), (1, 1, 512)),
        "cnn": (picture, (1, 1, 28, 28)),
    }


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    for name, (net, shape) in nets().items():
        torch.onnx.export(net.eval(), (torch.rand(shape),), str(folder / f"{name}.onnx"), opset_version=17, dynamo=False,
                          input_names=["x"], output_names=["y"])
    for variable, files in (("FERRITE_DFN", ("enc", "erb_dec", "df_dec")), ("FERRITE_SILERO", ("silero_vad_16k_op15",))):
        for file in files if os.environ.get(variable) else ():
            shutil.copy(pathlib.Path(os.environ[variable]) / f"{file}.onnx", folder)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
