#!/usr/bin/env python3
"""torch.nn.GRU, LSTM and RNN, a perceptron, whole nets and users' cells, by one thread unless more are named:
torch_peer.py eager|compile|script [threads]."""
import os
import signal
import sys

import torch

import torch_cells
from peer import CLASSES, WHOLE, Absent, features, serve

PATIENCE = int(os.environ.get("FERRITE_COMPILE_SECONDS", "20"))  # seconds for torch.compile of a cell
LAYERS = {"gru": torch.nn.GRU, "vowels": torch.nn.GRU, "lstm": torch.nn.LSTM, "rnn": torch.nn.RNN}
too_long = {}  # (job, kind): the fewest steps that took too long to compile


class Outputs(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


class Model(torch.nn.Module):
    def __init__(self, kind, H):
        super().__init__()
        self.layer = LAYERS[kind](features(kind, H), H, batch_first=True)
        self.head = torch.nn.Linear(H, CLASSES)

    def forward(self, x):
        y, _ = self.layer(x)
        return self.head(y[:, -1])


def perceptron(H):
    return torch.nn.Sequential(torch.nn.Linear(features("mlp", H), H), torch.nn.ReLU(), torch.nn.Linear(H, CLASSES))


class LastStep(torch.nn.Module):
    def forward(self, y):
        return y[:, -1]


def whole_net(kind, H):
    """Returns a net of bench/whole_nets.h."""
    if kind == "cnn":
        parts = []
        for inputs, outputs in ((1, H), (H, 2 * H)):
            parts += [torch.nn.Conv2d(inputs, outputs, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
        return torch.nn.Sequential(*parts, torch.nn.Flatten(), torch.nn.Linear(2 * H * 7 * 7, CLASSES))
    layers = [torch.nn.TransformerEncoderLayer(H, 4, 4 * H, dropout=0, batch_first=True) for _ in range(2)]
    return torch.nn.Sequential(*layers, LastStep(), torch.nn.Linear(H, CLASSES))


def give_up(*_):
    raise Absent(f"not compiled within {PATIENCE} s")


def compiled(function, job, kind, T, example):
    """Returns the function compiled by torch.compile. That unrolls the layer (allow_rnn; without it the layer would run
    as if not compiled), which may take minutes: the time is bounded, and as many steps are not tried again."""
    if T >= too_long.get((job, kind), T + 1):
        raise Absent("took too long for fewer steps")
    torch._dynamo.reset()
    torch._dynamo.config.allow_rnn = True
    wrapped = torch.compile(function)
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        wrapped(example)
    except Exception as error:  # the compiler wraps what interrupts it; its own failure is a result, too
        reason = " ".join(str(error).split())
        if "not compiled within" in reason:
            too_long[(job, kind)] = T
            give_up()
        raise Absent(f"{type(error).__name__}: {reason[:200]}") from None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return wrapped


def main():
    form = sys.argv[1]
    torch.set_num_threads(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    torch.set_flush_denormal(True)

    def make(job, kind, H, T, B):
        torch.manual_seed(1)
        own = kind in torch_cells.LAYERS
        if own:
            x = torch_cells.data(H, T, B)
            model = torch_cells.layer(kind, H)
        elif kind in WHOLE:
            x = torch.rand(*((B, 1, 28, 28) if kind == "cnn" else (B, T, H))) * 2 - 1
            model = whole_net(kind, H)
        else:
            x = torch.rand(*((B,) if kind == "mlp" else (B, T)), features(kind, H)) * 2 - 1
            model = perceptron(H) if kind == "mlp" else Model(kind, H)
        if job == "forward":
            layer = (model if own else model.layer).eval()
            outputs = layer if own else Outputs(layer).eval()
            with torch.no_grad():
                if form == "compile":
                    layer = compiled(lambda v, run=outputs: run(v), job, kind, T, x)
                if form == "script":
                    layer = torch.jit.freeze(torch.jit.script(outputs))

            def forward():
                with torch.no_grad():
                    return layer(x)

            return forward
        targets = torch.arange(B) % CLASSES
        adam = torch.optim.Adam(model.parameters(), fused=True)
        run = torch.jit.script(model) if form == "script" else model

        def loss_of(v):
            if own:
                return run(v).square().mean()
            return torch.nn.functional.cross_entropy(run(v), targets)

        whole = compiled(loss_of, job, kind, T, x) if form == "compile" else loss_of

        def train():
            adam.zero_grad(set_to_none=True)
            loss = whole(x)
            loss.backward()
            adam.step()
            return loss

        return train

    serve(f"torch {torch.__version__}", make, lambda y: y[:, -1])


if __name__ == "__main__":
    main()
