// Oracles and samples of tensor/ops/scatter.cpp.
#include <cmath>
#include <vector>

#include "conformance/oracles/scatter_elements.h"
#include "ferrite/tensor/along_axis.h"
#include "ferrite/tensor/ops/detail/index.h"

namespace oracles::scatter {
namespace {

struct Scatter {
  using Attributes = IndexAttrs;
  static constexpr auto name = "scatter";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    scatter_oracle(in, out[0], attrs, [](double& place, double x) { place = x; });
  }
  static std::vector<Sample> samples() { return scatter_samples(); }
};

struct ScatterExtremumAttrs {
  int axis = 0;
  bool largest = true;
  static constexpr auto fields =
      attr_list(attr("axis", &ScatterExtremumAttrs::axis), attr("largest", &ScatterExtremumAttrs::largest));
};

struct ScatterExtremum {
  using Attributes = ScatterExtremumAttrs;
  static constexpr auto name = "scatter_extremum";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    scatter_oracle(in, out[0], {.axis = attrs.axis}, [&](double& place, double x) {
      if (std::isnan(x) || (attrs.largest ? x > place : x < place)) place = x;
    });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    for (Sample& s : scatter_samples())
      for (const bool largest : {true, false}) {
        list.push_back(s);
        list.back().attrs = ScatterExtremumAttrs{s.attrs.as<IndexAttrs>().axis, largest};
        list.back().smooth_at_ties = false;
      }
    return list;
  }
};

struct IndexAdd {
  using Attributes = IndexAttrs;
  static constexpr auto name = "index_add";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    out[0].values = in[0].values;
    for_each_index(in[2].shape, [&](const Shape& i) {
      Shape to = i;
      to[attrs.axis] = position(in[1].at({i[attrs.axis]}), in[0].shape[attrs.axis]);
      out[0].at(to) += in[2].at(i);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{4, 3}}, {{5}, Dtype::i64}, {{5, 3}}}, .attrs = IndexAttrs{0}, .indices = {3, 0, -1, 1, 0}},
            {.inputs = {{{2, 3, 2}}, {{2}, Dtype::i32}, {{2, 2, 2}}}, .attrs = IndexAttrs{1}, .indices = {2, 2}},
            {.inputs = {{{2, 3}}, {{0}, Dtype::i64}, {{0, 3}}}, .attrs = IndexAttrs{0}, .indices = {0}}};
  }
};

const Added added = add<Scatter, ScatterExtremum, IndexAdd>();

}  // namespace
}  // namespace oracles::scatter
