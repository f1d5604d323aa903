"""Random layers and calls of them, for comparisons with PyTorch's own."""
import random

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence

import ferrite.torch

PLAIN = {"GRU": torch.nn.GRU, "LSTM": torch.nn.LSTM, "RNN": torch.nn.RNN}
OURS = {"GRU": ferrite.torch.GRU, "LSTM": ferrite.torch.LSTM, "RNN": ferrite.torch.RNN}


class Case:
    """A layer of PyTorch with random options and weights, and operands for a call."""

    def __init__(self, seed):
        r = self.random = random.Random(seed)
        torch.manual_seed(seed)
        self.dtype = r.choice([torch.float32, torch.float64])
        self.name = r.choice(["GRU", "LSTM", "RNN"])
        D, H = r.choice([1, 2, 5, 8, 16, 19]), r.choice([1, 2, 7, 8, 16, 17, 33])
        options = {"num_layers": r.choice([1, 1, 2, 3]), "bidirectional": r.random() < 0.4,
                   "batch_first": r.random() < 0.5, "bias": r.random() < 0.7}
        if self.name == "LSTM" and H > 1 and r.random() < 0.4:
            options["proj_size"] = r.randint(1, H - 1)
        if self.name == "RNN" and r.random() < 0.5:
            options["nonlinearity"] = "relu"
        self.options = {"input_size": D, "hidden_size": H, **options}
        self.module = PLAIN[self.name](**self.options).to(self.dtype)
        count = options["num_layers"] * (2 if options["bidirectional"] else 1)
        T, B = r.choice([1, 2, 3, 9, 20]), r.choice([1, 2, 3, 9])
        self.form = r.choice(["batch", "batch", "unbatched", "packed", "unsorted", "sequences"])
        if self.form == "unbatched":
            B, shape = 1, (T, D)
        else:
            shape = (B, T, D) if options["batch_first"] else (T, B, D)
        self.lengths = sorted((r.randint(1, T) for _ in range(B)), reverse=self.form == "packed")
        if self.form == "unsorted":
            r.shuffle(self.lengths)
        if self.form in ("packed", "unsorted"):
            self.lengths[0 if self.form == "packed" else r.randrange(B)] = T
        x = torch.randn(shape, dtype=self.dtype)
        if self.form == "batch" and r.random() < 0.3:  # a view of other strides
            x = torch.randn((*shape[:-1], 2 * D), dtype=self.dtype)[..., ::2] if r.random() < 0.5 else (
                torch.randn((shape[1], shape[0], D), dtype=self.dtype).transpose(0, 1))
        self.x = x
        width = options.get("proj_size", H)
        self.state = None
        if r.random() < 0.5:
            rows = () if self.form == "unbatched" else (B,)
            if r.random() < 0.2 and rows:  # one learned state for all rows
                h, c = torch.randn(count, 1, width), torch.randn(count, 1, H)
                self.expand = (count, B)
            else:
                h, c, self.expand = torch.randn(count, *rows, width), torch.randn(count, *rows, H), None
            self.state = [h.to(self.dtype), c.to(self.dtype)]
        self.wants_x = r.random() < 0.5
        self.wants_state = [r.random() < 0.5, r.random() < 0.5]
        frozen = r.random() < 0.4
        self.wants_weights = [not frozen or r.random() < 0.5 for _ in self.module.parameters()]
        self.reads = r.choice(["all", "y", "h", "c"])

    def ours(self):
        module = OURS[self.name](**self.options).to(self.dtype)
        module.load_state_dict(self.module.state_dict())
        return module

    def call(self, module):
        """Calls a module and differentiates; returns the results and the gradients, None where there is none."""
        for p, w in zip(module.parameters(), self.wants_weights):
            p.requires_grad_(w)
            p.grad = None
        x = self.x.detach().requires_grad_(self.wants_x)
        leaves = [x]
        hx = None
        if self.state is not None:
            leaves += [s.detach().requires_grad_(w) for s, w in zip(self.state, self.wants_state)]
            given = [s if self.expand is None else s.expand(*self.expand, -1) for s in leaves[1:]]
            hx = tuple(given) if self.name == "LSTM" else given[0]
        if self.form in ("packed", "unsorted"):
            batch_first = self.options["batch_first"]
            x = pack_padded_sequence(x, self.lengths, batch_first, enforce_sorted=self.form == "packed")
        elif self.form == "sequences":
            rows = [(x[b] if self.options["batch_first"] else x[:, b])[:n] for b, n in enumerate(self.lengths)]
            x = pack_sequence(rows, enforce_sorted=False)
        y, states = module(x, hx)
        ordered = () if not isinstance(y, torch.nn.utils.rnn.PackedSequence) else y[1:]
        y = y.data if ordered else y
        h, *c = states if self.name == "LSTM" else (states,)
        results = [y, h, *c]
        read = {"all": results, "y": [y], "h": [h], "c": c or [h]}[self.reads]
        torch.manual_seed(5)
        cotangents = [torch.randn(r.shape, dtype=r.dtype) for r in read]
        wanted = [(r, g) for r, g in zip(read, cotangents) if r.requires_grad]
        if wanted:
            torch.autograd.backward(*zip(*wanted))
        grads = [t.grad for t in leaves] + [p.grad for p in module.parameters()]
        return [r.detach() for r in results], grads, ordered, [r.requires_grad for r in results]


def close(actual, expected, dtype):
    """Whether two tensors agree to the accuracy of the dtype, relative to the largest element."""
    scale = max(1.0, expected.abs().max().item()) if expected.numel() else 1.0
    tolerance = 3e-5 if dtype == torch.float32 else 1e-12
    return actual.shape == expected.shape and actual.dtype == expected.dtype and (
        expected.numel() == 0 or (actual - expected).abs().max().item() <= tolerance * scale)
