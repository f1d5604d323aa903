#pragma once
/// Memory for the entries of a tape: handed out in order and released all at once.
#include <cstddef>
#include <memory>
#include <span>

#include "ferrite/tensor/pooled.h"

namespace ferrite::detail {

/// Memory handed out in order and given back all at once. Chunks are kept by the thread for the next arena.
/// Objects in it are not destroyed: their owner does that.
class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* take(std::size_t bytes) {
    const std::size_t rounded = (bytes + 15) / 16 * 16;
    if (rounded > left_) return refill(rounded);
    std::byte* p = at_;
    at_ += rounded;
    left_ -= rounded;
    return p;
  }
  /// n value-initialised objects.
  template <class T>
  std::span<T> make(std::size_t n) {
    static_assert(alignof(T) <= 16);
    T* p = static_cast<T*>(take(n * sizeof(T)));
    std::uninitialized_value_construct_n(p, n);
    return {p, n};
  }

 private:
  void* refill(std::size_t bytes);

  std::byte* at_ = nullptr;
  std::size_t left_ = 0;
  PooledVector<std::byte*> chunks_;  ///< of kChunk bytes
  PooledVector<std::byte*> large_;   ///< single requests above that
};

}  // namespace ferrite::detail
