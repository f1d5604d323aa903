#pragma once
/// Counts every way in which this thread requests memory from the system (malloc and its kin, mmap), the bytes of
/// malloc that it holds, and the locks that it takes.
#include <cstddef>
#include <cstdint>

namespace counted {

struct Counts {
  std::uint64_t allocations = 0;
  std::uint64_t maps = 0;
  std::uint64_t locks = 0;
  std::int64_t live = 0;  ///< bytes allocated and not freed, in the sizes that malloc gave the blocks
  std::int64_t most = 0;  ///< the largest `live` since forget_most
};
Counts counts();
void forget_most();

/// Returns the number of allocations of f, misses of the pool included.
template <class F>
std::uint64_t during(F&& f);

/// Returns the largest number of bytes that live at once while f runs, beyond those before. The pool of tensors is
/// emptied before.
template <class F>
std::int64_t peak(F&& f);

}  // namespace counted

#include "ferrite/tensor/storage.h"

template <class F>
std::uint64_t counted::during(F&& f) {
  const Counts before = counts();
  const std::uint64_t misses = ferrite::pool_counts().misses;
  f();
  const Counts after = counts();
  return after.allocations - before.allocations + after.maps - before.maps + ferrite::pool_counts().misses - misses;
}

template <class F>
std::int64_t counted::peak(F&& f) {
  ferrite::trim();
  forget_most();
  const std::int64_t before = counts().live;
  f();
  return counts().most - before;
}
