/// Reductions: sum, prod, amax, amin, argmax, argmin.
#include <cmath>
#include <limits>

#include "ferrite/tensor/kernel/reduce.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/prod_others.h"
#include "ferrite/tensor/ops/detail/reduced_shape.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {
namespace detail {
namespace {

Specs infer_reduction(std::string_view name, Inputs in, const ReductionAttrs& attrs) {
  Specs out;
  Spec& s = out.emplace_back();
  s.dtype = in[0].dtype();
  check_axes(name, attrs.axes, in[0].rank());
  s.shape = reduced_shape(in[0].shape(), attrs.axes, attrs.keepdim);
  return out;
}

/// Sums and products of bool and i32 are i64.
Specs infer_total(std::string_view name, Inputs in, const ReductionAttrs& attrs) {
  Specs s = infer_reduction(name, in, attrs);
  if (!is_float(s[0].dtype)) s[0].dtype = Dtype::i64;
  return s;
}

/// A result or its gradient in a shape that broadcasts to the operand's: the reduced axes back, as extents of 1. Where
/// only leading axes are gone, broadcasting puts them back itself.
Tensor kept(const Tensor& y, const Vjp& v, const ReductionAttrs& attrs) {
  const Shape& axes = attrs.axes;
  if (attrs.keepdim) return y;
  bool leading = true;
  for (int k = 0; k < axes.rank(); ++k) leading = leading && is_reduced(axes, k);
  if (leading) return y;
  return reshape(y, reduced_shape(v.in_spec(0).shape, attrs.axes, true));
}

/// Calls f(index of the result, element) for every element, in order.
template <class F>
void each_reduced(const Dense& x, const ReductionAttrs& attrs, F&& f) {
  const Shape& axes = attrs.axes;
  const bool keepdim = attrs.keepdim;
  for_each_index(x.shape, [&](const Shape& i) {
    Shape to;
    for (int k = 0; k < i.rank(); ++k) {
      if (!is_reduced(axes, k)) {
        to.push_back(i[k]);
      } else if (keepdim) {
        to.push_back(0);
      }
    }
    f(to, x.at(i));
  });
}

std::vector<Sample> reduction_samples(bool with_empty) {
  const auto over = [](Shape axes, bool keepdim) { return ReductionAttrs{axes, keepdim}; };
  std::vector<Sample> list = {
      {.inputs = {{{3, 4}}}, .attrs = over({0}, false)},
      {.inputs = {{{3, 4}}}, .attrs = over({1}, true)},
      {.inputs = {{{2, 3, 4}}}, .attrs = over({0, 2}, false)},
      {.inputs = {{{2, 3, 4}}}, .attrs = over({0, 1, 2}, true)},
      {.inputs = {{{5, 1, 2}}}, .attrs = over({1}, false)},
      {.inputs = {{{}}}, .attrs = over({}, false)},
      {.inputs = {{{0, 3}}}, .attrs = over({1}, false)},
      {.inputs = {{{37, 3}}}, .attrs = over({0}, false)},
      {.inputs = {{{4, 3}, Dtype::i64}}, .attrs = over({0}, false), .indices = {3, 1, 2, 5, 4}}};
  if (with_empty) list.push_back({.inputs = {{{2, 0}}}, .attrs = over({1}, false)});
  return list;
}

struct Sum {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "sum", onnx = "ReduceSum", stablehlo = "reduce";
  static constexpr auto summary = "sum over axes; i64 for bool and i32; 0 for no elements";
  static constexpr Linearity linearity = Linearity::together;

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_total(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    reduce(sum_in_use, in[0], attrs.axes, out[0]);
  }
  static RowReduction row_reduction(Dtype t) { return detail::row_reduction(sum_in_use, t); }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    return {expand(kept(v.grad(), v, attrs), v.in_spec(0).shape)};
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    each_reduced(in[0], attrs, [&](const Shape& to, double x) { out[0].at(to) += x; });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list = reduction_samples(true);
    const ReductionAttrs all{{0}, false};
    list.push_back({.inputs = {{{5}, Dtype::boolean}}, .attrs = all, .indices = {1, 0, 1}});
    list.push_back({.inputs = {{{5}, Dtype::i32}}, .attrs = all, .indices = {2147483647, 1}});
    return list;
  }
};

struct Prod {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "prod", onnx = "ReduceProd", stablehlo = "reduce";
  static constexpr auto summary = "product over axes; i64 for bool and i32; 1 for no elements";
  static constexpr Reads reads = reads_inputs;

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_total(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    reduce(prod_in_use, in[0], attrs.axes, out[0]);
  }
  static RowReduction row_reduction(Dtype t) { return detail::row_reduction(prod_in_use, t); }
  /// The product of the other elements: also where one or more of them are 0.
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Shape& axes = attrs.axes;
    if (axes.rank() == 0) return {v.grad()};
    return {kept(v.grad(), v, attrs) * prod_others(v.in(0), axes)};
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    for (double& y : out[0].values) y = 1;
    each_reduced(in[0], attrs, [&](const Shape& to, double x) { out[0].at(to) *= x; });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list = reduction_samples(true);
    for (Sample& s : list) s.range = {0.5, 1.5};  // products of many terms stay near 1
    list.push_back({.inputs = {{{4, 3}}}, .attrs = list[1].attrs, .values = {2, 0, 3, 0, 0, 5, 0, 0, 0, 1, 2, 4}});
    list.push_back({.inputs = {{{2, 3, 2}}}, .attrs = list[2].attrs, .values = {2, 0, 3, 0.5, 0, 5, 1, 2, 1}});
    return list;
  }
};

