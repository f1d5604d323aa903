#!/usr/bin/env python3
"""Writes torch_model.pt, the state_dict of a model of recurrent layers as torch.save makes it, and
torch_model.safetensors with an input x [B, T, D], lengths [B] and the output y that the model gives in f64.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_torch_model.py [FOLDER]
"""
import pathlib
import sys

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from reference import save_file


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.GRU(4, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.middle = torch.nn.LSTM(10, 6, num_layers=2, proj_size=3, batch_first=True)
        self.last = torch.nn.RNN(3, 4, nonlinearity="relu", bias=False, batch_first=True)
        self.norm = torch.nn.LayerNorm(4)
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x, lengths):
        for layer in (self.encoder, self.middle, self.last):
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            x, _ = pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=x.shape[1])
        return self.head(self.norm(x))


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    torch.manual_seed(3)
    model = Model()
    torch.save(model.state_dict(), folder / "torch_model.pt")
    x = torch.rand(3, 6, 4) * 2 - 1
    lengths = torch.tensor([4, 6, 1])
    y = model.double()(x.double(), lengths)
    save_file({"x": x, "lengths": lengths, "y": y.detach()}, folder / "torch_model.safetensors", {"torch": torch.__version__})


if __name__ == "__main__":
    main()
