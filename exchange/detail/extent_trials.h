#pragma once
/// The extents at which a function is traced to see what of its program depends on them.
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/exchange/dynamic_axis.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::exchange::detail {

/// While one lives, functions that this thread traces keep what they compute from extents as operations, where they
/// would otherwise compute it at once: at another extent it is something else. What they decide by extents they say.
class KeepExtentsOpen {
 public:
  using Decisions = std::vector<std::pair<std::string, bool>>;

  KeepExtentsOpen() : before_(active_) { active_ = this; }
  ~KeepExtentsOpen() { active_ = before_; }
  KeepExtentsOpen(const KeepExtentsOpen&) = delete;
  KeepExtentsOpen& operator=(const KeepExtentsOpen&) = delete;

  static bool active() { return active_ != nullptr; }
  static void decided(const std::string& what, bool yes) {
    if (active_) active_->decisions_.emplace_back(what, yes);
  }
  /// The decisions since this was asked for last.
  Decisions take() { return std::exchange(decisions_, {}); }

 private:
  inline static thread_local KeepExtentsOpen* active_ = nullptr;
  KeepExtentsOpen* before_;
  Decisions decisions_{};
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
  /// Refuses, as an ExportError, a function that decides otherwise at small extents, where its programs are not
  /// compared. `run` traces it.
  void check_decisions(KeepExtentsOpen& open, const std::function<void(const std::vector<Spec>&)>& run) const;

 private:
  /// Each alone as small as can be, or nearly, then all.
  std::vector<Sizes> small_sizes() const;

  std::string who_;
  std::span<const Spec> inputs_;
  const std::vector<DynamicAxis>& axes_;
  std::vector<std::string> names_{};
  Sizes given_{}, steps_{};
};

}  // namespace ferrite::exchange::detail
