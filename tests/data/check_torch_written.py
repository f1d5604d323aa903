#!/usr/bin/env python3
"""Checks that PyTorch accepts a .pt of ours: every tensor equals that of the .safetensors beside it.

    python3 tests/data/check_torch_written.py FOLDER
"""
import collections
import pathlib
import sys

import torch
from safetensors.torch import load_file


def check(path):
    state = torch.load(path, weights_only=True)
    assert type(state) is collections.OrderedDict, f"{path}: {type(state)}"
    wanted = load_file(path.with_suffix(".safetensors"))
    assert set(state) == set(wanted), f"{path}: {set(state) ^ set(wanted)}"
    for name, tensor in state.items():
        other = wanted[name]
        assert tensor.dtype == other.dtype and tensor.shape == other.shape, f"{path}: {name}"
        assert torch.equal(tensor, other), f"{path}: {name}"
    return len(state)


def main():
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.pt"))
    count = sum(check(path) for path in paths)
    tied = torch.load(pathlib.Path(sys.argv[1]) / "tied.pt", weights_only=True)
    assert tied["embedding"].data_ptr() == tied["decoder"].data_ptr(), "tied tensors share no storage"
    print(f"{len(paths)} files, {count} tensors accepted")
    return 0 if paths else 1


if __name__ == "__main__":
    sys.exit(main())
