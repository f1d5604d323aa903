#!/usr/bin/env python3
"""Makes data/names.txt from the lists in the `names` package of PyPI.

    python3 -m pip install names==0.3.0 && python3 scripts/make_names.py [OUTPUT]

First names of the census of the United States in 1990 (public domain), in lower case, each once, in alphabetical order.
"""
import pathlib
import sys

import names


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    output = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else root / "data" / "names.txt")
    folder = pathlib.Path(names.__file__).parent
    lines = [line for part in ("female", "male") for line in (folder / f"dist.{part}.first").read_text().splitlines()]
    found = sorted({line.split()[0].lower() for line in lines if line})
    output.write_text("\n".join(found) + "\n")
    print(output, len(found), "names")


if __name__ == "__main__":
    main()
