#!/usr/bin/env python3
"""Checks that PyTorch goes on from states of optimisers that we wrote in the middle of runs, as we do.

    python3 tests/data/check_torch_optimizer.py FOLDER

FOLDER holds CLASS.pt, our state after 10 steps, and ours.safetensors with our parameters then, mid/CLASS/NAME, and after
20, end/CLASS/NAME.
"""
import pathlib
import sys

import torch
from safetensors.torch import load_file

from make_optimizer_fixtures import EXCHANGED, GROUPS, STEPS, in_groups, steps_of


def main():
    torch.set_default_dtype(torch.float64)
    folder, data = pathlib.Path(sys.argv[1]), pathlib.Path(__file__).parent
    given, ours = load_file(data / "torch_optimizers.safetensors"), load_file(folder / "ours.safetensors")
    gradients = {name: given[f"g/{name}"] for name in EXCHANGED}
    worst = 0.0
    for kind in GROUPS:
        parameters = {name: torch.nn.Parameter(ours[f"mid/{kind}/{name}"].clone()) for name in EXCHANGED}
        optimiser = in_groups(kind, parameters)
        for group in optimiser.param_groups:
            group["lr"] = 123.0  # the file's is loaded
        optimiser.load_state_dict(torch.load(folder / f"{kind}.pt", weights_only=True))
        steps_of(optimiser, parameters, gradients, range(10, STEPS))
        for name, p in parameters.items():
            error = (p.detach() - ours[f"end/{kind}/{name}"]).abs().max().item()
            assert error <= 1e-10, f"{kind}: {name}: {error}"
            worst = max(worst, error)
    print(f"{len(GROUPS)} optimisers continued by PyTorch, at most {worst:.1e} apart")
    return 0


if __name__ == "__main__":
    sys.exit(main())
