#pragma once
/// Orders the elements of a row, short rows by counting, long ones by their bytes, the first few by a list of them.
#include "ferrite/tensor/ops/detail/order.h"
#include "ferrite/tensor/pooled.h"

namespace ferrite::detail {

/// The kernel for short rows of a type.
template <class T>
RankRow<T> rank_row() {
  const RankKernels& k = ranks_in_use.get();
  if constexpr (std::is_same_v<T, float>) return k.f32;
  if constexpr (std::is_same_v<T, double>) return k.f64;
  if constexpr (std::is_same_v<T, std::int32_t>) return k.i32;
  if constexpr (std::is_same_v<T, std::int64_t>) return k.i64;
}

/// What is wanted of each row: its first k elements in the order asked for.
struct RowOrder {
  std::int64_t n;
  std::int64_t k;
  bool descending;
  bool sorted;
};

/// Rows of one type, with the memory that ordering them takes.
template <class T>
class RowSorter {
 public:
  using Key = decltype(order_key(T()));
  using Entry = std::conditional_t<sizeof(Key) == 4, NarrowEntry, WideEntry>;

  explicit RowSorter(const RowOrder& o) : order_(o) {
    if (o.n <= kShortRow || o.k <= kFewest) return;
    entries_.resize(static_cast<std::size_t>(o.n));
    spare_.resize(static_cast<std::size_t>(o.n));
  }

  /// put(j, i): the element i comes at the place j.
  template <class Put>
  void run(const T* x, Put&& put) {
    if (order_.n <= kShortRow) return run_short(x, put);
    order_.k <= kFewest ? run_few(x, put) : run_long(x, put);
  }

  /// Where the last of the k elements stands.
  std::int64_t at_rank(const T* x) {
    std::int64_t at = 0;
    if (order_.n <= kShortRow) {
      run_short(x, [&](std::int64_t j, std::int64_t i) {
        if (j == order_.k - 1) at = i;
      });
      return at;
    }
    if (order_.k <= kFewest) {
      Entry first[kFewest];
      choose_few(x, first);
      return first[order_.k - 1].at();
    }
    choose_entries(entries_of(x), spare_.data(), order_.n, order_.k);
    return entries_[static_cast<std::size_t>(order_.k - 1)].at();
  }

 private:
  static constexpr std::int64_t kFewest = 8;  ///< elements that are found by inserting each into a list

  /// The first k in their order: most elements come behind the last of those found so far.
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
  void run_short(const T* x, Put&& put) {
    std::int32_t ranks[kShortRow];
    rank_row<T>()(x, order_.n, order_.descending, ranks);
    std::int64_t next = 0;
    for (std::int64_t i = 0; i < order_.n; ++i)
      if (ranks[i] < order_.k) put(order_.sorted ? ranks[i] : next++, i);
  }
  template <class Put>
  void run_long(const T* x, Put&& put) {
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
  PooledVector<Entry> entries_{}, spare_{};
};

}  // namespace ferrite::detail
