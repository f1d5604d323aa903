// Oracles and samples of tensor/ops/indexing.cpp.
#include <algorithm>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/define.h"

namespace oracles::selection {
namespace {

struct NonzeroAttrs {
  std::int64_t size = 0, fill = -1;
  static constexpr auto fields = attr_list(attr("size", &NonzeroAttrs::size), attr("fill", &NonzeroAttrs::fill));
};

struct Nonzero {
  using Attributes = NonzeroAttrs;
  static constexpr auto name = "nonzero";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    std::fill(out[0].values.begin(), out[0].values.end(), static_cast<double>(attrs.fill));
    std::int64_t found = 0;
    for_each_index(in[0].shape, [&](const Shape& i) {
      if (in[0].at(i) == 0 || found == attrs.size) return;
      for (int k = 0; k < i.rank(); ++k) out[0].at({found, k}) = static_cast<double>(i[k]);
      ++found;
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 4}}}, .attrs = NonzeroAttrs{12, -1}},
            {.inputs = {{{2, 3}, Dtype::boolean}}, .attrs = NonzeroAttrs{2, -1}, .indices = {1, 0, 1, 1}},
            {.inputs = {{{5}, Dtype::i64}}, .attrs = NonzeroAttrs{4, 7}, .indices = {0, 3, 0, -1}},
            {.inputs = {{{}}}, .attrs = NonzeroAttrs{1, -1}},
            {.inputs = {{{0, 2}}}, .attrs = NonzeroAttrs{1, -1}}};
  }
};

struct MaskedScatter {
  static constexpr auto name = "masked_scatter";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    std::size_t next = 0;
    for_each_index(out[0].shape, [&](const Shape& i) {
      out[0].at(i) = in[1].broadcast_at(i) != 0 ? in[2].values[next++] : in[0].at(i);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3}}, {{2, 3}, Dtype::boolean}, {{7}}}, .indices = {1, 0, 1, 1, 0, 1}},
            {.inputs = {{{2, 3}}, {{3}, Dtype::boolean}, {{2, 2}}}, .indices = {1, 0, 1}},
            {.inputs = {{{2}}, {{2}, Dtype::boolean}, {{0}}}, .indices = {0}},
            {.inputs = {{{0}}, {{}, Dtype::boolean}, {{3}}}, .indices = {1}}};
  }
};

const Added added = add<Nonzero, MaskedScatter>();

}  // namespace
}  // namespace oracles::selection
