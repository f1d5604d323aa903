#pragma once
/// Types shared by the kernels of pooling and their callers.
#include <cstdint>

namespace ferrite::detail {

/// Windows along one axis: window i holds the elements i * stride + tap * dilation - before that exist among n;
/// adaptive ones hold [floor(i n / size), ceil((i + 1) n / size)).
struct PoolAxis {
  std::int64_t n = 1, size = 1, kernel = 1, stride = 1, before = 0, dilation = 1;
  bool adaptive = false;
};
/// One window: the elements first, first + step, ... below last.
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

/// The three axes of pooling: depth, height and width.
struct PoolAxes {
  PoolAxis axis[3];
};

/// The kernels of pooling that a level (level.h) has for a dtype, for one plane.
template <class T>
struct PoolKernels {
  /// Computes the largest element of every window, where NaN counts as largest; -inf for empty windows.
  void (*max)(const T* x, const PoolAxes& a, T* y);
  /// Computes the position of the largest element in the plane: the first of equal ones, the last NaN.
  void (*places)(const T* x, const PoolAxes& a, std::int64_t* to);
  /// Sums every window, rows before columns.
  void (*sum)(const T* x, const PoolAxes& a, T* y);
  /// Adds the adjoint of `sum` to x.
  void (*spread)(const T* y, const PoolAxes& a, T* x);
};
}  // namespace ferrite::detail
