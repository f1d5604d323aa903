// Oracles and samples of tensor/ops/pooling.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/pooling.h"

namespace oracles::pooling_sum {
namespace {

struct PoolSum {
  using Attributes = PoolAttrs;
  static constexpr auto name = "pool_sum";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_held(in[0].shape, out[0].shape, a,
              [&](const Shape& to, const Shape& from) { out[0].at(to) += in[0].at(from); });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 9}}}, .attrs = Attributes{{3}, {2}, {1}, {1}, {5}}},
            {.inputs = {{{1, 2, 5, 6}}}, .attrs = Attributes{{2, 3}, {1, 2}, {1, 0}, {1, 1}, {6, 2}}},
            {.inputs = {{{1, 2, 4, 4, 5}}}, .attrs = Attributes{{2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}, {2, 2, 3}}},
            {.inputs = {{{1, 2, 5, 7}}}, .attrs = Attributes{{1, 1}, {1, 1}, {0, 0}, {1, 1}, {3, 4}, true}},
            {.inputs = {{{0, 2, 4}}}, .attrs = Attributes{{2}, {2}, {0}, {1}, {2}}}};
  }
};

struct PoolSpread {
  using Attributes = PoolAttrs;
  static constexpr auto name = "pool_spread";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_held(out[0].shape, in[0].shape, a,
              [&](const Shape& to, const Shape& from) { out[0].at(from) += in[0].at(to); });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 5}}}, .attrs = Attributes{{3}, {2}, {1}, {1}, {5}, false, {9}}},
            {.inputs = {{{1, 2, 6, 2}}}, .attrs = Attributes{{2, 3}, {1, 2}, {1, 0}, {1, 1}, {6, 2}, false, {5, 6}}},
            {.inputs = {{{1, 2, 3, 4}}}, .attrs = Attributes{{1, 1}, {1, 1}, {0, 0}, {1, 1}, {3, 4}, true, {5, 7}}},
            {.inputs = {{{1, 2, 0}}}, .attrs = Attributes{{2}, {2}, {0}, {1}, {0}, false, {1}}}};
  }
};

/// Returns the divisor of the sum of each window along one axis.
std::vector<double> counts(std::int64_t n, std::size_t axis, const AveragePoolAttrs& a) {
  const auto i = static_cast<int>(axis);
  const PoolAxis windows{n, a.size[i], a.kernel[i], a.stride[i], a.before[i], 1, a.adaptive};
  std::vector<double> all;
  for (std::int64_t k = 0; k < a.size[i]; ++k) {
    const PoolWindow w = window_of(windows, k);
    const std::int64_t first = k * a.stride[i] - a.before[i];
    const std::int64_t padded = std::min(first + a.kernel[i], n + a.before[i]) - first;
    all.push_back(static_cast<double>(a.include_pad && !a.adaptive ? padded : w.last - w.first));
  }
  return all;
}

PoolAttrs windows_of(const AveragePoolAttrs& a) {
  return {a.kernel, a.stride, a.before, Shape::filled(a.size.rank(), 1), a.size, a.adaptive};
}

void average_oracle(const Dense& x, Dense& y, const AveragePoolAttrs& a, double norm) {
  each_held(x.shape, y.shape, windows_of(a), [&](const Shape& to, const Shape& from) {
    y.at(to) += norm == 1 ? x.at(from) : std::pow(x.at(from), norm);
  });
  for_each_index(y.shape, [&](const Shape& at) {
    double count = 1;
    for (int i = 0; i < a.size.rank(); ++i)
      count *= counts(x.shape[i + 2], static_cast<std::size_t>(i), a)[static_cast<std::size_t>(at[i + 2])];
    y.at(at) /= a.divisor != 0 ? static_cast<double>(a.divisor) : count;
  });
}

struct AvgPool {
  using Attributes = AveragePoolAttrs;
  static constexpr auto name = "avg_pool";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    average_oracle(in[0], out[0], a, 1);
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 9}}}, .attrs = Attributes{{3}, {2}, {1}, {5}}},
            {.inputs = {{{1, 2, 5, 6}}}, .attrs = Attributes{{2, 3}, {1, 2}, {1, 0}, {6, 2}, false, false}},
            {.inputs = {{{1, 2, 5, 6}}}, .attrs = Attributes{{2, 2}, {2, 2}, {0, 0}, {3, 3}, false, true, 3}},
            {.inputs = {{{1, 2, 5, 7}}}, .attrs = Attributes{{1, 1}, {1, 1}, {0, 0}, {3, 4}, true}}};
  }
};

/// The composition that PyTorch uses: powers, means, and the elements of a whole window times them.
struct LpPool {
  using Attributes = AveragePoolAttrs;
  static constexpr auto name = "lp_pool";
  static double elements(const Attributes& a) {
    double n = 1;
    for (const std::int64_t k : a.kernel) n *= static_cast<double>(k);
    return n;
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    average_oracle(in[0], out[0], a, a.norm);
    for (double& y : out[0].values) y = std::pow(y * elements(a), 1 / a.norm);
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 9}}}, .attrs = Attributes{{3}, {2}, {0}, {4}, false, true, 0, 2}, .range = {0.5, 2}},
            {.inputs = {{{1, 2, 5, 6}}},
             .attrs = Attributes{{2, 3}, {2, 2}, {0, 0}, {3, 3}, false, true, 0, 3},
             .range = {0.5, 2}}};
  }
};

const Added added = add<PoolSum, PoolSpread, AvgPool, LpPool>();

}  // namespace
}  // namespace oracles::pooling_sum
