// Oracles and samples of tensor/ops/norms.cpp.
#include <cmath>
#include <limits>
#include <vector>

#include "conformance/oracles/helpers.h"
#include "ferrite/tensor/ops/detail/at_once.h"

namespace oracles::norms {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct NormAttrs {
  double p = 2;
  Shape axes{};
  bool keepdim = false;
  static constexpr auto fields =
      attr_list(attr("p", &NormAttrs::p), attr("axes", &NormAttrs::axes), attr("keepdim", &NormAttrs::keepdim));
};

double norm_of(const std::vector<double>& v, double p) {
  double total = p == -kInfinity ? kInfinity : 0;
  for (const double x : v) {
    const double a = std::fabs(x);
    if (p == kInfinity) {
      total = std::fmax(total, a);
    } else if (p == -kInfinity) {
      total = std::fmin(total, a);
    } else {
      total += p == 0 ? x != 0 : std::pow(a, p);
    }
  }
  return std::isinf(p) || p == 0 ? total : std::pow(total, 1 / p);
}

struct Norm {
  using Attributes = NormAttrs;
  static constexpr auto name = "norm";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], [&](const std::vector<double>& v) { return norm_of(v, a.p); });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    for (const double p : {2.0, 1.0, 0.0, kInfinity, -kInfinity, 3.0, 1.5, 0.5, -2.0}) {
      list.push_back({.inputs = {{{3, 5}}}, .attrs = NormAttrs{p, {1}}, .smooth_at_ties = false});
      list.push_back({.inputs = {{{2, 3, 2}}}, .attrs = NormAttrs{p, {0, 2}, true}, .smooth_at_ties = false});
      list.push_back({.inputs = {{{}}}, .attrs = NormAttrs{p, {}}, .smooth_at_ties = false});
      if (p >= 0 && !std::isinf(p)) list.push_back({.inputs = {{{3, 0}}}, .attrs = NormAttrs{p, {1}}});
    }
    return list;
  }
};

struct StddevAttrs {
  Shape axes{};
  bool keepdim = false;
  double correction = 1;
  static constexpr auto fields = attr_list(attr("axes", &StddevAttrs::axes), attr("keepdim", &StddevAttrs::keepdim),
                                           attr("correction", &StddevAttrs::correction));
};

struct Stddev {
  using Attributes = StddevAttrs;
  static constexpr auto name = "stddev";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], [&](const std::vector<double>& v) {
      double mean = 0, squares = 0;
      for (const double x : v) mean += x / static_cast<double>(v.size());
      for (const double x : v) squares += (x - mean) * (x - mean);
      return std::sqrt(squares / std::fmax(0, static_cast<double>(v.size()) - a.correction));
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .attrs = StddevAttrs{{1}}, .smooth_at_ties = false},
            {.inputs = {{{2, 3, 4}}}, .attrs = StddevAttrs{{0, 2}, true, 0}, .smooth_at_ties = false},
            {.inputs = {{{2, 6}}}, .attrs = StddevAttrs{{0, 1}, false, 2.5}, .smooth_at_ties = false},
            {.inputs = {{{0, 3}}}, .attrs = StddevAttrs{{1}}}};
  }
};

struct NormalizeAttrs {
  double p = 2;
  int axis = 1;
  double epsilon = 1e-12;
  static constexpr auto fields = attr_list(attr("p", &NormalizeAttrs::p), attr("axis", &NormalizeAttrs::axis),
                                           attr("epsilon", &NormalizeAttrs::epsilon));
};

struct Normalize {
  using Attributes = NormalizeAttrs;
  static constexpr auto name = "normalize";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_groups(in[0], {a.axis}, out[0], [&](std::vector<double>& v) {
      const double scale = std::fmax(norm_of(v, a.p), a.epsilon);
      for (double& x : v) x /= scale;
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .attrs = NormalizeAttrs{2, 1, 0.01}, .smooth_at_ties = false},
            {.inputs = {{{4, 2, 3}}}, .attrs = NormalizeAttrs{1, 0, 0.01}, .smooth_at_ties = false},
            {.inputs = {{{2, 3}}}, .attrs = NormalizeAttrs{kInfinity, 1, 0.01}, .smooth_at_ties = false},
            {.inputs = {{{2, 3}}}, .attrs = NormalizeAttrs{2, 1, 9}, .smooth_at_ties = false}};
  }
};

