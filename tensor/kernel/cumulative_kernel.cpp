/// Sums, products and linear recurrences along an axis.
#include "ferrite/tensor/kernel/cumulative.h"

#include <algorithm>
#include <cstring>

#include "ferrite/tensor/kernel/level.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

constexpr std::int64_t kBlock = 8;  ///< elements that are summed by doubling
constexpr std::int64_t kTile = 64;  ///< lines beside each other that are taken together
constexpr unsigned kTogether = 4;   ///< lines after each other that are: their chains of operations overlap

/// Vectors of the compiler, which divides them into what the instruction set has.
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

/// One line of stride 1. Backwards, the elements of a block are exchanged: the order is that of the flipped line.
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

/// Lines beside each other, all in one pass over memory: next(total, position of the element) gives the new total.
/// The first elements are `first`.
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

/// Lines one after the other, Together of them at a time.
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

}  // namespace

extern const CumulativeKernels cumulative_kernels;
constinit const CumulativeKernels cumulative_kernels = {
    .f32 = {.sum = sum<float>, .product = product<float>, .recurrence = recurrence<float>},
    .f64 = {.sum = sum<double>, .product = product<double>, .recurrence = recurrence<double>}};

}  // namespace ferrite::detail::FERRITE_LEVEL
