/// Draws whose parameters are tensors: gamma, beta and Poisson numbers, by rejection.
#include <cmath>

#include "ferrite/tensor/kernel/special.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/ops/detail/draws.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {
namespace detail {
namespace {

struct LaneAttrs : KeyAttrs {
  std::int64_t lane = 0;  ///< of several draws with one key
  static constexpr auto fields = KeyAttrs::fields.with(attr("lane", &LaneAttrs::lane));
  LaneAttrs() = default;
  LaneAttrs(const RandomKey& key, std::int64_t which) : KeyAttrs(KeyAttrs::of(key)), lane(which) {}
};

/// Attempts of a draw go on with other streams of the same element; so many never fail.
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

/// Marsaglia and Tsang 2000; below 1, a number of concentration a + 1 times u^(1/a).
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

/// Inversion from 0 on.
double small_poisson(double rate, double u) {
  double k = 0, p = std::exp(-rate), total = p;
  while (u > total && k < 1000) {
    p *= rate / ++k;
    total += p;
  }
  return k;
}

/// Hormann 1993, PTRS.
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
  static constexpr auto name = "gamma", summary = "gamma of a concentration and rate 1 (Marsaglia and Tsang 2000)";
  static bool accepts(double a) { return a > 0 && std::isfinite(a); }
  static constexpr auto refused = "gamma: the concentration must be positive and finite, got ";
  static double value(double a, const RandomKey& key, std::uint64_t i) { return gamma_number(a, key, i); }
};

struct PoissonDraw {
  static constexpr auto name = "poisson", summary = "Poisson of a rate: by inversion, from 10 on by rejection (PTRS)";
  static bool accepts(double rate) { return rate >= 0 && std::isfinite(rate); }
  static constexpr auto refused = "poisson: the rate must be finite and must not be negative, got ";
  static double value(double rate, const RandomKey& key, std::uint64_t i) {
    return rate < 10 ? small_poisson(rate, open_unit(key, i)) : large_poisson(rate, key, i);
  }
};

/// A draw for every element of a parameter.
template <class D>
struct DrawnEach {
  using Attributes = LaneAttrs;
  static constexpr std::string_view name = D::name, onnx = "", stablehlo = "", summary = D::summary;
  static constexpr Effects effects{.throws = true, .draws = true, .allocates = true};

  static Specs infer(Inputs in, const Attributes&) {
    if (!is_float(in[0].dtype())) throw_dtype(name, "takes f32 or f64, got " + in[0].spec().str());
    check_key(name, in, 1);
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const RandomKey key = lane_of(key_of(in, 1, a), static_cast<std::uint64_t>(a.lane));
    const auto run = [&](auto zero) {
      using T = decltype(zero);
      const RowMajor parameter(in[0]);
      const T* const from = parameter->template data<T>();
      T* const to = Writer::data<T>(out[0]);
      const std::int64_t n = out[0].numel();
      for (std::int64_t i = 0; i < n; ++i)
        if (!D::accepts(static_cast<double>(from[i])))
          throw ValueError(D::refused + Scalar(static_cast<double>(from[i])).str());
      constexpr std::int64_t kChunk = 256;
      parallel_for((n + kChunk - 1) / kChunk, [&](std::int64_t c) {
        for (std::int64_t i = c * kChunk; i < std::min(n, (c + 1) * kChunk); ++i)
          to[i] = static_cast<T>(D::value(static_cast<double>(from[i]), key, static_cast<std::uint64_t>(i)));
      });
    };
    if (in[0].dtype() == Dtype::f32) {
      run(float{});
    } else {
      run(double{});
    }
  }
};

struct Beta {
  using Attributes = KeyAttrs;
  static constexpr auto name = "beta", onnx = "", stablehlo = "", summary = "X / (X + Y) of gamma numbers X and Y";
  static constexpr Effects effects{.throws = true, .draws = true, .allocates = true};

  static Specs infer(Inputs in, const Attributes&) {
    if (!is_float(in[0].dtype())) throw_dtype(name, "takes f32 or f64, got " + in[0].spec().str());
    if (in[0].spec() != in[1].spec())
      throw_shape(name, "concentrations differ: " + in[0].spec().str() + " and " + in[1].spec().str());
    check_key(name, in, 2);
    return {in[0].spec()};
  }
  static double value(double a, double b, const RandomKey& key, std::uint64_t i) {
    // Streams beyond the attempts of either.
    const double x = gamma_number(a, lane_of(key, 2 * kAttempts), i);
    const double both = x + gamma_number(b, lane_of(key, 4 * kAttempts), i);
    return both == 0 ? 0.5 : x / both;
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RandomKey key = key_of(in, 2, attrs);
    const auto run = [&](auto zero) {
      using T = decltype(zero);
      const RowMajor first(in[0]), second(in[1]);
      const T* const a = first->template data<T>();
      const T* const b = second->template data<T>();
      T* const to = Writer::data<T>(out[0]);
      for (std::int64_t i = 0; i < out[0].numel(); ++i)
        for (const T v : {a[i], b[i]})
          if (!GammaDraw::accepts(static_cast<double>(v)))
            throw ValueError("beta: concentrations must be positive and finite, got " +
                             Scalar(static_cast<double>(v)).str());
      for (std::int64_t i = 0; i < out[0].numel(); ++i)
        to[i] = static_cast<T>(
            value(static_cast<double>(a[i]), static_cast<double>(b[i]), key, static_cast<std::uint64_t>(i)));
    };
    if (in[0].dtype() == Dtype::f32) {
      run(float{});
    } else {
      run(double{});
    }
  }
};

template <class D>
Tensor draw_each(const Tensor& parameter, const DrawKey& key) {
  Tensor out = call(structured<DrawnEach<D>>, DrawOperands({&parameter}, key), LaneAttrs(key.constant(), 0));
  key.drawn();
  return out;
}

}  // namespace

Family rejection_family() {
  static constexpr const Primitive* list[] = {&structured<DrawnEach<GammaDraw>>, &structured<DrawnEach<PoissonDraw>>,
                                              &structured<Beta>};
  return list;
}

}  // namespace detail

Tensor gamma(const Tensor& concentration, const DrawKey& key) {
  return detail::draw_each<detail::GammaDraw>(concentration, key);
}
Tensor poisson(const Tensor& rate, const DrawKey& key) { return detail::draw_each<detail::PoissonDraw>(rate, key); }

Tensor beta(const Tensor& a, const Tensor& b, const DrawKey& key) {
  Tensor out = detail::call(detail::structured<detail::Beta>, detail::DrawOperands({&a, &b}, key),
                            detail::KeyAttrs::of(key.constant()));
  key.drawn();
  return out;
}

Tensor gamma(const Tensor& concentration, const RandomKey& key) { return gamma(concentration, DrawKey(key)); }
Tensor beta(const Tensor& a, const Tensor& b, const RandomKey& key) { return beta(a, b, DrawKey(key)); }
Tensor poisson(const Tensor& rate, const RandomKey& key) { return poisson(rate, DrawKey(key)); }

}  // namespace ferrite
