// Oracles and samples of tensor/ops/sorting.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/helpers.h"
#include "ferrite/tensor/ops/detail/index.h"
#include "ferrite/tensor/ops/detail/row_sorter.h"
#include "ferrite/tensor/sorting.h"

namespace oracles::composite_order {
namespace {

struct RankAttrs {
  int axis = 0;
  std::int64_t k = 1;
  bool keepdim = false;
  static constexpr auto fields =
      attr_list(attr("axis", &RankAttrs::axis), attr("k", &RankAttrs::k), attr("keepdim", &RankAttrs::keepdim));
};

bool is_less(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

/// Returns the index of the k-th smallest of a line, k from 1, by counting.
std::size_t index_of_rank(const std::vector<double>& v, std::int64_t k) {
  for (std::size_t i = 0; i < v.size(); ++i) {
    std::int64_t before = 0;
    for (std::size_t j = 0; j < v.size(); ++j) before += is_less(v[j], v[i]) || (j < i && !is_less(v[i], v[j]));
    if (before == k - 1) return i;
  }
  return 0;
}

template <class F>
void choice_oracle(const Dense& x, int axis, std::span<Dense> out, F&& index_of) {
  std::size_t next = 0;
  for_each_group(x, {axis}, [&](const Shape&, const std::vector<Shape>& members) {
    std::vector<double> v;
    for (const Shape& i : members) v.push_back(x.at(i));
    const std::size_t at = index_of(v);
    out[0].values[next] = v[at];
    out[1].values[next++] = static_cast<double>(at);
  });
}

struct KthValue {
  using Attributes = RankAttrs;
  static constexpr auto name = "kthvalue";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    choice_oracle(in[0], a.axis, out, [&](const std::vector<double>& v) { return index_of_rank(v, a.k); });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list = {
        {.inputs = {{{3, 7}}}, .attrs = RankAttrs{1, 3, false}},
        {.inputs = {{{5, 3}}}, .attrs = RankAttrs{0, 5, true}},
        {.inputs = {{{2, 80}}}, .attrs = RankAttrs{1, 33, false}},
        {.inputs = {{{0, 3}}}, .attrs = RankAttrs{1, 1, false}},
        {.inputs = {{{4}, Dtype::i64}}, .attrs = RankAttrs{0, 2, false}, .indices = {4, 1, 1, 7}}};
    for (Sample& s : list) s.smooth_at_ties = false;
    return list;
  }
};

struct Median {
  using Attributes = RankAttrs;  // k is ignored
  static constexpr auto name = "median";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    choice_oracle(in[0], a.axis, out, [](const std::vector<double>& v) {
      for (std::size_t i = 0; i < v.size(); ++i)
        if (std::isnan(v[i])) return i;
      return index_of_rank(v, (static_cast<std::int64_t>(v.size()) + 1) / 2);
    });
  }
  static std::vector<Sample> samples() {
    const double nan = std::nan("");
    std::vector<Sample> list = {
        {.inputs = {{{3, 7}}}, .attrs = RankAttrs{1, 1, false}},
        {.inputs = {{{4, 3}}}, .attrs = RankAttrs{0, 1, true}},
        {.inputs = {{{0, 3}}}, .attrs = RankAttrs{1, 1, false}},
        {.inputs = {{{3, 3}}},
         .attrs = RankAttrs{1, 1, false},
         .values = {1, nan, 0, 3, 2, 1, nan, 0, nan},
         .smooth = false},
        {.inputs = {{{4}, Dtype::i64}}, .attrs = RankAttrs{0, 1, false}, .indices = {4, 1, 1, 7}}};
    for (Sample& s : list) s.smooth_at_ties = false;
    return list;
  }
};

struct QuantileAttrs {
  int axis = 0;
  bool keepdim = false;
  std::int64_t interpolation = 0;  ///< number of a QuantileInterpolation
  static constexpr auto fields = attr_list(attr("axis", &QuantileAttrs::axis), attr("keepdim", &QuantileAttrs::keepdim),
                                           attr("interpolation", &QuantileAttrs::interpolation));
};

struct Quantile {
  using Attributes = QuantileAttrs;
  static constexpr auto name = "quantile";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const auto how = static_cast<QuantileInterpolation>(a.interpolation);
    const std::size_t count = in[1].values.size(), groups = out[0].values.size() / std::max<std::size_t>(count, 1);
    std::size_t group = 0;
    for_each_group(in[0], {a.axis}, [&](const Shape&, const std::vector<Shape>& members) {
      std::vector<double> v;
      for (const Shape& i : members) v.push_back(in[0].at(i));
      std::sort(v.begin(), v.end(), is_less);
      for (std::size_t k = 0; k < count; ++k) {
        const double rank = in[1].values[k] * static_cast<double>(v.size() - 1), low = std::floor(rank);
        const double lower = v[static_cast<std::size_t>(low)], higher = v[static_cast<std::size_t>(std::ceil(rank))];
        const double t = how == QuantileInterpolation::midpoint ? 0.5 : rank - low;
        double y = lower + t * (higher - lower);
        if (std::isinf(lower)) y = std::isinf(higher) && lower != higher ? std::nan("") : lower;
        if (std::isinf(higher) && !std::isinf(lower)) y = higher;
        if (how == QuantileInterpolation::lower) y = lower;
        if (how == QuantileInterpolation::higher) y = higher;
        if (how == QuantileInterpolation::nearest) y = v[static_cast<std::size_t>(std::nearbyint(rank))];
        out[0].values[k * groups + group] = std::isnan(v.back()) ? v.back() : y;
      }
      ++group;
    });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    // The operands x, then q: ranks between elements and on them.
    const std::vector<double> a{0.5, -1.5, 2, 7, 3.25, -4, 0.25, 1, 6, -2, 0.3, 0.55};
    const std::vector<double> corners{1, 1, 2, std::nan(""), 3, 0, 0, -1, 1, 0, 0.5, 1};
    for (std::int64_t how = 0; how < 5; ++how) {
      list.push_back({.inputs = {{{2, 5}}, {{2}}}, .attrs = QuantileAttrs{1, false, how}, .values = a});
      list.push_back(
          {.inputs = {{{3, 3}}, {{3}}}, .attrs = QuantileAttrs{0, true, how}, .values = corners, .smooth = false});
    }
    const std::vector<double> infinite{-INFINITY, -INFINITY, 1, INFINITY, 2, -INFINITY, 0, 0.25, 0.5, 0.875};
    for (const std::int64_t how : {0, 4})
      list.push_back(
          {.inputs = {{{2, 3}}, {{4}}}, .attrs = QuantileAttrs{1, false, how}, .values = infinite, .smooth = false});
    list.push_back({.inputs = {{{2, 5, 1}}, {{}}}, .attrs = QuantileAttrs{1, true, 0}, .values = a});
    list.push_back({.inputs = {{{0, 3}}, {{}}}, .attrs = QuantileAttrs{1, false, 0}, .values = {0.25}});
    return list;
  }
};

const Added added = add<KthValue, Median, Quantile>();

}  // namespace
}  // namespace oracles::composite_order
