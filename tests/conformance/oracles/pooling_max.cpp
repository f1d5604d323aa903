// Oracles and samples of tensor/ops/pooling.cpp.
#include <cmath>
#include <limits>
#include <vector>

#include "conformance/oracles/pooling.h"

namespace oracles::pooling_max {
namespace {

std::vector<Sample> pool_samples() {
  return {
      {.inputs = {{{2, 3, 9}}}, .attrs = PoolAttrs{{3}, {2}, {1}, {1}, {5}}, .smooth_at_ties = false},
      {.inputs = {{{1, 2, 5, 6}}}, .attrs = PoolAttrs{{2, 3}, {1, 2}, {1, 0}, {2, 1}, {5, 2}}, .smooth_at_ties = false},
      {.inputs = {{{1, 2, 4, 4, 5}}},
       .attrs = PoolAttrs{{2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}, {2, 2, 3}},
       .smooth_at_ties = false},
      {.inputs = {{{1, 2, 5, 7}}},
       .attrs = PoolAttrs{{1, 1}, {1, 1}, {0, 0}, {1, 1}, {3, 4}, true},
       .smooth_at_ties = false},
      {.inputs = {{{0, 2, 4}}}, .attrs = PoolAttrs{{2}, {2}, {0}, {1}, {2}}}};
}

struct MaxPool {
  using Attributes = PoolAttrs;
  static constexpr auto name = "max_pool";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for (double& y : out[0].values) y = -std::numeric_limits<double>::infinity();
    each_held(in[0].shape, out[0].shape, a, [&](const Shape& to, const Shape& from) {
      const double v = in[0].at(from);
      if (v > out[0].at(to) || std::isnan(v)) out[0].at(to) = v;
    });
  }
  static std::vector<Sample> samples() { return pool_samples(); }
};

struct MaxPoolIndices {
  using Attributes = PoolAttrs;
  static constexpr auto name = "max_pool_indices";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    Dense best(Spec{out[0].shape, Dtype::f64});
    for (double& y : best.values) y = -std::numeric_limits<double>::infinity();
    for (double& y : out[0].values) y = -1;
    each_held(in[0].shape, out[0].shape, a, [&](const Shape& to, const Shape& from) {
      double place = 0;
      for (int i = 2; i < from.rank(); ++i)
        place = place * static_cast<double>(in[0].shape[i]) + static_cast<double>(from[i]);
      const double v = in[0].at(from);
      if (out[0].at(to) < 0 || v > best.at(to) || std::isnan(v)) {
        best.at(to) = v;
        out[0].at(to) = place;
      }
    });
  }
  static std::vector<Sample> samples() { return pool_samples(); }
};

std::int64_t plane_of(const Shape& s) {
  std::int64_t n = 1;
  for (int i = 2; i < s.rank(); ++i) n *= s[i];
  return n;
}

struct PlaneGather {
  using Attributes = PlaneAttrs;
  static constexpr auto name = "plane_gather";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes&) {
    const auto n = static_cast<std::size_t>(plane_of(in[0].shape)), m = static_cast<std::size_t>(plane_of(in[1].shape));
    for (std::size_t k = 0; k < out[0].values.size(); ++k)
      out[0].values[k] = in[0].values[k / m * n + static_cast<std::size_t>(in[1].values[k])];
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 2, 3, 4}}, {{2, 2, 2, 2}, Dtype::i64}},
             .attrs = PlaneAttrs{{2, 2}},
             .indices = {0, 3, 3, 11, 5, 6, 7, 8}},
            {.inputs = {{{1, 2, 5}}, {{1, 2, 3}, Dtype::i64}}, .attrs = PlaneAttrs{{3}}, .indices = {4, 0, 2}}};
  }
};

struct PlaneScatter {
  using Attributes = PlaneAttrs;
  static constexpr auto name = "plane_scatter";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const auto n = static_cast<std::size_t>(plane_of(out[0].shape)),
               m = static_cast<std::size_t>(plane_of(in[0].shape));
    for (std::size_t k = 0; k < in[0].values.size(); ++k) {
      double& element = out[0].values[k / m * n + static_cast<std::size_t>(in[1].values[k])];
      element = a.add ? element + in[0].values[k] : in[0].values[k];
    }
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 2, 2, 2}}, {{2, 2, 2, 2}, Dtype::i64}},
             .attrs = PlaneAttrs{{3, 4}},
             .indices = {0, 3, 3, 11, 5, 6, 7, 8}},
            {.inputs = {{{1, 2, 3}}, {{1, 2, 3}, Dtype::i64}}, .attrs = PlaneAttrs{{5}, false}, .indices = {4, 0, 2}}};
  }
};

const Added added = add<MaxPool, MaxPoolIndices, PlaneGather, PlaneScatter>();

}  // namespace
}  // namespace oracles::pooling_max
