// Oracles and samples of tensor/ops/logic.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::logic {
namespace {

struct Equal {
  static constexpr auto name = "equal";
  static constexpr Range domain{-3, 3};
  static double scalar(double a, double b) { return a == b; }
};

struct Less {
  static constexpr auto name = "less";
  static constexpr Range domain{-3, 3};
  static double scalar(double a, double b) { return a < b; }
};

struct LessEqual {
  static constexpr auto name = "less_equal";
  static constexpr Range domain{-3, 3};
  static double scalar(double a, double b) { return a <= b; }
};

struct LogicalAnd {
  static constexpr auto name = "logical_and";
  static constexpr Range domain{0, 1};
  static double scalar(double a, double b) { return a != 0 && b != 0; }
};

struct LogicalOr {
  static constexpr auto name = "logical_or";
  static constexpr Range domain{0, 1};
  static double scalar(double a, double b) { return a != 0 || b != 0; }
};

struct LogicalNot {
  static constexpr auto name = "logical_not";
  static constexpr Range domain{0, 1};
  static double scalar(double a) { return a == 0; }
};

/// condition ? a : b, where the condition is bool and the branches share a dtype.
struct Where {
  static constexpr auto name = "where";
  static constexpr Range domain{-3, 3};
  static double scalar(double m, double a, double b) { return m != 0 ? a : b; }
};

/// Casts between any two dtypes; floats to integers truncate toward zero, anything to bool is "not zero".
struct Cast {
  using Attributes = CastAttrs;
  static constexpr auto name = "cast";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const Dtype to = attrs.dtype;
    for (std::size_t i = 0; i < in[0].values.size(); ++i) {
      const double v = in[0].values[i];
      out[0].values[i] = to == Dtype::boolean                ? v != 0
                         : kind_of(to) == DtypeKind::integer ? std::trunc(v)
                         : to == Dtype::f32                  ? static_cast<float>(v)
                         : to == Dtype::bf16                 ? nearest(v, 8, -126)
                         : to == Dtype::f16                  ? nearest(v, 11, -14)
                                                             : v;
    }
  }
  /// Returns the nearest number with `digits` binary digits, ties to even; `least` is the least exponent of normal
  /// numbers.
  static double nearest(double v, int digits, int least) {
    if (v == 0 || !std::isfinite(v)) return v;
    const int unit = std::max(std::ilogb(v), least) - digits + 1;
    return std::ldexp(std::nearbyint(std::ldexp(v, -unit)), unit);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    for (const Dtype from : kDtypes)
      for (const Dtype to : kDtypes)
        list.push_back({.inputs = {{{3, 5}, from}}, .attrs = CastAttrs{to}, .range = {-9, 9}, .indices = {0, 1, 5, 2}});
    return list;
  }
};

const Added added = add<Cast, Where, Equal, Less, LessEqual, LogicalAnd, LogicalOr, LogicalNot>();

}  // namespace
}  // namespace oracles::logic
