/// Runs the kernels of pooling plane by plane.
#include "ferrite/tensor/ops/detail/pooling_run.h"

#include <algorithm>

#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/tables.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::detail {

FERRITE_FLOAT_TABLES(PoolKernels, pool_kernels, pool_in_use)

namespace {

template <PoolKind kind, class T>
void pool(const Tensor& from, Tensor& to, const PoolAxes& axes) {
  const PoolKernels<T>& kernels = pool_in_use.of<T>();
  std::int64_t read = 1, written = 1, held = 1;
  for (const PoolAxis& a : axes.axis) {
    read *= kind == PoolKind::spread ? a.size : a.n;
    written *= kind == PoolKind::spread ? a.n : a.size;
    held *= a.adaptive ? a.n / std::max<std::int64_t>(1, a.size) + 1 : a.kernel;
  }
  const std::int64_t planes = to.shape()[0] * to.shape()[1];
  const T* const x = from.data<T>();
  const auto plane = [&](std::int64_t i) {
    if constexpr (kind == PoolKind::places) {
      kernels.places(x + i * read, axes, Writer::data<std::int64_t>(to) + i * written);
    } else {
      T* const y = Writer::data<T>(to) + i * written;
      if constexpr (kind == PoolKind::max) {
        kernels.max(x + i * read, axes, y);
      } else if constexpr (kind == PoolKind::sum) {
        kernels.sum(x + i * read, axes, y);
      } else {
        std::fill_n(y, written, T(0));
        kernels.spread(x + i * read, axes, y);
      }
    }
  };
  const std::int64_t windows = kind == PoolKind::spread ? read : written;
  if (planes > 1 && thread_count() > 1 && planes * windows * held >= kWorthSharing) return parallel_for(planes, plane);
  for (std::int64_t i = 0; i < planes; ++i) plane(i);
}

}  // namespace

template <PoolKind kind>
void pool_planes(const Tensor& from, Tensor& to, const PoolAxes& axes) {
  if (to.numel() == 0) return;
  const RowMajor rows(from);
  if (from.dtype() == Dtype::f32) return pool<kind, float>(*rows, to, axes);
  pool<kind, double>(*rows, to, axes);
}

template void pool_planes<PoolKind::max>(const Tensor&, Tensor&, const PoolAxes&);
template void pool_planes<PoolKind::places>(const Tensor&, Tensor&, const PoolAxes&);
template void pool_planes<PoolKind::sum>(const Tensor&, Tensor&, const PoolAxes&);
template void pool_planes<PoolKind::spread>(const Tensor&, Tensor&, const PoolAxes&);

}  // namespace ferrite::detail
