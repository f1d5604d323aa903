// Draws: their distributions, by tests with fixed seeds and limits that a correct draw exceeds once in a million times;
// threads, compiled functions, generators; errors.
#include "ferrite/tensor/sampling.h"

#include <cmath>
#include <map>
#include <numbers>
#include <set>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;

namespace {

constexpr std::int64_t kMany = 20000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Returns Kolmogorov's statistic sqrt(n) sup |F_n - F|, which is above 2.7 once in a million times.
double kolmogorov(const Tensor& x, const std::function<double(double)>& distribution) {
  std::vector<double> v = support::doubles(x);
  std::sort(v.begin(), v.end());
  const auto n = static_cast<double>(v.size());
  double gap = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double f = distribution(v[i]), at = static_cast<double>(i);
    gap = std::max({gap, std::fabs(f - at / n), std::fabs(f - (at + 1) / n)});
  }
  return gap * std::sqrt(n);
}

/// Returns (chi^2 - d) / sqrt(2 d) of counts and expected counts, which is above 6.5 less than once in a million times
/// for d >= 4.
double chi_square(const std::vector<double>& counts, const std::vector<double>& expected) {
  double total = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    total += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  const double d = static_cast<double>(counts.size()) - 1;
  return (total - d) / std::sqrt(2 * d);
}

std::vector<double> counts_of(const Tensor& x, std::size_t n) {
  std::vector<double> counts(n, 0);
  for (const double v : support::doubles(x)) counts.at(static_cast<std::size_t>(v)) += 1;
  return counts;
}

double normal_below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

/// Returns the regularised lower incomplete gamma function, by its series.
double gamma_below(double a, double x) {
  if (x <= 0) return 0;
  double term = 1 / a, total = term;
  for (int k = 1; k < 2000 && term > total * 1e-17; ++k) total += term *= x / (a + k);
  return std::min(1.0, total * std::exp(-x + a * std::log(x) - std::lgamma(a)));
}

