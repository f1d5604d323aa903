/// Random numbers of distributions other than the uniform and the normal one.
#include <cmath>

#include "ferrite/tensor/kernel/special.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/ops/detail/draws.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {

// ---- draws by inversion: integers, exponential, Laplace, Gumbel and truncated normal numbers --------------

namespace detail {

void check_key(std::string_view name, Inputs in, std::size_t first) {
  const std::size_t n = in.size() - first;
  if (n > 2) throw_shape(name, "takes a key and a counter, got " + std::to_string(n) + " operands");
  if (n == 2 && in[first].spec() != Spec{{2}, Dtype::i64})
    throw_shape(name, "the key must be i64[2], seed and stream, got " + in[first].spec().str());
  if (n > 0 && (in[in.size() - 1].dtype() != Dtype::i64 || in[in.size() - 1].numel() != 1))
    throw_shape(name, "the counter must be i64 of one element, got " + in[in.size() - 1].spec().str());
}

RandomKey key_of(Inputs in, std::size_t first, const KeyAttrs& attrs) {
  RandomKey key = attrs.key();
  if (in.size() == first + 2) {
    const RowMajor given(in[first]);
    key.seed = static_cast<std::uint64_t>(given->data<std::int64_t>()[0]);
    key.stream = static_cast<std::uint64_t>(given->data<std::int64_t>()[1]);
  }
  if (in.size() > first) key.call += static_cast<std::uint64_t>(in[in.size() - 1].item<std::int64_t>());
  return key;
}

std::uint64_t below(const std::array<std::uint32_t, 4>& words, std::uint64_t range) {
  // The product of 128 and 64 bits in pieces of 32.
  const std::uint64_t low = range & 0xFFFFFFFFU, high = range >> 32;
  std::uint64_t digits[6] = {};
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 2; ++j) {
      std::uint64_t carry = std::uint64_t{words[i]} * (j ? high : low);
      for (std::size_t k = i + j; carry != 0; ++k) {
        carry += digits[k];
        digits[k] = carry & 0xFFFFFFFFU;
        carry >>= 32;
      }
    }
  return digits[5] << 32 | digits[4];
}

namespace {

/// Constants of a draw of numbers: shape and dtype of the result, its key, and up to four parameters.
struct NumberAttrs : KeyAttrs {
  Shape shape{};
  Dtype dtype = Dtype::f32;
  double a = 0, b = 1, low = 0, high = 0;
  static constexpr auto fields = KeyAttrs::fields.with(
      attr("shape", &NumberAttrs::shape), attr("dtype", &NumberAttrs::dtype), attr("a", &NumberAttrs::a),
      attr("b", &NumberAttrs::b), attr("low", &NumberAttrs::low), attr("high", &NumberAttrs::high));
  NumberAttrs() = default;
  NumberAttrs(const RandomKey& key, const Shape& s, Dtype t, double first = 0, double second = 1, double least = 0,
              double most = 0)
      : KeyAttrs(KeyAttrs::of(key)), shape(s), dtype(t), a(first), b(second), low(least), high(most) {}
};

double normal_below(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }

struct Exponential {
  static constexpr auto name = "exponential", summary = "-ln u / a, u uniform in (0, 1)";
  static double value(double u, const NumberAttrs& n) { return -log_positive(u) / n.a; }
};
struct Laplace {
  static constexpr auto name = "laplace";
  static constexpr auto summary = "Laplace of mean a and scale b, by the inverse distribution function";
  static double value(double u, const NumberAttrs& n) {
    return u < 0.5 ? n.a + n.b * log_positive(2 * u) : n.a - n.b * log_positive(2 * (1 - u));
  }
};
struct Gumbel {
  static constexpr auto name = "gumbel", summary = "a - b ln(-ln u), u uniform in (0, 1)";
  static double value(double u, const NumberAttrs& n) { return n.a - n.b * log_positive(-log_positive(u)); }
};
struct Truncated {
  static constexpr auto name = "truncated_normal";
  static constexpr auto summary = "normal of mean a and deviation b between low and high, by inversion";
  static double value(double u, const NumberAttrs& n) {
    double from = (n.low - n.a) / n.b, to = (n.high - n.a) / n.b;
    const bool upper = from > 0;  // the mirror image has the digits
    if (upper) from = std::exchange(to, -from), from = -from;
    const double begin = normal_below(from), p = begin + u * (normal_below(to) - begin);
    const double x = p > 0 && p < 1 ? inverse_normal(p) : p > 0 ? to : from;
    return std::clamp(n.a + n.b * (upper ? -x : x), n.low, n.high);
  }
};

/// A draw by inversion.
template <class D>
struct Inverted {
  using Attributes = NumberAttrs;
  static constexpr std::string_view name = D::name, onnx = "", stablehlo = "", summary = D::summary;
  static constexpr Effects effects{.draws = true};