Specs infer_extremum(std::string_view name, Inputs in, const ReductionAttrs& attrs) {
  if (in[0].dtype() == Dtype::boolean) throw_dtype(name, "bool is not supported; it takes numbers");
  const Specs out = infer_reduction(name, in, attrs);
  if (in[0].numel() == 0 && out[0].shape.numel() != 0)
    throw_shape(name, "no elements to choose from: " + in[0].shape().str());
  return out;
}

std::vector<Sample> extremum_samples() {
  std::vector<Sample> list = reduction_samples(false);
  for (Sample& s : list) s.smooth_at_ties = false;
  return list;
}

/// Ties share the gradient evenly.
Tensors extremum_vjp(const Vjp& v, const ReductionAttrs& attrs) {
  const Tensor chosen = cast(eq(v.in(0), kept(v.out(), v, attrs)), v.grad().dtype());
  const Tensor ties = sum(chosen, attrs.axes, true);
  return {kept(v.grad(), v, attrs) * (chosen / (attrs.axes.rank() ? ties : chosen))};
}

struct Amax {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "amax", onnx = "ReduceMax", stablehlo = "reduce";
  static constexpr auto summary = "largest element; NaN if there is one; ties share the gradient evenly";
  static constexpr Reads reads = reads_all;

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_extremum(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    reduce(max_in_use, in[0], attrs.axes, out[0]);
  }
  static RowReduction row_reduction(Dtype t) { return detail::row_reduction(max_in_use, t); }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) { return extremum_vjp(v, attrs); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    for (double& y : out[0].values) y = -INFINITY;
    each_reduced(in[0], attrs, [&](const Shape& to, double x) {
      double& y = out[0].at(to);
      if (x > y || std::isnan(x)) y = x;
    });
  }
  static std::vector<Sample> samples() { return extremum_samples(); }
};

struct Amin {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "amin", onnx = "ReduceMin", stablehlo = "reduce";
  static constexpr auto summary = "smallest element; NaN if there is one; ties share the gradient evenly";
  static constexpr Reads reads = reads_all;

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_extremum(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    reduce(min_in_use, in[0], attrs.axes, out[0]);
  }
  static RowReduction row_reduction(Dtype t) { return detail::row_reduction(min_in_use, t); }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) { return extremum_vjp(v, attrs); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    for (double& y : out[0].values) y = INFINITY;
    each_reduced(in[0], attrs, [&](const Shape& to, double x) {
      double& y = out[0].at(to);
      if (x < y || std::isnan(x)) y = x;
    });
  }
  static std::vector<Sample> samples() { return extremum_samples(); }
};

/// Index of the first element that `better` prefers to all before it; a NaN beats everything.
template <class Better>
void arg_extremum(const Tensor& x, int axis, Tensor& out, Better better) {
  Shape shape = x.shape();
  Shape strides = x.strides();
  const std::int64_t n = shape[axis];
  const std::int64_t step = strides[axis];
  shape.erase(axis);
  strides.erase(axis);
  std::int64_t* to = Writer::data<std::int64_t>(out);
  visit_computed(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_each_offset(shape, strides, [&](std::int64_t at) {
      const T* p = x.data<T>() + at;
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < n; ++i) {
        const T a = p[i * step];
        const T b = p[best * step];
        if (better(a, b) || (a != a && b == b)) best = i;
      }
      *to++ = best;
    });
  });
}

Specs infer_arg(std::string_view name, Inputs in, const ArgAttrs& attrs) {
  const Shape& s = in[0].shape();
  const int axis = attrs.axis;
  check_axis(name, axis, s.rank());
  if (s[axis] == 0) throw_shape(name, "no elements to choose from: axis " + std::to_string(axis) + " of " + s.str());
  return {{reduced_shape(s, {axis}, attrs.keepdim), Dtype::i64}};
}

