#!/usr/bin/env python3
"""Writes torch_scripted/*.pt by torch.jit.save and, beside each, *.safetensors with the state_dict() of the module.

    python3 -m pip install -r tests/data/requirements.txt && python3 tests/data/make_scripted_fixtures.py [FOLDER]
"""
import enum
import pathlib
import sys
import typing
import warnings

import torch
from torch import nn

from make_torch_fixtures import LOADED
from reference import save_file


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(2, 3)
        self.out = nn.Linear(3, 1)

    def forward(self, x):
        return self.out(self.gru(x)[0])


class Tower(nn.Module):
    """Modules in modules, a convolution with its norm, and modules in lists and dictionaries by PyTorch's names."""

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([nn.Sequential(nn.Conv1d(2, 3, 3, bias=False), nn.BatchNorm1d(3), nn.ReLU()),
                                     nn.Sequential(nn.Conv1d(3, 2, 1), nn.Identity())])
        self.heads = nn.ModuleDict({"mean": nn.Linear(1, 1), "scale": nn.Linear(1, 1, bias=False)})
        self.gains = nn.ParameterList([torch.full([2], 2.0), torch.full([1], 3.0)])

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.heads["mean"](x) * self.heads["scale"](x)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.again = self.first
        self.tied = nn.Linear(2, 2, bias=False)
        self.tied.weight = self.first.weight

    def forward(self, x):
        return self.tied(self.again(self.first(x)))


class Dtypes(nn.Module):
    def __init__(self):
        super().__init__()
        values = torch.linspace(-40, 40, 5)
        for kind in (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool):
            value = values.abs() if kind == torch.uint8 else values
            self.register_buffer(f"of_{kind}".replace("torch.", ""), value.to(kind))
        self.exact = nn.Parameter(values.double() / 3)
        self.register_buffer("columns", torch.arange(12.0).reshape(3, 4)[:, ::2])

    def forward(self, x):
        return x + self.exact.sum()


class Empty(nn.Module):
    def forward(self, x):
        return x


class Colour(enum.Enum):
    RED = 1


class Pair(typing.NamedTuple):
    a: torch.Tensor
    b: int


@torch.jit.script
class Plain:
    def __init__(self, x: torch.Tensor):
        self.x = x


class Attributes(nn.Module):
    """Whatever else a module may hold; of all that state_dict() has the two buffers and the parameter."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(3.0))
        self.register_buffer("kept", torch.arange(2.0))
        self.register_buffer("passing", torch.arange(4.0), persistent=False)
        self.register_buffer("absent", None)
        self.register_parameter("missing", None)
        self.state = torch.zeros(0)
        self.table = {"a": torch.ones(1)}
        self.list = [torch.ones(2), torch.zeros(1)]
        self.words, self.numbers, self.reals, self.flags = ["a", "b"], [1, -(1 << 40)], [0.5], [True]
        self.complex, self.device, self.colour, self.plain = 1 + 2j, torch.device("cpu"), Colour.RED, Plain(torch.ones(3))
        self.pair: typing.Tuple[torch.Tensor, int] = (torch.ones(1), 2)

    def forward(self, x):
        y = x * self.weight.sum() + self.kept.sum() + self.passing.sum() + self.state.sum() + self.table["a"]
        y = y + self.list[0].sum() + len(self.words) + self.numbers[0] + self.reals[0] + self.plain.x.sum() + self.pair[1]
        if self.flags[0] and self.colour == Colour.RED:
            y = y.to(self.device)
        return y if abs(self.complex) > 1 else x


class OfItsOwn(nn.Module):
    """What __getstate__ gives only the code of __setstate__ understands."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x * self.weight

    @torch.jit.export
    def __getstate__(self):
        return self.weight, self.training

    @torch.jit.export
    def __setstate__(self, state: typing.Tuple[torch.Tensor, bool]):
        self.weight = state[0]
        self.training = state[1]


def main():
    warnings.simplefilter("ignore")
    folder = (pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent) / "torch_scripted"
    folder.mkdir(exist_ok=True)
    torch.manual_seed(5)
    modules = {
        "recurrent": torch.jit.script(Recurrent()),
        "tower": torch.jit.script(Tower()),
        "traced": torch.jit.trace(Tower().eval(), torch.ones(1, 2, 3)),
        "shared": torch.jit.script(Shared()),
        "dtypes": torch.jit.script(Dtypes()),
        "attributes": torch.jit.script(Attributes()),
        "linear": torch.jit.script(nn.Linear(2, 1)),
        "empty": torch.jit.script(Empty()),
        "frozen": torch.jit.freeze(torch.jit.script(nn.Linear(2, 1).eval())),
        "of_its_own": torch.jit.script(OfItsOwn()),
    }
    for name, module in modules.items():
        path = folder / f"{name}.pt"
        module.save(str(path))
        path.chmod(0o644)
        if name == "of_its_own":
            continue
        state = torch.jit.load(str(path)).state_dict()
        assert list(state) == list(module.state_dict()), name
        tensors = {k: v.detach().to(LOADED.get(v.dtype, v.dtype)).contiguous().clone() for k, v in state.items()}
        save_file(tensors, folder / f"{name}.safetensors", None)
        (folder / f"{name}.safetensors").chmod(0o644)


if __name__ == "__main__":
    main()
