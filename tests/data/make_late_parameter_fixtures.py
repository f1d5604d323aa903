#!/usr/bin/env python3
"""Writes late_parameters.safetensors: runs of PyTorch's optimisers in which parameters have no gradient in some steps.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_late_parameter_fixtures.py [FOLDER]

Parameters w [4, 3], b [5] and k [2, 3, 2] start at init/NAME, all f64; the gradient of step t is
g/NAME[t % 20] + NAME / 10 where has/PATTERN/NAME[t] is 1, and None where it is 0. A run is named as in
optimizers.safetensors; run/PATTERN/RUN/NAME are the parameters after the last step. Patterns: "frozen", b joins after 10
steps; "gaps", k and b miss some; "idle", b joins after 1000 steps, k rests for 990 after its tenth.
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file

SHAPES = {"w": (4, 3), "b": (5,), "k": (2, 3, 2)}
RUNS = [("SGD", {"lr": 0.05, "momentum": 0.8, "dampening": 0.3}), ("SGD", {"lr": 0.05, "momentum": 0.7, "nesterov": True}),
        ("SGD", {"lr": 0.05, "momentum": 0.8, "dampening": 0.3, "weight_decay": 0.1, "maximize": True}),
        ("Adam", {"lr": 0.02}), ("Adam", {"lr": 0.02, "weight_decay": 0.1, "maximize": True}),
        ("Adam", {"lr": 0.02, "amsgrad": True}), ("AdamW", {"lr": 0.02, "weight_decay": 0.1}),
        ("AdamW", {"lr": 0.02, "weight_decay": 0.1, "amsgrad": True}),
        ("NAdam", {"lr": 0.02}), ("NAdam", {"lr": 0.02, "weight_decay": 0.1, "momentum_decay": 0.05}),
        ("RAdam", {"lr": 0.02}), ("RAdam", {"lr": 0.02, "betas": (0.8, 0.95), "weight_decay": 0.1}),
        ("Adamax", {"lr": 0.02}), ("Adagrad", {"lr": 0.05, "lr_decay": 0.1}), ("Adadelta", {"lr": 1.0}),
        ("Adafactor", {"lr": 0.05}), ("Adafactor", {"lr": 0.05, "beta2_decay": -0.5, "weight_decay": 0.1}),
        ("RMSprop", {"lr": 0.01, "momentum": 0.9, "centered": True})]


def patterns():
    """Whether each parameter has a gradient, by step."""
    always = lambda t: True
    yield "frozen", 24, {"w": always, "b": lambda t: t >= 10, "k": always}
    yield "gaps", 24, {"w": always, "b": lambda t: t % 2 == 1, "k": lambda t: t % 3 != 1}
    yield "idle", 1010, {"w": always, "b": lambda t: t >= 1000, "k": lambda t: t < 10 or t >= 1000}


def spelled(kind, options):
    words = [kind]
    for key, value in options.items():
        values = value if isinstance(value, tuple) else (value,)
        words.append(f"{key}={','.join(str(float(v)) if not isinstance(v, bool) else str(int(v)) for v in values)}")
    return " ".join(words)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    torch.set_default_dtype(torch.float64)  # NAdam's product of momenta is of this dtype
    torch.manual_seed(17)
    first = {name: torch.randn(shape, dtype=torch.float32).double() for name, shape in SHAPES.items()}
    gradients = {name: torch.randn((20, *shape), dtype=torch.float32).double() for name, shape in SHAPES.items()}
    tensors = {f"init/{name}": t for name, t in first.items()} | {f"g/{name}": t for name, t in gradients.items()}
    for pattern, steps, has in patterns():
        for name in SHAPES:
            tensors[f"has/{pattern}/{name}"] = torch.tensor([int(has[name](t)) for t in range(steps)])
        for kind, options in RUNS:
            parameters = {name: torch.nn.Parameter(t.clone()) for name, t in first.items()}
            optimiser = getattr(torch.optim, kind)(parameters.values(), **options)
            for t in range(steps):
                for name, p in parameters.items():
                    p.grad = gradients[name][t % 20] + p.detach() / 10 if has[name](t) else None
                optimiser.step()
            for name, p in parameters.items():
                tensors[f"run/{pattern}/{spelled(kind, options)}/{name}"] = p.detach()
    save_file({name: t.clone().contiguous() for name, t in tensors.items()}, folder / "late_parameters.safetensors",
              {"torch": torch.__version__})


if __name__ == "__main__":
    main()
