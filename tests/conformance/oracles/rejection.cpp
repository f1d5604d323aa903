// Oracles and samples of tensor/ops/sampling.cpp.
#include <cmath>
#include <vector>

#include "conformance/oracles/draws.h"
#include "ferrite/tensor/kernel/special.h"
#include "ferrite/tensor/ops.h"

namespace oracles::rejection {
namespace {

struct LaneAttrs : KeyAttrs {
  std::int64_t lane = 0;  ///< number of the draw, if several share a key
  static constexpr auto fields = KeyAttrs::fields.with(attr("lane", &LaneAttrs::lane));
  LaneAttrs() = default;
  LaneAttrs(const RandomKey& key, std::int64_t which) : KeyAttrs(KeyAttrs::of(key)), lane(which) {}
};

/// Number of attempts of a draw, each with another stream of the same element; that many never fail.
constexpr std::uint64_t kAttempts = 1000;

/// Two numbers in (0, 1) for an attempt.
struct Pair {
  Pair(const RandomKey& key, std::uint64_t i, std::uint64_t attempt) {
    const auto w = words_of(lane_of(key, attempt), i);
    first = open_unit(std::uint64_t{w[1]} << 32 | w[0]);
    second = open_unit(std::uint64_t{w[3]} << 32 | w[2]);
  }
  double first, second;
};

/// Draws by Marsaglia and Tsang 2000; for a below 1, a number of concentration a + 1 times u^(1/a).
double gamma_number(double a, const RandomKey& key, std::uint64_t i) {
  const double d = (a < 1 ? a + 1 : a) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  double v = 1;
  for (std::uint64_t attempt = 1; attempt < kAttempts; ++attempt) {
    const Pair u(key, i, attempt);
    const double x = inverse_normal(u.first);
    v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    if (log_positive(u.second) < 0.5 * x * x + d - d * v + d * log_positive(v)) break;
  }
  return a < 1 ? d * v * std::exp(log_positive(open_unit(key, i)) / a) : d * v;
}

/// Draws by inversion, counting from 0.
double small_poisson(double rate, double u) {
  double k = 0, p = std::exp(-rate), total = p;
  while (u > total && k < 1000) {
    p *= rate / ++k;
    total += p;
  }
  return k;
}

/// Draws by Hormann 1993, PTRS.
double large_poisson(double rate, const RandomKey& key, std::uint64_t i) {
  const double root = std::sqrt(rate), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  double k = 0;
  for (std::uint64_t attempt = 1; attempt < kAttempts; ++attempt) {
    const Pair pair(key, i, attempt);
    const double u = pair.first - 0.5, v = pair.second, us = 0.5 - std::fabs(u);
    k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) break;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v * inverse_alpha / (a / (us * us) + b)) <= k * std::log(rate) - rate - log_gamma_of(k + 1)) break;
  }
  return std::max(k, 0.0);
}

struct GammaDraw {
  static constexpr auto name = "gamma";
  static constexpr Range range{0.1, 5};
  static double value(double a, const RandomKey& key, std::uint64_t i) { return gamma_number(a, key, i); }
};

struct PoissonDraw {
  static constexpr auto name = "poisson";
  static constexpr Range range{0, 30};
  static double value(double rate, const RandomKey& key, std::uint64_t i) {
    return rate < 10 ? small_poisson(rate, open_unit(key, i)) : large_poisson(rate, key, i);
  }
};

/// The base of draws with one number for every element of a parameter.
template <class D>
struct DrawnEach {
  using Attributes = LaneAttrs;
  static constexpr std::string_view name = D::name;
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const RandomKey key = lane_of(key_of(in, 1, a), static_cast<std::uint64_t>(a.lane));
    for (std::size_t i = 0; i < out[0].values.size(); ++i) out[0].values[i] = D::value(in[0].values[i], key, i);
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 50}}}, .attrs = LaneAttrs({7, 11, 2}, 0), .range = D::range},
            {.inputs = {{{}}, {{2}, Dtype::i64}, {{}, Dtype::i64}},
             .attrs = LaneAttrs({}, 1),
             .range = D::range,
             .indices = {5, 3, 1}},
            {.inputs = {{{0}}}, .attrs = LaneAttrs({7, 11, 2}, 0), .range = D::range}};
  }
};

struct Beta {
  using Attributes = KeyAttrs;
  static constexpr auto name = "beta";
  static double value(double a, double b, const RandomKey& key, std::uint64_t i) {
    // Streams after the attempts of either.
    const double x = gamma_number(a, lane_of(key, 2 * kAttempts), i);
    const double both = x + gamma_number(b, lane_of(key, 4 * kAttempts), i);
    return both == 0 ? 0.5 : x / both;
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const RandomKey key = key_of(in, 2, a);
    for (std::size_t i = 0; i < out[0].values.size(); ++i)
      out[0].values[i] = value(in[0].values[i], in[1].values[i], key, i);
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}, {{3, 5}}}, .attrs = KeyAttrs{7, 11, 2}, .range = {0.5, 5}},
            {.inputs = {{{4}}, {{4}}, {{2}, Dtype::i64}, {{}, Dtype::i64}},
             .attrs = KeyAttrs{},
             .range = {0.5, 5},
             .indices = {5, 3, 1}}};
  }
};

const Added added = add<DrawnEach<GammaDraw>, DrawnEach<PoissonDraw>, Beta>();

}  // namespace
}  // namespace oracles::rejection
