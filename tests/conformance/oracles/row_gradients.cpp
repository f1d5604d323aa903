// Oracles and samples of tensor/ops/normalization.cpp.
#include <cmath>
#include <numeric>
#include <vector>

#include "conformance/oracles/helpers.h"
#include "ferrite/tensor/ops/detail/at_once.h"
#include "ferrite/tensor/ops/detail/normalization.h"

namespace oracles::row_gradients {
namespace {

/// Computes out = f(cotangents, values) for every group of elements along axes, one number for each element.
template <class F>
void zip_groups(std::span<const Dense> in, const Shape& axes, Dense& out, const F& f) {
  for_each_group(in[0], axes, [&](const Shape&, const std::vector<Shape>& members) {
    std::vector<double> g, values;
    for (const Shape& i : members) {
      g.push_back(in[0].at(i));
      values.push_back(in[1].at(i));
    }
    const std::vector<double> found = f(g, values);
    for (std::size_t k = 0; k < members.size(); ++k) out.at(members[k]) = found[k];
  });
}

double total_of(const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); }

double product_of(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

std::vector<Sample> along_axes() {
  return {{.inputs = {{{3, 5}}, {{3, 5}}}, .attrs = AxisAttrs{1}},
          {.inputs = {{{3, 5}}, {{3, 5}}}, .attrs = AxisAttrs{0}},
          {.inputs = {{{2, 3, 40}}, {{2, 3, 40}}}, .attrs = AxisAttrs{2}},
          {.inputs = {{{0, 3}}, {{0, 3}}}, .attrs = AxisAttrs{1}}};
}

struct SoftmaxGrad {
  using Attributes = AxisAttrs;
  static constexpr auto name = "softmax_grad";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    zip_groups(in, {a.axis}, out[0], [](std::vector<double> g, const std::vector<double>& y) {
      const double total = product_of(g, y);
      for (std::size_t k = 0; k < g.size(); ++k) g[k] = y[k] * (g[k] - total);
      return g;
    });
  }
  static std::vector<Sample> samples() { return along_axes(); }
};

struct LogSoftmaxGrad {
  using Attributes = AxisAttrs;
  static constexpr auto name = "log_softmax_grad";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    zip_groups(in, {a.axis}, out[0], [](std::vector<double> g, const std::vector<double>& y) {
      const double total = total_of(g);
      for (std::size_t k = 0; k < g.size() && total != 0; ++k) g[k] -= std::exp(y[k]) * total;
      return g;
    });
  }
  static std::vector<Sample> samples() { return along_axes(); }
};

struct LayerNormGrad {
  using Attributes = LayerNormAttrs;
  static constexpr auto name = "layer_norm_grad";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const Shape over = last_axes(in[0].shape.rank(), a.axes);
    zip_groups(in, over, out[0], [&](std::vector<double> g, std::vector<double> y) {
      const auto n = static_cast<double>(y.size());
      const double centre = total_of(y) / n, level = total_of(g) / n;
      for (double& v : y) v -= centre;
      const double scale = 1 / std::sqrt(product_of(y, y) / n + a.epsilon);
      const double slope = product_of(g, y) * scale / n;
      for (std::size_t k = 0; k < g.size(); ++k) g[k] = (g[k] - level - y[k] * scale * slope) * scale;
      return g;
    });
  }
  static std::vector<Sample> samples() {
    // Near equal elements an epsilon of 1e-5 bends too sharply for a difference quotient.
    return {{.inputs = {{{3, 5}}, {{3, 5}}}, .attrs = LayerNormAttrs{}, .smooth_at_ties = false},
            {.inputs = {{{2, 3, 14}}, {{2, 3, 14}}}, .attrs = LayerNormAttrs{2, 0.1}},
            {.inputs = {{{0, 3}}, {{0, 3}}}, .attrs = LayerNormAttrs{}}};
  }
};

const Added added = add<SoftmaxGrad, LogSoftmaxGrad, LayerNormGrad>();

}  // namespace
}  // namespace oracles::row_gradients
