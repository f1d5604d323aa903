/// Norms and distances, composed of operations.
#include "ferrite/tensor/norms.h"

#include <cmath>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/at_once.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite {
namespace detail {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Returns f(x) where x is not 0, else `at_zero` with gradient 0: the slope of f there may be infinite.
template <class F>
Tensor away_from_zero(const Tensor& x, double at_zero, F f) {
  const Tensor zero = eq(x, 0.0);
  return where(zero, at_zero, f(where(zero, 1.0, x)));
}

Tensor root(const Tensor& squares) {
  return away_from_zero(squares, 0, [](const Tensor& t) { return sqrt(t); });
}

Tensor cube_root(const Tensor& cubes) {
  return away_from_zero(cubes, 0, [](const Tensor& t) { return pow(t, 1 / 3.0); });
}

/// The range of sums of powers that have their digits: smaller and larger sums have lost some or all of them.
struct Ordinary {
  explicit Ordinary(Dtype t) : low(t == Dtype::f32 ? 0x1p-80 : 0x1p-800), high(t == Dtype::f32 ? 0x1p100 : 0x1p900) {}
  double low, high;
};

/// Returns whether all sums are known to be ordinary; a NaN is ordinary.
bool are_ordinary(const Tensor& sums) {
  if (sums.is_abstract() || frame().tracing) return false;
  const Ordinary range(sums.dtype());
  const auto all = [&]<class T>(T) {
    for (const T v : sums.to_vector<T>())
      if (v < static_cast<T>(range.low) || v > static_cast<T>(range.high)) return false;
    return true;
  };
  return sums.dtype() == Dtype::f32 ? all(float()) : all(double());
}

/// Returns f(x / d) d of a norm f along axes, with extents of 1 left, where d keeps powers in range if `sums` of them
/// are outside it, and is 1 elsewhere, with the bits of f(x). For squares d is a power of two, which rounds nothing;
/// else it is the largest |x|.
template <class F>
Tensor scaled_norm(const Tensor& x, const Tensor& sums, bool squares, const Shape& axes, F f) {
  const Ordinary range(x.dtype());
  const bool narrow = x.dtype() == Dtype::f32;
  const Tensor high = gt(sums, range.high), low = lt(sums, range.low), one = ones({}, x.dtype());
  Tensor d;
  if (squares) {
    d = where(high, narrow ? 0x1p88 : 0x1p700, where(low, narrow ? 0x1p-86 : 0x1p-600, one));
  } else {
    const Tensor largest = amax(abs(detach(x)), axes, true);
    d = where((high || low) && gt(largest, 0) && lt(largest, kInfinity), largest, one);
  }
  return f(x / d) * d;
}

struct NormAttrs {
  double p = 2;
  Shape axes{};
  bool keepdim = false;
  static constexpr auto fields =
      attr_list(attr("p", &NormAttrs::p), attr("axes", &NormAttrs::axes), attr("keepdim", &NormAttrs::keepdim));
};

/// Returns |x|^p; 0 or infinity where x is 0.
Tensor powers(const Tensor& x, double p) {
  if (p == 2) return square(x);
  if (p == 3) return abs(x) * square(x);
  return away_from_zero(abs(x), p < 0 ? kInfinity : 0, [&](const Tensor& t) { return pow(t, p); });
}
/// Returns sums^(1 / p).
Tensor inverse(const Tensor& sums, double p) {
  if (p == 2) return root(sums);
  if (p == 3) return cube_root(sums);
  return away_from_zero(sums, p < 0 ? kInfinity : 0, [&](const Tensor& t) { return pow(t, 1 / p); });
}

struct Norm {
  using Attributes = NormAttrs;
  static constexpr auto name = "norm", onnx = "";
  static constexpr auto summary = "(sum of |x|^p over axes)^(1 / p); p = 0 counts, +-infinity: the extreme |x|";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor& x = in[0];
    const auto total = [&](const Tensor& terms) { return sum(terms, a.axes, a.keepdim); };
    if (a.axes.rank() == 0 && a.p != 0) return abs(x);  // rank 0
    if (a.p == kInfinity) return amax(abs(x), a.axes, a.keepdim);
    if (a.p == -kInfinity) return amin(abs(x), a.axes, a.keepdim);
    if (a.p == 0) return total(square(sign(where(eq(x, x), x, 1.0))));  // a NaN counts
    if (a.p == 1) return total(abs(x));
    // On a tape the quotient that scaled_norm puts before the powers is included: then second derivatives add up in one
    // order.
    const bool on_tape = a.p > 0 && !frame().tracing && !frame().recorders.empty();
    const Tensor sums = total(powers(on_tape ? x / 1.0 : x, a.p));
    if (a.p < 0 || x.numel() == 0 || are_ordinary(sums)) return inverse(sums, a.p);
    const Tensor y = scaled_norm(x, sum(powers(detach(x), a.p), a.axes, true), a.p == 2, a.axes,
                                 [&](const Tensor& t) { return inverse(sum(powers(t, a.p), a.axes, true), a.p); });
    return a.keepdim ? y : reshape(y, reduced_shape(x.shape(), a.axes, false));
  }
  static Tensor at_once(Inputs in, const Attributes& a) {
    const auto of = [&](auto&& run) { return reduced_last(in[0], a.axes, a.keepdim, run); };
    if (a.p == kInfinity) return of([](const auto& k, auto... run) { k.largest(run...); });
    if (a.p == 1) return of([](const auto& k, auto... run) { k.sizes(run...); });
    Tensor sums;
    if (a.p == 2) sums = of([](const auto& k, auto... run) { k.squares(run...); });
    if (a.p == 3) sums = of([](const auto& k, auto... run) { k.cubes(run...); });
    return sums.defined() && are_ordinary(sums) ? inverse(sums, a.p) : Tensor();
  }
};

