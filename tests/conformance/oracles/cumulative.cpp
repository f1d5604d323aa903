// Oracles and samples of tensor/ops/cumulative.cpp.
#include <vector>

#include "conformance/oracles/helpers.h"
#include "ferrite/tensor/along_axis.h"

namespace oracles::cumulative {
namespace {

RunningAttrs along(int axis, bool reverse = false) { return {axis, reverse}; }

/// Returns corner cases of running functions: both ends, inner axes, empty axes, one element, blocks of eight and more.
std::vector<Sample> running_samples() {
  return {{.inputs = {{{3, 4}}}, .attrs = along(1)},          {.inputs = {{{3, 4}}}, .attrs = along(0)},
          {.inputs = {{{2, 3, 4}}}, .attrs = along(1, true)}, {.inputs = {{{2, 19}}}, .attrs = along(1)},
          {.inputs = {{{5, 19}}}, .attrs = along(1, true)},   {.inputs = {{{1}}}, .attrs = along(0)},
          {.inputs = {{{5, 0}}}, .attrs = along(1)},          {.inputs = {{{0, 3}}}, .attrs = along(1)},
          {.inputs = {{{2, 70}}}, .attrs = along(0, true)}};
}

std::vector<Sample> with_integers(std::vector<Sample> list) {
  list.push_back({.inputs = {{{4, 3}, Dtype::i64}}, .attrs = along(0), .indices = {3, 1, 2, 5, -4}});
  list.push_back({.inputs = {{{5}, Dtype::boolean}}, .attrs = along(0), .indices = {1, 0, 1}});
  list.push_back({.inputs = {{{5}, Dtype::i32}}, .attrs = along(0, true), .indices = {46341, 2, 100000, -1, 1}});
  return list;
}

struct Cumsum {
  using Attributes = RunningAttrs;
  static constexpr auto name = "cumsum";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    oracle_lines(in[0], attrs.axis, attrs.reverse, out[0], [](std::vector<double> v) {
      for (std::size_t k = 1; k < v.size(); ++k) v[k] += v[k - 1];
      return v;
    });
  }
  static std::vector<Sample> samples() { return with_integers(running_samples()); }
};

struct LinearRecurrence {
  using Attributes = RunningAttrs;
  static constexpr auto name = "linear_recurrence";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    std::size_t line = 0;
    std::vector<std::vector<double>> factors;
    oracle_lines(in[0], attrs.axis, attrs.reverse, out[0], [&](const std::vector<double>& v) {
      factors.push_back(v);
      return v;
    });
    oracle_lines(in[1], attrs.axis, attrs.reverse, out[0], [&](std::vector<double> v) {
      for (std::size_t k = 1; k < v.size(); ++k) v[k] += factors[line][k] * v[k - 1];
      ++line;
      return v;
    });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list = running_samples();
    for (Sample& s : list) s.inputs.push_back(s.inputs[0]);
    return list;
  }
};

struct Cumprod {
  using Attributes = RunningAttrs;
  static constexpr auto name = "cumprod";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    oracle_lines(in[0], attrs.axis, attrs.reverse, out[0], [](std::vector<double> v) {
      for (std::size_t k = 1; k < v.size(); ++k) v[k] *= v[k - 1];
      return v;
    });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list = with_integers(running_samples());
    const std::vector<double> zeros{2, 0, 3, 0, 0, 5, 1.5, 0, 1, 2, 4, 0.5};
    list.push_back({.inputs = {{{3, 4}}}, .attrs = along(1), .values = zeros});
    list.push_back({.inputs = {{{4, 3}}}, .attrs = along(0, true), .values = zeros});
    return list;
  }
};

const Added added = add<Cumsum, Cumprod, LinearRecurrence>();

}  // namespace
}  // namespace oracles::cumulative
