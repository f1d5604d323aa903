#pragma once
/// What the kernels of RMSprop and of stochastic gradient descent take: the constants of an update, pointers to
/// elements.
#include <cstdint>

namespace ferrite::nn::detail {

enum class SweepKind : std::uint8_t { sgd, rmsprop };

/// The constants of an optimiser; what is 0 or false is left out.
struct SweepRule {
  SweepKind kind = SweepKind::sgd;
  double weight_decay = 0, momentum = 0, alpha = 0, epsilon = 0;
  bool nesterov = false, centered = false;
};

/// Where the elements of a parameter, its gradient and its states lie. States are written over, and w where w_out is
/// it.
template <class T>
struct SweepRun {
  const T *w, *g;
  T* w_out;
  T *square, *mean, *velocity;  ///< null: there is none

  [[gnu::always_inline]] SweepRun from(std::int64_t at) const {
    const auto state = [at](T* s) { return s ? s + at : s; };
    return {w + at, g + at, w_out + at, state(square), state(mean), state(velocity)};
  }
};

/// What a level has of it (tensor/kernel/level.h).
struct SweepKernels {
  void (*f32)(const SweepRule& rule, float rate, const SweepRun<float>& run, std::int64_t n);
  void (*f64)(const SweepRule& rule, double rate, const SweepRun<double>& run, std::int64_t n);
};

}  // namespace ferrite::nn::detail
