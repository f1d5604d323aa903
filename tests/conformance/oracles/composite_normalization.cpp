// Oracles and samples of tensor/ops/normalization.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/helpers.h"
#include "ferrite/tensor/ops/detail/normalization.h"

namespace oracles::composite_normalization {
namespace {

void normalise(std::vector<double>& v, double centre, double epsilon) {
  double spread = 0;
  for (const double x : v) spread += (x - centre) * (x - centre);
  for (double& x : v) x = (x - centre) / std::sqrt(spread / static_cast<double>(v.size()) + epsilon);
}

double mean_of(const std::vector<double>& v) {
  double total = 0;
  for (const double x : v) total += x;
  return total / static_cast<double>(v.size());
}

struct EpsilonAttrs {
  double epsilon = 1e-5;
  static constexpr auto fields = attr_list(attr("epsilon", &EpsilonAttrs::epsilon));
};

struct BatchNorm {
  using Attributes = EpsilonAttrs;
  static constexpr auto name = "batch_norm";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(in[0].shape, [&](const Shape& i) {
      out[0].at(i) = (in[0].at(i) - in[1].at({i[1]})) / std::sqrt(in[2].at({i[1]}) + a.epsilon);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 4}}, {{3}}, {{3}}}, .attrs = EpsilonAttrs{}, .range = {0.5, 2}},
            {.inputs = {{{4, 2}}, {{2}}, {{2}}}, .attrs = EpsilonAttrs{0.5}, .range = {0.5, 2}},
            {.inputs = {{{0, 2, 3}}, {{2}}, {{2}}}, .attrs = EpsilonAttrs{}, .range = {0.5, 2}}};
  }
};

struct GroupAttrs {
  std::int64_t groups = 1;
  double epsilon = 1e-5;
  static constexpr auto fields = attr_list(attr("groups", &GroupAttrs::groups), attr("epsilon", &GroupAttrs::epsilon));
};

struct GroupNorm {
  using Attributes = GroupAttrs;
  static constexpr auto name = "group_norm";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const Shape& s = in[0].shape;
    const auto each = static_cast<std::size_t>(s[0] == 0 ? 0 : s.numel() / (s[0] * a.groups));
    for (std::size_t at = 0; each > 0 && at < in[0].values.size(); at += each) {
      const auto begin = in[0].values.begin() + static_cast<std::ptrdiff_t>(at);
      std::vector<double> v(begin, begin + static_cast<std::ptrdiff_t>(each));
      normalise(v, mean_of(v), a.epsilon);
      std::copy(v.begin(), v.end(), out[0].values.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  static std::vector<Sample> samples() {
    // Near equal elements an epsilon of 1e-5 bends too sharply for a difference quotient.
    return {{.inputs = {{{2, 6, 3}}}, .attrs = GroupAttrs{3}, .smooth_at_ties = false},
            {.inputs = {{{3, 4}}}, .attrs = GroupAttrs{2, 0.1}},
            {.inputs = {{{2, 2, 2, 3}}}, .attrs = GroupAttrs{1, 0.1}},
            {.inputs = {{{0, 4, 3}}}, .attrs = GroupAttrs{2}}};
  }
};

struct RmsAttrs {
  int axes = 1;
  double epsilon = 1e-5;
  static constexpr auto fields = attr_list(attr("axes", &RmsAttrs::axes), attr("epsilon", &RmsAttrs::epsilon));
};

struct RmsNorm {
  using Attributes = RmsAttrs;
  static constexpr auto name = "rms_norm";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_groups(in[0], last_axes(in[0].shape.rank(), a.axes), out[0], [&](std::vector<double>& v) {
      double squares = 0;
      for (const double x : v) squares += x * x;
      for (double& x : v) x /= std::sqrt(squares / static_cast<double>(v.size()) + a.epsilon);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .attrs = RmsAttrs{}, .smooth_at_ties = false},
            {.inputs = {{{2, 3, 4}}}, .attrs = RmsAttrs{2, 0.1}},
            {.inputs = {{{0, 3}}}, .attrs = RmsAttrs{}}};
  }
};

struct LocalResponseAttrs {
  std::int64_t size = 1;
  double alpha = 1e-4, beta = 0.75, k = 1;
  static constexpr auto fields =
      attr_list(attr("size", &LocalResponseAttrs::size), attr("alpha", &LocalResponseAttrs::alpha),
                attr("beta", &LocalResponseAttrs::beta), attr("k", &LocalResponseAttrs::k));
};

struct LocalResponseNorm {
  using Attributes = LocalResponseAttrs;
  static constexpr auto name = "local_response_norm";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(in[0].shape, [&](const Shape& i) {
      double squares = 0;
      for (std::int64_t c = i[1] - a.size / 2; c <= i[1] + (a.size - 1) / 2; ++c) {
        if (c < 0 || c >= in[0].shape[1]) continue;
        Shape at = i;
        at[1] = c;
        squares += in[0].at(at) * in[0].at(at);
      }
      out[0].at(i) = in[0].at(i) / std::pow(a.k + a.alpha * squares / static_cast<double>(a.size), a.beta);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 5, 3}}}, .attrs = LocalResponseAttrs{3, 0.5, 0.75, 1}},
            {.inputs = {{{1, 4}}}, .attrs = LocalResponseAttrs{4, 1, 0.5, 2}},
            {.inputs = {{{2, 3, 1, 2}}}, .attrs = LocalResponseAttrs{}},
            {.inputs = {{{0, 3, 2}}}, .attrs = LocalResponseAttrs{2}}};
  }
};

const Added added = add<BatchNorm, GroupNorm, RmsNorm, LocalResponseNorm>();

}  // namespace
}  // namespace oracles::composite_normalization
