#pragma once
/// Elements of a batch that metrics count: those within the lengths and without a target to ignore.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ferrite/train/dataset.h"

namespace ferrite::train::detail {

/// Whether each element of the target counts, in row-major order.
std::vector<bool> within_lengths(const Batch& batch);

/// The classes that the targets of a batch name, in row-major order, and which count.
struct Targets {
  std::vector<std::int64_t> classes{};
  std::vector<bool> count{};
};
/// Throws DtypeError for targets that are no integers, ShapeError unless the prediction is [..., C] (or [...], where
/// `scores` are allowed) for targets [...], and for a target that counts outside 0..C - 1.
Targets targets_of(const char* who, const Tensor& prediction, const Batch& batch, std::int64_t ignore_index,
                   bool scores);
/// The place of the largest entry along the last axis; of scores without classes 1 where above 0, else 0. -1, no class,
/// where a score is NaN.
std::vector<std::int64_t> predicted_classes(const Tensor& prediction, const Batch& batch);
/// Whether a prediction has one score for each target and no classes.
bool is_score(const Tensor& prediction, const Batch& batch);
/// Prediction and target as f64, of equal shapes (a last axis of 1 of the prediction aside). Throws ShapeError.
struct Numbers {
  std::vector<double> prediction{}, target{};
  std::vector<bool> count{};
};
Numbers numbers_of(const char* who, const Tensor& prediction, const Batch& batch);

/// Throws ValueError unless a saved state has `n` numbers (or, with `more`, a multiple).
void check_state(const std::string& who, const std::vector<double>& state, std::size_t n);

}  // namespace ferrite::train::detail
