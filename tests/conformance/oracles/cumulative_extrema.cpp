// Oracles and samples of tensor/ops/cumulative.cpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "conformance/oracles/helpers.h"
#include "ferrite/tensor/along_axis.h"
#include "ferrite/tensor/ops/detail/index.h"

namespace oracles::cumulative_extrema {
namespace {

/// Returns whether a new element replaces the best so far: it is as good, or NaN. A NaN stays until the next one.
template <bool Largest, class T>
bool takes_over(T x, T best) {
  return (Largest ? x >= best : x <= best) || x != x;
}

template <bool Largest>
struct CumulativeExtremum {
  using Attributes = AxisAttrs;
  static constexpr auto name = Largest ? "cummax" : "cummin";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const auto run = [&](bool values) {
      return [values](const std::vector<double>& v) {
        std::vector<double> y(v.size());
        std::size_t best = 0;
        for (std::size_t k = 0; k < v.size(); ++k) {
          if (takes_over<Largest>(v[k], v[best])) best = k;
          y[k] = values ? v[best] : static_cast<double>(best);
        }
        return y;
      };
    };
    oracle_lines(in[0], attrs.axis, false, out[0], run(true));
    oracle_lines(in[0], attrs.axis, false, out[1], run(false));
  }
  static std::vector<Sample> samples() {
    const auto along = [](int axis) { return AxisAttrs{axis}; };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    std::vector<Sample> list = {
        {.inputs = {{{3, 6}}}, .attrs = along(1)},
        {.inputs = {{{5, 3}}}, .attrs = along(0)},
        {.inputs = {{{2, 4, 3}}}, .attrs = along(1)},
        {.inputs = {{{3, 0}}}, .attrs = along(1)},
        {.inputs = {{{0, 3}}}, .attrs = along(1)},
        {.inputs = {{{2, 5}}}, .attrs = along(1), .values = {1, nan, 3, nan, 0, 2, 2, 1, 1, 3}, .smooth = false},
        {.inputs = {{{7}, Dtype::i64}}, .attrs = along(0), .indices = {2, 5, 5, 1}}};
    for (Sample& s : list) s.smooth_at_ties = false;
    return list;
  }
};

struct LogCumSumExp {
  using Attributes = RunningAttrs;
  static constexpr auto name = "logcumsumexp";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    oracle_lines(in[0], attrs.axis, attrs.reverse, out[0], [](const std::vector<double>& v) {
      std::vector<double> y;
      for (std::size_t k = 0; k < v.size(); ++k) {
        double high = v[0], total = 0;
        for (std::size_t j = 0; j <= k; ++j) high = std::max(high, v[j]);
        for (std::size_t j = 0; j <= k; ++j) total += std::exp(v[j] - (std::isinf(high) ? 0 : high));
        y.push_back(std::isinf(high) ? high : high + std::log(total));
      }
      return y;
    });
  }
  static std::vector<Sample> samples() {
    const auto along = [](int axis) { return RunningAttrs{axis, false}; };
    const double inf = std::numeric_limits<double>::infinity();
    return {
        {.inputs = {{{3, 6}}}, .attrs = along(1)},
        {.inputs = {{{5, 3}}}, .attrs = along(0)},
        {.inputs = {{{2, 4, 3}}}, .attrs = along(1)},
        {.inputs = {{{3, 0}}}, .attrs = along(1)},
        {.inputs = {{{2, 6}}}, .attrs = along(1), .range = {-800, 800}, .smooth = false},
        {.inputs = {{{3, 3}}}, .attrs = along(1), .values = {-inf, -inf, 1, 2, -inf, inf, 0, inf, 1}, .smooth = false}};
  }
};

const Added added = add<CumulativeExtremum<true>, CumulativeExtremum<false>, LogCumSumExp>();

}  // namespace
}  // namespace oracles::cumulative_extrema
