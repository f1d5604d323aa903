#pragma once
/// Confusion matrices of classifiers.
#include <cstdint>
#include <string>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite::train {

/// A confusion matrix: how often each class was predicted for each true class, over any number of batches.
class Confusion {
 public:
  /// Makes an empty matrix. Throws ValueError for classes < 1, ShapeError for too many.
  explicit Confusion(std::int64_t classes);

  /// Adds predictions and targets, both i64 of the same shape. Elements whose target is `ignore_index` do not count.
  /// Throws ShapeError for unequal shapes or a class out of range in an element that counts; nothing is added then.
  void add(const Tensor& predicted, const Tensor& target, std::int64_t ignore_index = -100);

  /// Returns how often class `predicted` was predicted for class `target`. Throws ShapeError for a class out of range.
  std::int64_t count(std::int64_t target, std::int64_t predicted) const;
  /// Returns all counts, i64 [classes, classes] with a row for each true class, as `heat_map` takes them.
  Tensor counts() const;
  /// Returns the number of predictions that were added and count.
  std::int64_t total() const;
  /// Returns the share of right predictions; 0 when nothing was added.
  double accuracy() const;
  /// Returns a table with a row for each true class and a column for each predicted one; zeros are shown as dots.
  std::string str() const;

 private:
  void check(std::int64_t c) const;

  std::int64_t classes_;
  std::vector<std::int64_t> counts_;
};

}  // namespace ferrite::train
