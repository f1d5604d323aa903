#!/usr/bin/env python3
"""PyTorch's answers to strengths.py: strengths_torch.py eager|compile."""
import signal
import sys
import time

import torch

from peer import Absent, microseconds
from strengths import LAYERS, PATIENCE, lengths, resets, serve



class LayerNormGru(torch.nn.Module):
    """A cell as a user writes it: layer norm of the gates' sums (nn::LayerNormGruCell)."""

    def __init__(self, H):
        super().__init__()
        self.i, self.h = torch.nn.Linear(H, 3 * H, bias=False), torch.nn.Linear(H, 3 * H, bias=False)
        self.norm_i = torch.nn.ModuleList(torch.nn.LayerNorm(H) for _ in range(3))
        self.norm_h = torch.nn.ModuleList(torch.nn.LayerNorm(H) for _ in range(3))

    def forward(self, x):
        h = x.new_zeros(x.shape[0], x.shape[2])
        steps = []
        inputs = [norm(part) for norm, part in zip(self.norm_i, self.i(x).chunk(3, -1))]
        for t in range(x.shape[1]):
            a = [norm(part) for norm, part in zip(self.norm_h, self.h(h).chunk(3, -1))]
            r, z = torch.sigmoid(inputs[0][:, t] + a[0]), torch.sigmoid(inputs[1][:, t] + a[1])
            n = torch.tanh(inputs[2][:, t] + r * a[2])
            h = n + z * (h - n)
            steps.append(h)
        return torch.stack(steps, 1)


class WithResets(torch.nn.Module):
    """A GRUCell run step by step, because nn.GRU has no resets."""

    def __init__(self, H):
        super().__init__()
        self.cell = torch.nn.GRUCell(H, H)

    def forward(self, x, keep):
        h = x.new_zeros(x.shape[0], x.shape[2])
        steps = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h * keep[:, t : t + 1])
            steps.append(h)
        return torch.stack(steps, 1)


def give_up(*_):
    raise Absent(f"not ready within {PATIENCE} s")


def first(form, H, T, B):
    x = torch.rand(B, T, H) * 2 - 1
    torch._dynamo.reset()
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        start = time.perf_counter()
        layer = LayerNormGru(H)
        adam = torch.optim.Adam(layer.parameters(), fused=True)
        run = torch.compile(layer) if form == "compile" else layer
        run(x).square().mean().backward()
        adam.step()
        return 1e6 * (time.perf_counter() - start)
    except Exception as error:
        if "not ready within" in str(error):
            give_up()
        raise
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def bits(H, T, B):
    gru = torch.nn.GRU(H, H, batch_first=True).eval()
    x = torch.rand(B, T, H) * 2 - 1
    with torch.no_grad():
        whole = gru(x)[0]
        return max((gru(x[b : b + 1])[0] - whole[b : b + 1]).abs().max().item() for b in range(B))


def layer_job(job, H, T, B):
    gru = torch.nn.GRU(H, H, batch_first=True)
    x = torch.rand(B, T, H) * 2 - 1
    if job.startswith("lengths"):
        n = torch.tensor(lengths(T, B))

        def outputs():
            packed = torch.nn.utils.rnn.pack_padded_sequence(x, n, batch_first=True, enforce_sorted=False)
            return torch.nn.utils.rnn.pad_packed_sequence(gru(packed)[0], batch_first=True, total_length=T)[0]
    elif job.startswith("resets"):
        gru = WithResets(H)
        keep = torch.tensor(resets(T, B)) == 0

        def outputs():
            return gru(x, keep)
    else:

        def outputs():
            return gru(x)[0]

    if not job.endswith("_train"):

        def forward():
            with torch.no_grad():
                return outputs()

        return forward
    adam = torch.optim.Adam(gru.parameters(), fused=True)

    def train():
        adam.zero_grad(set_to_none=True)
        outputs().square().mean().backward()
        adam.step()

    return train


def answer(job, H, T, B, seconds):
    form = sys.argv[1]
    if job == "first":
        return first(form, H, T, B)
    if form == "compile" or job == "many_streams":
        raise Absent("not asked")
    if job == "bits":
        return bits(H, T, B)
    if job == "many":
        layers = [torch.nn.GRU(H, H, batch_first=True).eval() for _ in range(LAYERS)]
        x = torch.rand(B, T, H)

        def run():
            with torch.no_grad():
                return [layer(x)[0] for layer in layers]

        return microseconds(run, seconds)
    return microseconds(layer_job(job, H, T, B), seconds)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    name = "torch.compile" if sys.argv[1] == "compile" else "torch"
    serve(f"{name} {torch.__version__}", answer)
