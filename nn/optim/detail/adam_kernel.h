#pragma once
/// What the kernel of Adam's update takes: constants of one update, pointers to elements.
#include <cstdint>

namespace ferrite::nn::detail {

/// What decay of the weights there is, and where it enters.
enum class Decay : std::uint8_t { none, gradient, weights };

/// The numbers of one update, rounded as the operations of the reference round them.
template <class T>
struct AdamNumbers {
  T beta1, rest1, beta2, rest2, epsilon, weight_decay, shrink, root2, pace;
  Decay decay = Decay::none;
  bool reciprocal =
      false;  ///< whether 1 / root2 is high + low: f32, where a multiply-add that rounds once needs no more
  T high = 0, low = 0;
};

/// Where the elements are read and written; the latter may be the same places.
template <class T>
struct AdamRun {
  const T *w, *g, *m, *v;
  T *w_out, *m_out, *v_out;

  [[gnu::always_inline]] AdamRun from(std::int64_t at) const {
    return {w + at, g + at, m + at, v + at, w_out + at, m_out + at, v_out + at};
  }
};

/// What a level has of it (tensor/kernel/level.h).
struct AdamKernels {
  void (*f32)(const AdamNumbers<float>& numbers, const AdamRun<float>& run, std::int64_t n);
  void (*f64)(const AdamNumbers<double>& numbers, const AdamRun<double>& run, std::int64_t n);
};

}  // namespace ferrite::nn::detail