struct CosineAttrs {
  int axis = 1;
  double epsilon = 1e-8;
  static constexpr auto fields = attr_list(attr("axis", &CosineAttrs::axis), attr("epsilon", &CosineAttrs::epsilon));
};

struct CosineSimilarity {
  using Attributes = CosineAttrs;
  static constexpr auto name = "cosine_similarity";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_group(
        in[0], {a.axis}, [&, next = std::size_t{0}](const Shape&, const std::vector<Shape>& members) mutable {
          double product = 0, aa = 0, bb = 0;
          for (const Shape& i : members) {
            const double x = in[0].at(i), y = in[1].broadcast_at(i);
            product += x * y, aa += x * x, bb += y * y;
          }
          out[0].values[next++] = product / std::fmax(std::sqrt(aa), a.epsilon) / std::fmax(std::sqrt(bb), a.epsilon);
        });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}, {{3, 5}}}, .attrs = CosineAttrs{1, 0.01}, .smooth_at_ties = false},
            {.inputs = {{{4, 2, 3}}, {{4, 1, 3}}}, .attrs = CosineAttrs{0, 0.01}, .smooth_at_ties = false}};
  }
};

struct PairwiseAttrs {
  double p = 2, epsilon = 1e-6;
  bool keepdim = false;
  static constexpr auto fields = attr_list(attr("p", &PairwiseAttrs::p), attr("epsilon", &PairwiseAttrs::epsilon),
                                           attr("keepdim", &PairwiseAttrs::keepdim));
};

struct PairwiseDistance {
  using Attributes = PairwiseAttrs;
  static constexpr auto name = "pairwise_distance";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    Dense gaps = in[0];
    for_each_index(gaps.shape, [&](const Shape& i) { gaps.at(i) += a.epsilon - in[1].broadcast_at(i); });
    reduce_groups(gaps, {gaps.shape.rank() - 1}, out[0], [&](const std::vector<double>& v) { return norm_of(v, a.p); });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}, {{3, 5}}}, .attrs = PairwiseAttrs{2, 0.125}, .smooth_at_ties = false},
            {.inputs = {{{2, 3, 4}}, {{3, 1}}}, .attrs = PairwiseAttrs{1, 0.125, true}, .smooth_at_ties = false}};
  }
};

struct CdistAttrs {
  double p = 2;
  static constexpr auto fields = attr_list(attr("p", &CdistAttrs::p));
};

struct Cdist {
  using Attributes = CdistAttrs;
  static constexpr auto name = "cdist";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const int rank = out[0].shape.rank();
    for_each_index(out[0].shape, [&](const Shape& i) {
      std::vector<double> gap(static_cast<std::size_t>(in[0].shape[-1]));
      Shape x = i, y = i;
      y[rank - 2] = i[rank - 1];
      for (std::size_t m = 0; m < gap.size(); ++m) {
        x[rank - 1] = y[rank - 1] = static_cast<std::int64_t>(m);
        gap[m] = in[0].broadcast_at(x) - in[1].broadcast_at(y);
      }
      out[0].at(i) = norm_of(gap, a.p);
    });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    for (const double p : {2.0, 1.0, 0.0, kInfinity, 3.0})
      list.push_back({.inputs = {{{3, 4}}, {{2, 4}}}, .attrs = CdistAttrs{p}, .smooth_at_ties = false});
    list.push_back({.inputs = {{{2, 1, 3, 2}}, {{3, 2, 2}}}, .attrs = CdistAttrs{2}, .smooth_at_ties = false});
    list.push_back({.inputs = {{{0, 2}}, {{3, 2}}}, .attrs = CdistAttrs{2}});
    return list;
  }
};

const Added added = add<Norm, Stddev, Normalize, CosineSimilarity, Cdist, PairwiseDistance>();

}  // namespace
}  // namespace oracles::norms
