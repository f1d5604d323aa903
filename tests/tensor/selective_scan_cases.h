#pragma once
/// Operands of selective scans for tests.
#include "ferrite/tensor/selective_scan.h"

namespace selective_scan_cases {

using namespace ferrite;

/// The operands x, delta, A, B, C, D.
struct Operands {
  Tensor x, delta, A, B, C, D{};
  SelectiveScanOptions options{};

  SelectiveScan run() const { return selective_scan_with_state(x, delta, A, B, C, D, options); }
};

inline Operands operands(std::int64_t rows, std::int64_t T, std::int64_t channels, std::int64_t states, Dtype dtype) {
  const auto draw = [&](const Shape& shape, std::uint64_t stream, double low, double high) {
    return uniform(shape, {.seed = 5, .stream = stream}, low, high, dtype);
  };
  return {draw({rows, T, channels}, 1, -1, 1),
          draw({rows, T, channels}, 2, 0.01, 0.5),
          draw({channels, states}, 3, -4, -0.25),
          draw({rows, T, states}, 4, -1, 1),
          draw({rows, T, states}, 5, -1, 1),
          draw({channels}, 6, -1, 1),
          {.state = draw({rows, channels, states}, 7, -1, 1)}};
}

/// Returns the steps [begin, end), starting from a state.
inline Operands steps(const Operands& o, std::int64_t begin, std::int64_t end, const Tensor& state) {
  Operands part = o;
  for (Tensor* t : {&part.x, &part.delta, &part.B, &part.C}) *t = slice(*t, 1, begin, end);
  part.options.state = state;
  if (o.options.resets.defined()) part.options.resets = slice(o.options.resets, 1, begin, end);
  return part;
}
inline Tensor i64s(std::initializer_list<double> v) { return cast(Tensor::from(v), Dtype::i64); }

}  // namespace selective_scan_cases
