/// Pooling: largest elements, sums, means and norms of windows.
#include "ferrite/tensor/pooling.h"

#include <algorithm>
#include <cmath>

#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/pooling.h"
#include "ferrite/tensor/kernel/tables.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/windows.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/threads.h"

namespace ferrite {

// ---- the kernels, plane by plane --------------------------------------------------------------------------

namespace detail {

FERRITE_FLOAT_TABLES(PoolKernels, pool_kernels, pool_in_use)

namespace {

enum class PoolKind : std::uint8_t { max, places, sum, spread };

template <PoolKind kind, class T>
void pool_as(const Tensor& from, Tensor& to, const PoolAxes& axes) {
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

/// Computes `to` from `from`, each [N, C, ...], plane by plane; `spread` computes x from y. Operands of any layout;
/// results are row-major.
template <PoolKind kind>
void pool_planes(const Tensor& from, Tensor& to, const PoolAxes& axes) {
  if (to.numel() == 0) return;
  const RowMajor rows(from);
  if (from.dtype() == Dtype::f32) return pool_as<kind, float>(*rows, to, axes);
  pool_as<kind, double>(*rows, to, axes);
}

// ---- the largest element: values, positions, and reading and adding at positions of planes ----------------

Specs infer_pool(std::string_view where, Inputs in, const PoolAttrs& a, bool indices) {
  check_pooled(where, in[0], {&a.kernel, &a.stride, &a.before, &a.dilation, &a.size});
  check_windows(where, a);
  return {{pooled_shape(in[0].shape(), a.size), indices ? Dtype::i64 : in[0].dtype()}};
}

struct MaxPool {
  using Attributes = PoolAttrs;
  static constexpr auto name = "max_pool", onnx = "MaxPool", stablehlo = "";
  static constexpr TimeRule time = TimeRule::pools_maxima;
  static constexpr auto summary =
      "the largest element of every window, NaN if there is one; -inf of none; ties: the first";
  static constexpr Reads reads = reads_inputs;

  static Specs infer(Inputs in, const Attributes& a) { return infer_pool(name, in, a, false); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    pool_planes<PoolKind::max>(in[0], out[0], axes_of_pool(space_of(in[0].shape()), a));
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    const PlaneAttrs plane{.size = space_of(v.in(0).shape()), .known = true};
    return {plane_scatter(v.grad(), max_pool_indices(v.in(0), a), plane)};
  }
};

struct MaxPoolIndices {
  using Attributes = PoolAttrs;
  static constexpr auto name = "max_pool_indices", onnx = "MaxPool", stablehlo = "";
  static constexpr TimeRule time = TimeRule::pools_places;
  static constexpr auto summary =
      "i64 place in its plane of the first largest element of every window; of the last NaN";

  static Specs infer(Inputs in, const Attributes& a) { return infer_pool(name, in, a, true); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    pool_planes<PoolKind::places>(in[0], out[0], axes_of_pool(space_of(in[0].shape()), a));
  }
};

std::int64_t plane_of(const Shape& s) {
  std::int64_t n = 1;
  for (int i = 2; i < s.rank(); ++i) n *= s[i];
  return n;
}

void check_places(std::string_view where, const Tensor& x, const Tensor& indices) {
  if (indices.dtype() != Dtype::i64) throw_dtype(where, "the indices must be i64, got " + indices.spec().str());
  if (x.rank() < 3 || x.rank() > 5 || indices.rank() != x.rank() || indices.shape()[0] != x.shape()[0] ||
      indices.shape()[1] != x.shape()[1])
    throw_shape(where, "indices " + indices.shape().str() + " do not fit " + x.shape().str());
  if (!is_float(x.dtype()))
    throw_dtype(where, "dtype " + std::string(name_of(x.dtype())) + " is not supported; cast to a float");
}

/// Throws for the first position that is not in a plane of n elements, before anything is written.
void check_inside(std::string_view where, const Tensor& indices, std::int64_t n) {
  const std::int64_t* const at = indices.data<std::int64_t>();
  for (std::int64_t i = 0; i < indices.numel(); ++i)
    if (at[i] < 0 || at[i] >= n)
      throw_shape(where, "index " + std::to_string(at[i]) + " is not in a plane of " + std::to_string(n) + " elements");
}

struct PlaneGather {
  using Attributes = PlaneAttrs;
  static constexpr auto name = "plane_gather", onnx = "GatherElements", stablehlo = "gather";
  static constexpr auto summary = "elements of planes [N, C, ...] at places in them";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr Reads reads{0b10, 0};

  static Specs infer(Inputs in, const Attributes&) {
    check_places(name, in[0], in[1]);
    return {{in[1].shape(), in[0].dtype()}};
  }
  static Effects effects(std::span<const Spec>, const Attributes& a) { return {.throws = !a.known, .allocates = true}; }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const RowMajor x(in[0]), indices(in[1]);
    const std::int64_t n = plane_of(x->shape()), m = plane_of(indices->shape());
    if (!a.known) check_inside(name, *indices, n);
    visit_computed(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* from = x->data<T>();
      const std::int64_t* at = indices->data<std::int64_t>();
      T* to = Writer::data<T>(out[0]);
      for (std::int64_t k = 0; k < out[0].numel(); ++k) to[k] = from[k / m * n + at[k]];
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes&) {
    return {plane_scatter(v.grad(), v.in(1), {.size = space_of(v.in_spec(0).shape), .known = true}), Tensor()};
  }
};

struct PlaneScatter {
  using Attributes = PlaneAttrs;
  static constexpr auto name = "plane_scatter", onnx = "ScatterElements", stablehlo = "scatter";
  static constexpr auto summary = "planes of zeros with elements added, or put, at places in them";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr Reads reads{0b10, 0};

  static Specs infer(Inputs in, const Attributes& a) {
    check_places(name, in[0], in[1]);
    if (in[0].shape() != in[1].shape() || a.size.rank() != in[0].rank() - 2)
      throw_shape(name, "indices " + in[1].shape().str() + " and planes " + a.size.str() + " do not fit " +
                            in[0].shape().str());
    return {{pooled_shape(in[0].shape(), a.size), in[0].dtype()}};
  }
  static Effects effects(std::span<const Spec>, const Attributes& a) { return {.throws = !a.known, .allocates = true}; }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const RowMajor y(in[0]), indices(in[1]);
    const std::int64_t n = plane_of(out[0].shape()), m = plane_of(y->shape());
    if (!a.known) check_inside(name, *indices, n);
    visit_computed(out[0].dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* from = y->data<T>();
      const std::int64_t* at = indices->data<std::int64_t>();
      T* to = Writer::data<T>(out[0]);
      std::fill_n(to, out[0].numel(), T(0));
      for (std::int64_t k = 0; k < y->numel(); ++k) {
        T& element = to[k / m * n + at[k]];
        element = a.add ? static_cast<T>(element + from[k]) : from[k];
      }
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes&) { return {plane_gather(v.grad(), v.in(1), true), Tensor()}; }
};

}  // namespace

Tensor max_pool(const Tensor& x, const PoolAttrs& attrs) { return call(structured<MaxPool>, {{&x}}, attrs); }
Tensor max_pool_indices(const Tensor& x, const PoolAttrs& attrs) {
  return call(structured<MaxPoolIndices>, {{&x}}, attrs);
}
Tensor plane_gather(const Tensor& x, const Tensor& indices, bool known) {
  return call(structured<PlaneGather>, {{&x, &indices}}, PlaneAttrs{.size = {}, .known = known});
}
Tensor plane_scatter(const Tensor& y, const Tensor& indices, const PlaneAttrs& attrs) {
  return call(structured<PlaneScatter>, {{&y, &indices}}, attrs);
}

// ---- sums, the adjoint, and the means and norms composed of them ------------------------------------------

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

/// Returns, for each window along one axis, the number of elements that its sum is divided by.
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

/// Divides the sums over windows of planes of these extents: by one number, or by one for each window.
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

/// The norm of windows, composed as in PyTorch: powers, means, and the elements of a whole window times them.
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

// ---- the public functions: they resolve options and refuse operands that do not fit ------------------------

namespace {

Shape kernel_of(std::string_view where, const Shape& given, int axes) {
  if (given.rank() == 0) throw_shape(where, "kernel needs one number or " + std::to_string(axes) + ", got []");
  return space_numbers(where, "kernel", given, Shape::filled(axes, 1), 1);
}

/// The operand x with a batch axis, and whether it was added.
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

/// Returns the number of windows of a kernel on an axis.
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

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family pooling_family() {
  static constexpr const Primitive* list[] = {&structured<MaxPool>,     &structured<MaxPoolIndices>,
                                              &structured<PlaneGather>, &structured<PlaneScatter>,
                                              &structured<PoolSum>,     &structured<PoolSpread>};
  return list;
}

Family composite_pooling_family() {
  static constexpr const Primitive* list[] = {&composite<AvgPool>, &composite<LpPool>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
