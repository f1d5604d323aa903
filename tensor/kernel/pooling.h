#pragma once
/// What the kernels of pooling share with their callers.
#include <cstdint>

namespace ferrite::detail {

/// Windows along one axis: window i holds elements i * stride + tap * dilation - before of the n that are there;
/// adaptive ones hold [floor(i n / size), ceil((i + 1) n / size)).
struct PoolAxis {
  std::int64_t n = 1, size = 1, kernel = 1, stride = 1, before = 0, dilation = 1;
  bool adaptive = false;
};
/// The elements first, first + step, ... below last of one window.
struct PoolWindow {
  std::int64_t first, last, step;
};
constexpr PoolWindow window_of(const PoolAxis& a, std::int64_t i) {
  if (a.adaptive) return {i * a.n / a.size, ((i + 1) * a.n + a.size - 1) / a.size, 1};
  std::int64_t first = i * a.stride - a.before;
  std::int64_t last = first + (a.kernel - 1) * a.dilation + 1;
  if (first < 0) first += (-first + a.dilation - 1) / a.dilation * a.dilation;
  if (last > a.n) last = a.n;
  return {first, last < first ? first : last, a.dilation};
}

/// Depth, height and width.
struct PoolAxes {
  PoolAxis axis[3];
};

/// What a level (level.h) has for a dtype, for one plane.
template <class T>
struct PoolKernels {
  /// The largest element of every window, a NaN before all; -inf of none.
  void (*max)(const T* x, const PoolAxes& a, T* y);
  /// Its place in the plane: of the first of equal ones, of the last NaN.
  void (*places)(const T* x, const PoolAxes& a, std::int64_t* to);
  /// Sums over every window, rows before columns.
  void (*sum)(const T* x, const PoolAxes& a, T* y);
  /// The adjoint: adds to x.
  void (*spread)(const T* y, const PoolAxes& a, T* x);
};
}  // namespace ferrite::detail
