#pragma once
/// A scan over single numbers, which bench_attention and the cells of scripts/bench-gate time.
#include <cstddef>

#include "ferrite/ferrite.h"

namespace bench {

/// Returns a compiled function of one number: the gradient of the first of `carries` numbers, each a carry, after a
/// step for each element of xs [T].
inline auto scalar_gradient(std::size_t carries, const ferrite::Tensor& xs) {
  using namespace ferrite;
  return compile([=](const Tensor& x) {
    Tape tape;
    const Tensor w = tape.watch(x);
    const auto step = [&](const Tensors& carry, const Tensors& in) -> ScanStep {
      Tensors next;
      for (std::size_t i = 0; i < carries; ++i) next.push_back(sin(carry[i] * w + in[0]) * carry[(i + 1) % carries]);
      return {next};
    };
    Tensors begin;
    for (std::size_t i = 0; i < carries; ++i) begin.push_back(zeros({}) + 0.5);
    return tape.grad(scan(step, begin, {xs}).carry[0], {w})[0];
  });
}

}  // namespace bench
