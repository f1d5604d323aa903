#pragma once
/// A bound on the tensors of somebody else's program.
#include <algorithm>
#include <utility>

#include "ferrite/tensor/storage.h"

namespace ferrite::detail {

/// Elements that a new tensor of this thread may have in memory.
inline thread_local constinit std::int64_t most_stored = kMostStored;

/// While it lives, this thread makes no tensor of more elements in memory: ShapeError instead. The strictest of several
/// counts.
class StorageLimit {
 public:
  explicit StorageLimit(std::int64_t most_elements) noexcept
      : before_(std::exchange(most_stored, std::min(most_stored, most_elements))) {}
  ~StorageLimit() { most_stored = before_; }
  StorageLimit(const StorageLimit&) = delete;
  StorageLimit& operator=(const StorageLimit&) = delete;

 private:
  std::int64_t before_;
};

/// While it lives, the bounds around it do not count: for what such a program has, not makes.
class NoStorageLimit {
 public:
  NoStorageLimit() noexcept : before_(std::exchange(most_stored, kMostStored)) {}
  ~NoStorageLimit() { most_stored = before_; }
  NoStorageLimit(const NoStorageLimit&) = delete;
  NoStorageLimit& operator=(const NoStorageLimit&) = delete;

 private:
  std::int64_t before_;
};

}  // namespace ferrite::detail
