#!/usr/bin/env python3
"""Writes guitarml/*.json, models as Automated-GuitarAmpModelling saves them, and guitarml/expected.safetensors.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_guitarml_fixtures.py [FOLDER]

The network is SimpleRNN of github.com/Alec-Wright/CoreAudioML (networks.py), written here with torch.nn: a recurrent
layer `rec`, a product `lin`, and the first `skip` features of the input added to its result.
"""
import json
import pathlib
import sys

import torch
from safetensors.torch import save_file


class Net(torch.nn.Module):
    def __init__(self, unit_type, input_size, hidden_size, num_layers, skip, bias):
        super().__init__()
        self.rec = getattr(torch.nn, unit_type)(input_size, hidden_size, num_layers, bias=bias, batch_first=True)
        self.lin = torch.nn.Linear(hidden_size, 1)
        self.skip = skip

    def forward(self, x):
        y = self.lin(self.rec(x)[0])
        return y + x[:, :, :self.skip] if self.skip else y


def main():
    folder = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent) / "guitarml"
    folder.mkdir(exist_ok=True)
    torch.manual_seed(1)
    x = torch.rand(1, 50, 2) * 2 - 1
    expected = {"x": x}
    for name, (unit, inputs, hidden, layers, skip, bias) in {
            "lstm": ("LSTM", 1, 5, 1, 1, True), "gru": ("GRU", 1, 4, 1, 1, True),
            "knob": ("LSTM", 2, 3, 1, 1, True), "deep": ("GRU", 1, 3, 2, 0, False)}.items():
        net = Net(unit, inputs, hidden, layers, skip, bias)
        data = {"model": "SimpleRNN", "input_size": inputs, "skip": skip, "output_size": 1, "unit_type": unit,
                "num_layers": layers, "hidden_size": hidden, "bias_fl": bias}
        state = {key: value.tolist() for key, value in net.state_dict().items()}
        (folder / f"{name}.json").write_text(json.dumps({"model_data": data, "state_dict": state}) + "\n")
        with torch.no_grad():
            expected[name] = net.double()(x[:, :, :inputs].double()).float()
    save_file(expected, folder / "expected.safetensors")


if __name__ == "__main__":
    main()