struct StddevAttrs {
  Shape axes{};
  bool keepdim = false;
  double correction = 1;
  static constexpr auto fields = attr_list(attr("axes", &StddevAttrs::axes), attr("keepdim", &StddevAttrs::keepdim),
                                           attr("correction", &StddevAttrs::correction));
};

struct Stddev {
  using Attributes = StddevAttrs;
  static constexpr auto name = "stddev", onnx = "", summary = "the square root of var; gradient 0 at 0";

  static Tensor parts(Inputs in, const Attributes& a) { return root(var(in[0], a.axes, a.keepdim, a.correction)); }
};

struct NormalizeAttrs {
  double p = 2;
  int axis = 1;
  double epsilon = 1e-12;
  static constexpr auto fields = attr_list(attr("p", &NormalizeAttrs::p), attr("axis", &NormalizeAttrs::axis),
                                           attr("epsilon", &NormalizeAttrs::epsilon));
};

/// Returns the larger of a norm and epsilon.
Tensor at_least(const Tensor& norm, double epsilon) { return clamp(norm, epsilon, kInfinity); }

struct Normalize {
  using Attributes = NormalizeAttrs;
  static constexpr auto name = "normalize", onnx = "LpNormalization", summary = "x / max(norm along an axis, epsilon)";

  static Tensor parts(Inputs in, const Attributes& a) {
    return in[0] / at_least(norm(in[0], {.p = a.p, .axes = {a.axis}, .keepdim = true}), a.epsilon);
  }
};

struct CosineAttrs {
  int axis = 1;
  double epsilon = 1e-8;
  static constexpr auto fields = attr_list(attr("axis", &CosineAttrs::axis), attr("epsilon", &CosineAttrs::epsilon));
};

struct CosineSimilarity {
  using Attributes = CosineAttrs;
  static constexpr auto name = "cosine_similarity", onnx = "";
  static constexpr auto summary = "a . b / (max(|a|, epsilon) max(|b|, epsilon)) along an axis";

  static Tensor parts(Inputs in, const Attributes& a) {
    const auto scaled = [&](const Tensor& x) {
      return x / at_least(norm(x, {.axes = {a.axis}, .keepdim = true}), a.epsilon);
    };
    return sum(scaled(in[0]) * scaled(in[1]), {a.axis});
  }
};

struct PairwiseAttrs {
  double p = 2, epsilon = 1e-6;
  bool keepdim = false;
  static constexpr auto fields = attr_list(attr("p", &PairwiseAttrs::p), attr("epsilon", &PairwiseAttrs::epsilon),
                                           attr("keepdim", &PairwiseAttrs::keepdim));
};

struct PairwiseDistance {
  using Attributes = PairwiseAttrs;
  static constexpr auto name = "pairwise_distance", onnx = "";
  static constexpr auto summary = "the norm of a - b + epsilon along the last axis";

  static Tensor parts(Inputs in, const Attributes& a) {
    return norm(in[0] - in[1] + a.epsilon, {.p = a.p, .axes = {-1}, .keepdim = a.keepdim});
  }
};

