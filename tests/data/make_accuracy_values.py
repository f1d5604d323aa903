"""Prints the expected numbers of tests/tensor/accuracy_test.cpp for special functions: mpmath, 50 digits and more.

Needs mpmath; the exact functions are those of scripts/accuracy.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "accuracy"))
from functions import FUNCTIONS, polygamma  # noqa: E402
from mpmath import mp, mpf  # noqa: E402

POLYGAMMA = [(1, -2.5000000001), (2, -3.4999), (2, -1e-3), (2, -77.25), (3, -0.3), (5, -4.1), (5, -1e-5), (10, -2.5),
             (10, -7.75), (20, -1.5), (20, -6.9), (20, -40.25), (1, -1e6 - 0.5), (1, 1e200), (2, 30.0), (20, 3e15)]
GELU_TANH = [-0.5, -2.0, -3.0, -4.0, -5.0, -8.0]
SINC = [2.5, -7.25, 1000.5, 123456.125, 2.0**50 + 0.25, 1e-3]
DIGAMMA = [1.4616321449683622, 1.4616321449683624, 1.46, 1.5, 1.0, 2.0, 1.25]


def main():
    print("polygamma", ", ".join(f"{{{n}, {x!r}, {mp.nstr(polygamma(n, mpf(x)), 20)}}}" for n, x in POLYGAMMA))
    for name, points in (("gelu_tanh", GELU_TANH), ("sinc", SINC), ("digamma", DIGAMMA)):
        print(name, ", ".join(mp.nstr(FUNCTIONS[name].exact(mpf(x)), 20) for x in points))


main()
