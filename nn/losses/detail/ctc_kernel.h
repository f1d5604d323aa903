#pragma once
/// Interface of the kernels of connectionist temporal classification: one sequence, and memory for its rows of states.
#include <cstdint>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::nn::detail {

/// A sequence of `frames` and its target. Of the 2 labels + 1 states, odd ones have label s / 2, even ones the blank.
template <class T>
struct CtcSequence {
  const T* scores;    ///< logarithm of the probability of each class, of the first frame
  std::int64_t step;  ///< distance from the scores of a frame to those of the next
  std::int64_t frames, labels, blank;
  const std::int64_t* targets;

  std::int64_t states() const { return 2 * labels + 1; }
  /// Returns the number of elements of a row of states: whole packets of any instruction set, plus two impossible
  /// states before and two after.
  std::int64_t width() const {
    constexpr std::int64_t packet = 64 / static_cast<std::int64_t>(sizeof(T));
    return (states() + packet - 1) / packet * packet + 4;
  }
  /// Returns the number of elements of workspace for the loss, or for the gradient.
  std::int64_t loss_room() const { return 4 * width(); }
  std::int64_t gradient_room() const { return (frames + 4) * width(); }
};

template <class T>
struct CtcKernels {
  /// Returns minus ln of the probability of the target.
  T (*loss)(const CtcSequence<T>& sequence, T* room);
  /// Subtracts g times the probability of every class in every frame from `to`, which is laid out as the scores. Leaves
  /// `to` unchanged for a target that no alignment can produce if `zero_infinity`.
  void (*gradient)(const CtcSequence<T>& sequence, T g, bool zero_infinity, T* to, T* room);
};

}  // namespace ferrite::nn::detail
