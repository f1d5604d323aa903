/// The public functions of pooling: options resolved, and what does not fit refused.
#include "ferrite/tensor/pooling.h"

#include <cmath>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/pooling_records.h"
#include "ferrite/tensor/ops/detail/space_options.h"

namespace ferrite {
namespace detail {
namespace {

Shape kernel_of(std::string_view where, const Shape& given, int axes) {
  if (given.rank() == 0) throw_shape(where, "kernel needs one number or " + std::to_string(axes) + ", got []");
  return space_numbers(where, "kernel", given, Shape::filled(axes, 1), 1);
}

/// x with a batch axis, and whether it was added.
struct Planes {
  Planes(std::string_view where, const Tensor& x, int axes) : alone(x.rank() == axes + 1) {
    if (!is_float(x.dtype()))
      throw_dtype(where, "dtype " + std::string(name_of(x.dtype())) + " is not supported; cast to a float");
    if (!alone && x.rank() != axes + 2)
      throw_shape(where, "expects rank " + std::to_string(axes + 2) + ", or " + std::to_string(axes + 1) +
                             " without a batch, got " + x.shape().str());
    planes = alone ? unsqueeze(x, 0) : x;
  }
  Tensor back(const Tensor& y) const { return alone ? squeeze(y, 0) : y; }
  MaxPooled back(const MaxPooled& y) const { return {back(y.values), back(y.indices)}; }

