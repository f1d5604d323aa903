#pragma once
/// What losses over alignments share: sums in log space, checks of targets, the order of their operands.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/nn/losses/detail/losses.h"

namespace ferrite::nn::detail {

template <class T>
inline constexpr T kImpossible = -std::numeric_limits<T>::infinity();

/// ln(e^a + e^b), exact where one is -infinity; NaN where one is.
template <class T>
T log_add(T a, T b) {
  const T high = a < b ? b : a, low = a < b ? a : b;  // a NaN that is b is the low one
  return low == kImpossible<T> ? high : high + std::log1p(std::exp(low - high));
}

/// Operands of a loss over alignments: scores, targets [B, S], lengths of inputs and of targets [B], all i64 but the
/// scores. The gradient has the cotangent [B] before them.
struct AlignmentShape {
  std::int64_t B = 0, T = 0, S = 0, C = 0;
};

/// The targets and lengths of one sequence.
struct AlignmentRow {
  const std::int64_t* targets;
  std::int64_t T, S;
};

/// Throws ShapeError and DtypeError unless targets and lengths fit B sequences of at most T frames and S labels.
void check_alignment(std::string_view where, const Tensor& targets, const Tensor& input_lengths,
                     const Tensor& target_lengths, const AlignmentShape& shape);
/// Reads the b-th row. Throws ShapeError for a length outside least..T or 0..S, ValueError for a target that is no
/// class or the blank.
AlignmentRow alignment_row(std::string_view where, const Tensor& targets, const Tensor& input_lengths,
                           const Tensor& target_lengths, std::int64_t b, const AlignmentShape& shape,
                           std::int64_t blank, std::int64_t least);
/// The lengths of a public function: what is given, or the same number for every row. Targets as i64.
Tensor lengths_or(std::string_view where, std::string_view what, const Tensor& lengths, std::int64_t B,
                  std::int64_t all);
Tensor as_targets(std::string_view where, const Tensor& targets);
/// Lengths, those of masked rows `instead`: nothing of these is read.
Tensor of_rows(const Counted& rows, const Tensor& lengths, std::int64_t instead);

/// The gradient of a loss over alignments in operations: of its composition.
Tensor reference_gradient(const Tensor& cotangent, const Tensor& scores, Tensor (*loss)(Inputs, const Attrs&),
                          Inputs in, const Attrs& attrs);

/// A number that stands for -infinity in compositions, whose gradients would be NaN.
inline constexpr double kNearlyImpossible = -1e30;
/// Losses of compositions: those without an alignment are infinite, or 0.
Tensor with_impossible(const Tensor& losses, bool zero_infinity);

/// Calls f with a zero of a float dtype.
template <class F>
void visit_float(Dtype t, F&& f) {
  if (t == Dtype::f32) {
    f(float{});
  } else {
    f(double{});
  }
}

}  // namespace ferrite::nn::detail
