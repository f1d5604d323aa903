/// Pooling of planes: rows of windows advance together, tap by tap, in loops that the compiler makes packets of.
#include "ferrite/tensor/kernel/pooling.h"

#include <algorithm>
#include <limits>

#include "ferrite/tensor/kernel/level.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

/// f(place of the row of results, first element of a row of the plane) for every row of results and all rows that its
/// windows hold, ascending; begin(place) before them.
template <class Begin, class F>
void each_row(const PoolAxes& a, const Begin& begin, const F& f) {
  const PoolAxis &d = a.axis[0], &h = a.axis[1], &w = a.axis[2];
  for (std::int64_t i = 0; i < d.size; ++i)
    for (std::int64_t j = 0; j < h.size; ++j) {
      const std::int64_t to = (i * h.size + j) * w.size;
      begin(to);
      const PoolWindow deep = window_of(d, i), high = window_of(h, j);
      for (std::int64_t p = deep.first; p < deep.last; p += deep.step)
        for (std::int64_t q = high.first; q < high.last; q += high.step) f(to, (p * h.n + q) * w.n);
    }
}

/// f(first window, last window, what the first one reads, distance) for every tap along a row: the windows of which it
/// is there read elements `distance` apart.
template <class F>
void each_tap(const PoolAxis& w, const F& f) {
  for (std::int64_t t = 0; t < w.kernel; ++t) {
    const std::int64_t at = t * w.dilation - w.before;  // of window 0
    const std::int64_t first = at >= 0 ? 0 : (-at + w.stride - 1) / w.stride;
    const std::int64_t last = at >= w.n ? 0 : std::min(w.size, (w.n - 1 - at) / w.stride + 1);
    if (first < last) f(first, last, first * w.stride + at, w.stride);
  }
}

/// one(y, x) for n results and elements that lie `step` apart.
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

/// one(y, x) for every window of a row and every element that it holds.
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

template <class T>
void max(const T* x, const PoolAxes& a, T* y) {
  const PoolAxis& w = a.axis[2];
  each_row(
      a, [&](std::int64_t to) { std::fill_n(y + to, w.size, -std::numeric_limits<T>::infinity()); },
      [&](std::int64_t to, std::int64_t row) {
        row_of_windows(w, y + to, x + row, [](T& best, const T& v) { best = v > best || v != v ? v : best; });
      });
}

template <class T>
void places(const T* x, const PoolAxes& a, T* best, std::int64_t* to) {
  const PoolAxis& w = a.axis[2];
  const auto consider = [&](std::int64_t i, std::int64_t place, std::int64_t window) {
    const T v = x[place];
    if (v > best[window] || v != v) {
      best[window] = v;
      to[i] = place;
    }
  };
  each_row(
      a,
      [&](std::int64_t row) {
        const PoolWindow deep = window_of(a.axis[0], row / w.size / a.axis[1].size);
        const PoolWindow high = window_of(a.axis[1], row / w.size % a.axis[1].size);
        std::fill_n(best, w.size, -std::numeric_limits<T>::infinity());
        for (std::int64_t i = 0; i < w.size; ++i)
          to[row + i] = (deep.first * a.axis[1].n + high.first) * w.n + window_of(w, i).first;
      },
      [&](std::int64_t row, std::int64_t from) {
        if (w.adaptive) {
          for (std::int64_t i = 0; i < w.size; ++i) {
            const PoolWindow held = window_of(w, i);
            for (std::int64_t k = held.first; k < held.last; ++k) consider(row + i, from + k, i);
          }
          return;
        }
        each_tap(w, [&](std::int64_t first, std::int64_t last, std::int64_t at, std::int64_t step) {
          for (std::int64_t i = first; i < last; ++i) consider(row + i, from + at + (i - first) * step, i);
        });
      });
}

template <class T>
void sum(const T* x, const PoolAxes& a, T* y) {
  const PoolAxis& w = a.axis[2];
  each_row(
      a, [&](std::int64_t to) { std::fill_n(y + to, w.size, T(0)); },
      [&](std::int64_t to, std::int64_t row) {
        row_of_windows(w, y + to, x + row, [](T& total, const T& v) { total += v; });
      });
}

template <class T>
void spread(const T* y, const PoolAxes& a, T* x) {
  each_row(
      a, [](std::int64_t) {},
      [&](std::int64_t to, std::int64_t row) {
        row_of_windows(a.axis[2], y + to, x + row, [](const T& g, T& v) { v += g; });
      });
}

template <class T>
inline constexpr PoolKernelsOf<T> pool_kernels_of = {max<T>, places<T>, sum<T>, spread<T>};

}  // namespace

extern const PoolKernels pool_kernels;
constinit const PoolKernels pool_kernels = {pool_kernels_of<float>, pool_kernels_of<double>};

}  // namespace ferrite::detail::FERRITE_LEVEL
