#pragma once
/// Splits of data sets: by shares, stratified by class, along time, and in folds.
#include <cstdint>
#include <vector>

#include "ferrite/train/dataset.h"

namespace ferrite::train {

/// The options of `split` and `k_folds`: in which order examples are dealt out.
struct SplitOptions {
  /// True: examples are dealt out in random order. False: in their own order, so that the first part has the first
  /// examples, as series of measurements need it.
  bool shuffle = true;
  std::uint64_t seed = 0;  ///< seed of the random order
  /// Classes of the examples, i64 or i32 [N]; every part gets about the same share of each class. Needs `shuffle`.
  Tensor stratify{};
  /// Number of examples to leave out between two parts: windows of a series that reach into both. Needs
  /// shuffle = false.
  std::int64_t gap = 0;
};

/// Splits a data set into parts in proportion to shares that add up to 1 or less; the rest is not used. Sizes are
/// rounded down, and the examples that this leaves go one by one to the parts that lost most.
///
///   const auto parts = train::split(data, {0.8, 0.1, 0.1}, {.seed = 1});
///
/// Throws ValueError for no shares, shares that are not above 0 or add up to more than 1, and options that exclude each
/// other; ShapeError unless `stratify` has one class per example, DtypeError for classes that are not integers.
std::vector<Dataset> split(const Dataset& data, const std::vector<double>& shares, const SplitOptions& options = {});

/// One division of a data set for cross-validation: the examples to train on, and those to validate on.
struct Fold {
  Dataset training, validation;
};

/// Returns k folds, each with another k-th of the examples for validation, whose sizes differ by at most one. Without
/// `shuffle` these parts are contiguous. Throws as `split`, and ValueError for k < 2 or more folds than examples.
std::vector<Fold> k_folds(const Dataset& data, std::int64_t k, const SplitOptions& options = {});

/// Returns k folds along time: fold f trains on the first f + 1 of k + 1 parts and is validated on the next part, as
/// sklearn.model_selection.TimeSeriesSplit; `gap` examples between them are left out. Throws ValueError for k < 2,
/// k >= the number of examples, and a gap that leaves nothing to train on.
std::vector<Fold> time_folds(const Dataset& data, std::int64_t k, std::int64_t gap = 0);

}  // namespace ferrite::train
