// Oracles and samples of tensor/ops/creation.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::creation {
namespace {

struct Full {
  using Attributes = FullAttrs;
  static constexpr auto name = "full";
  static void oracle(std::span<const Dense>, std::span<Dense> out, const Attributes& attrs) {
    for (double& y : out[0].values) y = attrs.value.real();
  }
  static std::vector<Sample> samples() {
    return {{.attrs = FullAttrs{Shape{2, 3}, 1.5, Dtype::f32}},   {.attrs = FullAttrs{Shape{}, -7, Dtype::i64}},
            {.attrs = FullAttrs{Shape{0, 3}, 1, Dtype::boolean}}, {.attrs = FullAttrs{Shape{3}, 0.75, Dtype::bf16}},
            {.attrs = FullAttrs{Shape{2}, -1.5, Dtype::f16}},     {.attrs = FullAttrs{Shape{2}, -128, Dtype::i8}}};
  }
};

/// Computes begin + i step in f64 (integers exactly).
struct Arange {
  using Attributes = ArangeAttrs;
  static constexpr auto name = "arange";
  static void oracle(std::span<const Dense>, std::span<Dense> out, const Attributes& attrs) {
    for (std::size_t i = 0; i < out[0].values.size(); ++i)
      out[0].values[i] = attrs.begin.real() + static_cast<double>(i) * attrs.step.real();
  }
  static std::vector<Sample> samples() {
    const auto range = [](Scalar begin, Scalar step, std::int64_t count, Dtype dtype) {
      return ArangeAttrs{begin, step, count, dtype};
    };
    return {{.attrs = range(0, 1, 5, Dtype::i64)},
            {.attrs = range(3, -2, 4, Dtype::i32)},
            {.attrs = range(0.5, 0.25, 7, Dtype::f32)},
            {.attrs = range(0, 1, 0, Dtype::f64)}};
  }
};

const Added added = add<Full, Arange>();

}  // namespace
}  // namespace oracles::creation
