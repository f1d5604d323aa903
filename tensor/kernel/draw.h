#pragma once
/// Random words of many elements at once, and the uniform numbers that they make: what kernels and their callers share.
#include <cstddef>
#include <cstdint>

#include "ferrite/tensor/detail/philox.h"

namespace ferrite::detail {

/// Elements whose words are drawn at once.
inline constexpr std::size_t kDrawn = 64;
/// Word w of element n at words[w][n].
struct Drawn {
  alignas(64) std::uint32_t words[4][kDrawn];
};
/// What makes words uniform: low + width u, u in [0, 1) from 24 bits (f32) or 53 (f64), computed in f64; what rounding
/// brings to `end` or beyond becomes `last`.
template <class T>
struct UniformNumbers {
  double low, width;
  T end, last;
};

/// What a level has of it (level.h).
struct DrawKernels {
  /// As `words_of` gives them one by one (tensor/detail/normal.h).
  void (*words)(const DrawFrom& from, Drawn& to);
  /// The first n elements.
  void (*uniform_f32)(const Drawn& drawn, const UniformNumbers<float>& u, float* to, std::int64_t n);
  void (*uniform_f64)(const Drawn& drawn, const UniformNumbers<double>& u, double* to, std::int64_t n);
};

}  // namespace ferrite::detail
