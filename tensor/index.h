#pragma once
/// Indexing like Python's x[1, 0:2]: an integer or a range for each axis.
#include <initializer_list>
#include <optional>

#include "ferrite/tensor/ops.h"

namespace ferrite {

/// The elements that `at` takes of one axis: one element (the axis is dropped), or a range like Python's
/// begin:end:step.
class Index {
 public:
  /// Takes the whole axis: `{}`.
  constexpr Index() = default;
  /// Takes one element; a negative index counts from the end.
  constexpr Index(std::int64_t at) : at_(at) {}
  /// Takes a range: {begin, end}, {begin, kEnd} or {begin, end, step}. Negative bounds count from the end, and bounds
  /// are clamped.
  constexpr Index(std::int64_t begin, std::int64_t end, std::int64_t step = 1)
      : begin_(begin), end_(end), step_(step) {}

  /// Returns the index of the one element; empty for a range.
  constexpr const std::optional<std::int64_t>& element() const { return at_; }
  constexpr std::int64_t begin() const { return begin_; }
  constexpr std::int64_t end() const { return end_; }
  constexpr std::int64_t step() const { return step_; }

 private:
  std::optional<std::int64_t> at_{};
  std::int64_t begin_ = 0, end_ = kEnd, step_ = 1;
};

/// Returns the elements of x at indices and ranges, as a view: the first index applies to the first axis and so on;
/// axes without an index are taken whole.
///
///   at(x, {0})             // x[0]
///   at(x, {{1, 3}})        // x[1:3]
///   at(x, {{}, -1})        // x[:, -1]
///   at(x, {2, {0, kEnd, 2}})  // x[2, ::2]
///
/// Throws ShapeError for more indices than axes and for an element outside its axis, ValueError for a step of 0.
Tensor at(const Tensor& x, std::initializer_list<Index> index);

}  // namespace ferrite
