// Oracles and samples of nn/losses/reduction.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops.h"

namespace oracles::reduction_losses {
namespace {

struct LengthMaskAttrs {
  std::int64_t steps = 0;
  static constexpr auto fields = attr_list(attr("steps", &LengthMaskAttrs::steps));
};

struct LengthMask {
  using Attributes = LengthMaskAttrs;
  static constexpr auto name = "length_mask";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes&) {
    for_each_index(out[0].shape,
                   [&](const Shape& i) { out[0].at(i) = static_cast<double>(i[1]) < in[0].at({i[0]}) ? 1 : 0; });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{4}, Dtype::i64}}, .attrs = LengthMaskAttrs{5}, .indices = {5, 0, 3, 1}},
            {.inputs = {{{2}, Dtype::i64}}, .attrs = LengthMaskAttrs{0}, .indices = {0}},
            {.inputs = {{{0}, Dtype::i64}}, .attrs = LengthMaskAttrs{3}, .indices = {0}}};
  }
};

const Added added = add<LengthMask>();

}  // namespace
}  // namespace oracles::reduction_losses
