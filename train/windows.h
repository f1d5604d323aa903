#pragma once
/// Windows of a series as examples: past steps are the input, the following ones the target.
#include <cstdint>
#include <vector>

#include "ferrite/train/dataset.h"

namespace ferrite::train {

/// The options of `windows`: the steps of input and target, and which columns the target has.
struct WindowOptions {
  std::int64_t length = 32;  ///< number of steps of the input
  std::int64_t horizon = 1;  ///< number of steps of the target, which follows the input; 0: no target
  std::int64_t step = 1;     ///< number of steps from one window to the next
  std::int64_t delay = 0;    ///< number of steps left out between input and target
  /// Numbers of the series' columns that the target holds; empty: all.
  std::vector<std::int64_t> targets{};
  /// True: the target of each step of the input is the step `delay` + 1 later, [length, ...], for models that predict
  /// at every step. `horizon` is then ignored.
  bool every_step = false;
  /// True: the target is one row [horizon * columns], as a linear layer after the last step predicts it.
  bool flat = false;
};

/// Returns the windows of a series [T] or [T, D]: example i is the input series[i step : i step + length] and, unless
/// horizon is 0, the target series[i step + length + delay : ... + horizon] in the columns `targets`, both views.
/// Windows that would reach beyond the end are left out; there may be none. Throws ShapeError for another rank or
/// `targets` of a series [T], ValueError for a length or step below 1, a horizon or delay below 0, a column that does
/// not exist, and `flat` with `every_step`.
///
///   const train::Dataset data = train::windows(series, {.length = 48, .horizon = 12});
Dataset windows(const Tensor& series, const WindowOptions& options);

/// Cuts a long series [T, ...] into `rows` parallel parts of equal length, for truncated back-propagation through time.
/// Batch p of an unshuffled loader of `rows` examples holds the p-th piece of `length` steps of each part, so that
/// states carried from batch to batch (nn::Carry) continue where they were. Targets are one step ahead. The rest at the
/// end is not used. Throws ShapeError for rank 0, ValueError for numbers below 1 and a series that is too short for one
/// batch.
///
///   const train::DataLoader loader(train::side_by_side(text, 16, 50), {.batch_size = 16, .shuffle = false});
Dataset side_by_side(const Tensor& series, std::int64_t rows, std::int64_t length);

/// Splits a series [T, ...] along its steps into parts in proportion to shares, as views in the order of time. Split a
/// series before its windows are taken, so that no window reaches into two parts. Throws ShapeError for rank 0, and as
/// `split`.
std::vector<Tensor> split_series(const Tensor& series, const std::vector<double>& shares);

}  // namespace ferrite::train