template <class E, class F>
void refuses(F&& f, const std::string& text) {
  BOOST_CHECK_EXCEPTION((void)f(), E, [&](const E& e) {
    BOOST_TEST(std::string(e.what()) == text);
    return true;
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sampling)

BOOST_AUTO_TEST_CASE(numbers_by_inversion) {
  for (const Dtype t : {Dtype::f32, Dtype::f64}) {
    const RandomKey key{3, 5, 1};
    BOOST_TEST(kolmogorov(exponential({kMany}, key, 2, t), [](double x) { return 1 - std::exp(-2 * x); }) < 2.7);
    const auto laplace_below = [](double x) {
      const double z = (x - 1) / 2;
      return z < 0 ? std::exp(z) / 2 : 1 - std::exp(-z) / 2;
    };
    BOOST_TEST(kolmogorov(laplace({kMany}, key, 1, 2, t), laplace_below) < 2.7);
    BOOST_TEST(kolmogorov(gumbel({kMany}, key, 1, 2, t), [](double x) { return std::exp(-std::exp(-(x - 1) / 2)); }) <
               2.7);
    for (const auto& [low, high] : {std::pair{-1.0, 0.5}, {2.0, kInfinity}, {6.0, 7.0}, {-kInfinity, -5.0}}) {
      const Tensor x = truncated_normal({kMany}, key, {.mean = 0.25, .deviation = 0.75, .low = low, .high = high}, t);
      // Uses the mirror image if the digits are at the upper end.
      const double sign = low > 0 ? -1 : 1, a = low > 0 ? -high : low, b = low > 0 ? -low : high;
      const auto below = [&](double v) { return normal_below((v - sign * 0.25) / 0.75); };
      const double begin = below(a), all = below(b) - begin;
      BOOST_TEST(kolmogorov(sign * x, [&](double v) { return (below(v) - begin) / all; }) < 2.7, low << ".." << high);
      for (const double v : support::doubles(x)) BOOST_TEST_REQUIRE((v >= low && v <= high));
    }
  }
}

BOOST_AUTO_TEST_CASE(integers) {
  const Tensor x = randint({kMany}, {.seed = 4}, -2, 5);
  BOOST_TEST(chi_square(counts_of(x + 2, 7), std::vector<double>(7, kMany / 7.0)) < 6.5);
  BOOST_TEST(randint({9}, {.seed = 4}, 7, 8, Dtype::i32).to_vector<std::int32_t>() == std::vector<std::int32_t>(9, 7),
             boost::test_tools::per_element());
  // The whole range of 64 bits: both halves, and every bit.
  const Tensor wide = randint({4096}, {.seed = 4}, INT64_MIN, INT64_MAX);
  std::uint64_t any = 0, every = ~std::uint64_t{0};
  for (const std::int64_t v : wide.to_vector<std::int64_t>())
    any |= static_cast<std::uint64_t>(v), every &= static_cast<std::uint64_t>(v);
  BOOST_TEST(any == ~std::uint64_t{0});
  BOOST_TEST(every == 0U);
}

BOOST_AUTO_TEST_CASE(gamma_and_beta) {
  for (const double a : {0.3, 1.0, 4.5, 60.0}) {
    const Tensor x = gamma(full({kMany}, a, Dtype::f64), {.seed = 6});
    BOOST_TEST(kolmogorov(x, [&](double v) { return gamma_below(a, v); }) < 2.7, "concentration " << a);
  }
  // Beta(2, 1) has the distribution function x^2, Beta(1, 3) 1 - (1 - x)^3, Beta(1/2, 1/2) the arc sine.
  const auto draw = [](double a, double b) {
    return beta(full({kMany}, a, Dtype::f64), full({kMany}, b, Dtype::f64), {.seed = 6});
  };
  BOOST_TEST(kolmogorov(draw(2, 1), [](double v) { return v * v; }) < 2.7);
  BOOST_TEST(kolmogorov(draw(1, 3), [](double v) { return 1 - std::pow(1 - v, 3); }) < 2.7);
  BOOST_TEST(kolmogorov(draw(0.5, 0.5), [](double v) { return 2 / std::numbers::pi * std::asin(std::sqrt(v)); }) < 2.7);
}

BOOST_AUTO_TEST_CASE(poisson_numbers) {
  for (const double rate : {0.5, 4.0, 9.9, 10.0, 35.0, 400.0}) {
    const Tensor x = poisson(full({kMany}, rate, Dtype::f64), {.seed = 8});
    // Classes have at least 20 expected numbers; values outside are added to the ends.
    std::vector<double> expected, counts;
    std::map<double, double> seen;
    for (const double v : support::doubles(x)) seen[v] += 1;
    double class_expected = 0, class_counts = 0, left = kMany;
    for (double k = 0; left > 40; ++k) {
      const double p = kMany * std::exp(k * std::log(rate) - rate - std::lgamma(k + 1));
      class_expected += p, class_counts += seen[k];
      if (class_expected < 20) continue;
      expected.push_back(class_expected), counts.push_back(class_counts);
      left -= class_expected, class_expected = class_counts = 0;
    }
    double drawn = 0;
    for (const double c : counts) drawn += c;
    expected.push_back(left), counts.push_back(kMany - drawn);
    BOOST_TEST(chi_square(counts, expected) < 6.5, "rate " << rate);
  }
  BOOST_TEST(identical(poisson(zeros({5}), {.seed = 1}), zeros({5})));
}

BOOST_AUTO_TEST_CASE(choices_by_weights) {
  const std::vector<double> w = {0.5, 0, 2, 1, 1.5, 3};
  const Tensor weights = Tensor::from(std::span<const double>(w), {6});
  std::vector<double> expected;
  for (const double v : w) expected.push_back(kMany * v / 8);
  const auto compare = [&](const Tensor& chosen) {
    std::vector<double> counts = counts_of(chosen, 6), wanted = expected;
    BOOST_TEST(counts[1] == 0);  // of weight 0
    counts.erase(counts.begin() + 1), wanted.erase(wanted.begin() + 1);
    BOOST_TEST(chi_square(counts, wanted) < 6.5);
  };
  compare(multinomial(weights, kMany, {.seed = 2}, true));
  compare(categorical(expand(log(weights), {kMany, 6}), {.seed = 2}));
  // The first of a draw without replacement has the same distribution, and the others are distinct.
  const Tensor without = multinomial(expand(weights, {kMany, 6}), 5, {.seed = 2});
  compare(select(without, 1, 0));
  const std::vector<double> all = support::doubles(without);
  for (std::size_t r = 0; r < all.size(); r += 5)
    BOOST_TEST_REQUIRE(std::set<double>(all.begin() + static_cast<std::ptrdiff_t>(r),
                                        all.begin() + static_cast<std::ptrdiff_t>(r + 5)) ==
                       (std::set<double>{0, 2, 3, 4, 5}));
  // The second depends on the first: P(second = 5 | first = 2) = 3 / 6.
  double first = 0, then = 0;
  for (std::size_t r = 0; r < all.size(); r += 5) {
    first += all[r] == 2 ? 1 : 0;
    then += all[r] == 2 && all[r + 1] == 5 ? 1 : 0;
  }
  BOOST_TEST(std::fabs(then - first / 2) < 4.9 * std::sqrt(first / 4));
}

BOOST_AUTO_TEST_CASE(sampling_of_logits) {
  const Tensor logits = log(Tensor::from({0.1, 0.4, 0.2, 0.3}));
  const double none = -kInfinity;
  const auto kept = [&](SamplingOptions o) {
    const Tensor y = filter_logits(logits, o);
    return support::within(softmax(y), softmax(where(gt(y, none), logits, none)), 1e-12)
               ? cast(gt(y, none), Dtype::i64).to_vector<std::int64_t>()
               : std::vector<std::int64_t>{};
  };
  using V = std::vector<std::int64_t>;
  BOOST_TEST((kept({}) == V{1, 1, 1, 1}));
  BOOST_TEST((kept({.top_k = 2}) == V{0, 1, 0, 1}));
  BOOST_TEST((kept({.top_k = 9}) == V{1, 1, 1, 1}));
  BOOST_TEST((kept({.top_p = 0.35}) == V{0, 1, 0, 0}));
  BOOST_TEST((kept({.top_p = 0.45}) == V{0, 1, 0, 1}));
  BOOST_TEST((kept({.top_p = 0.75}) == V{0, 1, 1, 1}));
  BOOST_TEST((kept({.top_p = 0}) == V{0, 1, 0, 0}));
  // 0.4 / 0.7 of two classes reaches 0.5.
  BOOST_TEST((kept({.top_k = 2, .top_p = 0.5}) == V{0, 1, 0, 0}));
  BOOST_TEST(support::within(filter_logits(logits, {.temperature = 0.5}), logits * 2, 1e-15));
  BOOST_TEST(
      identical(sample_logits(expand(logits, {50, 4}), {.seed = 3}, {.temperature = 0}), full({50}, 1, Dtype::i64)));
  const std::vector<double> counts =
      counts_of(sample_logits(expand(logits, {kMany, 4}), {.seed = 3}, {.temperature = 0.5, .top_k = 3}), 4);
  BOOST_TEST(counts[0] == 0);
  BOOST_TEST(std::fabs(counts[1] / kMany - 16 / 29.0) < 4.9 * std::sqrt(0.25 / kMany));
  BOOST_TEST(std::fabs(counts[2] / kMany - 4 / 29.0) < 4.9 * std::sqrt(0.25 / kMany));
}

BOOST_AUTO_TEST_CASE(orders) {
  BOOST_TEST(identical(permutation(50, DrawKey(RandomKey{3, 4, 5})), permutation(50, RandomKey{3, 4, 5})));
  const Tensor x = reshape(arange(24), {2, 3, 4});
  const Tensor y = shuffle(x, {.seed = 9}, 2);
  BOOST_TEST(identical(y, index_select(x, 2, permutation(4, RandomKey{.seed = 9}))));
}

/// Returns the draws of every function with one key, as a list.
Tensors all_draws(const DrawKey& key) {
  const Tensor p = linspace(0.5, 30, 1500);
  const Tensor weights = reshape(p, {300, 5});
  return {randint({1500}, key, 0, 99),   exponential({1500}, key),
          laplace({1500}, key),          gumbel({1500}, key),
          truncated_normal({1500}, key), gamma(p, key),
          beta(p, p + 1, key),           poisson(p, key),
          multinomial(weights, 3, key),  multinomial(weights, 7, key, true),
          categorical(weights, key),     sample_logits(weights, key, {.top_p = 0.9}),
          permutation(1500, key),        shuffle(p, key)};
}

BOOST_AUTO_TEST_CASE(the_same_for_any_number_of_threads_and_by_any_kind_of_key) {
  const RandomKey key{3, 5, 7};
  const Tensors wanted = all_draws(key);
  set_threads(3);
  const Tensors threaded = all_draws(key);
  set_threads(1);
  const Tensor pair = Tensor::from({std::int64_t{3}, std::int64_t{5}}, {2});
  const Tensors counted = all_draws({RandomKey{3, 5, 6}, full({}, 1, Dtype::i64)});
  const Tensors given = all_draws({pair, full({}, 7, Dtype::i64)});
  const Tensors others = all_draws(RandomKey{3, 5, 8});
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    BOOST_TEST(identical(threaded[i], wanted[i]), "draw " << i);
    BOOST_TEST(identical(counted[i], wanted[i]), "draw " << i);
    BOOST_TEST(identical(given[i], wanted[i]), "draw " << i);
    BOOST_TEST(!identical(others[i], wanted[i]), "draw " << i);
  }
}

BOOST_AUTO_TEST_CASE(a_generator_moves_on_with_every_draw_that_was_made) {
  const Generator g(5);
  const Tensor first = exponential({4}, g), second = exponential({4}, g);
  BOOST_TEST(!identical(first, second));
  BOOST_CHECK_THROW((void)exponential({4}, g, -1), ValueError);
  BOOST_CHECK_THROW((void)poisson(-ones({2}), g), ValueError);
  BOOST_TEST(g.calls.value().item<std::int64_t>() == 2);
  g.calls.assign(full({}, 0, Dtype::i64));
  BOOST_TEST(identical(exponential({4}, g), first));
}

BOOST_AUTO_TEST_CASE(wrong_calls) {
  const RandomKey key{.seed = 1};
  refuses<ValueError>([&] { return randint({2}, key, 3, 3); }, "randint: low must be below high, got 3 and 3");
  refuses<ValueError>([&] { return randint({2}, key, 0, INT64_MAX, Dtype::i32); },
                      "randint: i32 does not hold 0..9223372036854775806");
  refuses<DtypeError>([&] { return randint({2}, key, 0, 3, Dtype::f32); },
                      "randint: dtype must be i64 or i32, got f32");
  refuses<ValueError>([&] { return exponential({2}, key, 0); },
                      "exponential: the rate must be positive and finite, got 0.0");
  refuses<DtypeError>([&] { return exponential({2}, key, 1, Dtype::i64); },
                      "exponential: dtype must be a float, got i64");
  refuses<ValueError>([&] { return laplace({2}, key, 0, -1); },
                      "laplace: location and scale must be finite, and the scale not negative, got 0.0 and -1.0");
  refuses<ValueError>([&] { return gumbel({2}, key, kInfinity, 1); },
                      "gumbel: location and scale must be finite, and the scale not negative, got inf and 1.0");
  refuses<ValueError>([&] { return truncated_normal({2}, key, {.low = 1, .high = 1}); },
                      "truncated_normal: the deviation must be positive, and low below high, got 1.0, 1.0 and 1.0");
  refuses<ValueError>([&] { return gamma(zeros({2}), key); },
                      "gamma: the concentration must be positive and finite, got 0.0");
  refuses<DtypeError>([&] { return gamma(arange(2), key); }, "gamma: takes f32 or f64, got i64[2]");
  refuses<ValueError>([&] { return beta(ones({2}), zeros({2}), key); },
                      "beta: concentrations must be positive and finite, got 0.0");
  refuses<ShapeError>([&] { return beta(ones({2}), ones({3}), key); },
                      "beta: concentrations differ: f32[2] and f32[3]");
  refuses<ValueError>([&] { return poisson(-ones({2}), key); },
                      "poisson: the rate must be finite and must not be negative, got -1.0");
  refuses<ValueError>([&] { return multinomial(ones({2}), 0, key); }, "multinomial: n must be at least 1, got 0");
  refuses<ValueError>([&] { return multinomial(-ones({2}), 1, key); },
                      "multinomial: weights must be finite and must not be negative, got -1.0");
  refuses<ValueError>([&] { return multinomial(zeros({2}), 1, key, true); },
                      "multinomial: a row has 0 positive weights of the 1 needed");
  refuses<ValueError>([&] { return multinomial(ones({2}), 3, key); },
                      "multinomial: a row has 2 positive weights of the 3 needed");
  refuses<ShapeError>([&] { return multinomial(ones({}), 1, key); }, "multinomial: weights must be [..., C], got []");
  refuses<ShapeError>([&] { return categorical(ones({}), key); }, "categorical: logits must be [..., C], got []");
  refuses<ValueError>([&] { return categorical(full({3}, -kInfinity), key); },
                      "multinomial: weights must be finite and must not be negative, got nan");
  refuses<ValueError>([&] { return filter_logits(ones({2}), {.temperature = -1}); },
                      "filter_logits: the temperature must be finite and must not be negative, got -1.0");
  refuses<ValueError>([&] { return filter_logits(ones({2}), {.top_k = -1}); },
                      "filter_logits: top_k must not be negative, got -1");
  refuses<ValueError>([&] { return filter_logits(ones({2}), {.top_p = 1.5}); },
                      "filter_logits: top_p must lie in 0..1, got 1.5");
  refuses<ValueError>([&] { return permutation(-1, DrawKey(key)); },
                      "permutation: the length must not be negative, got -1");
  refuses<ShapeError>([&] { return exponential({2}, DrawKey(ones({2}), full({}, 1, Dtype::i64))); },
                      "exponential: the key must be i64[2], seed and stream, got f32[2]");
}

BOOST_AUTO_TEST_SUITE_END()