template <class Better>
void arg_oracle(const Dense& x, Dense& out, const ArgAttrs& attrs, Better better) {
  const int axis = attrs.axis;
  const bool keepdim = attrs.keepdim;
  for_each_index(out.shape, [&](const Shape& i) {
    Shape from = i;
    if (!keepdim) from.insert(axis, 0);
    Shape best = from;
    for (std::int64_t k = 0; k < x.shape[axis]; ++k) {
      from[axis] = k;
      if (better(x.at(from), x.at(best)) || (std::isnan(x.at(from)) && !std::isnan(x.at(best)))) best = from;
    }
    out.at(i) = static_cast<double>(best[axis]);
  });
}

std::vector<Sample> arg_samples() {
  const auto along = [](int axis, bool keepdim) { return ArgAttrs{axis, keepdim}; };
  return {{.inputs = {{{3, 4}}}, .attrs = along(0, false)},
          {.inputs = {{{3, 4}}}, .attrs = along(1, true)},
          {.inputs = {{{7}, Dtype::i64}}, .attrs = along(0, false), .indices = {2, 5, 5, 1}},
          {.inputs = {{{0, 2}}}, .attrs = along(1, false)}};
}

struct Argmax {
  using Attributes = ArgAttrs;
  static constexpr auto name = "argmax", onnx = "ArgMax", stablehlo = "";
  static constexpr auto summary = "i64 index of the first largest element; a NaN counts as largest";

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_arg(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const int axis = attrs.axis;
    arg_extremum(in[0], axis, out[0], [](auto a, auto b) { return a > b; });
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    arg_oracle(in[0], out[0], attrs, [](double a, double b) { return a > b; });
  }
  static std::vector<Sample> samples() { return arg_samples(); }
};

struct Argmin {
  using Attributes = ArgAttrs;
  static constexpr auto name = "argmin", onnx = "ArgMin", stablehlo = "";
  static constexpr auto summary = "i64 index of the first smallest element; a NaN counts as smallest";

  static Specs infer(Inputs in, const Attributes& attrs) { return infer_arg(name, in, attrs); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const int axis = attrs.axis;
    arg_extremum(in[0], axis, out[0], [](auto a, auto b) { return a < b; });
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    arg_oracle(in[0], out[0], attrs, [](double a, double b) { return a < b; });
  }
  static std::vector<Sample> samples() { return arg_samples(); }
};

Tensor reduce_call(const Primitive& op, const Tensor& x, const Shape& axes, bool keepdim) {
  return call(op, {{&x}}, ReductionAttrs{axes_of(axes, x.rank(), op.name), keepdim});
}

Tensor arg_call(const Primitive& op, const Tensor& x, std::int64_t axis, bool keepdim) {
  return call(op, {{&x}}, ArgAttrs{axis_of(axis, x.rank(), op.name), keepdim});
}

}  // namespace

namespace ops {
constinit const Primitive* const sum = &structured<Sum>;
constinit const Primitive* const prod = &structured<Prod>;
constinit const Primitive* const amax = &structured<Amax>;
constinit const Primitive* const amin = &structured<Amin>;
}  // namespace ops

Family reduction_family() {
  static constexpr const Primitive* list[] = {&structured<Sum>,  &structured<Prod>,   &structured<Amax>,
                                              &structured<Amin>, &structured<Argmax>, &structured<Argmin>};
  return list;
}

}  // namespace detail

Tensor sum(const Tensor& x, const Shape& axes, bool keepdim) {
  return detail::reduce_call(detail::structured<detail::Sum>, x, axes, keepdim);
}
Tensor prod(const Tensor& x, const Shape& axes, bool keepdim) {
  return detail::reduce_call(detail::structured<detail::Prod>, x, axes, keepdim);
}
Tensor amax(const Tensor& x, const Shape& axes, bool keepdim) {
  return detail::reduce_call(detail::structured<detail::Amax>, x, axes, keepdim);
}
Tensor amin(const Tensor& x, const Shape& axes, bool keepdim) {
  return detail::reduce_call(detail::structured<detail::Amin>, x, axes, keepdim);
}
Tensor max(const Tensor& x, const Shape& axes, bool keepdim) { return amax(x, axes, keepdim); }
Tensor min(const Tensor& x, const Shape& axes, bool keepdim) { return amin(x, axes, keepdim); }
Tensor argmax(const Tensor& x, std::int64_t axis, bool keepdim) {
  return detail::arg_call(detail::structured<detail::Argmax>, x, axis, keepdim);
}
Tensor argmin(const Tensor& x, std::int64_t axis, bool keepdim) {
  return detail::arg_call(detail::structured<detail::Argmin>, x, axis, keepdim);
}

}  // namespace ferrite
