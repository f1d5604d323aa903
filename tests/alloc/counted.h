#pragma once
/// Every way in which this thread asks the system for memory, counted: malloc and its kin, and mmap; and the locks that
/// it takes.
#include <cstddef>
#include <cstdint>

namespace counted {

struct Counts {
  std::uint64_t allocations = 0;
  std::uint64_t maps = 0;
  std::uint64_t locks = 0;
};
Counts counts();

/// What f asks for, pool misses included.
template <class F>
std::uint64_t during(F&& f);

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
