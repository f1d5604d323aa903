#!/usr/bin/env python3
"""Checks that PyTorch has every name of its own that a reference page gives as a counterpart.

    python3 tests/data/check_reference_names.py
"""
import pathlib
import pkgutil
import re
import sys

import torch

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def resolves(name):
    """Whether an import of the modules of a dotted name and a walk over attributes reach something."""
    try:
        pkgutil.resolve_name(name)
        return True
    except (AttributeError, ImportError):
        return False


def written_out(page):
    """The full names in a page: `torch.matmul`, `torch.nn.functional.pad` with a mode."""
    return {name.rstrip(".") for name in re.findall(r"`(torch\.[\w.]+)", page)}


def of_layers(page):
    """The names of torch.nn in the second column of the table of layers."""
    cells = re.findall(r"^\| `[^|]*\| `([^|`]+)` \|", page, re.M)
    return {f"torch.nn.{name}" for cell in cells for name in cell.split(", ") if name != "..."}


def of_optimisers(page):
    """The names of torch.optim in the headings of optimisers and schedules."""
    names = re.findall(r"^### .*\(PyTorch: `([\w.]+)`\)$", page, re.M)
    return {f"torch.optim.{'lr_scheduler.' if 'LR' in n else ''}{n}" for n in names}


def main():
    version = torch.__version__.split("+")[0]
    assert not resolves("torch.no_such_name") and not resolves("torch.nn.functional.matmul")
    faults, count = [], 0
    for page, names_of, least in [
        ("operations", written_out, 200),
        ("losses", written_out, 20),
        ("layers", of_layers, 30),
        ("optimisers", of_optimisers, 15),
    ]:
        names = names_of((DOCS / f"{page}.md").read_text(encoding="utf-8"))
        assert len(names) >= least, f"docs/{page}.md has {len(names)} names: they are written in another way now"
        faults += [f"docs/{page}.md: PyTorch {version} has no {name}" for name in sorted(names) if not resolves(name)]
        count += len(names)
    print("\n".join(faults) if faults else f"{count} names are PyTorch {version}'s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
