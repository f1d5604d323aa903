// Oracles and samples of tensor/ops/reductions.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/prod_others.h"

namespace oracles::prod_others {
namespace {

struct ProdOthersAttrs {
  Shape axes{};
  static constexpr auto fields = attr_list(attr("axes", &ProdOthersAttrs::axes));
};

struct ProdOthers {
  using Attributes = ProdOthersAttrs;
  static constexpr auto name = "prod_others";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const Shape& axes = attrs.axes;
    for_each_index(in[0].shape, [&](const Shape& i) {
      double& y = out[0].at(i);
      y = 1;
      for_each_index(in[0].shape, [&](const Shape& j) {
        bool other = false, same_row = true;
        for (int k = 0; k < i.rank(); ++k) {
          bool reduced = false;
          for (const std::int64_t a : axes) reduced |= a == k;
          if (i[k] != j[k]) (reduced ? other : same_row) = reduced;
        }
        if (other && same_row) y *= in[0].at(j);
      });
    });
  }
  static std::vector<Sample> samples() {
    const auto over = [](const Shape& axes) { return ProdOthersAttrs{axes}; };
    const std::vector<double> zeros{2, 0, 3, 0, 0, 5, 1.5, 0, 1, 2, 4, 0.5};
    return {{.inputs = {{{3, 4}}}, .attrs = over({1}), .range = {0.5, 1.5}},
            {.inputs = {{{4, 3}}}, .attrs = over({1}), .values = zeros},
            {.inputs = {{{2, 3, 2}}}, .attrs = over({0, 2}), .values = zeros},
            {.inputs = {{{5}}}, .attrs = over({0}), .values = {0, 2, 3, 1, 4}},
            {.inputs = {{{1, 3}}}, .attrs = over({0}), .values = {0, 2, 3}},
            {.inputs = {{{0, 3}}}, .attrs = over({1})}};
  }
};

const Added added = add<ProdOthers>();

}  // namespace
}  // namespace oracles::prod_others