  static Specs infer(Inputs in, const Attributes& a) {
    if (!is_float(a.dtype)) throw_dtype(name, "dtype must be a float, got " + std::string(name_of(a.dtype)));
    check_key(name, in, 0);
    return {{a.shape, a.dtype}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const auto run = [&](auto zero) {
      fill_drawn<decltype(zero)>(out[0], key_of(in, 0, a), [&](const std::array<std::uint32_t, 4>& w) {
        return D::value(open_unit(std::uint64_t{w[1]} << 32 | w[0]), a);
      });
    };
    if (a.dtype == Dtype::f32) {
      run(float{});
    } else {
      run(double{});
    }
  }
};

struct RandintAttrs : KeyAttrs {
  Shape shape{};
  Dtype dtype = Dtype::i64;
  std::int64_t low = 0, high = 1;
  static constexpr auto fields =
      KeyAttrs::fields.with(attr("shape", &RandintAttrs::shape), attr("dtype", &RandintAttrs::dtype),
                            attr("low", &RandintAttrs::low), attr("high", &RandintAttrs::high));
  RandintAttrs() = default;
  RandintAttrs(const RandomKey& key, const Shape& s, Dtype t, std::int64_t l, std::int64_t h)
      : KeyAttrs(KeyAttrs::of(key)), shape(s), dtype(t), low(l), high(h) {}
  std::uint64_t range() const { return static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low); }
};

struct Randint {
  using Attributes = RandintAttrs;
  static constexpr auto name = "randint", onnx = "", stablehlo = "";
  static constexpr auto summary = "integers in [low, high), from 128 bits each";
  static constexpr Effects effects{.draws = true};

  static Specs infer(Inputs in, const Attributes& a) {
    if (!is_integer(a.dtype)) throw_dtype(name, "dtype must be i64 or i32, got " + std::string(name_of(a.dtype)));
    if (a.low >= a.high)
      throw ValueError("randint: low must be below high, got " + std::to_string(a.low) + " and " +
                       std::to_string(a.high));
    if (a.dtype == Dtype::i32 && (a.low < INT32_MIN || a.high - 1 > INT32_MAX))
      throw ValueError("randint: i32 does not hold " + std::to_string(a.low) + ".." + std::to_string(a.high - 1));
    check_key(name, in, 0);
    return {{a.shape, a.dtype}};
  }
  static std::int64_t value(const std::array<std::uint32_t, 4>& words, const Attributes& a) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a.low) + below(words, a.range()));
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const auto one = [&](const std::array<std::uint32_t, 4>& words) { return value(words, a); };
    if (a.dtype == Dtype::i32) {
      fill_drawn<std::int32_t>(out[0], key_of(in, 0, a), one);
    } else {
      fill_drawn<std::int64_t>(out[0], key_of(in, 0, a), one);
    }
  }
};

Tensor drawn(const Primitive& op, const DrawKey& key, const Attrs& attrs) {
  Tensor out = call(op, DrawOperands({}, key), attrs);
  key.drawn();
  return out;
}

void check_scale(std::string_view where, double location, double scale) {
  if (!std::isfinite(location) || !std::isfinite(scale) || scale < 0)
    throw ValueError(std::string(where) + ": location and scale must be finite, and the scale not negative, got " +
                     Scalar(location).str() + " and " + Scalar(scale).str());
}

}  // namespace

}  // namespace detail

using detail::NumberAttrs;

DrawKey::DrawKey(const Generator& generator)
    : key_(generator.key.value()), counter_(generator.calls.value()), generator_(&generator) {}

void DrawKey::drawn() const {
  if (generator_) generator_->calls.assign(counter_ + 1);
}

Tensor randint(const Shape& shape, const DrawKey& key, std::int64_t low, std::int64_t high, Dtype dtype) {
  return detail::drawn(detail::structured<detail::Randint>, key,
                       detail::RandintAttrs(key.constant(), shape, dtype, low, high));
}

