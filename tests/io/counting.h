#pragma once
/// Counts the bytes that live on the heap through operator new; counting_new.h does the counting.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace counting {

inline std::atomic<std::size_t> live{0};
inline std::atomic<std::size_t> most{0};

/// Size of the space before every block, which holds the block's size: the strictest alignment.
inline constexpr std::size_t kFront = alignof(std::max_align_t);
static_assert(kFront >= sizeof(std::size_t));

inline void* take(std::size_t size) {
  void* block = std::malloc(size + kFront);
  if (block == nullptr) throw std::bad_alloc();
  *static_cast<std::size_t*>(block) = size;
  const std::size_t now = live += size;
  std::size_t before = most;
  while (before < now && !most.compare_exchange_weak(before, now)) continue;
  return static_cast<char*>(block) + kFront;
}

inline void give(void* user) noexcept {
  if (user == nullptr) return;
  void* block = static_cast<char*>(user) - kFront;
  live -= *static_cast<std::size_t*>(block);
  std::free(block);
}

/// Returns the largest number of bytes that live at once while f runs, beyond those that lived before.
template <class F>
std::size_t peak(F&& f) {
  const std::size_t before = live;
  most = before;
  f();
  return most - before;
}

}  // namespace counting
