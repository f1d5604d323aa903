/// Sums, products, linear recurrences and extrema along an axis.
#include "ferrite/tensor/kernel/cumulative.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "ferrite/tensor/kernel/mask.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

constexpr std::int64_t kBlock = 8;  ///< elements that are summed by doubling
constexpr std::int64_t kTile = 64;  ///< lines next to each other that are processed together
constexpr unsigned kTogether = 4;   ///< consecutive lines processed together: their chains of operations overlap

/// Vectors of the compiler, which splits them into those of the instruction set.
using Totals [[gnu::vector_size(8 * kBlock)]] = double;
template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  using Type [[gnu::vector_size(4 * kBlock)]] = float;
};
template <>
struct VectorOf<double> {
  using Type = Totals;
};

template <class T>
[[gnu::always_inline]] inline void load(const T* x, Totals& v) {
  typename VectorOf<T>::Type raw;
  std::memcpy(&raw, x, sizeof(raw));
  v = __builtin_convertvector(raw, Totals);
}
template <class T>
[[gnu::always_inline]] inline void store(const Totals& v, T* y) {
  const auto raw = __builtin_convertvector(v, typename VectorOf<T>::Type);
  std::memcpy(y, &raw, sizeof(raw));
}

/// Sums one line of stride 1. Backwards, the elements of a block are reversed: the order is that of the flipped line.
template <class T, bool Reverse>
void sum_line(const T* x, T* y, std::int64_t n) {
  const Totals zero = {};
  Totals before = {};  // the total, in every lane
  std::int64_t done = 0;
  for (; done + kBlock <= n; done += kBlock) {
    const std::int64_t at = Reverse ? n - done - kBlock : done;
    Totals v;
    load(x + at, v);
    if constexpr (Reverse) v = __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
    v += __builtin_shufflevector(v, zero, 8, 0, 1, 2, 3, 4, 5, 6);
    v += __builtin_shufflevector(v, zero, 8, 8, 0, 1, 2, 3, 4, 5);
    v += __builtin_shufflevector(v, zero, 8, 8, 8, 8, 0, 1, 2, 3);
    const Totals all = __builtin_shufflevector(v, v, 7, 7, 7, 7, 7, 7, 7, 7);
    v += before;
    before += all;
    if constexpr (Reverse) v = __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
    store(v, y + at);
  }
  double total = before[0];
  for (; done < n; ++done) {
    const std::int64_t at = Reverse ? n - done - 1 : done;
    total += static_cast<double>(x[at]);
    y[at] = static_cast<T>(total);
  }
}

/// Processes lines next to each other in one pass over memory: first(position) returns the total of the first element
/// of a line, next(total, position) that after each further one.
template <class T, class First, class Next>
void beside(T* y, const CumulativeLines& l, First first, Next next) {
  for (std::int64_t begin = 0; begin < l.count; begin += kTile) {
    const std::int64_t width = std::min(kTile, l.count - begin);
    double totals[kTile];
    for (std::int64_t k = 0; k < l.n; ++k) {
      const std::int64_t row = (l.reverse ? l.n - 1 - k : k) * l.stride + begin;
      if (k == 0) {
        for (std::int64_t c = 0; c < width; ++c) totals[c] = first(row + c);
      } else {
        for (std::int64_t c = 0; c < width; ++c) totals[c] = next(totals[c], row + c);
      }
      for (std::int64_t c = 0; c < width; ++c) y[row + c] = static_cast<T>(totals[c]);
    }
  }
}

/// Processes consecutive lines, Together of them at a time.
template <unsigned Together, class T, class First, class Next>
void together(T* y, std::int64_t line, const CumulativeLines& l, First first, Next next) {
  double totals[Together];
  const std::int64_t step = l.reverse ? -1 : 1;
  std::int64_t at = line * l.n + (l.reverse ? l.n - 1 : 0);
  for (std::int64_t k = 0; k < l.n; ++k, at += step)
    for (unsigned r = 0; r < Together; ++r) {
      const std::int64_t e = at + static_cast<std::int64_t>(r) * l.n;
      totals[r] = k == 0 ? first(e) : next(totals[r], e);
      y[e] = static_cast<T>(totals[r]);
    }
}

template <class T, class First, class Next>
void each_line(T* y, const CumulativeLines& l, First first, Next next) {
  if (l.stride > 1) return beside(y, l, first, next);
  std::int64_t line = 0;
  for (; line + kTogether <= l.count; line += kTogether) together<kTogether>(y, line, l, first, next);
  for (; line < l.count; ++line) together<1>(y, line, l, first, next);
}

template <class T>
void sum(const T* x, T* y, const CumulativeLines& l) {
  if (l.stride > 1) {
    const auto first = [=](std::int64_t at) { return static_cast<double>(x[at]); };
    return beside(y, l, first, [=](double total, std::int64_t at) { return total + static_cast<double>(x[at]); });
  }
  for (std::int64_t i = 0; i < l.count; ++i)
    l.reverse ? sum_line<T, true>(x + i * l.n, y + i * l.n, l.n) : sum_line<T, false>(x + i * l.n, y + i * l.n, l.n);
}

template <class T>
void product(const T* x, T* y, const CumulativeLines& l) {
  each_line(
      y, l, [=](std::int64_t at) { return static_cast<double>(x[at]); },
      [=](double total, std::int64_t at) { return total * static_cast<double>(x[at]); });
}

