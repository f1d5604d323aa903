// Oracles and samples of tensor/ops/assembly.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::composite_padding {
namespace {

struct PaddingAttrs {
  bool batch_first = false;
  static constexpr auto fields = attr_list(attr("batch_first", &PaddingAttrs::batch_first));
};

struct WithoutPadding {
  using Attributes = PaddingAttrs;
  static constexpr auto name = "without_padding";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const Dense& lengths = in[1];
    const int time = a.batch_first ? 1 : 0;
    const auto longest = std::max_element(lengths.values.begin(), lengths.values.end()) - lengths.values.begin();
    for_each_index(out[0].shape, [&](const Shape& at) {
      Shape from_step = at;
      if (lengths.at({at[1 - time]}) == 0) from_step[1 - time] = longest;
      const auto last = static_cast<std::int64_t>(lengths.at({from_step[1 - time]})) - 1;
      const bool inside = at[time] < static_cast<std::int64_t>(lengths.at({at[1 - time]}));
      if (!inside) from_step[time] = last;
      out[0].at(at) = inside || last >= 0 ? in[0].at(inside ? at : from_step) : 0;
    });
  }
  static std::vector<Sample> samples() {
    // A difference quotient sees the copies, which the gradient leaves out: smooth where there are none.
    return {
        {.inputs = {{{4, 3, 2}}, {{3}, Dtype::i64}}, .attrs = PaddingAttrs{}, .indices = {2, 0, 3}, .smooth = false},
        {.inputs = {{{3, 4}}, {{3}, Dtype::i64}}, .attrs = PaddingAttrs{true}, .indices = {1, 4, 0}, .smooth = false},
        {.inputs = {{{4, 2}}, {{2}, Dtype::i64}}, .attrs = PaddingAttrs{}, .indices = {4, 4}},
        {.inputs = {{{4, 2}}, {{2}, Dtype::i64}}, .attrs = PaddingAttrs{}, .indices = {0, 0}}};
  }
};

const Added added = add<WithoutPadding>();

}  // namespace
}  // namespace oracles::composite_padding
