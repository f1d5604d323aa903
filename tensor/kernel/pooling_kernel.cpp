/// Pooling of planes: neighbouring windows are processed together, as many as a packet has lanes.
#include "ferrite/tensor/kernel/pooling.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "ferrite/tensor/kernel/mask.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

/// Calls f(place of the row of results, first element of a row of the plane) for every row of results and all rows that
/// its windows hold, ascending.
template <class F>
void each_row(const PoolAxes& a, const F& f) {
  const PoolAxis &d = a.axis[0], &h = a.axis[1], &w = a.axis[2];
  for (std::int64_t i = 0; i < d.size; ++i)
    for (std::int64_t j = 0; j < h.size; ++j) {
      const std::int64_t to = (i * h.size + j) * w.size;
      const PoolWindow deep = window_of(d, i), high = window_of(h, j);
      for (std::int64_t p = deep.first; p < deep.last; p += deep.step)
        for (std::int64_t q = high.first; q < high.last; q += high.step) f(to, (p * h.n + q) * w.n);
    }
}

/// Calls f(first window, last window, element read by the first one, distance) for every tap along a row: the windows
/// for which the tap exists read elements `distance` apart.
template <class F>
void each_tap(const PoolAxis& w, const F& f) {
  for (std::int64_t t = 0; t < w.kernel; ++t) {
    const std::int64_t at = t * w.dilation - w.before;  // position for window 0
    const std::int64_t first = at >= 0 ? 0 : (-at + w.stride - 1) / w.stride;
    const std::int64_t last = at >= w.n ? 0 : std::min(w.size, (w.n - 1 - at) / w.stride + 1);
    if (first < last) f(first, last, first * w.stride + at, w.stride);
  }
}

