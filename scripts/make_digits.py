#!/usr/bin/env python3
"""Makes data/digits.safetensors from the images in the `scikit-learn` package of PyPI.

    python3 -m pip install scikit-learn==1.9.1 safetensors==0.8.0 && python3 scripts/make_digits.py [OUTPUT]

images uint8 [1797, 8, 8], 0 to 16, and labels uint8 [1797], in the order of the package. Source: E. Alpaydin and
C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998, licence CC BY 4.0.
"""
import pathlib
import sys

import numpy
from safetensors.numpy import save_file
from sklearn.datasets import load_digits


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    output = sys.argv[1] if len(sys.argv) > 1 else root / "data" / "digits.safetensors"
    digits = load_digits()
    save_file({"images": digits.images.astype(numpy.uint8), "labels": digits.target.astype(numpy.uint8)}, output)
    print(output, *digits.images.shape)


if __name__ == "__main__":
    main()
