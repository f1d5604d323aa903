#!/usr/bin/env python3
"""Writes training.safetensors: the losses of 50 training steps in PyTorch, f64, from stored weights and batches.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_training_fixture.py [FOLDER]

GRU(5, 8) + last step + Linear(8, 4), mean cross-entropy; x [50, 6, 7, 5], y i64 [50, 6]; init/NAME are the first weights;
OPTIMISER/losses [50] and OPTIMISER/final/NAME what came of them. lr/step and lr/cosine [12] are the rates of schedules.
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch import nn

STEPS = 50


def net():
    return nn.ModuleDict({"0": nn.GRU(5, 8, batch_first=True), "2": nn.Linear(8, 4)}).double()


def forward(model, x):
    return model["2"](model["0"](x)[0][:, -1])


OPTIMISERS = {
    "adam": (lambda p: torch.optim.Adam(p, lr=1e-2), False),
    "adam_decay": (lambda p: torch.optim.Adam(p, lr=1e-2, weight_decay=1e-2), False),
    "adamw": (lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=1e-2), False),
    "sgd": (lambda p: torch.optim.SGD(p, lr=0.1), False),
    "sgd_nesterov": (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3), False),
    "sgd_momentum": (lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8), False),
    "rmsprop": (lambda p: torch.optim.RMSprop(p), False),
    "rmsprop_momentum": (lambda p: torch.optim.RMSprop(p, lr=3e-3, momentum=0.8), False),
    "rmsprop_centered": (lambda p: torch.optim.RMSprop(p, alpha=0.95, centered=True), False),
    "rmsprop_decay": (lambda p: torch.optim.RMSprop(p, eps=1e-3, weight_decay=1e-2), False),
    "rmsprop_all": (lambda p: torch.optim.RMSprop(p, lr=2e-3, alpha=0.9, eps=1e-6, weight_decay=1e-2, momentum=0.7,
                                                  centered=True), False),
    "adam_clip_cosine": (lambda p: torch.optim.Adam(p, lr=1e-2), True),
}


def rates(make):
    optimiser = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.3)
    schedule = make(optimiser)
    out = []
    for _ in range(12):
        out.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    return torch.tensor(out, dtype=torch.float64)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    torch.manual_seed(3)
    x = torch.randn(STEPS, 6, 7, 5).double()
    y = torch.randint(0, 4, (STEPS, 6))
    first = {name: t.float().double() for name, t in net().state_dict().items()}
    tensors = {"x": x, "y": y} | {f"init/{name}": t for name, t in first.items()}
    for kind, (make, clipped) in OPTIMISERS.items():
        model = net()
        model.load_state_dict(first)
        optimiser = make(model.parameters())
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS) if clipped else None
        losses = []
        for step in range(STEPS):
            loss = nn.functional.cross_entropy(forward(model, x[step]), y[step])
            optimiser.zero_grad()
            loss.backward()
            if clipped:
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimiser.step()
            if schedule:
                schedule.step()
            losses.append(loss.item())
        tensors[f"{kind}/losses"] = torch.tensor(losses, dtype=torch.float64)
        for name, t in model.state_dict().items():
            tensors[f"{kind}/final/{name}"] = t
    tensors["lr/step"] = rates(lambda o: torch.optim.lr_scheduler.StepLR(o, 4, 0.5))
    tensors["lr/cosine"] = rates(lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10, 0.02))
    save_file({name: t.clone().contiguous() for name, t in tensors.items()}, folder / "training.safetensors",
              {"torch": torch.__version__})


if __name__ == "__main__":
    main()