  bool alone;
  Tensor planes;
};

/// How many windows of a kernel there are on an axis.
std::int64_t windows(std::string_view where, const Tensor& x, int axis, const PoolAttrs& a, bool ceil_mode) {
  const std::int64_t n = x.shape()[axis + 2], reach = checked_mul(a.kernel[axis] - 1, a.dilation[axis], where) + 1;
  if (a.before[axis] > reach / 2)
    throw ValueError(std::string(where) + ": padding must be at most half of what the kernel reaches over, got " +
                     a.before.str() + " for " + std::to_string(reach) + " elements");
  const std::int64_t room = checked_add(n, 2 * a.before[axis], where) - reach;
  const std::int64_t more = ceil_mode ? a.stride[axis] - 1 : 0;
  std::int64_t size = room + more < 0 ? 0 : (room + more) / a.stride[axis] + 1;
  if (ceil_mode && size > 0 && (size - 1) * a.stride[axis] >= n + a.before[axis]) --size;
  if (size < 1 || n < 1)
    throw_shape(where, "no window of " + std::to_string(reach) + " elements fits axis " + std::to_string(axis + 2) +
                           " of " + x.shape().str());
  return size;
}

PoolAttrs attributes(std::string_view where, const Tensor& x, const Shape& kernel, const Shape& stride,
                     const Shape& padding, const Shape& dilation, bool ceil_mode) {
  const int axes = x.rank() - 2;
  PoolAttrs a;
  a.kernel = kernel_of(where, kernel, axes);
  a.stride = space_numbers(where, "stride", stride, a.kernel, 1);
  a.before = space_numbers(where, "padding", padding, Shape::filled(axes, 0), 0);
  a.dilation = space_numbers(where, "dilation", dilation, Shape::filled(axes, 1), 1);
  for (int i = 0; i < axes; ++i) a.size.push_back(windows(where, x, i, a, ceil_mode));
  return a;
}

PoolAttrs adaptive_attributes(std::string_view where, const Tensor& x, const Shape& size) {
  const int axes = x.rank() - 2;
  if (size.rank() == 0) throw_shape(where, "size needs one number or " + std::to_string(axes) + ", got []");
  PoolAttrs a;
  a.size = space_numbers(where, "size", size, Shape::filled(axes, 1), -1);
  for (int i = 0; i < axes; ++i) {
    if (a.size[i] == -1) a.size[i] = x.shape()[i + 2];
    if (x.shape()[i + 2] < 1)
      throw_shape(where, "axis " + std::to_string(i + 2) + " of " + x.shape().str() + " has no elements");
  }
  a.kernel = a.stride = a.dilation = Shape::filled(axes, 1);
  a.before = Shape::filled(axes, 0);
  a.adaptive = true;
  return a;
}

MaxPooled with_indices(const Tensor& x, const PoolAttrs& a) {
  const Tensor indices = max_pool_indices(x, a);
  return {plane_gather(x, indices, true), indices};
}

PoolAttrs max_attributes(std::string_view where, const Tensor& x, const Shape& kernel, const MaxPoolOptions& o) {
  return attributes(where, x, kernel, o.stride, o.padding, o.dilation, o.ceil_mode);
}
Tensor max(std::string_view where, int axes, const Tensor& x, const Shape& kernel, const MaxPoolOptions& o) {
  const Planes p(where, x, axes);
  return p.back(max_pool(p.planes, max_attributes(where, p.planes, kernel, o)));
}
MaxPooled max_places(std::string_view where, int axes, const Tensor& x, const Shape& kernel, const MaxPoolOptions& o) {
  const Planes p(where, x, axes);
  return p.back(with_indices(p.planes, max_attributes(where, p.planes, kernel, o)));
}
Tensor adaptive_max(std::string_view where, int axes, const Tensor& x, const Shape& size) {
  const Planes p(where, x, axes);
  return p.back(max_pool(p.planes, adaptive_attributes(where, p.planes, size)));
}
MaxPooled adaptive_places(std::string_view where, int axes, const Tensor& x, const Shape& size) {
  const Planes p(where, x, axes);
  return p.back(with_indices(p.planes, adaptive_attributes(where, p.planes, size)));
}

Tensor unpool(std::string_view where, int axes, const Tensor& x, const Tensor& indices, const Shape& kernel,
              const MaxUnpoolOptions& o) {
  const Planes p(where, x, axes);
  if (indices.shape() != x.shape())
    throw_shape(where, "indices " + indices.shape().str() + " do not fit " + x.shape().str());
  const Shape held = kernel_of(where, kernel, axes);
  const Shape stride = space_numbers(where, "stride", o.stride, held, 1);
  const Shape padding = space_numbers(where, "padding", o.padding, Shape::filled(axes, 0), 0);
  Shape size;
  for (int i = 0; i < axes; ++i)
    size.push_back(checked_mul(p.planes.shape()[i + 2] - 1, stride[i], where) - 2 * padding[i] + held[i]);
  size = space_numbers(where, "output_size", o.output_size, size, 1);
  const Tensor places = p.alone ? unsqueeze(indices, 0) : indices;
  return p.back(plane_scatter(p.planes, places, {.size = size, .add = false}));
}

AveragePoolAttrs average_attributes(const PoolAttrs& a) {
  return {.kernel = a.kernel, .stride = a.stride, .before = a.before, .size = a.size, .adaptive = a.adaptive};
}
Tensor average(std::string_view where, int axes, const Tensor& x, const Shape& kernel, const AvgPoolOptions& o) {
  const Planes p(where, x, axes);
  if (o.divisor_override < 0)
    throw ValueError(std::string(where) + ": divisor_override must not be negative, got " +
                     std::to_string(o.divisor_override));
  AveragePoolAttrs a = average_attributes(attributes(where, p.planes, kernel, o.stride, o.padding, {}, o.ceil_mode));
  a.include_pad = o.count_include_pad;
  a.divisor = o.divisor_override;
  return p.back(average_pool(p.planes, a));
}
Tensor adaptive_average(std::string_view where, int axes, const Tensor& x, const Shape& size) {
  const Planes p(where, x, axes);
  return p.back(average_pool(p.planes, average_attributes(adaptive_attributes(where, p.planes, size))));
}
Tensor norms(std::string_view where, int axes, const Tensor& x, double norm, const Shape& kernel,
             const LpPoolOptions& o) {
  const Planes p(where, x, axes);
  if (norm == 0 || !std::isfinite(norm))
    throw ValueError(std::string(where) + ": the norm must be finite and not 0, got " + Scalar(norm).str());
  AveragePoolAttrs a = average_attributes(attributes(where, p.planes, kernel, o.stride, {}, {}, o.ceil_mode));
  a.norm = norm;
  return p.back(norm_pool(p.planes, a));
}

}  // namespace
}  // namespace detail

Tensor max_pool1d(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options) {
  return detail::max("max_pool1d", 1, x, kernel, options);
}
Tensor max_pool2d(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options) {
  return detail::max("max_pool2d", 2, x, kernel, options);
}
Tensor max_pool3d(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options) {
  return detail::max("max_pool3d", 3, x, kernel, options);
}
MaxPooled max_pool1d_with_indices(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options) {
  return detail::max_places("max_pool1d", 1, x, kernel, options);
}
MaxPooled max_pool2d_with_indices(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options) {
  return detail::max_places("max_pool2d", 2, x, kernel, options);
}
MaxPooled max_pool3d_with_indices(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options) {
  return detail::max_places("max_pool3d", 3, x, kernel, options);
}
Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const Shape& kernel, const MaxUnpoolOptions& options) {
  return detail::unpool("max_unpool1d", 1, x, indices, kernel, options);
}
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const Shape& kernel, const MaxUnpoolOptions& options) {
  return detail::unpool("max_unpool2d", 2, x, indices, kernel, options);
}
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const Shape& kernel, const MaxUnpoolOptions& options) {
  return detail::unpool("max_unpool3d", 3, x, indices, kernel, options);
}
Tensor avg_pool1d(const Tensor& x, const Shape& kernel, const AvgPoolOptions& options) {
  return detail::average("avg_pool1d", 1, x, kernel, options);
}
Tensor avg_pool2d(const Tensor& x, const Shape& kernel, const AvgPoolOptions& options) {
  return detail::average("avg_pool2d", 2, x, kernel, options);
}
Tensor avg_pool3d(const Tensor& x, const Shape& kernel, const AvgPoolOptions& options) {
  return detail::average("avg_pool3d", 3, x, kernel, options);
}
Tensor lp_pool1d(const Tensor& x, double norm, const Shape& kernel, const LpPoolOptions& options) {
  return detail::norms("lp_pool1d", 1, x, norm, kernel, options);
}
Tensor lp_pool2d(const Tensor& x, double norm, const Shape& kernel, const LpPoolOptions& options) {
  return detail::norms("lp_pool2d", 2, x, norm, kernel, options);
}
Tensor lp_pool3d(const Tensor& x, double norm, const Shape& kernel, const LpPoolOptions& options) {
  return detail::norms("lp_pool3d", 3, x, norm, kernel, options);
}
Tensor adaptive_avg_pool1d(const Tensor& x, const Shape& size) {
  return detail::adaptive_average("adaptive_avg_pool1d", 1, x, size);
}
Tensor adaptive_avg_pool2d(const Tensor& x, const Shape& size) {
  return detail::adaptive_average("adaptive_avg_pool2d", 2, x, size);
}
Tensor adaptive_avg_pool3d(const Tensor& x, const Shape& size) {
  return detail::adaptive_average("adaptive_avg_pool3d", 3, x, size);
}
Tensor adaptive_max_pool1d(const Tensor& x, const Shape& size) {
  return detail::adaptive_max("adaptive_max_pool1d", 1, x, size);
}
Tensor adaptive_max_pool2d(const Tensor& x, const Shape& size) {
  return detail::adaptive_max("adaptive_max_pool2d", 2, x, size);
}
Tensor adaptive_max_pool3d(const Tensor& x, const Shape& size) {
  return detail::adaptive_max("adaptive_max_pool3d", 3, x, size);
}
MaxPooled adaptive_max_pool1d_with_indices(const Tensor& x, const Shape& size) {
  return detail::adaptive_places("adaptive_max_pool1d", 1, x, size);
}
MaxPooled adaptive_max_pool2d_with_indices(const Tensor& x, const Shape& size) {
  return detail::adaptive_places("adaptive_max_pool2d", 2, x, size);
}
MaxPooled adaptive_max_pool3d_with_indices(const Tensor& x, const Shape& size) {
  return detail::adaptive_places("adaptive_max_pool3d", 3, x, size);
}

}  // namespace ferrite
