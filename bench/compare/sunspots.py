"""Compares the forecast of examples/sunspots.cpp with PyTorch's: the same net, data, optimiser and number of epochs;
root mean square errors over seeds. Another generator draws the first weights and the order of batches, so that single
seeds differ.

    python3 bench/compare/sunspots.py --program build/release/examples/sunspots [--seeds 5]
"""
import argparse
import pathlib
import re
import statistics
import subprocess

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAST, FIRST = 24, 230


class Net(torch.nn.Module):
    def __init__(self, windows):
        super().__init__()
        self.mean, self.deviation = windows.mean(), windows.std(unbiased=False)
        self.gru, self.head = torch.nn.GRU(1, 16, batch_first=True), torch.nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.gru((x - self.mean) / self.deviation)[0][:, -1])


def torch_error(series, epochs, seed):
    torch.manual_seed(seed)
    x = series.unfold(0, PAST, 1)[:-1].unsqueeze(2)
    y = series[PAST:].unsqueeze(1)
    split = FIRST - PAST
    net = Net(x[:split])
    adam = torch.optim.AdamW(net.parameters(), lr=5e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(adam, epochs)
    for _ in range(epochs):
        for rows in torch.randperm(split).split(16):
            adam.zero_grad()
            torch.nn.functional.mse_loss(net(x[rows]), y[rows]).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1)
            adam.step()
        schedule.step()
    with torch.no_grad():
        return 100 * (net(x[split:]) - y[split:]).square().mean().sqrt().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/examples/sunspots"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=80)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = (ROOT / "data/sunspots.csv").read_text().split("\n")[1:-1]
    series = torch.tensor([float(r.split(",")[1]) for r in rows]) / 100
    theirs, ours = [], []
    for seed in range(options.seeds):
        theirs.append(torch_error(series, options.epochs, seed))
        text = subprocess.run([options.program, "--epochs", str(options.epochs), "--seed", str(seed)], capture_output=True, text=True).stdout
        ours.append(float(re.search(r"square error ([0-9.]+)", text)[1]))
    for name, errors in (("torch " + torch.__version__, theirs), ("Ferrite", ours)):
        print(f"{name}: mean {statistics.mean(errors):.2f}, from {min(errors):.2f} to {max(errors):.2f}")


if __name__ == "__main__":
    main()
