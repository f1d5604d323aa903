/// Mixing and replacing numbers, and tests of what they are.
#include <cmath>
#include <limits>

#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops/detail/composing.h"

namespace ferrite {
namespace detail {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct LerpAttrs {
  std::optional<double> weight{};  ///< in place of a third operand
  static constexpr auto fields = attr_list(attr("weight", &LerpAttrs::weight));
};

struct Lerp {
  using Attributes = LerpAttrs;
  static constexpr auto name = "lerp", onnx = "", summary = "a + weight (b - a), from the nearer end";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor &x = in[0], &y = in[1];
    if (a.weight) return *a.weight < 0.5 ? x + *a.weight * (y - x) : y - (1 - *a.weight) * (y - x);
    const Tensor& w = in[2];
    return where(lt(w, 0.5), x + w * (y - x), y - (1 - w) * (y - x));
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      const double x = in[0].broadcast_at(i), w = a.weight ? *a.weight : in[2].broadcast_at(i);
      out[0].at(i) = x + w * (in[1].broadcast_at(i) - x);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 4}}, {{3, 4}}}, .attrs = LerpAttrs{0.25}},
            {.inputs = {{{3, 4}}, {{4}}}, .attrs = LerpAttrs{0.75}},
            {.inputs = {{{3, 1}}, {{4}}, {{3, 4}}}},
            {.inputs = {{{0}}, {{1}}, {{}}}}};
  }
};

struct NanToNumAttrs {
  double nan = 0, posinf = 0, neginf = 0;
  static constexpr auto fields = attr_list(attr("nan", &NanToNumAttrs::nan), attr("posinf", &NanToNumAttrs::posinf),
                                           attr("neginf", &NanToNumAttrs::neginf));
};

struct NanToNum {
  using Attributes = NanToNumAttrs;
  static constexpr auto name = "nan_to_num", onnx = "", summary = "finite numbers in place of NaN and infinities";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor& x = in[0];
    const Tensor high = where(eq(x, kInfinity), a.posinf, x);
    return where(ne(x, x), a.nan, where(eq(x, -kInfinity), a.neginf, high));
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_oracle(in, out, [&](double x) {
      return std::isnan(x) ? a.nan : std::isfinite(x) ? x : x > 0 ? a.posinf : a.neginf;
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3}}}, .attrs = NanToNumAttrs{1, 2, 3}},
            {.inputs = {{{5}}},
             .attrs = NanToNumAttrs{1, 2, 3},
             .values = {INFINITY, -INFINITY, NAN, 0, -7},
             .smooth = false}};
  }
};

/// |a| with b's sign.
struct Copysign : functors::Copysign {
  static constexpr auto name = "copysign", onnx = "", stablehlo = "";
  static constexpr auto summary = "|a| with b's sign, that of zeros included; gradient 0 at a = 0";
  static constexpr Range domain{-10, 10};
  static constexpr double kinks[] = {0};
  static constexpr Reads reads = reads_all;
  static double scalar(double a, double b) { return std::copysign(a, b); }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad * (sign(v.out) * sign(v.a.tensor())); }, [&] { return zeros_like(v.grad); });
  }
};

struct Heaviside {
  static constexpr auto name = "heaviside", onnx = "", summary = "0 below 0 and of NaN, 1 above, values at 0";

  static Tensor parts(Inputs in, const NoAttrs&) {
    return where(eq(in[0], 0), in[1], cast(gt(in[0], 0), in[0].dtype()));
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    zip_oracle(in, out, [](double x, double v) { return x == 0 ? v : x > 0; });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}, {{5}}}, .smooth_at_ties = false},
            {.inputs = {{{4}}, {{}}}, .values = {NAN, 0, -0.0, 2, 0.5}, .smooth = false},
            {.inputs = {{{3}, Dtype::i64}, {{3}, Dtype::i64}}, .indices = {-1, 0, 2, 7}}};
  }
};

std::vector<Sample> special_values() {
  std::vector<Sample> list = {{.inputs = {{{7}}}, .values = {INFINITY, -INFINITY, NAN, 0, -0.0, 1e30, -3}},
                              {.inputs = {{{}}}},
                              {.inputs = {{{0, 2}}}}};
  for (const Dtype t : kDtypes)
    if (!is_float(t) && !is_storage_only(t)) list.push_back({.inputs = {{{3}, t}}, .indices = {0, 1}});
  return list;
}

struct IsNan {
  static constexpr auto name = "isnan", onnx = "IsNaN", summary = "whether x is NaN";
  static Tensor parts(Inputs in, const NoAttrs&) { return ne(in[0], in[0]); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    map_oracle(in, out, [](double x) { return std::isnan(x); });
  }
  static std::vector<Sample> samples() { return special_values(); }
};

struct IsInf {
  static constexpr auto name = "isinf", onnx = "IsInf", summary = "whether x is an infinity";
  static Tensor parts(Inputs in, const NoAttrs&) {
    return is_float(in[0].dtype()) ? eq(abs(in[0]), kInfinity) : ne(in[0], in[0]);
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    map_oracle(in, out, [](double x) { return std::isinf(x); });
  }
  static std::vector<Sample> samples() { return special_values(); }
};

struct IsFinite {
  static constexpr auto name = "isfinite", onnx = "", summary = "whether x is neither NaN nor an infinity";
  static Tensor parts(Inputs in, const NoAttrs&) {
    return is_float(in[0].dtype()) ? lt(abs(in[0]), kInfinity) : eq(in[0], in[0]);
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    map_oracle(in, out, [](double x) { return std::isfinite(x); });
  }
  static std::vector<Sample> samples() { return special_values(); }
};

