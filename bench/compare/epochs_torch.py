#!/usr/bin/env python3
"""PyTorch's answers to epochs.py: epochs_torch.py NET THREADS eager|compile trains NET for one more epoch for every
line that it reads, and prints the seconds of that epoch. The nets, sizes, optimisers and clipping are those of
bench/bench_epochs.cpp; batches are rows of tensors in memory, taken by index_select, and optimisers are fused.
"""
import os
import signal
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

PATIENCE = int(os.environ.get("FERRITE_COMPILE_SECONDS", "60"))  # for the first epoch of torch.compile


def draw(*shape):
    return torch.rand(*shape) * 2 - 1


def lengths_of(n, least, most):
    return torch.tensor([least + i * 7 % (most - least + 1) for i in range(n)])


class Last(nn.Module):
    """A GRU, its output at the last step within the lengths, and a linear layer."""

    def __init__(self, features, units, outputs):
        super().__init__()
        self.gru, self.head = nn.GRU(features, units, batch_first=True), nn.Linear(units, outputs)
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("deviation", torch.ones(features))

    def forward(self, x, last=None):
        y = self.gru(x)[0]
        return self.head(y[:, -1] if last is None else y[torch.arange(len(x)), last])


class Standardized(Last):
    def forward(self, x):
        return super().forward((x - self.mean) / self.deviation)


class Everywhere(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.head = nn.GRU(1, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.gru(x)[0])


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.gru, self.head = nn.Embedding(96, 32), nn.GRU(32, 128, batch_first=True), nn.Linear(128, 96)

    def forward(self, x, h):
        y, h = self.gru(self.embedding(x), h)
        return self.head(y), h


class Causal(nn.Module):
    def __init__(self, inputs, dilation):
        super().__init__()
        self.padding, self.convolution = 2 * dilation, nn.Conv1d(inputs, 12, 3, dilation=dilation)

    def forward(self, x):
        return torch.tanh(self.convolution(F.pad(x, (self.padding, 0))))


class Overdrive(nn.Module):
    """The net with channels first, as PyTorch prefers: its linear layers are convolutions of width 1."""

    def __init__(self):
        super().__init__()
        self.first = Causal(1, 1)
        self.blocks = nn.ModuleList(nn.Sequential(Causal(12, d), nn.Conv1d(12, 12, 1)) for d in (2, 4, 8, 16, 32))
        self.head = nn.Conv1d(12, 1, 1)

    def forward(self, x):
        y = self.first(x)
        for block in self.blocks:
            y = y + block(y)
        return self.head(y)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16))
        self.decoder = nn.Sequential(nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, x):
        mean, log_deviation = self.encoder(x).chunk(2, 1)
        deviation = log_deviation.exp()
        logits = self.decoder(mean + deviation * torch.randn_like(mean))
        divergence = 0.5 * (mean.square() + deviation.square() - 1) - log_deviation
        return (F.binary_cross_entropy_with_logits(logits, x, reduction="sum") + divergence.sum()) / len(x)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters, self.digits = nn.Embedding(96, 32), nn.Embedding(96, 32)
        self.encoder = nn.GRU(32, 32, batch_first=True, bidirectional=True)
        self.decoder, self.head = nn.GRU(32, 64, batch_first=True), nn.Linear(128, 96)

    def forward(self, x, lengths, y):
        packed = nn.utils.rnn.pack_padded_sequence(self.letters(x), lengths, batch_first=True, enforce_sorted=False)
        read = nn.utils.rnn.pad_packed_sequence(self.encoder(packed)[0], batch_first=True, total_length=x.shape[1])[0]
        said = self.decoder(self.digits(y))[0]
        seen = (torch.arange(x.shape[1]) < lengths[:, None])[:, None]
        return self.head(torch.cat([said, F.scaled_dot_product_attention(said, read, read, seen)], 2))


