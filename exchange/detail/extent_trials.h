#pragma once
/// The extents at which a function is traced to see what of its program depends on them.
#include <span>
#include <string>
#include <vector>

#include "ferrite/exchange/dynamic_axis.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::exchange::detail {

class ExtentTrials {
 public:
  using Sizes = std::vector<std::int64_t>;  ///< one for each name

  /// Throws ValueError, which begins with `who`, for an axis without a name or that the inputs do not have, and for
  /// axes of one name whose extents differ.
  ExtentTrials(const std::string& who, std::span<const Spec> inputs, const std::vector<DynamicAxis>& axes);

  const std::vector<std::string>& names() const& { return names_; }
  /// By name: how many apart extents are.
  const Sizes& steps() const& { return steps_; }
  /// Above those given, where no extent is 1 or equal to its neighbour; then each alone larger in two ways, then all.
  std::vector<Sizes> sizes() const;
  /// The inputs at these extents.
  std::vector<Spec> specs(const Sizes& sizes) const;

 private:
  std::span<const Spec> inputs_;
  const std::vector<DynamicAxis>& axes_;
  std::vector<std::string> names_{};
  Sizes given_{}, steps_{};
};

}  // namespace ferrite::exchange::detail
