#pragma once
/// The switch that makes functions treat the extents of their inputs as examples while they are traced.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/tensor/system/per_thread.h"

namespace ferrite::exchange::detail {

/// Makes functions that this thread traces keep what they compute from extents as operations, as long as it lives.
/// Otherwise they compute it at once, although it differs at other extents. Numbers that they need to know, because a
/// shape or a branch depends on them, they report with `has_read`.
class KeepExtentsOpen {
 public:
  struct Read {
    std::string node;
    std::vector<std::int64_t> numbers;
    bool counts = false;  ///< whether numbers below 0 were replaced by 0
  };
  using Reads = std::vector<Read>;  ///< in the order in which they happened

  KeepExtentsOpen() : before_(active_()) { active_() = this; }
  ~KeepExtentsOpen() { active_() = before_; }
  KeepExtentsOpen(const KeepExtentsOpen&) = delete;
  KeepExtentsOpen& operator=(const KeepExtentsOpen&) = delete;

  static bool active() { return active_() != nullptr; }
  static void has_read(const std::string& node, std::vector<std::int64_t> numbers, bool counts = false) {
    if (active_()) active_()->reads_.push_back({node, std::move(numbers), counts});
  }
  /// Returns the reads since the last call.
  Reads take() { return std::exchange(reads_, {}); }

 private:
  FERRITE_PER_THREAD static constinit ferrite::detail::PerThread<KeepExtentsOpen*> active_;
  KeepExtentsOpen* before_;
  Reads reads_{};
};

}  // namespace ferrite::exchange::detail
