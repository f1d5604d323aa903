"""Measures what calling from Python adds to the C++ call, and how long the import takes.

    FERRITE_TREE=build/release python bench/python/overhead.py

The same calls are timed in a C++ program, compiled with g++ against the tree's library, in turns with Python's.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import timeit

import numpy as np

import ferrite

PROGRAM = r"""
#include <chrono>
#include <cstdio>
#include "ferrite/ferrite.h"
using namespace ferrite;
template <class F> void time(const char* name, F f) {
  double best = 1e9;
  for (int round = 0; round < 7; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 20000; ++i) f();
    best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / 20000);
  }
  std::printf("%s %.4f\n", name, best);
}
int main() {
  const Tensor a = normal({4}, RandomKey{1}), m = normal({8, 8}, RandomKey{2}), x = normal({1, 1, 3}, RandomKey{3});
  const auto net = dsl::sequence(3).gru(8).linear(1).build(0);
  time("add", [&] { return add(a, a); });
  time("exp", [&] { return exp(a); });
  time("sum", [&] { return sum(m, {0}); });
  time("matmul", [&] { return matmul(m, m); });
  time("slice", [&] { return select(slice(m, 0, 1, 3), 1, 2); });
  time("layer", [&] { return net[1](zeros({1, 1, 8})); });
  time("network", [&] { return net(x); });
}
"""


def cpp():
    tree = os.environ["FERRITE_TREE"]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "overhead.cpp")
        source.write_text(PROGRAM)
        program = source.with_suffix("")
        subprocess.run(
            ["g++", "-std=c++20", "-O2", f"-I{tree}/include", source, f"{tree}/libferrite.a", "-lpthread", "-o", program],
            check=True,
        )
        out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {name: float(us) for name, us in (line.split() for line in out.splitlines())}


def calls():
    a, m, x = ferrite.normal([4], seed=1), ferrite.normal([8, 8], seed=2), ferrite.normal([1, 1, 3], seed=3)
    net = ferrite.sequence(3).gru(8).linear(1).build(seed=0)
    linear, zeros = net[1], ferrite.zeros
    return {
        "add": lambda: a + a,
        "exp": lambda: ferrite.exp(a),
        "sum": lambda: ferrite.sum(m, 0),
        "matmul": lambda: m @ m,
        "slice": lambda: m[1:3, 2],
        "layer": lambda: linear(zeros([1, 1, 8])),
        "network": lambda: net(x),
    }


def main():
    base = cpp()
    print(f"{'call':<10}{'C++, us':>10}{'Python, us':>12}{'more, us':>10}")
    for name, f in calls().items():
        python = min(timeit.repeat(f, number=20000, repeat=7)) / 20000 * 1e6
        print(f"{name:<10}{base[name]:>10.2f}{python:>12.2f}{python - base[name]:>10.2f}")
    array = np.ones(4, "float32")
    print(f"ferrite.tensor(array): {min(timeit.repeat(lambda: ferrite.tensor(array), number=20000, repeat=5)) / 20000 * 1e6:.2f} us")
    start = "import time, numpy; t = time.perf_counter(); import ferrite; print((time.perf_counter() - t) * 1e3)"
    times = [float(subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=True).stdout) for _ in range(9)]
    print(f"import ferrite, after numpy: {min(times):.0f} ms")


if __name__ == "__main__":
    main()