Tensor exponential(const Shape& shape, const DrawKey& key, double rate, Dtype dtype) {
  if (!(rate > 0) || !std::isfinite(rate))
    throw ValueError("exponential: the rate must be positive and finite, got " + Scalar(rate).str());
  return detail::drawn(detail::structured<detail::Inverted<detail::Exponential>>, key,
                       NumberAttrs(key.constant(), shape, dtype, rate));
}

Tensor laplace(const Shape& shape, const DrawKey& key, double mean, double scale, Dtype dtype) {
  detail::check_scale("laplace", mean, scale);
  return detail::drawn(detail::structured<detail::Inverted<detail::Laplace>>, key,
                       NumberAttrs(key.constant(), shape, dtype, mean, scale));
}

Tensor gumbel(const Shape& shape, const DrawKey& key, double location, double scale, Dtype dtype) {
  detail::check_scale("gumbel", location, scale);
  return detail::drawn(detail::structured<detail::Inverted<detail::Gumbel>>, key,
                       NumberAttrs(key.constant(), shape, dtype, location, scale));
}

Tensor truncated_normal(const Shape& shape, const DrawKey& key, const TruncatedNormal& from, Dtype dtype) {
  detail::check_scale("truncated_normal", from.mean, from.deviation);
  if (from.deviation == 0 || !(from.low < from.high))
    throw ValueError("truncated_normal: the deviation must be positive, and low below high, got " +
                     Scalar(from.deviation).str() + ", " + Scalar(from.low).str() + " and " + Scalar(from.high).str());
  return detail::drawn(detail::structured<detail::Inverted<detail::Truncated>>, key,
                       NumberAttrs(key.constant(), shape, dtype, from.mean, from.deviation, from.low, from.high));
}

Tensor randint(const Shape& shape, const RandomKey& key, std::int64_t low, std::int64_t high, Dtype dtype) {
  return randint(shape, DrawKey(key), low, high, dtype);
}
Tensor exponential(const Shape& shape, const RandomKey& key, double rate, Dtype dtype) {
  return exponential(shape, DrawKey(key), rate, dtype);
}
Tensor laplace(const Shape& shape, const RandomKey& key, double mean, double scale, Dtype dtype) {
  return laplace(shape, DrawKey(key), mean, scale, dtype);
}
Tensor gumbel(const Shape& shape, const RandomKey& key, double location, double scale, Dtype dtype) {
  return gumbel(shape, DrawKey(key), location, scale, dtype);
}
Tensor truncated_normal(const Shape& shape, const RandomKey& key, const TruncatedNormal& from, Dtype dtype) {
  return truncated_normal(shape, DrawKey(key), from, dtype);
}

// ---- gamma, beta and Poisson numbers, by rejection: their parameters are tensors --------------------------

namespace detail {
namespace {

struct LaneAttrs : KeyAttrs {
  std::int64_t lane = 0;  ///< number of the draw, of several with one key
  static constexpr auto fields = KeyAttrs::fields.with(attr("lane", &LaneAttrs::lane));
  LaneAttrs() = default;
  LaneAttrs(const RandomKey& key, std::int64_t which) : KeyAttrs(KeyAttrs::of(key)), lane(which) {}
};

/// Most attempts of a draw, each with another stream of the same element; that many never fail.
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

/// Returns a gamma number (Marsaglia and Tsang 2000); for a below 1, one of concentration a + 1 times u^(1/a).
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

/// Returns a Poisson number by inversion, starting at 0.
double small_poisson(double rate, double u) {
  double k = 0, p = std::exp(-rate), total = p;
  while (u > total && k < 1000) {
    p *= rate / ++k;
    total += p;
  }
  return k;
}

/// Returns a Poisson number by Hormann's PTRS (1993).
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
    // Streams beyond the attempts of each.
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

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family draw_family() {
  static constexpr const Primitive* list[] = {&structured<Inverted<Exponential>>,
                                              &structured<Inverted<Laplace>>,
                                              &structured<Inverted<Gumbel>>,
                                              &structured<Inverted<Truncated>>,
                                              &structured<Randint>,
                                              &structured<DrawnEach<GammaDraw>>,
                                              &structured<DrawnEach<PoissonDraw>>,
                                              &structured<Beta>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