struct CdistAttrs {
  double p = 2;
  static constexpr auto fields = attr_list(attr("p", &CdistAttrs::p));
};

struct Cdist {
  using Attributes = CdistAttrs;
  static constexpr auto name = "cdist", onnx = "";
  static constexpr auto summary = "the norm of every difference of a row of a and a row of b";

  static Tensor parts(Inputs in, const Attributes& a) {
    return norm(unsqueeze(in[0], -2) - unsqueeze(in[1], -3), {.p = a.p, .axes = {-1}});
  }
};

void check_power(std::string_view where, double p, const Tensor& x, const Shape& axes) {
  if (std::isnan(p)) throw ValueError(std::string(where) + ": p must be a number, got nan");
  std::int64_t n = 1;
  for (const std::int64_t a : axes) n *= x.shape()[static_cast<int>(a)];
  if (n == 0 && (p < 0 || std::isinf(p)))
    throw_shape(where, "no elements to choose from with p = " + Scalar(p).str() + ": " + x.shape().str());
}
/// Checks two operands of one float dtype, and returns their common shape.
Shape check_pair(std::string_view where, const Tensor& a, const Tensor& b) {
  check_float(a, where);
  if (a.dtype() != b.dtype())
    throw_dtype(where, "dtypes differ: " + a.spec().str() + " and " + b.spec().str() + "; cast one of them");
  return broadcast(a.shape(), b.shape(), where);
}

}  // namespace

Family norm_family() {
  static constexpr const Primitive* list[] = {&composite<Norm>,      &composite<Stddev>,
                                              &composite<Normalize>, &composite<CosineSimilarity>,
                                              &composite<Cdist>,     &composite<PairwiseDistance>};
  return list;
}

}  // namespace detail

using namespace detail;

Tensor norm(const Tensor& x, const NormOptions& options) {
  check_float(x, "norm");
  const Shape axes = axes_of(options.axes, x.rank(), "norm");
  check_power("norm", options.p, x, axes);
  return composed<Norm>({{&x}}, {options.p, axes, options.keepdim});
}

Tensor stddev(const Tensor& x, const Shape& axes, bool keepdim, double correction) {
  check_float(x, "stddev");
  if (!std::isfinite(correction))
    throw ValueError("stddev: the correction must be finite, got " + Scalar(correction).str());
  return composed<Stddev>({{&x}}, {axes_of(axes, x.rank(), "stddev"), keepdim, correction});
}

Tensor normalize(const Tensor& x, const NormalizeOptions& options) {
  check_float(x, "normalize");
  const int axis = axis_of(options.axis, x.rank(), "normalize");
  check_power("normalize", options.p, x, {axis});
  check_epsilon("normalize", options.epsilon);
  return composed<Normalize>({{&x}}, {options.p, axis, options.epsilon});
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t axis, double epsilon) {
  const Shape common = check_pair("cosine_similarity", a, b);
  const int at = axis_of(axis, common.rank(), "cosine_similarity");
  check_epsilon("cosine_similarity", epsilon);
  const Tensor x = expand(a, common), y = expand(b, common);  // an axis that broadcasts counts each time it is repeated
  return composed<CosineSimilarity>({{&x, &y}}, {at, epsilon});
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, const PairwiseDistanceOptions& options) {
  const Shape common = check_pair("pairwise_distance", a, b);
  if (common.rank() == 0) throw_shape("pairwise_distance", "the operands need an axis: [] and []");
  check_power("pairwise_distance", options.p, expand(a, common), {common.rank() - 1});
  return composed<PairwiseDistance>({{&a, &b}}, {options.p, options.epsilon, options.keepdim});
}

Tensor cdist(const Tensor& a, const Tensor& b, double p) {
  check_float(a, "cdist");
  if (a.dtype() != b.dtype())
    throw_dtype("cdist", "dtypes differ: " + a.spec().str() + " and " + b.spec().str() + "; cast one of them");
  if (a.rank() < 2 || b.rank() < 2 || a.shape()[-1] != b.shape()[-1])
    throw_shape("cdist", "[..., P, M] and [..., R, M] are needed, got " + a.shape().str() + " and " + b.shape().str());
  if (!(p >= 0)) throw ValueError("cdist: p must not be negative, got " + Scalar(p).str());
  if (a.shape()[-1] == 0 && std::isinf(p)) p = 1;  // the largest of no differences is 0, like every other norm of them
  return composed<Cdist>({{&a, &b}}, {p});
}

}  // namespace ferrite
