// Oracles and samples of tensor/ops/checks.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::checks {
namespace {

struct CheckedAttrs {
  Scalar low{}, high{};
  Label who{};
  static constexpr auto fields =
      attr_list(attr("low", &CheckedAttrs::low), attr("high", &CheckedAttrs::high), attr("who", &CheckedAttrs::who));
};

struct Checked {
  using Attributes = CheckedAttrs;
  static constexpr auto name = "checked";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes&) {
    out[0].values = in[0].values;
  }
  static std::vector<Sample> samples() {
    const auto within = [](const Scalar& low, const Scalar& high) { return CheckedAttrs{low, high, "samples: value"}; };
    return {{.inputs = {{{3, 5}}}, .attrs = within(-3.0, 3.0)},
            {.inputs = {{{4}, Dtype::i64}}, .attrs = within(-1, 3), .indices = {3, 0, -1, 1}},
            {.inputs = {{{0}, Dtype::i32}}, .attrs = within(0, 0), .indices = {0}}};
  }
};

const Added added = add<Checked>();

}  // namespace
}  // namespace oracles::checks