struct IscloseAttrs {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
  static constexpr auto fields = attr_list(attr("rtol", &IscloseAttrs::rtol), attr("atol", &IscloseAttrs::atol),
                                           attr("equal_nan", &IscloseAttrs::equal_nan));
};

struct IsClose {
  using Attributes = IscloseAttrs;
  static constexpr auto name = "isclose", onnx = "", summary = "|a - b| <= atol + rtol |b|, or equal";

  static Tensor parts(Inputs in, const Attributes& a) {
    const bool real = is_float(in[0].dtype());
    const Tensor x = real ? in[0] : cast(in[0], Dtype::f64), y = real ? in[1] : cast(in[1], Dtype::f64);
    const Tensor gap = abs(x - y);
    const Tensor near = lt(gap, kInfinity) && le(gap, a.atol + a.rtol * abs(y));
    const Tensor close = eq(in[0], in[1]) || near;
    return a.equal_nan ? close || (ne(x, x) && ne(y, y)) : close;
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    zip_oracle(in, out, [&](double x, double y) {
      if (std::isnan(x) && std::isnan(y)) return a.equal_nan;
      return x == y || (std::isfinite(x) && std::isfinite(y) && std::fabs(x - y) <= a.atol + a.rtol * std::fabs(y));
    });
  }
  static std::vector<Sample> samples() {
    const std::vector<double> values = {1, 1, NAN, INFINITY, -INFINITY, 2, 1.125, 1, NAN, INFINITY, INFINITY, INFINITY};
    return {{.inputs = {{{6}}, {{6}}}, .attrs = IscloseAttrs{0.25, 0.5, true}, .values = values},
            {.inputs = {{{6}}, {{6}}}, .attrs = IscloseAttrs{}, .values = values},
            {.inputs = {{{3}, Dtype::i64}, {{3}, Dtype::i64}},
             .attrs = IscloseAttrs{0.25, 0},
             .indices = {4, 8, 9, 5, 9, 9}}};
  }
};

/// Which elements are not 0, as bool.
Tensor truth(const Tensor& x) { return x.dtype() == Dtype::boolean ? x : ne(x, 0); }

struct LogicalXor {
  static constexpr auto name = "logical_xor", onnx = "Xor", summary = "exactly one of two is not 0";

  static Tensor parts(Inputs in, const NoAttrs&) { return ne(truth(in[0]), truth(in[1])); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    zip_oracle(in, out, [](double a, double b) { return (a != 0) != (b != 0); });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{4}, Dtype::boolean}, {{4}, Dtype::boolean}}, .indices = {0, 1, 0, 1, 0, 0, 1, 1}},
            {.inputs = {{{2, 1}, Dtype::i64}, {{2}, Dtype::boolean}}, .indices = {5, 0, 1, 0}},
            {.inputs = {{{4}}, {{4}}}, .values = {0, NAN, 0, 2, -0.0, 0, 1, 3}}};
  }
};

void check_same(std::string_view where, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype())
    throw_dtype(where, "dtypes differ: " + a.spec().str() + " and " + b.spec().str() + "; cast one of them");
}

}  // namespace

Family mixing_family() {
  static constexpr const Primitive* list[] = {&pointwise<Copysign>};
  return list;
}
Family composite_mixing_family() {
  static constexpr const Primitive* list[] = {&composite<Lerp>,    &composite<NanToNum>,  &composite<Heaviside>,
                                              &composite<IsNan>,   &composite<IsInf>,     &composite<IsFinite>,
                                              &composite<IsClose>, &composite<LogicalXor>};
  return list;
}

}  // namespace detail

using namespace detail;

Tensor copysign(const Operand& a, const Operand& b) { return pointwise_call<Copysign>(a, b); }

Tensor lerp(const Tensor& a, const Tensor& b, const Operand& weight) {
  check_float(a, "lerp");
  check_same("lerp", a, b);
  if (weight.is_literal()) return composed<Lerp>({{&a, &b}}, {weight.scalar().real()});
  check_same("lerp", a, weight.tensor());
  return composed<Lerp>({{&a, &b, &weight.tensor()}});
}

Tensor nan_to_num(const Tensor& x, const NanToNumOptions& options) {
  check_float(x, "nan_to_num");
  const double most = x.dtype() == Dtype::f32 ? static_cast<double>(std::numeric_limits<float>::max())
                                              : std::numeric_limits<double>::max();
  return composed<NanToNum>({{&x}}, {options.nan, options.posinf.value_or(most), options.neginf.value_or(-most)});
}

Tensor heaviside(const Tensor& x, const Tensor& values) {
  check_same("heaviside", x, values);
  if (x.dtype() == Dtype::boolean) throw_dtype("heaviside", "bool is not supported; it takes numbers");
  return composed<Heaviside>({{&x, &values}});
}

Tensor isnan(const Tensor& x) { return composed<IsNan>({{&x}}); }
Tensor isinf(const Tensor& x) { return composed<IsInf>({{&x}}); }
Tensor isfinite(const Tensor& x) { return composed<IsFinite>({{&x}}); }

Tensor isclose(const Tensor& a, const Tensor& b, const IscloseOptions& options) {
  check_same("isclose", a, b);
  for (const double tolerance : {options.rtol, options.atol})
    if (!(tolerance >= 0)) throw ValueError("isclose: tolerances must not be negative, got " + Scalar(tolerance).str());
  return composed<IsClose>({{&a, &b}}, {options.rtol, options.atol, options.equal_nan});
}

Tensor logical_xor(const Tensor& a, const Tensor& b) { return composed<LogicalXor>({{&a, &b}}); }

}  // namespace ferrite
