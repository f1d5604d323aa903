#pragma once
/// What the kernels of connectionist temporal classification take: one sequence, and memory for its rows of states.
#include <cstdint>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::nn::detail {

/// A sequence of `frames` and its target. State s of the 2 labels + 1 has label s / 2, or the blank where s is even.
template <class T>
struct CtcSequence {
  const T* scores;    ///< of the first frame: the logarithm of the probability of each class
  std::int64_t step;  ///< from the scores of a frame to those of the next
  std::int64_t frames, labels, blank;
  const std::int64_t* targets;

  std::int64_t states() const { return 2 * labels + 1; }
  /// Elements of a row of states: whole packets of any instruction set, and two impossible states before and behind.
  std::int64_t width() const {
    constexpr std::int64_t packet = 64 / static_cast<std::int64_t>(sizeof(T));
    return (states() + packet - 1) / packet * packet + 4;
  }
  /// Elements of the memory that the loss and the gradient work with.
  std::int64_t loss_room() const { return 4 * width(); }
  std::int64_t gradient_room() const { return (frames + 4) * width(); }
};

template <class T>
struct CtcKernels {
  /// Minus ln of the probability of the target.
  T (*loss)(const CtcSequence<T>& sequence, T* room);
  /// Subtracts g times the probability of every class in every frame from `to`, laid out as the scores. Of a target
  /// that no alignment can give, `to` stays as it is where `zero_infinity`.
  void (*gradient)(const CtcSequence<T>& sequence, T g, bool zero_infinity, T* to, T* room);
};

}  // namespace ferrite::nn::detail
