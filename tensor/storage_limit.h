#pragma once
/// A limit on the tensors that a foreign program may make.
#include <algorithm>
#include <utility>

#include "ferrite/tensor/storage.h"
#include "ferrite/tensor/system/per_thread.h"

namespace ferrite::detail {

/// Most elements that a new tensor of this thread may have in memory.
FERRITE_PER_THREAD extern constinit PerThread<std::int64_t> most_stored;

/// Limits the elements of every tensor that this thread makes in memory while it lives; larger ones throw ShapeError.
/// The strictest of several limits counts.
class StorageLimit {
 public:
  explicit StorageLimit(std::int64_t most_elements) noexcept
      : before_(std::exchange(most_stored(), std::min(most_stored(), most_elements))) {}
  ~StorageLimit() { most_stored() = before_; }
  StorageLimit(const StorageLimit&) = delete;
  StorageLimit& operator=(const StorageLimit&) = delete;

 private:
  std::int64_t before_;
};

/// Suspends the limits around it while it lives: for tensors that a foreign program holds rather than makes.
class NoStorageLimit {
 public:
  NoStorageLimit() noexcept : before_(std::exchange(most_stored(), kMostStored)) {}
  ~NoStorageLimit() { most_stored() = before_; }
  NoStorageLimit(const NoStorageLimit&) = delete;
  NoStorageLimit& operator=(const NoStorageLimit&) = delete;

 private:
  std::int64_t before_;
};

}  // namespace ferrite::detail