/// Calls one(y, x) for n results and elements that lie `step` apart.
template <class T, class Y, class One>
void along(Y* y, T* x, std::int64_t step, std::int64_t n, const One& one) {
  if (step == 1) {
    for (std::int64_t i = 0; i < n; ++i) one(y[i], x[i]);
  } else if (step == 2) {
    for (std::int64_t i = 0; i < n; ++i) one(y[i], x[2 * i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) one(y[i], x[i * step]);
  }
}

/// Calls one(y, x) for every window of a row and every element that it holds.
template <class T, class Y, class One>
void row_of_windows(const PoolAxis& w, Y* y, T* x, const One& one) {
  if (w.adaptive) {
    for (std::int64_t i = 0; i < w.size; ++i) {
      const PoolWindow held = window_of(w, i);
      for (std::int64_t k = held.first; k < held.last; ++k) one(y[i], x[k]);
    }
    return;
  }
  each_tap(w, [&](std::int64_t first, std::int64_t last, std::int64_t from, std::int64_t step) {
    along(y + first, x + from, step, last - first, one);
  });
}

/// Vectors of the compiler: W numbers, or integers of the same width.
template <class T, int W>
struct VectorOf {
  using Place = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  using Type [[gnu::vector_size(W * sizeof(T))]] = T;
  using Places [[gnu::vector_size(W * sizeof(T))]] = Place;
};

/// Loads x[0], x[step], ..., one for each lane; nothing after the last one is read.
template <class T, int W, int Step, std::size_t... I>
[[gnu::always_inline]] inline void load(const T* x, std::int64_t step, typename VectorOf<T, W>::Type& v,
                                        std::index_sequence<I...>) {
  if constexpr (Step == 1) {
    std::memcpy(&v, x, sizeof(v));
  } else if constexpr (Step == 2) {  // the second half of the elements ends with the last one
    typename VectorOf<T, W>::Type low, high;
    std::memcpy(&low, x, sizeof(low));
    std::memcpy(&high, x + W - 1, sizeof(high));
    v = __builtin_shufflevector(low, high, (I < W / 2 ? 2 * I : 2 * I + 1)...);
  } else {
    v = typename VectorOf<T, W>::Type{x[static_cast<std::int64_t>(I) * step]...};
  }
}
/// Loads x[0], x[2], ... and x[1], x[3], ...
template <class T, int W, std::size_t... I>
[[gnu::always_inline]] inline void load_pairs(const T* x, typename VectorOf<T, W>::Type& even,
                                              typename VectorOf<T, W>::Type& odd, std::index_sequence<I...>) {
  typename VectorOf<T, W>::Type low, high;
  std::memcpy(&low, x, sizeof(low));
  std::memcpy(&high, x + W, sizeof(high));
  even = __builtin_shufflevector(low, high, (2 * I)...);
  odd = __builtin_shufflevector(low, high, (2 * I + 1)...);
}

/// The windows of a row that hold all of their taps: from `first` to `last`.
struct Inside {
  std::int64_t first, last;
};
Inside inside(const PoolAxis& w) {
  if (w.adaptive) return {0, 0};
  const std::int64_t first = (w.before + w.stride - 1) / w.stride;
  const std::int64_t end = w.n - 1 + w.before - (w.kernel - 1) * w.dilation;  // of the start of a window
  const std::int64_t last = std::min(w.size, end < 0 ? 0 : end / w.stride + 1);
  return {first, std::max(first, last)};
}

/// The rows of a plane that the windows of a row of results hold: calls f(first element of each), ascending.
struct HeldRows {
  PoolWindow deep, high;
  std::int64_t height, width;

  template <class F>
  [[gnu::always_inline]] void each(const F& f) const {
    for (std::int64_t p = deep.first; p < deep.last; p += deep.step)
      for (std::int64_t q = high.first; q < high.last; q += high.step) f((p * height + q) * width);
  }
};

/// Computes neighbouring windows whose best elements, or sums, stay in registers until they are complete: fold.template
/// packet<W, Step>(rows, window) computes W of them that hold all their taps, fold.one(rows, window) any one. Results
/// of a packet may be stored twice.
template <int W, int Step, class Fold>
void packets(const HeldRows& rows, const Inside& in, const Fold& fold) {
  for (std::int64_t i = in.first; i + W <= in.last; i += W) fold.template packet<W, Step>(rows, i);
  if ((in.last - in.first) % W) fold.template packet<W, Step>(rows, in.last - W);
}
template <int Step, class Fold>
void row_of_packets(const HeldRows& rows, const Inside& in, const Fold& fold) {
  constexpr int kWidest = kLanes<typename Fold::Number>;
  const std::int64_t n = in.last - in.first;
  if (n >= kWidest) return packets<kWidest, Step>(rows, in, fold);
  if constexpr (kWidest >= 16) {
    if (n >= 8) return packets<8, Step>(rows, in, fold);
  }
  if constexpr (kWidest >= 8) {
    if (n >= 4) return packets<4, Step>(rows, in, fold);
  }
  for (std::int64_t i = in.first; i < in.last; ++i) fold.one(rows, i);
}
template <class Fold>
void each_window(const PoolAxes& a, const Inside& in, Fold fold) {
  const PoolAxis &d = a.axis[0], &h = a.axis[1], &w = a.axis[2];
  for (std::int64_t i = 0; i < d.size; ++i)
    for (std::int64_t j = 0; j < h.size; ++j, fold.next_row()) {
      const HeldRows rows{window_of(d, i), window_of(h, j), h.n, w.n};
      for (std::int64_t k = 0; k < std::min(in.first, w.size); ++k) fold.one(rows, k);
      if (in.last > in.first) {
        if (w.stride == 1) {
          row_of_packets<1>(rows, in, fold);
        } else if (w.stride == 2) {
          row_of_packets<2>(rows, in, fold);
        } else {
          row_of_packets<0>(rows, in, fold);
        }
      }
      for (std::int64_t k = in.last; k < w.size; ++k) fold.one(rows, k);
    }
}

/// Folds every element of a window, in the order of the plane, into a Join<V>: for a packet of windows, or one.
template <class T, template <class> class Join>
struct Folded {
  using Number = T;
  const T* x;
  const PoolAxis& w;
  T* y;

  void next_row() { y += w.size; }
  template <int W, int Step>
  [[gnu::always_inline]] void packet(const HeldRows& rows, std::int64_t i) const {
    using V = typename VectorOf<T, W>::Type;
    constexpr auto lanes = std::make_index_sequence<static_cast<std::size_t>(W)>();
    const T* const first = x + i * w.stride - w.before;
    Join<V> total;
    rows.each([&](std::int64_t row) {
      for (std::int64_t t = 0; t < w.kernel; ++t) {
        V v;
        load<T, W, Step>(first + row + t * w.dilation, w.stride, v, lanes);
        total.add(v);
      }
    });
    const V found = total.result();
    std::memcpy(y + i, &found, sizeof(found));
  }
  void one(const HeldRows& rows, std::int64_t i) const {
    Join<T> total;
    const PoolWindow held = window_of(w, i);
    rows.each([&](std::int64_t row) {
      for (std::int64_t k = held.first; k < held.last; k += held.step) total.add(x[row + k]);
    });
    y[i] = total.result();
  }
};

/// The first of the largest elements, or the last NaN. NaN is kept separately, so that one instruction finds the
/// larger.
template <class V>
struct Best {
  V best = V{} - std::numeric_limits<float>::infinity(), nan{};

  [[gnu::always_inline]] void add(const V& v) {
    best = v > best ? v : best;
    nan = v != v ? v : nan;
  }
  [[gnu::always_inline]] V result() const { return nan != nan ? nan : best; }
};
template <class V>
struct Total {
  V total{};

  [[gnu::always_inline]] void add(const V& v) { total += v; }
  [[gnu::always_inline]] V result() const { return total; }
};

template <class T>
struct BestPlaces {
  using Number = T;
  const T* x;
  const PoolAxis& w;
  std::int64_t* to;

  void next_row() { to += w.size; }
  static std::int64_t first_of(const HeldRows& rows) {
    return (rows.deep.first * rows.height + rows.high.first) * rows.width;
  }
  template <int W, int Step>
  [[gnu::always_inline]] void packet(const HeldRows& rows, std::int64_t i) const {
    using V = VectorOf<T, W>;
    typename V::Type best = typename V::Type{} - std::numeric_limits<T>::infinity();
    typename V::Places lanes;
    for (int l = 0; l < W; ++l) lanes[l] = static_cast<typename V::Place>(l * w.stride);
    const auto from = [&](std::int64_t row) { return row + i * w.stride - w.before; };
    typename V::Places places = lanes + static_cast<typename V::Place>(from(first_of(rows)));
    rows.each([&](std::int64_t row) {
      for (std::int64_t t = 0; t < w.kernel; ++t) {
        const std::int64_t at = from(row) + t * w.dilation;
        typename V::Type v;
        load<T, W, Step>(x + at, w.stride, v, std::make_index_sequence<static_cast<std::size_t>(W)>());
        const typename V::Places here = lanes + static_cast<typename V::Place>(at);
        places = v > best ? here : places;
        places = v != v ? here : places;
        best = v > best ? v : best;
        best = v != v ? v : best;
      }
    });
    for (int l = 0; l < W; ++l) to[i + l] = places[l];
  }
  void one(const HeldRows& rows, std::int64_t i) const {
    T best = -std::numeric_limits<T>::infinity();
    const PoolWindow held = window_of(w, i);
    std::int64_t place = first_of(rows) + held.first;
    rows.each([&](std::int64_t row) {
      for (std::int64_t k = held.first; k < held.last; k += held.step) {
        const T v = x[row + k];
        if (!(v > best || v != v)) continue;
        place = row + k;
        best = v;
      }
    });
    to[i] = place;
  }
};

/// Returns whether the windows are adjacent squares of two by two elements that all lie in the plane.
bool are_squares(const PoolAxes& a) {
  const auto pairs = [](const PoolAxis& w) {
    return !w.adaptive && w.kernel == 2 && w.stride == 2 && w.before == 0 && w.dilation == 1 && 2 * w.size <= w.n;
  };
  return a.axis[0].n == 1 && a.axis[0].size == 1 && a.axis[0].kernel == 1 && pairs(a.axis[1]) && pairs(a.axis[2]);
}
/// Computes W squares of the rows x and below, reading 2 * W elements of each.
template <int W, template <class> class Join, class T>
[[gnu::always_inline]] inline void squares_of_rows(const T* x, const T* below, T* y) {
  constexpr auto lanes = std::make_index_sequence<static_cast<std::size_t>(W)>();
  typename VectorOf<T, W>::Type even, odd;
  Join<typename VectorOf<T, W>::Type> total;
  load_pairs<T, W>(x, even, odd, lanes);
  total.add(even);
  total.add(odd);
  load_pairs<T, W>(below, even, odd, lanes);
  total.add(even);
  total.add(odd);
  const auto found = total.result();
  std::memcpy(y, &found, sizeof(found));
}
template <int W, template <class> class Join, class T>
void squares(const T* x, const PoolAxes& a, T* y) {
  const std::int64_t rows = a.axis[1].size, width = a.axis[2].n, n = a.axis[2].size;
  for (std::int64_t j = 0; j < rows; ++j, x += 2 * width, y += n) {
    std::int64_t i = 0;
    for (; i + W <= n; i += W) squares_of_rows<W, Join>(x + 2 * i, x + width + 2 * i, y + i);
    if (i < n) squares_of_rows<W, Join>(x + 2 * (n - W), x + width + 2 * (n - W), y + n - W);
  }
}

template <template <class> class Join, class T>
void pool(const T* x, const PoolAxes& a, T* y) {
  constexpr int kWidest = kLanes<T>;
  const std::int64_t n = a.axis[2].size;
  if (!are_squares(a) || n < std::min(kWidest, 4))
    return each_window(a, inside(a.axis[2]), Folded<T, Join>{x, a.axis[2], y});
  if (n >= kWidest) return squares<kWidest, Join>(x, a, y);
  if constexpr (kWidest >= 16)
    if (n >= 8) return squares<8, Join>(x, a, y);
  if constexpr (kWidest >= 8) squares<4, Join>(x, a, y);
}

template <class T>
void max(const T* x, const PoolAxes& a, T* y) {
  pool<Best>(x, a, y);
}
template <class T>
void places(const T* x, const PoolAxes& a, std::int64_t* to) {
  const std::int64_t plane = a.axis[0].n * a.axis[1].n * a.axis[2].n;
  const bool fits = plane <= std::numeric_limits<typename VectorOf<T, 1>::Place>::max();
  each_window(a, fits ? inside(a.axis[2]) : Inside{0, 0}, BestPlaces<T>{x, a.axis[2], to});
}
template <class T>
void sum(const T* x, const PoolAxes& a, T* y) {
  pool<Total>(x, a, y);
}

template <class T>
void spread(const T* y, const PoolAxes& a, T* x) {
  each_row(a, [&](std::int64_t to, std::int64_t row) {
    row_of_windows(a.axis[2], y + to, x + row, [](const T& g, T& v) { v += g; });
  });
}

template <class T>
constexpr PoolKernels<T> kernels_of() {
  return {max<T>, places<T>, sum<T>, spread<T>};
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(PoolKernels, pool_kernels, kernels_of)

}  // namespace ferrite::detail::FERRITE_LEVEL
