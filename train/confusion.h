#pragma once
/// Confusion matrices.
#include <cstdint>
#include <string>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite::train {

/// Counts of true against predicted classes.
class Confusion {
 public:
  /// Throws ValueError for classes < 1.
  explicit Confusion(std::int64_t classes);

  /// Adds predictions and targets, both i64 of any shape. Targets `ignore_index` do not count, whatever is predicted
  /// there. Throws ShapeError for unequal shapes or a class out of range that counts; nothing is added then.
  void add(const Tensor& predicted, const Tensor& target, std::int64_t ignore_index = -100);

  /// Throws ShapeError for a class out of range.
  std::int64_t count(std::int64_t target, std::int64_t predicted) const;
  /// i64 [classes, classes], a row for each true class, for `heat_map`.
  Tensor counts() const;
  std::int64_t total() const;
  /// Share on the diagonal; 0 for nothing added.
  double accuracy() const;
  /// A table, a row for each true class, a column for each predicted one; zeros shown as dots.
  std::string str() const;

 private:
  void check(std::int64_t c) const;

  std::int64_t classes_;
  std::vector<std::int64_t> counts_;
};

}  // namespace ferrite::train