template <class T>
void recurrence(const T* a, const T* b, T* y, const CumulativeLines& l) {
  each_line(
      y, l, [=](std::int64_t at) { return static_cast<double>(b[at]); },
      [=](double total, std::int64_t at) { return static_cast<double>(a[at]) * total + static_cast<double>(b[at]); });
}

/// A vector of as many numbers as a packet has lanes, and one of integers of the same width.
template <class T>
struct LanesOf {
  static constexpr int count = sizeof(T) == 4 ? kLanes<float> : kLanes<double>;
  using Place = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  using Numbers [[gnu::vector_size(sizeof(T) * count)]] = T;
  using Places [[gnu::vector_size(sizeof(T) * count)]] = Place;
};

/// Joins an earlier and a later element and their places into the better one; their order matters for equal elements
/// and for NaN. Works on numbers and on vectors.
template <bool Largest, class V, class P>
[[gnu::always_inline]] inline void join_later(V& best, P& place, const V& earlier, const P& earlier_place) {
  const V later = best;
  const P at = place;
  best = (Largest ? later >= earlier : later <= earlier) ? later : earlier;
  place = (Largest ? later >= earlier : later <= earlier) ? at : earlier_place;
  best = later != later ? later : best;
  place = later != later ? at : place;
}

/// Joins every lane with the one Step lanes before it.
template <bool Largest, int Step, class T, std::size_t... I>
[[gnu::always_inline]] inline void join_lanes(typename LanesOf<T>::Numbers& v, typename LanesOf<T>::Places& places,
                                              const typename LanesOf<T>::Numbers& worst,
                                              std::index_sequence<I...> all) {
  constexpr int W = LanesOf<T>::count;
  if constexpr (Step < W) {
    const auto earlier = __builtin_shufflevector(v, worst, (I < Step ? W + int(I) : int(I) - Step)...);
    const auto before = __builtin_shufflevector(places, places, (I < Step ? int(I) : int(I) - Step)...);
    join_later<Largest>(v, places, earlier, before);
    join_lanes<Largest, 2 * Step, T>(v, places, worst, all);
  }
}
template <class V, std::size_t... I>
[[gnu::always_inline]] inline V last_lane(const V& v, std::index_sequence<I...>) {
  return __builtin_shufflevector(v, v, (static_cast<int>(sizeof...(I)) - 1 + 0 * int(I))...);
}

/// Processes one line of stride 1, a packet at a time: joins the lanes by doubling, then with the best before them.
template <bool Largest, class T>
void extrema_of_line(const T* x, T* y, std::int64_t* index, std::int64_t n) {
  using L = LanesOf<T>;
  using Limits = std::numeric_limits<T>;
  constexpr auto kAll = std::make_index_sequence<static_cast<std::size_t>(L::count)>();
  constexpr T kLeast = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  constexpr T kMost = Limits::has_infinity ? Limits::infinity() : Limits::max();
  const typename L::Numbers worst = typename L::Numbers{} + (Largest ? kLeast : kMost);
  typename L::Numbers best = worst;
  typename L::Places place = {}, numbers = {};
  for (int l = 0; l < L::count; ++l) numbers[l] = l;
  std::int64_t k = 0;
  const std::int64_t end = n <= std::numeric_limits<typename L::Place>::max() ? n - L::count : -1;
  for (; k <= end; k += L::count) {
    typename L::Numbers v;
    std::memcpy(&v, x + k, sizeof(v));
    typename L::Places at = numbers + static_cast<typename L::Place>(k);
    join_lanes<Largest, 1, T>(v, at, worst, kAll);
    join_later<Largest>(v, at, best, place);
    std::memcpy(y + k, &v, sizeof(v));
    for (int l = 0; l < L::count; ++l) index[k + l] = at[l];
    best = last_lane(v, kAll);
    place = last_lane(at, kAll);
  }
  T last = best[0];
  std::int64_t at = place[0];
  for (; k < n; ++k) {
    T v = x[k];
    std::int64_t here = k;
    join_later<Largest>(v, here, last, at);
    y[k] = last = v;
    index[k] = at = here;
  }
}

template <bool Largest, class T>
void extrema(const T* x, T* y, std::int64_t* index, const CumulativeLines& l) {
  if (l.stride == 1) {
    for (std::int64_t i = 0; i < l.count; ++i) extrema_of_line<Largest>(x + i * l.n, y + i * l.n, index + i * l.n, l.n);
    return;
  }
  for (std::int64_t begin = 0; begin < l.count; begin += kTile) {
    const std::int64_t width = std::min(kTile, l.count - begin);
    T best[kTile];
    std::int64_t places[kTile] = {};
    std::copy_n(x + begin, width, best);
    for (std::int64_t k = 0; k < l.n; ++k)
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t at = k * l.stride + begin + c;
        T v = x[at];
        std::int64_t here = k;
        join_later<Largest>(v, here, best[c], places[c]);
        y[at] = best[c] = v;
        index[at] = places[c] = here;
      }
  }
}

template <class T>
constexpr CumulativeKernels<T> kernels_of() {
  return {.sum = sum<T>, .product = product<T>, .recurrence = recurrence<T>};
}
template <bool Largest>
constexpr RunningExtrema kExtrema = {extrema<Largest, float>, extrema<Largest, double>, extrema<Largest, std::int32_t>,
                                     extrema<Largest, std::int64_t>};

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(CumulativeKernels, cumulative_kernels, kernels_of)
extern const ExtremaKernels extrema_kernels;
constinit const ExtremaKernels extrema_kernels = {.largest = kExtrema<true>, .smallest = kExtrema<false>};

}  // namespace ferrite::detail::FERRITE_LEVEL
