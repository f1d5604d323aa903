// Oracles and samples of tensor/ops/reductions.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/helpers.h"

namespace oracles::counts {
namespace {

std::vector<Sample> all_dtypes() {
  std::vector<Sample> list = {
      {.inputs = {{{3, 5}}}, .attrs = ReductionAttrs{{1}}, .values = {0, 1, 0, -0.0, 2, 0, 0, NAN}},
      {.inputs = {{{2, 3, 4}}}, .attrs = ReductionAttrs{{0, 2}, true}},
      {.inputs = {{{}}}, .attrs = ReductionAttrs{}},
      {.inputs = {{{2, 0}}}, .attrs = ReductionAttrs{{1}}}};
  for (const Dtype t : kDtypes)
    if (!is_float(t) && !is_storage_only(t))
      list.push_back({.inputs = {{{3, 4}, t}}, .attrs = ReductionAttrs{{0}}, .indices = {1, 0, 0, 1, 1, 0, 1, 0, 0}});
  return list;
}

struct CountNonzero {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "count_nonzero";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], [](const std::vector<double>& v) {
      return static_cast<double>(std::count_if(v.begin(), v.end(), [](double x) { return x != 0; }));
    });
  }
  static std::vector<Sample> samples() { return all_dtypes(); }
};

struct Any {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "any";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], [](const std::vector<double>& v) {
      return std::any_of(v.begin(), v.end(), [](double x) { return x != 0; });
    });
  }
  static std::vector<Sample> samples() { return all_dtypes(); }
};

struct All {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "all";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], [](const std::vector<double>& v) {
      return std::all_of(v.begin(), v.end(), [](double x) { return x != 0; });
    });
  }
  static std::vector<Sample> samples() { return all_dtypes(); }
};

std::vector<Sample> with_nans() {
  return {{.inputs = {{{3, 5}}}, .attrs = ReductionAttrs{{1}}},
          {.inputs = {{{2, 3, 4}}}, .attrs = ReductionAttrs{{0, 2}, true}},
          {.inputs = {{{3, 3}}},
           .attrs = ReductionAttrs{{1}},
           .values = {1, NAN, 2, NAN, NAN, NAN, 0, 3, -1},
           .smooth = false},
          {.inputs = {{{}}}, .attrs = ReductionAttrs{}},
          {.inputs = {{{2, 0}}}, .attrs = ReductionAttrs{{1}}}};
}

struct Nansum {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "nansum";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], [](const std::vector<double>& v) {
      double total = 0;
      for (const double x : v) total += std::isnan(x) ? 0 : x;
      return total;
    });
  }
  static std::vector<Sample> samples() { return with_nans(); }
};

struct Nanmean {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "nanmean";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    reduce_groups(in[0], a.axes, out[0], [](const std::vector<double>& v) {
      double total = 0, n = 0;
      for (const double x : v)
        if (!std::isnan(x)) total += x, ++n;
      return total / n;
    });
  }
  static std::vector<Sample> samples() { return with_nans(); }
};

struct Aminmax {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "aminmax";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const auto extreme = [&](Dense& to, double sign) {
      reduce_groups(in[0], a.axes, to, [&](const std::vector<double>& v) {
        double best = v[0];
        for (const double x : v)
          if (sign * x > sign * best || std::isnan(x)) best = x;
        return best;
      });
    };
    extreme(out[0], -1);
    extreme(out[1], 1);
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .attrs = ReductionAttrs{{1}}, .smooth_at_ties = false},
            {.inputs = {{{2, 3, 4}}}, .attrs = ReductionAttrs{{0, 2}, true}, .smooth_at_ties = false},
            {.inputs = {{{2, 3}, Dtype::i64}}, .attrs = ReductionAttrs{{0}}, .indices = {3, 1, 2, 3, 0}}};
  }
};

const Added added = add<CountNonzero, Any, All, Nansum, Nanmean, Aminmax>();

}  // namespace
}  // namespace oracles::counts
