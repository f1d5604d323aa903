// Oracles and samples of tensor/ops/sorting.cpp.
#include <cmath>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/along_axis.h"

namespace oracles::searching {
namespace {

struct SearchAttrs {
  bool right = false;
  static constexpr auto fields = attr_list(attr("right", &SearchAttrs::right));
};

struct SearchSorted {
  using Attributes = SearchAttrs;
  static constexpr auto name = "searchsorted";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const std::int64_t n = in[0].shape[-1];
    for_each_index(in[1].shape, [&](const Shape& i) {
      Shape at = in[0].shape.rank() == 1 ? Shape{0} : i;
      const double v = in[1].at(i);
      std::int64_t below = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        at[-1] = k;
        const double x = in[0].at(at);
        below += std::isnan(v) || x < v || (attrs.right && x == v);
      }
      out[0].at(i) = static_cast<double>(below);
    });
  }
  static std::vector<Sample> samples() {
    const double nan = std::nan("");
    return {{.inputs = {{{4}}, {{2, 3}}}, .attrs = SearchAttrs{}, .values = {-1, 0, 0, 2, 0, 3, -2, 2, -1, nan}},
            {.inputs = {{{4}}, {{2, 3}}}, .attrs = SearchAttrs{true}, .values = {-1, 0, 0, 2, 0, 3, -2, 2, -1, nan}},
            {.inputs = {{{2, 3}}, {{2, 2}}}, .attrs = SearchAttrs{}, .values = {0, 1, 2, 0, 1, 3, 1.5, 0, 3, 2}},
            {.inputs = {{{0}}, {{3}}}, .attrs = SearchAttrs{}},
            {.inputs = {{{1}}, {{}}}, .attrs = SearchAttrs{true}},
            {.inputs = {{{3}, Dtype::i64}, {{3}, Dtype::i64}}, .attrs = SearchAttrs{}, .indices = {1, 4, 9, 4, 5, -1}}};
  }
};

const Added added = add<SearchSorted>();

}  // namespace
}  // namespace oracles::searching
