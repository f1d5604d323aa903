#pragma once
/// Parts of data sets: by shares, in the order of time, in equal folds, with every class in each.
#include <cstdint>
#include <vector>

#include "ferrite/train/dataset.h"

namespace ferrite::train {

struct SplitOptions {
  /// Examples are dealt out in random order. False: in their own, the first part has the first ones, as series of
  /// measurements need it.
  bool shuffle = true;
  std::uint64_t seed = 0;
  /// Classes of the examples, i64 or i32 [N]: every part has about the same share of each. Needs `shuffle`.
  Tensor stratify{};
  /// So many examples between two parts are left out: windows of a series that reach into both. Needs shuffle = false.
  std::int64_t gap = 0;
};

/// A data set cut in parts, in proportion to shares that add up to 1 or less; what is left is not used. Sizes are
/// rounded down, and what that leaves goes one by one to the parts that lost most.
///
///   const auto parts = train::split(data, {0.8, 0.1, 0.1}, {.seed = 1});
///
/// Throws ValueError for shares that are not above 0, or add up to more than 1, and options that exclude each other;
/// ShapeError for another number of classes than examples, DtypeError for classes that are no integers.
std::vector<Dataset> split(const Dataset& data, const std::vector<double>& shares, const SplitOptions& options = {});

struct Fold {
  Dataset training, validation;
};

/// k ways to take one k-th for validation, every example once: sizes differ by one at most. Without `shuffle`, folds
/// are adjacent. Throws as `split`, and ValueError for k < 2 or more folds than examples.
std::vector<Fold> k_folds(const Dataset& data, std::int64_t k, const SplitOptions& options = {});

/// Folds along time: fold f trains on the first f + 1 of k + 1 parts and is validated on the part behind them, as
/// sklearn.model_selection.TimeSeriesSplit; `gap` examples between them are left out. Throws as `k_folds`.
std::vector<Fold> time_folds(const Dataset& data, std::int64_t k, std::int64_t gap = 0);

}  // namespace ferrite::train
