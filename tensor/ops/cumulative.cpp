/// Running sums and products along an axis, and the linear recurrence, which gradients of all of them are made of.
#include "ferrite/tensor/cumulative.h"

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/along_axis.h"
#include "ferrite/tensor/ops/detail/cumulative_lines.h"
#include "ferrite/tensor/ops/detail/recurrence.h"

namespace ferrite {
namespace detail {
namespace {

Specs infer_running(std::string_view name, Inputs in, const RunningAttrs& attrs) {
  check_axis(name, attrs.axis, in[0].rank());
  return {{in[0].shape(), is_float(in[0].dtype()) ? in[0].dtype() : Dtype::i64}};
}

/// f(total, element, the element comes first) along lines, of integers: in the unsigned type, where sums may wrap.
template <class F>
void run_integers(const Tensor& x, Tensor& out, const RunningAttrs& attrs, F&& f) {
  const AlongAxis a(x.shape(), attrs.axis);
  std::int64_t* to = Writer::data<std::int64_t>(out);
  visit_computed(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.data<T>();
    for (std::int64_t line = 0; line < a.lines(); ++line) {
      std::uint64_t total = 0;
      for (std::int64_t k = 0; k < a.n; ++k) {
        const std::int64_t at = a.first(line) + (attrs.reverse ? a.n - 1 - k : k) * a.inner;
        const auto element = static_cast<std::uint64_t>(static_cast<std::int64_t>(from[at]));
        total = k == 0 ? element : f(total, element);
        to[at] = static_cast<std::int64_t>(total);
      }
    }
  });
}

template <class T>
const CumulativeKernels<T>& kernels_of() {
  return cumulative_in_use.of<T>();
}

/// Calls f with a number of the float type.
template <class F>
void visit_float(Dtype t, F&& f) {
  t == Dtype::f32 ? f(float{}) : f(double{});
}

RunningAttrs along(int axis, bool reverse = false) { return {axis, reverse}; }

struct Cumsum {
  using Attributes = RunningAttrs;
  static constexpr auto name = "cumsum", onnx = "CumSum", stablehlo = "";
  static constexpr TimeRule time = TimeRule::along_axis;
  static constexpr auto summary = "sum of all elements up to each along an axis, in f64; i64 for bool and i32";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_running(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor x(in[0]);
    if (!is_float(x->dtype())) return run_integers(*x, out[0], attrs, std::plus<std::uint64_t>());
    visit_float(x->dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* y = Writer::data<T>(out[0]);
      each_share_of_lines(
          AlongAxis(x->shape(), attrs.axis), attrs.reverse,
          [&](std::int64_t at, const CumulativeLines& l) { kernels_of<T>().sum(x->data<T>() + at, y + at, l); });
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) { return {cumsum(v.grad(), attrs.axis, !attrs.reverse)}; }
};

struct LinearRecurrence {
  using Attributes = RunningAttrs;
  static constexpr auto name = "linear_recurrence", onnx = "", stablehlo = "";
  static constexpr auto summary = "y[k] = a[k] y[k-1] + b[k] along an axis, y[0] = b[0]; in f64";
  static constexpr Reads reads{0b01, 0b1};

  static Specs infer(Inputs in, const Attributes& attrs) {
    if (!is_float(in[0].dtype()) || in[0].dtype() != in[1].dtype())
      throw_dtype(name, "takes floats of one dtype, got " + in[0].spec().str() + " and " + in[1].spec().str());
    if (in[0].shape() != in[1].shape())
      throw_shape(
          name, "shapes differ: " + in[0].shape().str() + " and " + in[1].shape().str() + "; expand one of them first");
    check_axis(name, attrs.axis, in[0].rank());
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor a(in[0]), b(in[1]);
    visit_float(a->dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* y = Writer::data<T>(out[0]);
      each_share_of_lines(AlongAxis(a->shape(), attrs.axis), attrs.reverse,
                          [&](std::int64_t at, const CumulativeLines& l) {
                            kernels_of<T>().recurrence(a->data<T>() + at, b->data<T>() + at, y + at, l);
                          });
    });
  }
  /// What arrives at y[k] runs the other way: l[k] = g[k] + a[k+1] l[k+1].
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Tensor arriving = linear_recurrence(neighbours(v.in(0), attrs, 1, 0), v.grad(), attrs.axis, !attrs.reverse);
    Tensors g(2);
    if (v.wants(0)) g[0] = arriving * neighbours(v.out(), attrs, -1, 0);
    if (v.wants(1)) g[1] = arriving;
    return g;
  }
};

struct Cumprod {
  using Attributes = RunningAttrs;
  static constexpr auto name = "cumprod", onnx = "", stablehlo = "";
  static constexpr TimeRule time = TimeRule::along_axis;
  static constexpr auto summary = "product of all elements up to each along an axis, in f64; i64 for bool and i32";
  static constexpr Reads reads = reads_all;

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_running(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor x(in[0]);
    if (!is_float(x->dtype())) return run_integers(*x, out[0], attrs, std::multiplies<std::uint64_t>());
    visit_float(x->dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* y = Writer::data<T>(out[0]);
      each_share_of_lines(
          AlongAxis(x->shape(), attrs.axis), attrs.reverse,
          [&](std::int64_t at, const CumulativeLines& l) { kernels_of<T>().product(x->data<T>() + at, y + at, l); });
    });
  }
  /// x[k] stands in y[j] for j >= k: with all factors before it, y[k-1], and those behind it, the sum of
  /// g[j] x[k+1] ... x[j], which is a recurrence.
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Tensor behind = linear_recurrence(neighbours(v.in(0), attrs, 1, 0), v.grad(), attrs.axis, !attrs.reverse);
    return {neighbours(v.out(), attrs, -1, 1) * behind};
  }
};

}  // namespace

Tensor neighbours(const Tensor& x, const RunningAttrs& attrs, std::int64_t n, double value) {
  const std::int64_t step = attrs.reverse ? -n : n;
  Shape before = Shape::filled(x.rank(), 0), after = before;
  if (x.shape()[attrs.axis] == 0) return x;
  before[attrs.axis] = -step;
  after[attrs.axis] = step;
  return pad(x, before, after, value);
}

Family cumulative_family() {
  static constexpr const Primitive* list[] = {&structured<Cumsum>, &structured<Cumprod>, &structured<LinearRecurrence>};
  return list;
}

}  // namespace detail

Tensor cumsum(const Tensor& x, std::int64_t axis, bool reverse) {
  return detail::call(detail::structured<detail::Cumsum>, {{&x}},
                      detail::along(axis_of(axis, x.rank(), "cumsum"), reverse));
}
Tensor cumprod(const Tensor& x, std::int64_t axis, bool reverse) {
  return detail::call(detail::structured<detail::Cumprod>, {{&x}},
                      detail::along(axis_of(axis, x.rank(), "cumprod"), reverse));
}
Tensor linear_recurrence(const Tensor& a, const Tensor& b, std::int64_t axis, bool reverse) {
  return detail::call(detail::structured<detail::LinearRecurrence>, {{&a, &b}},
                      detail::along(axis_of(axis, a.rank(), "linear_recurrence"), reverse));
}

}  // namespace ferrite
