// Oracles and samples of tensor/ops/normalization.cpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "conformance/oracles/helpers.h"
#include "ferrite/tensor/ops/detail/at_once.h"
#include "ferrite/tensor/ops/detail/normalization.h"

namespace oracles::composite {
namespace {

double mean_of(const std::vector<double>& v) {
  double total = 0;
  for (const double x : v) total += x;
  return total / static_cast<double>(v.size());
}

/// Returns the sum of the squares of the distances from the mean.
double spread_of(const std::vector<double>& v) {
  const double centre = mean_of(v);
  double total = 0;
  for (const double x : v) total += (x - centre) * (x - centre);
  return total;
}

double logsumexp_of(const std::vector<double>& v) {
  double largest = -std::numeric_limits<double>::infinity(), total = 0;
  for (const double x : v) largest = std::max(largest, x);
  if (!std::isfinite(largest)) largest = 0;
  for (const double x : v) total += std::exp(x - largest);
  return std::log(total) + largest;
}

/// Returns samples of operations that reduce or normalise along axes.
std::vector<Sample> reduced() {
  return {{.inputs = {{{3, 5}}}, .attrs = ReductionAttrs{{1}}},
          {.inputs = {{{3, 5}}}, .attrs = ReductionAttrs{{0}, true}},
          {.inputs = {{{2, 3, 4}}}, .attrs = ReductionAttrs{{0, 2}}},
          {.inputs = {{{2, 3, 4}}}, .attrs = ReductionAttrs{{0, 1, 2}}},
          {.inputs = {{{}}}, .attrs = ReductionAttrs{}},
          {.inputs = {{{0, 3}}}, .attrs = ReductionAttrs{{1}}}};
}

std::vector<Sample> normalised() {
  return {{.inputs = {{{3, 5}}}, .attrs = AxisAttrs{1}},
          {.inputs = {{{3, 5}}}, .attrs = AxisAttrs{0}},
          {.inputs = {{{2, 3, 4}}}, .attrs = AxisAttrs{1}},
          {.inputs = {{{2, 3}}}, .attrs = AxisAttrs{1}, .range = {-800, 800}, .smooth = false},
          {.inputs = {{{0, 3}}}, .attrs = AxisAttrs{1}}};
}

struct Mean {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "mean";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], mean_of);
  }
  static std::vector<Sample> samples() { return reduced(); }
};

struct VarAttrs {
  Shape axes{};
  bool keepdim = false;
  double correction = 1;
  static constexpr auto fields = attr_list(attr("axes", &VarAttrs::axes), attr("keepdim", &VarAttrs::keepdim),
                                           attr("correction", &VarAttrs::correction));
};

struct Var {
  using Attributes = VarAttrs;
  static constexpr auto name = "var";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], [&](const std::vector<double>& v) {
      return spread_of(v) / std::max(0.0, static_cast<double>(v.size()) - a.correction);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .attrs = VarAttrs{{1}}},
            {.inputs = {{{3, 5}}}, .attrs = VarAttrs{{0}, true, 0}},
            {.inputs = {{{2, 3, 4}}}, .attrs = VarAttrs{{0, 1, 2}, false, 2.5}},
            {.inputs = {{{0, 3}}}, .attrs = VarAttrs{{1}}}};
  }
};

struct LogSumExp {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "logsumexp";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], logsumexp_of);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = reduced();
    all.push_back({.inputs = {{{2, 3}}}, .attrs = ReductionAttrs{{1}}, .range = {-800, 800}, .smooth = false});
    return all;
  }
};

struct Softmax {
  using Attributes = AxisAttrs;
  static constexpr auto name = "softmax";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_groups(in[0], {a.axis}, out[0], [](std::vector<double>& v) {
      const double all = logsumexp_of(v);
      for (double& x : v) x = std::exp(x - all);
    });
  }
  static std::vector<Sample> samples() { return normalised(); }
};

struct Softmin {
  using Attributes = AxisAttrs;
  static constexpr auto name = "softmin";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_groups(in[0], {a.axis}, out[0], [](std::vector<double>& v) {
      const double least = *std::min_element(v.begin(), v.end());
      double total = 0;
      for (double& x : v) total += x = std::exp(least - x);
      for (double& x : v) x /= total;
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .attrs = AxisAttrs{1}}, {.inputs = {{{3, 5}}}, .attrs = AxisAttrs{0}}};
  }
};

struct LogSoftmax {
  using Attributes = AxisAttrs;
  static constexpr auto name = "log_softmax";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_groups(in[0], {a.axis}, out[0], [](std::vector<double>& v) {
      const double all = logsumexp_of(v);
      for (double& x : v) x -= all;
    });
  }
  static std::vector<Sample> samples() { return normalised(); }
};

struct LayerNorm {
  using Attributes = LayerNormAttrs;
  static constexpr auto name = "layer_norm";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_groups(in[0], last_axes(in[0].shape.rank(), a.axes), out[0], [&](std::vector<double>& v) {
      const double centre = mean_of(v), spread = spread_of(v) / static_cast<double>(v.size());
      for (double& x : v) x = (x - centre) / std::sqrt(spread + a.epsilon);
    });
  }
  static std::vector<Sample> samples() {
    // Near equal elements an epsilon of 1e-5 bends too sharply for a difference quotient.
    return {{.inputs = {{{3, 5}}}, .attrs = LayerNormAttrs{}, .smooth_at_ties = false},
            {.inputs = {{{2, 3, 4}}}, .attrs = LayerNormAttrs{2, 0.1}},
            {.inputs = {{{0, 3}}}, .attrs = LayerNormAttrs{}}};
  }
};

struct Affine {
  static constexpr auto name = "affine";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      double total = in.size() > 2 ? in[2].at({i[1]}) : 0;
      for (std::int64_t k = 0; k < in[1].shape[0]; ++k) total += in[0].at({i[0], k}) * in[1].at({k, i[1]});
      out[0].at(i) = total;
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3}}, {{3, 4}}, {{4}}}}, {.inputs = {{{2, 3}}, {{3, 4}}}}};
  }
};

const Added added = add<Mean, Var, LogSumExp, Softmax, Softmin, LogSoftmax, LayerNorm, Affine>();

}  // namespace
}  // namespace oracles::composite
