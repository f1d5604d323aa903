#pragma once
/// The extents at which a function is traced to see what of its program depends on them.
#include <span>
#include <string>
#include <vector>

#include "ferrite/exchange/dynamic_axis.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::exchange::detail {

/// While one lives, functions that this thread traces keep what they compute from extents as operations, where they
/// would otherwise compute it at once: at another extent it is something else.
class KeepExtentsOpen {
 public:
  KeepExtentsOpen() : before_(active_) { active_ = true; }
  ~KeepExtentsOpen() { active_ = before_; }
  KeepExtentsOpen(const KeepExtentsOpen&) = delete;
  KeepExtentsOpen& operator=(const KeepExtentsOpen&) = delete;
  static bool active() { return active_; }

 private:
  inline static thread_local bool active_ = false;
  bool before_;
};

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
