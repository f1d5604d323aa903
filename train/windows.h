#pragma once
/// Windows of a series as examples: the past as input, what follows as target.
#include <cstdint>
#include <vector>

#include "ferrite/train/dataset.h"

namespace ferrite::train {

struct WindowOptions {
  std::int64_t length = 32;  ///< steps of the input
  std::int64_t horizon = 1;  ///< steps of the target, right behind the input; 0: no target
  std::int64_t step = 1;     ///< from one window to the next
  std::int64_t delay = 0;    ///< steps between input and target
  /// Columns that are the target; empty: all.
  std::vector<std::int64_t> targets{};
  /// The target is what comes `delay` + 1 steps behind each step of the input, [length, ...], instead of `horizon`
  /// steps behind the last: for models that predict at every step.
  bool every_step = false;
};

/// Windows of a series [T] or [T, D]: example i is the input series[i step : i step + length] and, unless horizon is 0,
/// the target series[i step + length + delay : ... + horizon] in the columns asked for, both views. Windows that would
/// reach beyond the end are left out; there may be none. Throws ShapeError for another rank, ValueError for a length or
/// step below 1, a horizon or delay below 0, and a column that there is not.
///
///   const train::Dataset data = train::windows(series, {.length = 48, .horizon = 12});
Dataset windows(const Tensor& series, const WindowOptions& options);

/// A series [T, ...] cut along its steps in parts of these shares, views, the first steps first: before windows are
/// taken, so that none reaches into two parts. Throws as `split`.
std::vector<Tensor> split_series(const Tensor& series, const std::vector<double>& shares);

}  // namespace ferrite::train
