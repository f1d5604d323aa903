#pragma once
/// Shared parts of losses over alignments: sums in log space, checks of targets, the order of their operands.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/nn/losses/detail/losses.h"

namespace ferrite::nn::detail {

template <class T>
inline constexpr T kImpossible = -std::numeric_limits<T>::infinity();

/// Returns e^x, computed in doubles and rounded once: C libraries round the functions of floats in their own ways.
template <class T>
T exp_rounded(T x) {
  return static_cast<T>(std::exp(static_cast<double>(x)));
}
/// Returns ln(e^a + e^b), exact if one is -infinity; NaN if one is NaN. The logarithm is computed in doubles.
template <class T>
T log_add(T a, T b) {
  const T high = a < b ? b : a, low = a < b ? a : b;  // if b is NaN, it is the low one
  if (low == kImpossible<T>) return high;
  return high + static_cast<T>(std::log1p(std::exp(static_cast<double>(low - high))));
}

/// Sizes of a loss over alignments. Its operands are scores, targets [B, S], lengths of inputs and of targets [B], all
/// i64 but the scores; its gradient takes the cotangent [B] before them.
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
/// Returns the b-th row. Throws ShapeError for a length outside least..T or 0..S, ValueError for a target that is not a
/// class or is the blank.
AlignmentRow alignment_row(std::string_view where, const Tensor& targets, const Tensor& input_lengths,
                           const Tensor& target_lengths, std::int64_t b, const AlignmentShape& shape,
                           std::int64_t blank, std::int64_t least);
/// Returns the given lengths as i64 [B], or `all` for every row; `as_targets` returns the given targets as i64.
Tensor lengths_or(std::string_view where, std::string_view what, const Tensor& lengths, std::int64_t B,
                  std::int64_t all);
Tensor as_targets(std::string_view where, const Tensor& targets);
/// Returns lengths in which masked rows have the length `instead`, so that nothing of these rows is read.
Tensor of_rows(const Counted& rows, const Tensor& lengths, std::int64_t instead);

/// Returns the gradient of a loss over alignments as that of its composition in operations.
Tensor reference_gradient(const Tensor& cotangent, const Tensor& scores, Tensor (*loss)(Inputs, const Attrs&),
                          Inputs in, const Attrs& attrs);

/// The number used for -infinity in compositions, where -infinity would make gradients NaN.
inline constexpr double kNearlyImpossible = -1e30;
/// Replaces the losses of compositions without a possible alignment by infinity, or by 0 if `zero_infinity`.
Tensor with_impossible(const Tensor& losses, bool zero_infinity);

/// Calls f with a zero of float or double, according to the dtype.
template <class F>
void visit_float(Dtype t, F&& f) {
  if (t == Dtype::f32) {
    f(float{});
  } else {
    f(double{});
  }
}

}  // namespace ferrite::nn::detail
