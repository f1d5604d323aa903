// Oracles and samples of tensor/ops/reductions.cpp.
#include <cmath>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/along_axis.h"
#include "ferrite/tensor/ops/detail/prod_others.h"

namespace oracles::reductions {
namespace {

/// Calls f(index of the result, element) for every element, in order.
template <class F>
void each_reduced(const Dense& x, const ReductionAttrs& attrs, F&& f) {
  const Shape& axes = attrs.axes;
  const bool keepdim = attrs.keepdim;
  for_each_index(x.shape, [&](const Shape& i) {
    Shape to;
    for (int k = 0; k < i.rank(); ++k) {
      if (!is_reduced(axes, k)) {
        to.push_back(i[k]);
      } else if (keepdim) {
        to.push_back(0);
      }
    }
    f(to, x.at(i));
  });
}

std::vector<Sample> reduction_samples(bool with_empty) {
  const auto over = [](Shape axes, bool keepdim) { return ReductionAttrs{axes, keepdim}; };
  std::vector<Sample> list = {
      {.inputs = {{{3, 4}}}, .attrs = over({0}, false)},
      {.inputs = {{{3, 4}}}, .attrs = over({1}, true)},
      {.inputs = {{{2, 3, 4}}}, .attrs = over({0, 2}, false)},
      {.inputs = {{{2, 3, 4}}}, .attrs = over({0, 1, 2}, true)},
      {.inputs = {{{5, 1, 2}}}, .attrs = over({1}, false)},
      {.inputs = {{{}}}, .attrs = over({}, false)},
      {.inputs = {{{0, 3}}}, .attrs = over({1}, false)},
      {.inputs = {{{37, 3}}}, .attrs = over({0}, false)},
      {.inputs = {{{4, 3}, Dtype::i64}}, .attrs = over({0}, false), .indices = {3, 1, 2, 5, 4}}};
  if (with_empty) list.push_back({.inputs = {{{2, 0}}}, .attrs = over({1}, false)});
  return list;
}

struct Sum {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "sum";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    each_reduced(in[0], attrs, [&](const Shape& to, double x) { out[0].at(to) += x; });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list = reduction_samples(true);
    const ReductionAttrs all{{0}, false};
    list.push_back({.inputs = {{{5}, Dtype::boolean}}, .attrs = all, .indices = {1, 0, 1}});
    list.push_back({.inputs = {{{5}, Dtype::i32}}, .attrs = all, .indices = {2147483647, 1}});
    return list;
  }
};

struct Prod {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "prod";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    for (double& y : out[0].values) y = 1;
    each_reduced(in[0], attrs, [&](const Shape& to, double x) { out[0].at(to) *= x; });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list = reduction_samples(true);
    for (Sample& s : list) s.range = {0.5, 1.5};  // products of many terms stay near 1
    list.push_back({.inputs = {{{4, 3}}}, .attrs = list[1].attrs, .values = {2, 0, 3, 0, 0, 5, 0, 0, 0, 1, 2, 4}});
    list.push_back({.inputs = {{{2, 3, 2}}}, .attrs = list[2].attrs, .values = {2, 0, 3, 0.5, 0, 5, 1, 2, 1}});
    return list;
  }
};

std::vector<Sample> extremum_samples() {
  std::vector<Sample> list = reduction_samples(false);
  for (Sample& s : list) s.smooth_at_ties = false;
  return list;
}

struct Amax {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "amax";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    for (double& y : out[0].values) y = -INFINITY;
    each_reduced(in[0], attrs, [&](const Shape& to, double x) {
      double& y = out[0].at(to);
      if (x > y || std::isnan(x)) y = x;
    });
  }
  static std::vector<Sample> samples() { return extremum_samples(); }
};

struct Amin {
  using Attributes = ReductionAttrs;
  static constexpr auto name = "amin";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    for (double& y : out[0].values) y = INFINITY;
    each_reduced(in[0], attrs, [&](const Shape& to, double x) {
      double& y = out[0].at(to);
      if (x < y || std::isnan(x)) y = x;
    });
  }
  static std::vector<Sample> samples() { return extremum_samples(); }
};

template <class Better>
void arg_oracle(const Dense& x, Dense& out, const ArgAttrs& attrs, Better better) {
  const int axis = attrs.axis;
  const bool keepdim = attrs.keepdim;
  for_each_index(out.shape, [&](const Shape& i) {
    Shape from = i;
    if (!keepdim) from.insert(axis, 0);
    Shape best = from;
    for (std::int64_t k = 0; k < x.shape[axis]; ++k) {
      from[axis] = k;
      if (better(x.at(from), x.at(best)) || (std::isnan(x.at(from)) && !std::isnan(x.at(best)))) best = from;
    }
    out.at(i) = static_cast<double>(best[axis]);
  });
}

std::vector<Sample> arg_samples() {
  const auto along = [](int axis, bool keepdim) { return ArgAttrs{axis, keepdim}; };
  return {{.inputs = {{{3, 4}}}, .attrs = along(0, false)},
          {.inputs = {{{3, 4}}}, .attrs = along(1, true)},
          {.inputs = {{{7}, Dtype::i64}}, .attrs = along(0, false), .indices = {2, 5, 5, 1}},
          {.inputs = {{{0, 2}}}, .attrs = along(1, false)}};
}

struct Argmax {
  using Attributes = ArgAttrs;
  static constexpr auto name = "argmax";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    arg_oracle(in[0], out[0], attrs, [](double a, double b) { return a > b; });
  }
  static std::vector<Sample> samples() { return arg_samples(); }
};

struct Argmin {
  using Attributes = ArgAttrs;
  static constexpr auto name = "argmin";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    arg_oracle(in[0], out[0], attrs, [](double a, double b) { return a < b; });
  }
  static std::vector<Sample> samples() { return arg_samples(); }
};

const Added added = add<Sum, Prod, Amax, Amin, Argmax, Argmin>();

}  // namespace
}  // namespace oracles::reductions
