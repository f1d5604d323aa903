#pragma once
/// Orders the elements of rows: short ones by a network or by counting, long ones by bytes, the first few by a list.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "ferrite/tensor/inline_vector.h"
#include "ferrite/tensor/kernel/ranks.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// A key of 32 bits and a position below 2^32, in one number.
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

/// Sorts entries by key, byte by byte from the last, skipping bytes that all entries share; `spare` must have room for
/// n. Entries must be in the order of their positions, so that equal keys remain in it.
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

/// Moves the k smallest entries to the front, in any order except that entries[k - 1] is the largest of them; the rest
/// is undefined. `spare` must have room for n.
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

/// Returns the kernel for short rows of a type.
template <class T>
auto short_rows() {
  const RankKernels& k = ranks_in_use.get();
  if constexpr (std::is_same_v<T, float>) return k.f32;
  if constexpr (std::is_same_v<T, double>) return k.f64;
  if constexpr (std::is_same_v<T, std::int32_t>) return k.i32;
  if constexpr (std::is_same_v<T, std::int64_t>) return k.i64;
}

/// The elements wanted of each row: the first k of n in the order asked for.
struct RowOrder {
  std::int64_t n;
  std::int64_t k;
  bool descending;
  bool sorted;
};

/// Orders rows of one type, with the memory that this takes.
template <class T>
class RowSorter {
 public:
  using Key = decltype(order_key(T()));
  using Entry = std::conditional_t<sizeof(Key) == 4, NarrowEntry, WideEntry>;

  explicit RowSorter(const RowOrder& o) : order_(o), way_(way_of(o)) {
    if (way_ != Way::entries) return;
    entries_.resize(static_cast<std::size_t>(o.n));
    spare_.resize(static_cast<std::size_t>(o.n));
  }

  /// Returns the number of rows that are ordered together.
  std::int64_t together() const { return way_ == Way::network ? kNetworkRows : 1; }
  /// Takes the next rows, at most `together()`; they must stay in place until the next ones.
  void take(const T* const* rows, std::int64_t count) {
    rows_ = rows;
    if constexpr (kNarrow) {
      if (way_ == Way::network) short_rows<T>()(rows, count, order_.n, order_.descending, order_.k, places_);
    }
  }

  /// Calls put(j, i) when the element i of a row that was taken belongs at place j.
  template <class Put>
  void run(std::int64_t row, Put&& put) {
    switch (way_) {
      case Way::network: return run_network(places_ + row * kNetworkRow, put);
      case Way::ranks: return run_ranks(rows_[row], put);
      case Way::few: return run_few(rows_[row], put);
      case Way::entries: return run_entries(rows_[row], put);
    }
  }

  /// Returns the position of the last of the k elements in the row.
  std::int64_t at_rank(std::int64_t row) {
    if (way_ == Way::network) return places_[row * kNetworkRow + order_.k - 1];
    if (way_ == Way::few) {
      Entry first[kFewest];
      choose_few(rows_[row], first);
      return first[order_.k - 1].at();
    }
    if (way_ == Way::entries) {
      choose_entries(entries_of(rows_[row]), spare_.data(), order_.n, order_.k);
      return entries_[static_cast<std::size_t>(order_.k - 1)].at();
    }
    std::int64_t at = 0;
    run_ranks(rows_[row], [&](std::int64_t j, std::int64_t i) {
      if (j == order_.k - 1) at = i;
    });
    return at;
  }

 private:
  static constexpr bool kNarrow = sizeof(Key) == 4;
  static constexpr std::int64_t kFewest = 8;  ///< elements that are found by inserting each into a list
  enum class Way : std::uint8_t { network, ranks, few, entries };

  static Way way_of(const RowOrder& o) {
    if (o.n <= kShortRow) return kNarrow ? Way::network : Way::ranks;
    if (o.k <= kFewest) return Way::few;
    return kNarrow && o.n <= kNetworkRow ? Way::network : Way::entries;
  }

  /// Finds the first k in their order: most elements come after the last of those found so far.
  void choose_few(const T* x, Entry* first) {
    const Key flip = order_.descending ? Key(-1) : Key(0);
    const std::int64_t k = order_.k;
    const auto insert = [&](const Entry& e, std::int64_t place) {
      for (; place > 0 && e < first[place - 1]; --place) first[place] = first[place - 1];
      first[place] = e;
    };
    for (std::int64_t i = 0; i < k; ++i) insert(Entry(order_key(x[i]) ^ flip, i), i);
    Key last = order_key(x[first[k - 1].at()]) ^ flip;
    for (std::int64_t i = k; i < order_.n; ++i) {
      const Key key = order_key(x[i]) ^ flip;
      if (key >= last) continue;
      insert(Entry(key, i), k - 1);
      last = order_key(x[first[k - 1].at()]) ^ flip;
    }
  }
  template <class Put>
  void run_few(const T* x, Put&& put) {
    if (order_.k == 0) return;
    Entry first[kFewest];
    choose_few(x, first);
    if (!order_.sorted)
      std::sort(first, first + order_.k, [](const Entry& a, const Entry& b) { return a.at() < b.at(); });
    for (std::int64_t j = 0; j < order_.k; ++j) put(j, first[j].at());
  }
  Entry* entries_of(const T* x) {
    const Key flip = order_.descending ? Key(-1) : Key(0);
    Entry* e = entries_.data();
    for (std::int64_t i = 0; i < order_.n; ++i) e[i] = Entry(order_key(x[i]) ^ flip, i);
    return e;
  }
  template <class Put>
  void run_network(std::uint8_t* places, Put&& put) {
    if (!order_.sorted) std::sort(places, places + order_.k);
    for (std::int64_t j = 0; j < order_.k; ++j) put(j, places[j]);
  }
  template <class Put>
  void run_ranks(const T* x, Put&& put) {
    if constexpr (!kNarrow) {
      std::int32_t ranks[kShortRow];
      short_rows<T>()(x, order_.n, order_.descending, ranks);
      std::int64_t next = 0;
      for (std::int64_t i = 0; i < order_.n; ++i)
        if (ranks[i] < order_.k) put(order_.sorted ? ranks[i] : next++, i);
    }
  }
  template <class Put>
  void run_entries(const T* x, Put&& put) {
    Entry* e = entries_of(x);
    if (order_.k > order_.n / 4) {
      sort_entries(e, spare_.data(), order_.n);
    } else if (order_.k > 0) {
      choose_entries(e, spare_.data(), order_.n, order_.k);
      if (order_.sorted) std::sort(e, e + order_.k);
    }
    if (!order_.sorted) std::sort(e, e + order_.k, [](const Entry& a, const Entry& b) { return a.at() < b.at(); });
    for (std::int64_t j = 0; j < order_.k; ++j) put(j, e[j].at());
  }

  RowOrder order_;
  Way way_;
  const T* const* rows_ = nullptr;
  PooledVector<Entry> entries_{}, spare_{};
  std::uint8_t places_[kNarrow ? kNetworkRows * kNetworkRow : 1];
};

/// Returns the i64 index of the k-th smallest element along an axis, k from 1; the axis gets the extent 1. A NaN is
/// larger than all numbers; of equal elements the first comes first.
Tensor rank_index(const Tensor& x, int axis, std::int64_t k);

}  // namespace ferrite::detail
