// Oracles and samples of tensor/ops/sampling.cpp.
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "conformance/oracles/draws.h"

namespace oracles::draws {
namespace {

/// The shape and dtype of a result, its key, and up to four parameters.
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
  static constexpr auto name = "exponential";
  static double value(double u, const NumberAttrs& n) { return -log_positive(u) / n.a; }
  static constexpr double tried[] = {2, 1, 0, 0};
};
struct Laplace {
  static constexpr auto name = "laplace";
  static double value(double u, const NumberAttrs& n) {
    return u < 0.5 ? n.a + n.b * log_positive(2 * u) : n.a - n.b * log_positive(2 * (1 - u));
  }
  static constexpr double tried[] = {1, 2, 0, 0};
};
struct Gumbel {
  static constexpr auto name = "gumbel";
  static double value(double u, const NumberAttrs& n) { return n.a - n.b * log_positive(-log_positive(u)); }
  static constexpr double tried[] = {1, 2, 0, 0};
};
struct Truncated {
  static constexpr auto name = "truncated_normal";
  static double value(double u, const NumberAttrs& n) {
    double from = (n.low - n.a) / n.b, to = (n.high - n.a) / n.b;
    const bool upper = from > 0;  // the mirror image has more digits
    if (upper) from = std::exchange(to, -from), from = -from;
    const double begin = normal_below(from), p = begin + u * (normal_below(to) - begin);
    const double x = p > 0 && p < 1 ? inverse_normal(p) : p > 0 ? to : from;
    return std::clamp(n.a + n.b * (upper ? -x : x), n.low, n.high);
  }
  static constexpr double tried[] = {0.5, 2, -1, 3};
};

/// The base of draws by inversion.
template <class D>
struct Inverted {
  using Attributes = NumberAttrs;
  static constexpr std::string_view name = D::name;
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const RandomKey key = key_of(in, 0, a);
    for (std::size_t i = 0; i < out[0].values.size(); ++i) {
      const double v = D::value(open_unit(key, i), a);
      out[0].values[i] = a.dtype == Dtype::f32 ? static_cast<double>(static_cast<float>(v)) : v;
    }
  }
  static std::vector<Sample> samples() {
    const auto& t = D::tried;
    const auto of = [&](const Shape& s, Dtype d) { return NumberAttrs({7, 11, 2}, s, d, t[0], t[1], t[2], t[3]); };
    return {{.attrs = of({3, 5}, Dtype::f32)},
            {.inputs = {{{}, Dtype::i64}}, .attrs = of({70}, Dtype::f64), .indices = {5}},
            {.inputs = {{{2}, Dtype::i64}, {{}, Dtype::i64}}, .attrs = of({4}, Dtype::f32), .indices = {5, 3}},
            {.attrs = of({0}, Dtype::f32)}};
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
  static constexpr auto name = "randint";
  static std::int64_t value(const std::array<std::uint32_t, 4>& words, const Attributes& a) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a.low) + below(words, a.range()));
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const RandomKey key = key_of(in, 0, a);
    for (std::size_t i = 0; i < out[0].values.size(); ++i)
      out[0].values[i] = static_cast<double>(value(words_of(key, i), a));
  }
  static std::vector<Sample> samples() {
    return {{.attrs = RandintAttrs({7, 11, 2}, {3, 5}, Dtype::i64, -3, 4)},
            {.inputs = {{{2}, Dtype::i64}, {{1}, Dtype::i64}},
             .attrs = RandintAttrs({}, {70}, Dtype::i32, 0, 1 << 30),
             .indices = {5, 3}},
            {.attrs = RandintAttrs({7, 11, 2}, {0}, Dtype::i64, 0, 1)}};
  }
};

const Added added = add<Inverted<Exponential>, Inverted<Laplace>, Inverted<Gumbel>, Inverted<Truncated>, Randint>();

}  // namespace
}  // namespace oracles::draws
