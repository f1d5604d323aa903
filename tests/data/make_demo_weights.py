#!/usr/bin/env python3
"""Trains the demo's net in PyTorch and writes its weights and its logits of the test set.

    python3 -m pip install -r tests/data/requirements.txt
    python3 tests/data/make_demo_weights.py [FOLDER]

Writes vowels_torch.safetensors (a state_dict: GRU "0", linear "2") and vowels_torch_logits.safetensors (logits f32
[370, 9] and predictions i64 [370]) of the seed whose test accuracy is the median of five.
"""
import pathlib
import sys

import torch
from safetensors.torch import load_file
from torch import nn

from reference import save_file

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"


class LastStep(nn.Module):
    """The output at the last valid step."""

    def forward(self, output, lengths):
        return output[torch.arange(len(lengths)), lengths - 1]


class Net(nn.ModuleList):
    def __init__(self):
        super().__init__([nn.GRU(12, 64, batch_first=True), LastStep(), nn.Linear(64, 9)])

    def forward(self, x, lengths):
        return self[2](self[1](self[0](x)[0], lengths))


def sequences(data, part):
    x = torch.split(data[f"{part}.x"], data[f"{part}.lengths"].tolist())
    return nn.utils.rnn.pad_sequence(x, batch_first=True), data[f"{part}.lengths"], data[f"{part}.labels"]


def train(data, seed):
    torch.manual_seed(seed)
    net = Net()
    x, lengths, y = sequences(data, "train")
    adam = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(60):
        for index in torch.randperm(len(y)).split(32):
            loss = nn.functional.cross_entropy(net(x[index], lengths[index]), y[index])
            adam.zero_grad()
            loss.backward()
            adam.step()
    return net


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    torch.set_num_threads(1)
    data = load_file(DATA / "japanese_vowels.safetensors")
    x, lengths, y = sequences(data, "test")
    runs = []
    for seed in range(5):
        net = train(data, seed)
        with torch.no_grad():
            logits = net(x, lengths)
        accuracy = (logits.argmax(1) == y).double().mean().item()
        print(f"seed {seed}: test accuracy {100 * accuracy:.2f}%")
        runs.append((accuracy, seed, net, logits))
    runs.sort(key=lambda run: run[:2])
    accuracy, seed, net, logits = runs[len(runs) // 2]
    print(f"mean {100 * sum(run[0] for run in runs) / len(runs):.2f}%, kept: seed {seed}, {100 * accuracy:.2f}%")
    note = {"seed": str(seed), "torch": torch.__version__}
    save_file(net.state_dict(), folder / "vowels_torch.safetensors", note)
    save_file({"logits": logits, "predictions": logits.argmax(1)}, folder / "vowels_torch_logits.safetensors", note)


if __name__ == "__main__":
    main()
