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
  /// The target is one row [horizon * columns], as a linear layer behind the last step gives it.
  bool flat = false;
};

/// Windows of a series [T] or [T, D]: example i is the input series[i step : i step + length] and, unless horizon is 0,
/// the target series[i step + length + delay : ... + horizon] in the columns asked for, both views. Windows that would
/// reach beyond the end are left out; there may be none. Throws ShapeError for another rank, ValueError for a length or
/// step below 1, a horizon or delay below 0, a column that there is not, and `flat` with `every_step`.
///
///   const train::Dataset data = train::windows(series, {.length = 48, .horizon = 12});
Dataset windows(const Tensor& series, const WindowOptions& options);

/// A long series [T, ...] as rows that are read side by side, for truncated back-propagation through time: it is cut in
/// `rows` parts of equal length, and batch p of an unshuffled loader of `rows` examples holds the p-th piece of
/// `length` steps of each, so that states carried from batch to batch (nn::Carry) go on where they were. Targets are
/// one step ahead. What is left at the end is not used. Throws ShapeError for rank 0, ValueError for numbers below 1
/// and a series that is too short for one batch.
///
///   const train::DataLoader loader(train::side_by_side(text, 16, 50), {.batch_size = 16, .shuffle = false});
Dataset side_by_side(const Tensor& series, std::int64_t rows, std::int64_t length);

/// A series [T, ...] cut along its steps in parts of these shares, views, the first steps first: before windows are
/// taken, so that none reaches into two parts. Throws as `split`.
std::vector<Tensor> split_series(const Tensor& series, const std::vector<double>& shares);

}  // namespace ferrite::train
