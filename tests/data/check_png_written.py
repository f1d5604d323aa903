#!/usr/bin/env python3
"""Checks that Pillow reads PNG files of ours as what the .npy beside each holds, [C, H, W] in 0..1.

    python3 tests/data/check_png_written.py FOLDER
"""
import pathlib
import sys

import numpy as np
from PIL import Image


def check(path):
    wanted = np.load(path.with_suffix(".npy"))
    image = Image.open(path)
    full = np.float32(65535 if image.mode.startswith("I;16") else 255)
    seen = np.array(image).reshape(*wanted.shape[1:], -1).transpose(2, 0, 1)
    rounded = np.floor(full * np.clip(wanted, 0, 1) + np.float32(0.5))
    assert np.array_equal(seen.astype("f4"), rounded), f"{path}: {seen} {rounded}"


def main():
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.png"))
    for path in paths:
        check(path)
    print(f"{len(paths)} pictures read")
    return 0 if paths else 1


if __name__ == "__main__":
    sys.exit(main())
