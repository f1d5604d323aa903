"""A program that mypy accepts in its strict mode: the types of the package are complete. It is checked, not run."""
import numpy as np

import ferrite
from ferrite import nn, optim


def first(x: ferrite.Tensor) -> float:
    y: ferrite.Tensor = (x @ x.T + 1.0) * 2
    shape: tuple[int, ...] = y.shape
    return float(y.sum()) + len(shape)


net = ferrite.sequence(3).gru(16, num_layers=2).last_step().linear(1).build(seed=0)
x = ferrite.tensor(np.zeros((4, 10, 3), "float32"))
out: ferrite.Tensor = net(x)
adam = optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.99))
layer = nn.GRU(3, 8, bidirectional=True)
loss: ferrite.Tensor = nn.mse_loss(net(x), out, reduction="sum")
first(x)
