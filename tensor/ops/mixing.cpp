/// Mixing and replacing numbers, and tests of what they are.
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
};

/// |a| with b's sign.
struct Copysign : functors::Copysign {
  static constexpr auto name = "copysign", onnx = "", stablehlo = "";
  static constexpr auto summary = "|a| with b's sign, that of zeros included; gradient 0 at a = 0";
  static constexpr Reads reads = reads_all;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad * (sign(v.out) * sign(v.a.tensor())); }, [&] { return zeros_like(v.grad); });
  }
};

struct Heaviside {
  static constexpr auto name = "heaviside", onnx = "", summary = "0 below 0 and of NaN, 1 above, values at 0";

  static Tensor parts(Inputs in, const NoAttrs&) {
    return where(eq(in[0], 0), in[1], cast(gt(in[0], 0), in[0].dtype()));
  }
};

struct IsNan {
  static constexpr auto name = "isnan", onnx = "IsNaN", summary = "whether x is NaN";
  static Tensor parts(Inputs in, const NoAttrs&) { return ne(in[0], in[0]); }
};

struct IsInf {
  static constexpr auto name = "isinf", onnx = "IsInf", summary = "whether x is an infinity";
  static Tensor parts(Inputs in, const NoAttrs&) {
    return is_float(in[0].dtype()) ? eq(abs(in[0]), kInfinity) : ne(in[0], in[0]);
  }
};

struct IsFinite {
  static constexpr auto name = "isfinite", onnx = "", summary = "whether x is neither NaN nor an infinity";
  static Tensor parts(Inputs in, const NoAttrs&) {
    return is_float(in[0].dtype()) ? lt(abs(in[0]), kInfinity) : eq(in[0], in[0]);
  }
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
};

/// Which elements are not 0, as bool.
Tensor truth(const Tensor& x) { return x.dtype() == Dtype::boolean ? x : ne(x, 0); }

struct LogicalXor {
  static constexpr auto name = "logical_xor", onnx = "Xor", summary = "exactly one of two is not 0";

  static Tensor parts(Inputs in, const NoAttrs&) { return ne(truth(in[0]), truth(in[1])); }
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
