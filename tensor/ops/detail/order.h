#pragma once
/// Elements of long rows with their positions, in an order in which no two are equal; sorting and choosing them.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "ferrite/tensor/kernel/ranks.h"

namespace ferrite::detail {

/// A key of 32 bits and a position below 2^32 in one number.
struct NarrowEntry {
  using Key = std::int32_t;
  static constexpr int kDigits = 4;  ///< bytes of the key
  std::uint64_t both = 0;

  NarrowEntry() = default;
  NarrowEntry(Key key, std::int64_t at)
      : both(std::uint64_t{static_cast<std::uint32_t>(key) ^ 0x80000000U} << 32 | static_cast<std::uint64_t>(at)) {}
  std::int64_t at() const { return static_cast<std::int64_t>(both & 0xffffffffU); }
  std::size_t digit(int i) const { return both >> (32 + 8 * i) & 0xff; }
  std::size_t leading() const { return both >> 53; }
  bool operator<(const NarrowEntry& o) const { return both < o.both; }
};

/// A key of 64 bits and a position.
struct WideEntry {
  using Key = std::int64_t;
  static constexpr int kDigits = 8;
  std::uint64_t key = 0;
  std::int64_t position = 0;

  WideEntry() = default;
  WideEntry(Key k, std::int64_t at) : key(static_cast<std::uint64_t>(k) ^ 1ULL << 63), position(at) {}
  std::int64_t at() const { return position; }
  std::size_t digit(int i) const { return key >> (8 * i) & 0xff; }
  std::size_t leading() const { return key >> 53; }
  bool operator<(const WideEntry& o) const { return key < o.key || (key == o.key && position < o.position); }
};

/// Sorts by key, byte by byte from the last, leaving out bytes that all entries share; `spare` has room for as many.
/// Entries must be in the order of their positions, so that equal keys stay so.
template <class Entry>
void sort_entries(Entry* entries, Entry* spare, std::int64_t n) {
  std::uint32_t counts[Entry::kDigits][256] = {};
  for (std::int64_t i = 0; i < n; ++i)
    for (int d = 0; d < Entry::kDigits; ++d) ++counts[d][entries[i].digit(d)];
  Entry *from = entries, *to = spare;
  for (int d = 0; d < Entry::kDigits; ++d) {
    if (counts[d][entries[0].digit(d)] == n) continue;
    std::uint32_t begin = 0;
    for (std::uint32_t& c : counts[d]) begin += std::exchange(c, begin);
    for (std::int64_t i = 0; i < n; ++i) to[counts[d][from[i].digit(d)]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::copy_n(from, n, entries);
}

/// The k smallest come first, in any order but that entries[k - 1] is the largest of them; what stands behind is
/// undefined. `spare` has room for as many as there are.
template <class Entry>
void choose_entries(Entry* entries, Entry* spare, std::int64_t n, std::int64_t k) {
  constexpr std::int64_t kFew = 512;
  if (n < kFew) {
    std::nth_element(entries, entries + k - 1, entries + n);
    return;
  }
  std::uint32_t counts[2048] = {};
  for (std::int64_t i = 0; i < n; ++i) ++counts[entries[i].leading()];
  std::size_t bucket = 0;
  std::int64_t below = 0;
  while (below + counts[bucket] < k) below += counts[bucket++];
  std::int64_t less = 0, equal = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const Entry e = entries[i];
    if (e.leading() < bucket) entries[less++] = e;
    if (e.leading() == bucket) spare[equal++] = e;
  }
  std::nth_element(spare, spare + (k - below - 1), spare + equal);
  std::copy_n(spare, k - below, entries + below);
}

}  // namespace ferrite::detail
