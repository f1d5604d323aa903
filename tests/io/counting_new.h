#pragma once
/// Counts the bytes that live on the heap through operator new. Include it in one source of a test program.
/// ThreadSanitizer has its own operator new, so the counts are 0 with it.
#include "counting.h"
#include "support/sanitized.h"

#if !__has_feature(thread_sanitizer)
void* operator new(std::size_t size) { return counting::take(size); }
void* operator new[](std::size_t size) { return counting::take(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return counting::take(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept { return operator new(size, tag); }
void operator delete(void* block) noexcept { counting::give(block); }
void operator delete[](void* block) noexcept { counting::give(block); }
void operator delete(void* block, std::size_t) noexcept { counting::give(block); }
void operator delete[](void* block, std::size_t) noexcept { counting::give(block); }
#endif
