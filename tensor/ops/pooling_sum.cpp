/// Pooling by sums, the adjoint, and the means and norms that are composed of them.
#include <algorithm>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/pooling_records.h"
#include "ferrite/tensor/ops/detail/pooling_run.h"

namespace ferrite {
namespace detail {
namespace {

struct PoolSum {
  using Attributes = PoolAttrs;
  static constexpr auto name = "pool_sum", onnx = "AveragePool", stablehlo = "";
  static constexpr TimeRule time = TimeRule::pools_sums;
  static constexpr auto summary = "the sum of every window, rows before columns";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& a) {
    check_pooled(name, in[0], {&a.kernel, &a.stride, &a.before, &a.dilation, &a.size});
    check_windows(name, a);
    return {{pooled_shape(in[0].shape(), a.size), in[0].dtype()}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    pool_planes<PoolKind::sum>(in[0], out[0], axes_of_pool(space_of(in[0].shape()), a));
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    Attributes back = a;
    back.space = space_of(v.in_spec(0).shape);
    return {pool_spread(v.grad(), back)};
  }
};

struct PoolSpread {
  using Attributes = PoolAttrs;
  static constexpr auto name = "pool_spread", onnx = "", stablehlo = "";
  static constexpr auto summary = "the adjoint of pool_sum: every element is added to all that its window holds";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& a) {
    check_pooled(name, in[0], {&a.kernel, &a.stride, &a.before, &a.dilation, &a.size, &a.space});
    check_windows(name, a);
    if (space_of(in[0].shape()) != a.size)
      throw_shape(name, "windows " + a.size.str() + " do not fit " + in[0].shape().str());
    return {{pooled_shape(in[0].shape(), a.space), in[0].dtype()}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    pool_planes<PoolKind::spread>(in[0], out[0], axes_of_pool(a.space, a));
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) { return {pool_sum(v.grad(), a)}; }
};

/// By window of one axis: how many elements its sum is divided by.
std::vector<double> counts(std::int64_t n, std::size_t axis, const AveragePoolAttrs& a) {
  const auto i = static_cast<int>(axis);
  const PoolAxis windows{n, a.size[i], a.kernel[i], a.stride[i], a.before[i], 1, a.adaptive};
  std::vector<double> all;
  for (std::int64_t k = 0; k < a.size[i]; ++k) {
    const PoolWindow w = window_of(windows, k);
    const std::int64_t first = k * a.stride[i] - a.before[i];
    const std::int64_t padded = std::min(first + a.kernel[i], n + a.before[i]) - first;
    all.push_back(static_cast<double>(a.include_pad && !a.adaptive ? padded : w.last - w.first));
  }
  return all;
}

/// What the sums over windows of planes of these extents are divided by: one number, or [size...].
Tensor averages(const Tensor& sums, const Shape& space, const AveragePoolAttrs& a) {
  if (a.divisor != 0) return sums / static_cast<double>(a.divisor);
  double same = 1;
  bool alike = true;
  std::vector<std::vector<double>> by_axis;
  for (int i = 0; i < space.rank(); ++i) {
    by_axis.push_back(counts(space[i], static_cast<std::size_t>(i), a));
    for (const double c : by_axis.back()) alike = alike && c == by_axis.back()[0];
    if (!by_axis.back().empty()) same *= by_axis.back()[0];
  }
  if (alike) return same == 1 ? sums : sums / same;
  std::vector<double> all;
  for_each_index(a.size, [&](const Shape& at) {
    double count = 1;
    for (int i = 0; i < at.rank(); ++i) count *= by_axis[static_cast<std::size_t>(i)][static_cast<std::size_t>(at[i])];
    all.push_back(count);
  });
  return sums / cast(Tensor::from(all, a.size), sums.dtype());
}

PoolAttrs windows_of(const AveragePoolAttrs& a) {
  return {a.kernel, a.stride, a.before, Shape::filled(a.size.rank(), 1), a.size, a.adaptive};
}

struct AvgPool {
  using Attributes = AveragePoolAttrs;
  static constexpr auto name = "avg_pool", onnx = "AveragePool";
  static constexpr auto summary = "the sum of every window / its number of elements, or a divisor";

  static Tensor parts(Inputs in, const Attributes& a) {
    return averages(pool_sum(in[0], windows_of(a)), space_of(in[0].shape()), a);
  }
};

/// As PyTorch composes it: powers, means, and the elements of a whole window times them.
struct LpPool {
  using Attributes = AveragePoolAttrs;
  static constexpr auto name = "lp_pool", onnx = "LpPool";
  static constexpr auto summary =
      "(sum of x^norm over every window)^(1 / norm); windows that reach beyond the end scaled up";

  static double elements(const Attributes& a) {
    double n = 1;
    for (const std::int64_t k : a.kernel) n *= static_cast<double>(k);
    return n;
  }
  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor means = average_pool(pow(in[0], a.norm), a);
    return pow(sign(means) * relu(abs(means)) * elements(a), 1 / a.norm);
  }
};

}  // namespace

Tensor pool_sum(const Tensor& x, const PoolAttrs& attrs) { return call(structured<PoolSum>, {{&x}}, attrs); }
Tensor pool_spread(const Tensor& y, const PoolAttrs& attrs) { return call(structured<PoolSpread>, {{&y}}, attrs); }
Tensor average_pool(const Tensor& x, const AveragePoolAttrs& attrs) { return composed<AvgPool>({{&x}}, attrs); }
Tensor norm_pool(const Tensor& x, const AveragePoolAttrs& attrs) { return composed<LpPool>({{&x}}, attrs); }

PoolAxes axes_of_pool(const Shape& space, const PoolAttrs& a) {
  PoolAxes axes;
  const int rank = space.rank();
  for (int i = 0; i < rank; ++i)
    axes.axis[3 - rank + i] = {space[i], a.size[i], a.kernel[i], a.stride[i], a.before[i], a.dilation[i], a.adaptive};
  return axes;
}

Shape space_of(const Shape& shape) {
  Shape space;
  for (int i = 2; i < shape.rank(); ++i) space.push_back(shape[i]);
  return space;
}

void check_windows(std::string_view where, const PoolAttrs& a) {
  for (int i = 0; i < a.size.rank(); ++i)
    if (a.kernel[i] < 1 || a.stride[i] < 1 || a.dilation[i] < 1 || a.before[i] < 0 || a.size[i] < 0)
      throw ValueError(std::string(where) + ": kernels, strides and dilations must be positive: " + a.kernel.str() +
                       ", " + a.stride.str() + " and " + a.dilation.str());
}

void check_pooled(std::string_view where, const Tensor& x, std::initializer_list<const Shape*> constants) {
  if (!is_float(x.dtype()))
    throw_dtype(where, "dtype " + std::string(name_of(x.dtype())) + " is not supported; cast to a float");
  if (x.rank() < 3 || x.rank() > 5) throw_shape(where, "expects rank 3, 4 or 5, got " + x.shape().str());
  for (const Shape* s : constants)
    if (s->rank() != x.rank() - 2)
      throw_shape(where,
                  "its constants need one number for each axis of space: " + s->str() + " for " + x.shape().str());
}

Shape pooled_shape(const Shape& x, const Shape& size) {
  Shape s{x[0], x[1]};
  for (const std::int64_t e : size) s.push_back(e);
  return s;
}

Family pooling_sum_family() {
  static constexpr const Primitive* list[] = {&structured<PoolSum>, &structured<PoolSpread>};
  return list;
}
Family composite_pooling_family() {
  static constexpr const Primitive* list[] = {&composite<AvgPool>, &composite<LpPool>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
