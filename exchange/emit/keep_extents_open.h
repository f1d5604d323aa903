#pragma once
/// Tells functions that are traced now that the extents of their inputs are examples.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ferrite::exchange::detail {

/// While one lives, functions that this thread traces keep what they compute from extents as operations, where they
/// would otherwise compute it at once: at another extent it is something else. The numbers that they read meanwhile,
/// because a shape or a branch depends on them, they tell.
class KeepExtentsOpen {
 public:
  struct Read {
    std::string node;
    std::vector<std::int64_t> numbers;
    bool counts = false;  ///< 0 where they would be less
  };
  using Reads = std::vector<Read>;  ///< in their order

  KeepExtentsOpen() : before_(active_) { active_ = this; }
  ~KeepExtentsOpen() { active_ = before_; }
  KeepExtentsOpen(const KeepExtentsOpen&) = delete;
  KeepExtentsOpen& operator=(const KeepExtentsOpen&) = delete;

  static bool active() { return active_ != nullptr; }
  static void has_read(const std::string& node, std::vector<std::int64_t> numbers, bool counts = false) {
    if (active_) active_->reads_.push_back({node, std::move(numbers), counts});
  }
  /// The reads since this was asked for last.
  Reads take() { return std::exchange(reads_, {}); }

 private:
  inline static thread_local KeepExtentsOpen* active_ = nullptr;
  KeepExtentsOpen* before_;
  Reads reads_{};
};

}  // namespace ferrite::exchange::detail
