// Oracles and samples of tensor/ops/sorting.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/define.h"

namespace oracles::composite_counts {
namespace {

struct HistcAttrs {
  std::int64_t bins = 1;
  double low = 0, high = 0;
  static constexpr auto fields =
      attr_list(attr("bins", &HistcAttrs::bins), attr("low", &HistcAttrs::low), attr("high", &HistcAttrs::high));
};

struct Histc {
  using Attributes = HistcAttrs;
  static constexpr auto name = "histc";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    double low = a.low, high = a.high;
    if (low == 0 && high == 0) {
      low = INFINITY;
      high = -INFINITY;
      for (const double x : in[0].values)
        if (!std::isnan(x)) low = std::min(low, x), high = std::max(high, x);
    }
    if (low == high) low -= 1, high += 1;
    const auto bins = static_cast<double>(a.bins);
    for (const double x : in[0].values)
      if (x >= low && x <= high)
        out[0].values[static_cast<std::size_t>(std::min(std::floor((x - low) * bins / (high - low)), bins - 1))] += 1;
  }
  static std::vector<Sample> samples() {
    const std::vector<double> v{0.5, -1.5, 2, 7, 3.25, -4, 0.25, 1, std::nan(""), 0};
    std::vector<Sample> list = {{.inputs = {{{2, 5}}}, .attrs = HistcAttrs{4, -2, 2}, .values = v},
                                {.inputs = {{{10}}}, .attrs = HistcAttrs{3, 0, 0}, .values = v},
                                {.inputs = {{{3}}}, .attrs = HistcAttrs{2, 0, 0}, .values = {2}},
                                {.inputs = {{{0}}}, .attrs = HistcAttrs{3, 0, 1}}};
    for (Sample& s : list) s.smooth = false;
    return list;
  }
};

struct BincountAttrs {
  std::int64_t size = 0;
  static constexpr auto fields = attr_list(attr("size", &BincountAttrs::size));
};

struct Bincount {
  using Attributes = BincountAttrs;
  static constexpr auto name = "bincount";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes&) {
    for (std::size_t i = 0; i < in[0].values.size(); ++i)
      out[0].values[static_cast<std::size_t>(in[0].values[i])] += in.size() > 1 ? in[1].values[i] : 1;
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{6}, Dtype::i64}}, .attrs = BincountAttrs{5}, .indices = {0, 3, 3, 1}},
            {.inputs = {{{6}, Dtype::i64}, {{6}}}, .attrs = BincountAttrs{4}, .indices = {0, 3, 3, 1}},
            {.inputs = {{{0}, Dtype::i64}}, .attrs = BincountAttrs{2}, .indices = {0}}};
  }
};

const Added added = add<Histc, Bincount>();

}  // namespace
}  // namespace oracles::composite_counts
