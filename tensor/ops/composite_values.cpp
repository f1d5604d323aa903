/// Functions that make tensors of given values, composed of operations.
#include <cmath>

#include "ferrite/tensor/extents.h"
#include "ferrite/tensor/ops/define.h"

namespace ferrite {
namespace detail {
namespace {

struct LinspaceAttrs {
  double begin = 0, end = 1;
  std::int64_t n = 1;
  Dtype dtype = Dtype::f32;
  static constexpr auto fields = attr_list(attr("begin", &LinspaceAttrs::begin), attr("end", &LinspaceAttrs::end),
                                           attr("n", &LinspaceAttrs::n), attr("dtype", &LinspaceAttrs::dtype));

  double at(std::int64_t i) const {
    if (i == n - 1 && n > 1) return end;
    return begin + (n == 1 ? 0 : static_cast<double>(i) / static_cast<double>(n - 1)) * (end - begin);
  }
};

struct Linspace {
  using Attributes = LinspaceAttrs;
  static constexpr auto name = "linspace", onnx = "", summary = "n values from begin to end, both included; a constant";

  static Tensor parts(Inputs, const Attributes& a) {
    const auto fill = [&](auto out) {
      using T = typename decltype(out)::value_type;
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(a.at(static_cast<std::int64_t>(i)));
    };
    return a.dtype == Dtype::f32 ? Tensor::build<float>({a.n}, fill) : Tensor::build<double>({a.n}, fill);
  }
};

struct EyeAttrs {
  std::int64_t n = 0, m = 0;
  Dtype dtype = Dtype::f32;
  static constexpr auto fields =
      attr_list(attr("n", &EyeAttrs::n), attr("m", &EyeAttrs::m), attr("dtype", &EyeAttrs::dtype));
};

struct Eye {
  using Attributes = EyeAttrs;
  static constexpr auto name = "eye", onnx = "", summary = "1 on the diagonal, else 0";

  static Tensor parts(Inputs, const Attributes& a) { return cast(eq(unsqueeze(arange(a.n), 1), arange(a.m)), a.dtype); }
};

struct OneHotAttrs {
  std::int64_t classes = 1;
  Dtype dtype = Dtype::f32;
  static constexpr auto fields = attr_list(attr("classes", &OneHotAttrs::classes), attr("dtype", &OneHotAttrs::dtype));
};

struct OneHot {
  using Attributes = OneHotAttrs;
  static constexpr auto name = "one_hot", onnx = "", summary = "1 at the index along a new last axis, else 0";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor index = checked(in[0], 0, a.classes - 1, "one_hot: index");
    return cast(eq(unsqueeze(index, -1), arange(a.classes)), a.dtype);
  }
};

}  // namespace

Family composite_value_family() {
  static constexpr const Primitive* list[] = {&composite<Linspace>, &composite<Eye>, &composite<OneHot>};
  return list;
}

}  // namespace detail

using detail::composed;

Tensor linspace(double begin, double end, std::int64_t n, Dtype dtype) {
  if (n < 1) throw ValueError("linspace: at least one value is needed, got " + std::to_string(n));
  if (n > detail::kMostStored) detail::throw_shape("linspace", "too large: [" + std::to_string(n) + "]");
  if (!is_float(dtype)) detail::throw_dtype("linspace", "dtype must be a float, got " + std::string(name_of(dtype)));
  const auto finite = [&](double v) {
    return std::isfinite(dtype == Dtype::f32 ? static_cast<double>(static_cast<float>(v)) : v);
  };
  if (!finite(begin) || !finite(end) || !std::isfinite(end - begin))
    throw ValueError("linspace: the ends and their distance must be finite in " + std::string(name_of(dtype)) +
                     ", got " + Scalar(begin).str() + " and " + Scalar(end).str());
  return composed<detail::Linspace>({}, {begin, end, n, dtype});
}

Tensor eye(std::int64_t n, std::int64_t m, Dtype dtype) {
  if (n < 0 || m < -1)
    throw ValueError("eye: sizes must not be negative, got " + std::to_string(n) + " and " + std::to_string(m));
  const std::int64_t columns = m < 0 ? n : m;
  if (Shape{n, columns}.numel("eye") > detail::kMostStored)
    detail::throw_shape("eye", "too large: " + Shape{n, columns}.str());
  return composed<detail::Eye>({}, {n, columns, dtype});
}

Tensor one_hot(const Tensor& index, std::int64_t classes, Dtype dtype) {
  if (classes < 1) throw ValueError("one_hot: the number of classes must be positive, got " + std::to_string(classes));
  if (index.dtype() != Dtype::i64)
    detail::throw_dtype("one_hot", "the index must be i64, got " + index.spec().str() + "; cast it first");
  return composed<detail::OneHot>({{&index}}, {classes, dtype});
}

}  // namespace ferrite
