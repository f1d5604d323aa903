#pragma once
/// Orders the elements of rows: short ones by a network or by counting, long ones by their bytes, the first few by a
/// list of them.
#include "ferrite/tensor/ops/detail/order.h"
#include "ferrite/tensor/pooled.h"

namespace ferrite::detail {

/// The kernel for short rows of a type.
template <class T>
auto short_rows() {
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

  explicit RowSorter(const RowOrder& o) : order_(o), way_(way_of(o)) {
    if (way_ != Way::entries) return;
    entries_.resize(static_cast<std::size_t>(o.n));
    spare_.resize(static_cast<std::size_t>(o.n));
  }

  /// How many rows are taken together.
  std::int64_t together() const { return way_ == Way::network ? kNetworkRows : 1; }
  /// The next rows, as many or fewer; they stay where they are until the next ones.
  void take(const T* const* rows, std::int64_t count) {
    rows_ = rows;
    if constexpr (kNarrow) {
      if (way_ == Way::network) short_rows<T>()(rows, count, order_.n, order_.descending, order_.k, places_);
    }
  }

  /// put(j, i): the element i of a row that was taken comes at the place j.
  template <class Put>
  void run(std::int64_t row, Put&& put) {
    switch (way_) {
      case Way::network: return run_network(places_ + row * kNetworkRow, put);
      case Way::ranks: return run_ranks(rows_[row], put);
      case Way::few: return run_few(rows_[row], put);
      case Way::entries: return run_entries(rows_[row], put);
    }
  }

  /// Where the last of the k elements stands.
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

}  // namespace ferrite::detail
