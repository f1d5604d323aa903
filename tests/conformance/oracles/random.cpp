// Oracles and samples of tensor/ops/random.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/helpers.h"
#include "ferrite/tensor/ops/detail/draws.h"

namespace oracles::random {
namespace {

/// The constants of every draw.
struct DrawAttrs {
  Shape shape{};
  Dtype dtype = Dtype::f32;
  std::int64_t seed = 0, stream = 0, call = 0;
  static constexpr auto fields =
      attr_list(attr("shape", &DrawAttrs::shape), attr("dtype", &DrawAttrs::dtype), attr("seed", &DrawAttrs::seed),
                attr("stream", &DrawAttrs::stream), attr("call", &DrawAttrs::call));

  static DrawAttrs of(const Shape& shape, const RandomKey& key, Dtype dtype) {
    return {shape, dtype, static_cast<std::int64_t>(key.seed), static_cast<std::int64_t>(key.stream),
            static_cast<std::int64_t>(key.call)};
  }
};

/// The constants of a draw from an interval; for a normal distribution `low` and `high` are the mean and the deviation.
struct RandomAttrs : DrawAttrs {
  double low = 0, high = 1;
  static constexpr auto fields =
      DrawAttrs::fields.with(attr("low", &RandomAttrs::low), attr("high", &RandomAttrs::high));
};

struct BernoulliAttrs : DrawAttrs {
  double probability = 0.5;
  static constexpr auto fields = DrawAttrs::fields.with(attr("probability", &BernoulliAttrs::probability));

  /// Returns the constants of the uniform numbers that are compared with the probability.
  RandomAttrs uniform() const {
    RandomAttrs u{*this, 0, 1};
    u.dtype = Dtype::f64;
    return u;
  }
};

RandomKey key_of(const RandomAttrs& attrs) {
  return {static_cast<std::uint64_t>(attrs.seed), static_cast<std::uint64_t>(attrs.stream),
          static_cast<std::uint64_t>(attrs.call)};
}

/// Returns the key of an application: its operands replace seed and stream, and add to the call.
RandomKey key_of(std::span<const Dense> in, const RandomAttrs& attrs) {
  RandomKey key = key_of(attrs);
  if (in.size() == 2)
    key = {static_cast<std::uint64_t>(in[0].values[0]), static_cast<std::uint64_t>(in[0].values[1]), key.call};
  if (!in.empty()) key.call += static_cast<std::uint64_t>(in.back().values[0]);
  return key;
}

double unit(const RandomKey& key, std::uint64_t i) { return static_cast<double>(bits64(key, i) >> 11) * 0x1p-53; }

/// Returns a number in [0, 1) from 24 bits.
float unit_float(const RandomKey& key, std::uint64_t i) {
  return static_cast<float>(words_of(key, i)[0] >> 8) * 0x1p-24F;
}

template <class F>
void fill_oracle(Dense& out, F&& f) {
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    const double v = f(i);
    out.values[i] = out.dtype == Dtype::f32 ? static_cast<float>(v) : v;
  }
}

/// Keeps a number that rounding took to the upper bound, which draws exclude, below it.
template <class T>
double below_high(double v, double low, double high) {
  const T rounded = static_cast<T>(v), end = static_cast<T>(high);
  return static_cast<double>(high > low && rounded >= end ? std::nextafter(end, static_cast<T>(low)) : rounded);
}

struct Uniform {
  using Attributes = RandomAttrs;
  static constexpr auto name = "uniform";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const RandomKey key = key_of(in, attrs);
    fill_oracle(out[0], [&](std::uint64_t i) { return value(key, i, out[0].dtype, attrs); });
  }
  static std::vector<Sample> samples() {
    return {{.attrs = random_attrs({3, 5}, {7, 11, 2}, Dtype::f32, -1, 2)},
            {.inputs = {{{}, Dtype::i64}}, .attrs = random_attrs({4}, {7, 11, 2}, Dtype::f32, 0, 1), .indices = {5}},
            {.inputs = {{{2}, Dtype::i64}, {{}, Dtype::i64}},
             .attrs = random_attrs({4}, {7, 11, 2}, Dtype::f32, 0, 1),
             .indices = {5, 3}},
            {.attrs = random_attrs({150}, {7, 11, 2}, Dtype::f32, 0, 1)},
            {.attrs = random_attrs({150}, {7, 11, 2}, Dtype::f64, 0, 1)}};
  }
  static RandomAttrs random_attrs(const Shape& shape, const RandomKey& key, Dtype dtype, double low, double high) {
    return {DrawAttrs::of(shape, key, dtype), low, high};
  }
  static double value(const RandomKey& key, std::uint64_t i, Dtype dtype, const Attributes& attrs) {
    const double low = attrs.low, high = attrs.high;
    const double unit_value = dtype == Dtype::f64 ? unit(key, i) : static_cast<double>(unit_float(key, i));
    const double v = low + (high - low) * unit_value;
    return dtype == Dtype::f64 ? below_high<double>(v, low, high) : below_high<float>(v, low, high);
  }
};

struct Normal {
  using Attributes = RandomAttrs;
  static constexpr auto name = "normal";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const RandomKey key = key_of(in, attrs);
    fill_oracle(out[0], [&](std::uint64_t i) { return value(unit(key, i), attrs.low, attrs.high); });
  }
  static std::vector<Sample> samples() {
    return {{.attrs = Uniform::random_attrs({3, 5}, {7, 11, 2}, Dtype::f32, 0, 1)},
            {.inputs = {{{1}, Dtype::i64}},
             .attrs = Uniform::random_attrs({4}, {7, 11, 2}, Dtype::f32, 0, 1),
             .indices = {5}},
            {.inputs = {{{2}, Dtype::i64}, {{}, Dtype::i64}},
             .attrs = Uniform::random_attrs({4}, {7, 11, 2}, Dtype::f64, 0, 1),
             .indices = {5, 3}},
            {.attrs = Uniform::random_attrs({150}, {8, 11, 2}, Dtype::f64, -3, 2)}};
  }
  static double value(double unit, double mean, double deviation) {
    return mean + deviation * inverse_normal(std::min(unit + 0x1p-54, 1 - 0x1p-53));  // never at 0 or 1
  }
};

struct Bernoulli {
  using Attributes = BernoulliAttrs;
  static constexpr auto name = "bernoulli";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    Dense numbers(Spec{a.shape, Dtype::f64});
    Uniform::oracle(in, {&numbers, 1}, a.uniform());
    for (std::size_t i = 0; i < numbers.values.size(); ++i) out[0].values[i] = numbers.values[i] < a.probability;
  }
  static std::vector<Sample> samples() {
    return {{.attrs = BernoulliAttrs{DrawAttrs::of({40}, {7, 11, 2}, Dtype::f32), 0.3}},
            {.inputs = {{{2}, Dtype::i64}, {{}, Dtype::i64}},
             .attrs = BernoulliAttrs{DrawAttrs::of({3, 5}, {}, Dtype::boolean), 0.6},
             .indices = {5, 3}}};
  }
};

const Added added = add<Bernoulli, Uniform, Normal>();

}  // namespace
}  // namespace oracles::random
