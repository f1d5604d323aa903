// Oracles and samples of tensor/ops/math.cpp.
#include <cmath>
#include <optional>
#include <vector>

#include "conformance/oracles/helpers.h"

namespace oracles::mixing {
namespace {

struct LerpAttrs {
  std::optional<double> weight{};  ///< weight in place of a third operand
  static constexpr auto fields = attr_list(attr("weight", &LerpAttrs::weight));
};

struct Lerp {
  using Attributes = LerpAttrs;
  static constexpr auto name = "lerp";
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
  static constexpr auto name = "nan_to_num";
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

/// |a| with the sign of b.
struct Copysign {
  static constexpr auto name = "copysign";
  static constexpr Range domain{-10, 10};
  static constexpr double kinks[] = {0};
  static double scalar(double a, double b) { return std::copysign(a, b); }
};

struct Heaviside {
  static constexpr auto name = "heaviside";
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
  static constexpr auto name = "isnan";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    map_oracle(in, out, [](double x) { return std::isnan(x); });
  }
  static std::vector<Sample> samples() { return special_values(); }
};

struct IsInf {
  static constexpr auto name = "isinf";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    map_oracle(in, out, [](double x) { return std::isinf(x); });
  }
  static std::vector<Sample> samples() { return special_values(); }
};

struct IsFinite {
  static constexpr auto name = "isfinite";
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
  static constexpr auto name = "isclose";
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

struct LogicalXor {
  static constexpr auto name = "logical_xor";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    zip_oracle(in, out, [](double a, double b) { return (a != 0) != (b != 0); });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{4}, Dtype::boolean}, {{4}, Dtype::boolean}}, .indices = {0, 1, 0, 1, 0, 0, 1, 1}},
            {.inputs = {{{2, 1}, Dtype::i64}, {{2}, Dtype::boolean}}, .indices = {5, 0, 1, 0}},
            {.inputs = {{{4}}, {{4}}}, .values = {0, NAN, 0, 2, -0.0, 0, 1, 3}}};
  }
};

const Added added = add<Copysign, Lerp, NanToNum, Heaviside, IsNan, IsInf, IsFinite, IsClose, LogicalXor>();

}  // namespace
}  // namespace oracles::mixing
