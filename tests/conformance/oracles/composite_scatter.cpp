// Oracles and samples of tensor/ops/scatter.cpp.
#include <algorithm>
#include <map>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/index.h"
#include "ferrite/tensor/scatter.h"

namespace oracles::composite_scatter {
namespace {

struct TakeAlongAxis {
  using Attributes = AxisAttrs;
  static constexpr auto name = "take_along_axis";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      const auto at = [&](const Dense& d, std::int64_t along) {
        Shape j = i;
        for (int k = 0; k < j.rank(); ++k) j[k] = d.shape[k] == 1 && k != a.axis ? 0 : j[k];
        j[a.axis] = along;
        return d.at(j);
      };
      out[0].at(i) = at(in[0], position(at(in[1], i[a.axis]), in[0].shape[a.axis]));
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{4, 3}}, {{2, 3}, Dtype::i64}}, .attrs = AxisAttrs{0}, .indices = {3, 0, 1, 1, -4, 2}},
            {.inputs = {{{1, 4, 3}}, {{2, 2, 1}, Dtype::i64}}, .attrs = AxisAttrs{1}, .indices = {3, 0, 1, 1}}};
  }
};

struct ScatterReduceAttrs {
  int axis = 0;
  std::int64_t reduction = 0;  ///< number of a ScatterReduction
  bool include_self = true;
  static constexpr auto fields =
      attr_list(attr("axis", &ScatterReduceAttrs::axis), attr("reduction", &ScatterReduceAttrs::reduction),
                attr("include_self", &ScatterReduceAttrs::include_self));
  ScatterReduction kind() const { return static_cast<ScatterReduction>(reduction); }
};

struct ScatterReduce {
  using Attributes = ScatterReduceAttrs;
  static constexpr auto name = "scatter_reduce";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    std::map<std::size_t, std::vector<double>> meeting;
    Dense number(Spec{in[0].shape, Dtype::f64});
    for (std::size_t k = 0; k < number.values.size(); ++k) number.values[k] = static_cast<double>(k);
    for_each_index(in[1].shape, [&](const Shape& i) {
      Shape to = i;
      to[a.axis] = position(in[1].at(i), in[0].shape[a.axis]);
      meeting[static_cast<std::size_t>(number.at(to))].push_back(in[2].at(i));
    });
    out[0].values = in[0].values;
    for (auto& [place, v] : meeting) {
      if (a.include_self) v.insert(v.begin(), in[0].values[place]);
      double y = v[0];
      for (std::size_t k = 1; k < v.size(); ++k) {
        if (a.kind() == ScatterReduction::prod) y *= v[k];
        if (a.kind() == ScatterReduction::sum || a.kind() == ScatterReduction::mean) y += v[k];
        if (a.kind() == ScatterReduction::amax) y = std::max(y, v[k]);
        if (a.kind() == ScatterReduction::amin) y = std::min(y, v[k]);
      }
      out[0].values[place] = a.kind() == ScatterReduction::mean ? y / static_cast<double>(v.size()) : y;
    }
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    for (std::int64_t kind = 0; kind < 5; ++kind)
      for (const bool self : {true, false}) {
        list.push_back({.inputs = {{{2, 3}}, {{2, 4}, Dtype::i64}, {{2, 4}}},
                        .attrs = ScatterReduceAttrs{1, kind, self},
                        .range = {0.25, 2},
                        .indices = {0, 0, 0, 2, 1, 1, -1, 2}});
        list.push_back({.inputs = {{{4, 3}}, {{2, 3}, Dtype::i64}, {{2, 3}}},
                        .attrs = ScatterReduceAttrs{0, kind, self},
                        .indices = {3, 0, 1, 3, -4, 2},
                        .smooth_at_ties = false});
      }
    return list;
  }
};

struct SlicesAttrs {
  int axis = 0;
  static constexpr auto fields = attr_list(attr("axis", &SlicesAttrs::axis));
};

struct IndexCopy {
  using Attributes = SlicesAttrs;
  static constexpr auto name = "index_copy";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    out[0].values = in[0].values;
    for_each_index(in[2].shape, [&](const Shape& i) {
      Shape to = i;
      to[a.axis] = position(in[1].at({i[a.axis]}), in[0].shape[a.axis]);
      out[0].at(to) = in[2].at(i);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{4, 3}}, {{3}, Dtype::i64}, {{3, 3}}}, .attrs = SlicesAttrs{0}, .indices = {3, 0, -1}},
            {.inputs = {{{2, 3}}, {{2}, Dtype::i64}, {{2, 2}}}, .attrs = SlicesAttrs{1}, .indices = {2, 0}}};
  }
};

const Added added = add<TakeAlongAxis, ScatterReduce, IndexCopy>();

}  // namespace
}  // namespace oracles::composite_scatter
