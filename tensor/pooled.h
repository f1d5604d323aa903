#pragma once
/// An allocator for containers that takes memory from the pool of tensors.
#include <cstdint>
#include <vector>

#include "ferrite/tensor/inline_vector.h"

namespace ferrite::detail {

/// Memory for containers from the pool of tensors, so that work done again and again asks the system for nothing.
template <class T>
struct PooledAllocator {
  using value_type = T;
  static_assert(alignof(T) <= 64);

  PooledAllocator() = default;
  template <class U>
  PooledAllocator(const PooledAllocator<U>&) {}
  T* allocate(std::size_t n) {
    if (n > SIZE_MAX / 2 / sizeof(T)) throw_bad_alloc();
    return static_cast<T*>(take_pooled(n * sizeof(T)));
  }
  void deallocate(T* p, std::size_t) noexcept { give_pooled(p); }
  bool operator==(const PooledAllocator&) const = default;
};

template <class T>
using PooledVector = std::vector<T, PooledAllocator<T>>;

}  // namespace ferrite::detail
