#!/usr/bin/env python3
"""Writes tests/data/onnx_training.safetensors: small nets as PyTorch's default exporter writes them, and the losses of
their first steps of training in PyTorch.

    python3 tests/data/make_onnx_training_fixtures.py

Case NAME holds NAME/model (bytes of the file), NAME/x, NAME/y, NAME/sgd and NAME/adam: the losses mse(net(x), y) before
each of six steps at the rates of RATES. Its metadata hold the names of the initialisers that train. Needs torch, onnx,
onnxscript and safetensors.
"""
import io
import pathlib
import warnings

import onnx
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

warnings.simplefilter("ignore")
RATES = {"sgd": 0.05, "adam": 0.01}


class Rms(nn.Module):
    """RMSNorm in operations, as language models have it: epsilon, exponent and scale are initialisers in the file."""

    def __init__(self):
        super().__init__()
        self.norm, self.head = nn.RMSNorm(6), nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.norm(x)) * 0.5 + x.pow(1.5).mean(-1, keepdim=True).clamp(0.1, 0.9)


class Groups(nn.Module):
    """A normalisation that the file gives ones and zeros for weights, and running statistics."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.running = nn.Conv1d(3, 4, 3), nn.GroupNorm(2, 4), nn.BatchNorm1d(4)

    def forward(self, x):
        return F.layer_norm(self.running(self.norm(self.conv(x))), (6,))


class Experts(nn.Module):
    """Each row goes to the expert that a gate chooses; the gate learns by the weight of the choice."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(6, 4), nn.Parameter(torch.randn(4, 6, 3) / 3)

    def forward(self, x):
        best, at = self.gate(x).softmax(-1).max(-1)
        return torch.einsum("bd,bdk->bk", x, self.experts[at]) * best[:, None]


class Recurrent(nn.Module):
    """The first state is a table of zeros in the file."""

    def __init__(self):
        super().__init__()
        self.gru, self.lstm, self.head = nn.GRU(6, 4, batch_first=True), nn.LSTM(4, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.lstm(self.gru(x)[0])[0])


class Masked(nn.Module):
    """Attention under a causal mask."""

    def __init__(self):
        super().__init__()
        self.attention, self.slope = nn.MultiheadAttention(6, 2, batch_first=True), nn.PReLU()
        self.alpha = nn.Parameter(torch.tensor(0.7))

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(5)
        y = self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]
        return self.slope(y) * self.alpha


CASES = {
    "rms": (Rms, (4, 6), (4, 3)),
    "groups": (Groups, (2, 3, 8), (2, 4, 6)),
    "experts": (Experts, (8, 6), (8, 3)),
    "recurrent": (Recurrent, (3, 5, 6), (3, 5, 3)),
    "masked": (Masked, (3, 5, 6), (3, 5, 6)),
}


def losses(net, x, y, optimiser):
    found = []
    for _ in range(6):
        loss = F.mse_loss(net(x), y)
        found.append(loss.detach())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return torch.stack(found)


def main():
    tensors, metadata = {}, {"cases": " ".join(CASES)}
    for k, (name, (make, x_shape, y_shape)) in enumerate(CASES.items()):
        torch.manual_seed(k)
        x, y = torch.rand(x_shape) + 0.1, torch.randn(y_shape)
        net = make()
        with torch.no_grad():  # weights of their own: the exporter joins initialisers with equal elements
            for p in net.parameters():
                p.add_(0.1 * torch.randn_like(p))
        net.eval()
        state = {n: t.clone() for n, t in net.state_dict().items()}
        program = torch.onnx.export(net, (x,), dynamo=True, verbose=False, external_data=False)
        buffer = io.BytesIO()
        onnx.save(program.model_proto, buffer)
        tensors[f"{name}/model"] = torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)
        tensors |= {f"{name}/x": x, f"{name}/y": y}
        for kind, make_optimiser in (("sgd", torch.optim.SGD), ("adam", torch.optim.Adam)):
            net.load_state_dict(state)
            tensors[f"{name}/{kind}"] = losses(net, x, y, make_optimiser(net.parameters(), lr=RATES[kind]))
        print(name, [i.name for i in program.model_proto.graph.initializer], tensors[f"{name}/sgd"])
    save_file({n: t.contiguous() for n, t in tensors.items()},
              pathlib.Path(__file__).parent / "onnx_training.safetensors", metadata)
    print(len(CASES), "cases, torch", torch.__version__)


if __name__ == "__main__":
    main()