class Names(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.places = nn.Embedding(27, 48), nn.Embedding(17, 48)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(48, 4, 128, 0.1, "gelu", batch_first=True, norm_first=True) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(48), nn.Linear(48, 27)

    def forward(self, x):
        T = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(T)
        y = self.embedding(x) + self.places(torch.arange(T))
        for layer in self.layers:
            y = layer(y, mask, is_causal=True)
        return self.head(self.norm(y))


def perceptron(*sizes):
    parts = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        parts += [nn.Linear(inputs, outputs), nn.Tanh()]
    return nn.Sequential(*parts[:-1])


def convolutional():
    def block(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(*block(1, 16), *block(16, 32), nn.MaxPool2d(2), *block(32, 32), nn.Flatten(), nn.Dropout(0.3),
                         nn.Linear(512, 10))


class Training:
    """A net with its optimiser. `step` takes the rows of a batch and returns its loss."""

    def __init__(self, net, compiled, rate, decay=None, clip=0.0):
        self.net, self.clip = net, clip
        self.call = torch.compile(net) if compiled else net
        parameters = list(net.parameters())
        self.optimizer = (torch.optim.Adam(parameters, rate, fused=True) if decay is None else
                          torch.optim.AdamW(parameters, rate, weight_decay=decay, fused=True))
        self.sums = {}

    def update(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        if self.clip:
            nn.utils.clip_grad_norm_(self.net.parameters(), self.clip)
        self.optimizer.step()
        return loss.detach()

    def epoch(self, n, size, step, order=True):
        """Trains an epoch; returns its loss, read once, and the number of hits if the step counts them."""
        total, hits = 0, 0
        for rows in (torch.randperm(n) if order else torch.arange(n)).split(size):
            loss, right = step(rows)
            total, hits = total + loss * len(rows), hits + right
        return float(total), float(hits)


def of_tensors(net, compiled, x, y, loss, size, counts=False, **options):
    """Returns the training of a net on rows of x whose output a loss compares with rows of y."""
    training = Training(net, compiled, **options)

    def step(rows):
        output, wanted = training.call(x[rows]), y[rows]
        value = training.update(loss(output, wanted))
        return value, (output.argmax(1) == wanted).sum() if counts else 0

    return lambda: training.epoch(len(x), size, step)


def classes(*shape, C):
    return torch.randint(0, C, shape)


def text(compiled):
    training = Training(Text(), compiled, 4e-3, clip=1.0)
    characters = classes(15536, C=96)
    of_row = (len(characters) - 1) // 16
    x = characters[: 16 * of_row].view(16, of_row)
    y = characters[1 : 16 * of_row + 1].view(16, of_row)

    def epoch():
        h, total = torch.zeros(1, 16, 128), 0
        for t in range(0, of_row - 49, 50):
            logits, h = training.call(x[:, t : t + 50], h.detach())
            total = total + training.update(F.cross_entropy(logits.flatten(0, 1), y[:, t : t + 50].reshape(-1)))
        return float(total)  # its exp is the perplexity

    return epoch


def fine_tune(compiled):
    training = Training(Last(12, 64, 3), compiled, 3e-4, clip=1.0)
    lengths, x, y = lengths_of(54, 7, 26), draw(54, 26, 12), classes(54, C=3)

    def step(rows):
        n = lengths[rows]
        return training.update(F.cross_entropy(training.call(x[rows, : n.max()], n - 1), y[rows])), 0

    return lambda: training.epoch(54, 8, step)


def overdrive(compiled):
    dry = draw(256, 1, 1000)

    def esr(output, wanted):
        return ((wanted - output).square().sum(2) / (wanted.square().sum(2) + 1e-8)).mean()

    return of_tensors(Overdrive(), compiled, dry, torch.tanh(3 * dry), esr, 8, rate=4e-3)


def digits_vae(compiled):
    training, x = Training(Autoencoder(), compiled, 2e-3), torch.rand(1437, 64)
    return lambda: training.epoch(1437, 64, lambda rows: (training.update(training.call(x[rows])), 0))


def pole(compiled):
    training = Training(perceptron(4, 64, 64, 3), compiled, 1e-3, clip=0.5)
    x, actions, before = draw(2048, 4), classes(2048, C=2), (torch.rand(2048) * 0.2 + 0.4).log()
    advantage, returns = draw(2048), draw(2048)

    def loss(y, rows):
        log_p = torch.log_softmax(y[:, :2], 1)
        ratio = torch.exp(log_p.gather(1, actions[rows, None])[:, 0] - before[rows])
        gain = torch.minimum(ratio * advantage[rows], ratio.clamp(0.8, 1.2) * advantage[rows])
        chance = -(log_p.exp() * log_p).sum(1)
        return (0.5 * (y[:, 2] - returns[rows]).square() - gain - 0.01 * chance).mean()

    def update():
        for _ in range(6):
            training.epoch(2048, 256, lambda rows: (training.update(loss(training.call(x[rows]), rows)), 0))

    return update


def dates(compiled):
    training = Training(Translator(), compiled, 3e-3, clip=1.0)
    lengths = lengths_of(4000, 8, 22)
    x, before, after = classes(4000, 24, C=96), classes(4000, 10, C=96), classes(4000, 10, C=96)
    buckets = [((lengths <= 12).nonzero()[:, 0], 12), ((lengths > 12).nonzero()[:, 0], 24)]

    def epoch():
        batches = [(rows, T) for all_, T in buckets for rows in all_[torch.randperm(len(all_))].split(64)]
        total = 0
        for i in torch.randperm(len(batches)).tolist():
            rows, T = batches[i]
            logits = training.call(x[rows, :T], lengths[rows], before[rows])
            loss = F.cross_entropy(logits.flatten(0, 1), after[rows].flatten())
            total = total + training.update(loss) * len(rows)
        return float(total)

    return epoch


def names(compiled):
    training = Training(Names(), compiled, 2e-3, decay=1e-2, clip=1.0)
    lengths = lengths_of(4647, 3, 12)
    x = classes(4647, 12, C=27)
    y = x.masked_fill(torch.arange(12) >= lengths[:, None], -100)

    def step(rows):
        T = lengths[rows].max()
        return training.update(F.cross_entropy(training.call(x[rows, :T]).flatten(0, 1), y[rows, :T].flatten())), 0

    return lambda: training.epoch(4647, 32, step)


NETS = {
    "sunspots": lambda c: of_tensors(Standardized(1, 16, 1), c, draw(206, 24, 1), draw(206, 1), F.mse_loss, 16,
                                     rate=5e-3, decay=1e-2, clip=1.0),
    "text": text,
    "digits_mlp": lambda c: of_tensors(
        nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10)), c, draw(1257, 64),
        classes(1257, C=10), F.cross_entropy, 64, counts=True, rate=3e-3),
    "digits": lambda c: of_tensors(convolutional(), c, draw(1437, 1, 8, 8), classes(1437, C=10), F.cross_entropy, 64,
                                   counts=True, rate=2e-3),
    "fine_tune": fine_tune,
    "overdrive": overdrive,
    "digits_vae": digits_vae,
    "pole": pole,
    "dates": dates,
    "anomaly": lambda c: of_tensors(Everywhere(), c, draw(246, 64, 1), draw(246, 64, 1), F.mse_loss, 32, rate=1e-2,
                                    clip=1.0),
    "ensemble": lambda c: of_tensors(perceptron(1, 32, 32, 1), c, draw(200, 1), draw(200, 1), F.mse_loss, 32, rate=1e-2),
    "names": names,
}


def give_up(*_):
    print("none", f"not compiled within {PATIENCE} s", flush=True)
    os._exit(0)


def main():
    net, threads, form = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    epoch = NETS[net](form == "compile")
    if form == "compile":
        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(PATIENCE)
    try:
        for _ in range(2):
            epoch()
    except Exception as error:  # from the compiler: its first line says what it cannot do
        print("none", f"{type(error).__name__}: {str(error).strip().splitlines()[0][:80]}", flush=True)
        return
    signal.alarm(0)
    print(f"torch {torch.__version__.split('+')[0]}", flush=True)
    for _ in sys.stdin:
        begun = time.perf_counter()
        epoch()
        print(time.perf_counter() - begun, flush=True)


if __name__ == "__main__":
    main()
