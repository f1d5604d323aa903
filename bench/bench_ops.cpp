// The cost of one operation on four elements: computed, recorded on a tape, and with its share of the backward pass.
#include <cstdio>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/ops.h"
#include "timing.h"

using namespace ferrite;

namespace {

constexpr int kChain = 200;

using Op = std::function<Tensor(const Tensor&)>;

/// Prints nanoseconds of one application, of one that is recorded, and of one that is recorded and differentiated.
void measure(const char* name, const Tensor& start, const Op& op, const Op& next) {
  const auto eager = [&] {
    for (int i = 0; i < kChain; ++i) bench::keep(op(start));
  };
  const auto chain = [&](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < kChain; ++i) y = next(op(y));
    return y;
  };
  const auto recorded = [&] {
    Tape tape;
    bench::keep(chain(tape.watch(start)));
  };
  const auto backward = [&] {
    Tape tape;
    const Tensor x = tape.watch(start);
    const Tensor y = chain(x);
    bench::keep(tape.grad(y, {x}, {}, ones(y.shape())));
  };
  const std::vector<double> t = bench::interleaved({eager, recorded, backward});
  std::printf("%-12s %8.1f %10.1f %14.1f\n", name, t[0] / kChain * 1e9, t[1] / kChain * 1e9, t[2] / kChain * 1e9);
}

}  // namespace

int main() {
  const Tensor x = uniform({4}, {1, 1, 1}, 0.5, 1.5);
  const Tensor w = uniform({4}, {1, 2, 1}, 0.5, 1.5);
  const Tensor m = 0.25 * uniform({4, 4}, {1, 3, 1});
  const Op same = [](const Tensor& t) { return t; };
  std::printf("nanoseconds an operation on 4 elements\n%-12s %8s %10s %14s\n", "", "eager", "recorded",
              "with backward");
  measure(
      "add", x, [&](const Tensor& t) { return t + w; }, same);
  measure(
      "mul", x, [&](const Tensor& t) { return t * w; }, same);
  measure(
      "add literal", x, [&](const Tensor& t) { return t + 1; }, same);
  measure(
      "sigmoid", x, [&](const Tensor& t) { return sigmoid(t); }, same);
  measure(
      "matmul 4x4", m, [&](const Tensor& t) { return matmul(t, m); }, same);
  // A slice or a sum cannot be chained: each is applied to the start, and all results are added up by one stack.
  const auto many = [](const char* name, const Tensor& start, const Op& op) {
    const auto eager = [&] {
      for (int i = 0; i < kChain; ++i) bench::keep(op(start));
    };
    const auto recorded = [&] {
      Tape tape;
      const Tensor v = tape.watch(start);
      for (int i = 0; i < kChain; ++i) bench::keep(op(v));
    };
    const auto backward = [&] {
      Tape tape;
      const Tensor v = tape.watch(start);
      Tensors all;
      for (int i = 0; i < kChain; ++i) all.push_back(op(v));
      const Tensor y = stack(std::span<const Tensor>(all.data(), all.size()));
      bench::keep(tape.grad(y, {v}, {}, ones(y.shape())));
    };
    const std::vector<double> t = bench::interleaved({eager, recorded, backward});
    std::printf("%-12s %8.1f %10.1f %14.1f\n", name, t[0] / kChain * 1e9, t[1] / kChain * 1e9, t[2] / kChain * 1e9);
  };
  many("slice", x, [](const Tensor& t) { return slice(t, 0, 1, 3); });
  many("sum", x, [](const Tensor& t) { return sum(t); });
}
