// Oracles and samples of tensor/ops/scatter.cpp.
#include <vector>

#include "conformance/oracles/scatter_elements.h"
#include "ferrite/tensor/ops/detail/index.h"
#include "ferrite/tensor/ops/detail/prod_others.h"

namespace oracles::scatter_prod {
namespace {

/// Returns the samples of every scatter with factors near 1, and samples in which one, two or no factors of a place are
/// 0.
std::vector<Sample> factor_samples() {
  std::vector<Sample> list = scatter_samples();
  for (Sample& s : list) {
    s.attrs = AxisAttrs{s.attrs.as<IndexAttrs>().axis};
    s.range = {0.5, 1.5};
  }
  list.push_back(list[1]);
  list.back().values = {2, 0, 3, 0, 0, 1, 0.5, 4, 0, 2, 3};
  return list;
}

struct ScatterProd {
  using Attributes = AxisAttrs;
  static constexpr auto name = "scatter_prod";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    scatter_oracle(in, out[0], {.axis = attrs.axis}, [](double& place, double x) { place *= x; });
  }
  static std::vector<Sample> samples() { return factor_samples(); }
};

struct ScatterProdOthers {
  using Attributes = AxisAttrs;
  static constexpr auto name = "scatter_prod_others";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    std::vector<double*> result;
    std::vector<double> factor;
    std::vector<Shape> place;
    for_each_index(in[0].shape, [&](const Shape& i) {
      result.push_back(&out[0].at(i));
      factor.push_back(in[0].at(i));
      place.push_back(i);
    });
    for_each_index(in[2].shape, [&](const Shape& i) {
      result.push_back(&out[1].at(i));
      factor.push_back(in[2].at(i));
      place.push_back(i);
      place.back()[attrs.axis] = position(in[1].at(i), in[0].shape[attrs.axis]);
    });
    for (std::size_t i = 0; i < factor.size(); ++i) {
      *result[i] = 1;
      for (std::size_t j = 0; j < factor.size(); ++j)
        if (j != i && place[j] == place[i]) *result[i] *= factor[j];
    }
  }
  static std::vector<Sample> samples() { return factor_samples(); }
};

const Added added = add<ScatterProd, ScatterProdOthers>();

}  // namespace
}  // namespace oracles::scatter_prod
