// Distributions outside their support and at its ends. Expected numbers are the closed forms in the cases, and
// scipy.stats 1.x where they say so; torch.distributions 2.13 returns NaN, or clamps, in most of them.
#include <limits>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/distributions.h"
#include "ferrite/nn/gamma_distributions.h"
#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::nn;
using support::within;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor numbers(const std::vector<double>& v) { return Tensor::from(v, {std::ssize(v)}); }
Tensor number(double v) { return full({}, v, Dtype::f64); }
Tensor floats(const std::vector<double>& v) { return cast(numbers(v), Dtype::f32); }

using Function = std::function<Tensor(const Tensors& x)>;

/// Returns the gradients of the sum of what f returns.
Tensors gradients(const Function& f, const Tensors& operands) {
  Tape tape;
  Tensors x;
  for (const Tensor& t : operands) x.push_back(tape.watch(t));
  return detail::lenient_grad(tape, {sum(f(x)), {}}, {x.data(), x.size()});
}
bool finite(const Tensors& all) {
  for (const Tensor& t : all)
    for (const double v : support::doubles(t))
      if (!std::isfinite(v)) return false;
  return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(distribution_ends)

/// Expected: scipy.stats.gamma.logpdf(1.5, a, scale=1/2) = -0.89278, -1.61371, -1.52209 for a = 0.5, 1, 2.
BOOST_AUTO_TEST_CASE(gamma_gives_minus_infinity_outside_its_support) {
  const auto log_prob = [](double a, const std::vector<double>& x) {
    return Gamma(number(a), number(2)).log_prob(numbers(x));
  };
  const std::vector<double> values = {-1, -kInfinity, kInfinity, kNan, 0, 1.5};
  const auto inside = [](double a) { return a * std::log(2.0) + (a - 1) * std::log(1.5) - 2 * 1.5 - std::lgamma(a); };
  BOOST_TEST(within(log_prob(0.5, values), numbers({-kInfinity, -kInfinity, -kInfinity, kNan, kInfinity, inside(0.5)}),
                    1e-14));
  BOOST_TEST(within(log_prob(1, values), numbers({-kInfinity, -kInfinity, -kInfinity, kNan, std::log(2.0), inside(1)}),
                    1e-14));
  BOOST_TEST(
      within(log_prob(2, values), numbers({-kInfinity, -kInfinity, -kInfinity, kNan, -kInfinity, inside(2)}), 1e-14));
  for (const double a : {0.5, 1.0, 2.0})
    BOOST_TEST(finite(gradients([](const Tensors& x) { return exp(Gamma(x[0], x[1]).log_prob(x[2])); },
                                {number(a), number(2), numbers({-1, kInfinity, 1.5})})));
}

BOOST_AUTO_TEST_CASE(beta_gives_minus_infinity_outside_its_support) {
  const auto log_prob = [](double a, double b, const std::vector<double>& x) {
    return Beta(number(a), number(b)).log_prob(numbers(x));
  };
  const std::vector<double> values = {-0.5, 1.5, kInfinity, -kInfinity, kNan, 0, 1};
  const auto check = [&](double a, double b, double at_zero, double at_one) {
    BOOST_TEST(within(log_prob(a, b, values),
                      numbers({-kInfinity, -kInfinity, -kInfinity, -kInfinity, kNan, at_zero, at_one}), 1e-14));
  };
  check(2, 3, -kInfinity, -kInfinity);
  check(0.5, 0.5, kInfinity, kInfinity);
  check(1, 3, std::log(3.0), -kInfinity);  // 3 (1 - x)^2
  check(2, 1, -kInfinity, std::log(2.0));  // 2 x
  check(1, 1, 0, 0);
  check(0.5, 1, kInfinity, std::log(0.5));  // x^-0.5 / 2
  // Near an end 1 - x has no digits of x in f32: of (1 - x)^(b - 1) with b = 1e8, x = 1e-8 is e^-1 of what 0 has.
  const nn::Beta steep(floats({1}), floats({1e8}));
  BOOST_TEST(within(steep.log_prob(floats({1e-8})) - steep.log_prob(floats({0})), floats({-1}), 1e-4));
  for (const auto& [a, b] : {std::pair{0.5, 2.0}, {1.0, 1.0}, {3.0, 0.7}})
    BOOST_TEST(finite(gradients([](const Tensors& x) { return exp(Beta(x[0], x[1]).log_prob(x[2])); },
                                {number(a), number(b), numbers({-1, 2, kInfinity, 0.25})})));
}

/// One part excludes a value, all parts do, and a part has weight 0.
BOOST_AUTO_TEST_CASE(mixtures_have_finite_gradients_where_parts_exclude_a_value) {
  const Tensor logits = numbers({0.3, -0.2});
  const auto check = [](const char* name, const Function& f, const Tensors& x, double expected) {
    const Tensor y = f(x);
    BOOST_TEST(within(y, numbers({expected}), 1e-12), name);
    BOOST_TEST(finite(gradients(f, x)), name);
  };
  const auto gammas = [](const Tensors& x) {
    return Mixture<Gamma>(Categorical::from_logits(x[0]), Gamma(x[1], x[2])).log_prob(x[3]);
  };
  // At 0 the first part has density 2 e^0, the second has 0.
  const double share = 1 / (1 + std::exp(-0.5));
  check("gamma at 0", gammas, {logits, numbers({1, 3}), numbers({2, 1}), numbers({0})}, std::log(2 * share));
  check("gamma below 0", gammas, {logits, numbers({1, 3}), numbers({2, 1}), numbers({-1})}, -kInfinity);
  const auto betas = [](const Tensors& x) {
    return Mixture<Beta>(Categorical::from_logits(x[0]), Beta(x[1], x[2])).log_prob(x[3]);
  };
  check("beta at 0", betas, {logits, numbers({1, 3}), numbers({2, 2}), numbers({0})}, std::log(2 * share));
  check("beta above 1", betas, {logits, numbers({1, 3}), numbers({2, 2}), numbers({1.5})}, -kInfinity);
  const auto exponentials = [](const Tensors& x) {
    return Mixture<Exponential>(Categorical::from_logits(x[0]), Exponential(x[1])).log_prob(x[2]);
  };
  check("exponential", exponentials, {logits, numbers({1, 3}), numbers({-1})}, -kInfinity);
  check("exponential at infinity", exponentials, {logits, numbers({1, 3}), numbers({kInfinity})}, -kInfinity);
  const auto uniforms = [](const Tensors& x) {
    return Mixture<Uniform>(Categorical::from_logits(x[0]), Uniform(x[1], x[1] + 1)).log_prob(x[2]);
  };
  check("uniform", uniforms, {logits, numbers({0, 2}), numbers({0.5})}, std::log(share));
  check("uniform, no part", uniforms, {logits, numbers({0, 2}), numbers({1.5})}, -kInfinity);
  // A part of weight 0 has a pole.
  check("weight 0", gammas, {numbers({0, -kInfinity}), numbers({1, 0.5}), numbers({2, 1}), numbers({0})},
        std::log(2.0));
  BOOST_TEST(
      within(mixture_mean(Categorical::from_probabilities(numbers({1, 0})), numbers({3, kInfinity})), number(3), 0));
}

/// A value at a pole or outside of all parts gives neither parts nor weights a gradient: a batch with such values has
/// the gradient of its other value alone.
BOOST_AUTO_TEST_CASE(mixtures_have_no_gradient_at_a_pole_and_where_no_part_is) {
  const auto density = [](const Tensors& x) {
    return Mixture<Gamma>(Categorical::from_logits(x[0]), Gamma(x[1], x[2])).log_prob(x[3]);
  };
  const auto all_of = [&](const Tensor& logits, const Tensor& a, const Tensor& rate, const Tensor& at) {
    Tensors all = gradients(density, {logits, a, rate, at});
    all.push_back(density({logits, a, rate, at}));
    return all;
  };
  const auto compiled = compile(all_of);
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const bool weightless : {false, true}) {
      const auto of = [&](const std::vector<double>& v) { return cast(numbers(v), dtype); };
      // Two parts have a pole at 0; one of them may have weight 0.
      const Tensor logits = weightless ? of({-kInfinity, 0.3, -0.2}) : of({0.1, 0.3, -0.2});
      const Tensor a = of({0.25, 0.5, 3}), rate = of({1, 2, 1});
      const Tensors alone = all_of(logits, a, rate, of({1.5}));
      const Tensor values = of({0, 1.5, -1});
      for (const Tensors& got : {all_of(logits, a, rate, values), Tensors(compiled(logits, a, rate, values))}) {
        for (const std::size_t i : {0U, 1U, 2U}) {
          BOOST_TEST(finite({got[i]}), "gradient " << i);
          BOOST_TEST(within(got[i], alone[i], dtype == Dtype::f32 ? 1e-6 : 1e-13), "gradient " << i);
        }
        const double other = support::doubles(alone[3])[0];
        BOOST_TEST(within(got[3], of({0, other, 0}), dtype == Dtype::f32 ? 1e-6 : 1e-13));
        const double ordinary = support::doubles(alone[4])[0];
        BOOST_TEST(within(got[4], of({kInfinity, ordinary, -kInfinity}), dtype == Dtype::f32 ? 1e-6 : 1e-13));
      }
    }
}

BOOST_AUTO_TEST_CASE(other_densities_at_their_ends) {
  const Tensor x = numbers({0, 1, -1, 2, kInfinity, -kInfinity, kNan});
  BOOST_TEST(within(Uniform(number(0), number(2)).log_prob(x),
                    numbers({-std::log(2.0), -std::log(2.0), -kInfinity, -kInfinity, -kInfinity, -kInfinity, kNan}),
                    1e-15));
  const double ln2 = std::log(2.0);
  BOOST_TEST(within(Exponential(number(2)).log_prob(x),
                    numbers({ln2, ln2 - 2, -kInfinity, ln2 - 4, -kInfinity, -kInfinity, kNan}), 1e-15));
  const Tensor far = numbers({kInfinity, -kInfinity, kNan}), none = numbers({-kInfinity, -kInfinity, kNan});
  BOOST_TEST(within(Normal(number(1), number(2)).log_prob(far), none, 0));
  BOOST_TEST(within(Laplace(number(1), number(2)).log_prob(far), none, 0));
}

/// PyTorch loses them: torch.distributions.Bernoulli(1e-30).log_prob(1) is -15.9, ln of the dtype's epsilon.
BOOST_AUTO_TEST_CASE(bernoulli_keeps_the_digits_of_small_probabilities) {
  const Tensor p = floats({1e-30, 1e-12, 0.25, 0.75});
  const Bernoulli b = Bernoulli::from_probabilities(p);
  BOOST_TEST(within(b.log_prob(ones({4})), floats({-69.07755279, -27.63102112, -1.38629436, -0.28768207}), 1e-7));
  BOOST_TEST(support::doubles(b.log_prob(zeros({4})))[0] == static_cast<double>(-1e-30F));
  BOOST_TEST(support::identical(b.mean(), p));
  BOOST_TEST(
      within(b.entropy(), floats({69.07755279e-30 + 1e-30, 27.63102112e-12 + 1e-12, 0.56233514, 0.56233514}), 1e-7));
  BOOST_TEST(support::doubles(b.entropy())[1] > 2.8e-11);
  BOOST_TEST(within(b.logits(), floats({-69.07755279, -27.63102112, -1.09861229, 1.09861229}), 1e-6));
}

BOOST_AUTO_TEST_CASE(what_bernoulli_excludes_has_no_probability) {
  for (const bool logits : {false, true}) {
    const auto of = [&](const std::vector<double>& p) {
      return logits ? Bernoulli::from_logits(log(numbers(p)) - log1p(-numbers(p)))
                    : Bernoulli::from_probabilities(numbers(p));
    };
    const Bernoulli b = of({0, 1});
    BOOST_TEST(within(b.log_prob(numbers({1, 1})), numbers({-kInfinity, 0}), 0));
    BOOST_TEST(within(b.log_prob(numbers({0, 0})), numbers({0, -kInfinity}), 0));
    BOOST_TEST(within(b.entropy(), numbers({0, 0}), 0));
    BOOST_TEST(within(b.mean(), numbers({0, 1}), 0));
    BOOST_TEST(within(b.complement(), numbers({1, 0}), 0));
    BOOST_TEST(within(b.variance(), numbers({0, 0}), 0));
    BOOST_TEST(within(kl_divergence(of({0.25, 0.25}), b), numbers({kInfinity, kInfinity}), 0));
    BOOST_TEST(within(kl_divergence(b, b), numbers({0, 0}), 0));
    // The expected values are ln(1 / 0.75) and ln(1 / 0.25).
    BOOST_TEST(within(kl_divergence(b, of({0.25, 0.25})), numbers({-std::log(0.75), -std::log(0.25)}), 1e-15));
  }
  const Tensor draws = Bernoulli::from_probabilities(floats({0, 1})).sample(RandomKey{.seed = 1}, {1000});
  BOOST_TEST(within(sum(draws, {0}), floats({0, 1000}), 0));
  // d ln(1 - p) / dp is -1 at 0; ln p has slope 1 at 1.
  const auto f = [](const Tensors& x) { return Bernoulli::from_probabilities(x[0]).log_prob(numbers({0, 1})); };
  BOOST_TEST(within(gradients(f, {numbers({0, 1})})[0], numbers({-1, 1}), 0));
  BOOST_TEST(finite(gradients([](const Tensors& x) { return Bernoulli::from_probabilities(x[0]).entropy(); },
                              {numbers({0, 1, 0.5})})));
}

BOOST_AUTO_TEST_CASE(divergences_from_what_cannot_be_are_infinite) {
  const auto of = [](const std::vector<double>& p) { return Categorical::from_probabilities(numbers(p)); };
  BOOST_TEST(within(kl_divergence(of({0.5, 0.5}), of({1, 0})), number(kInfinity), 0));
  BOOST_TEST(within(kl_divergence(of({1, 0}), of({0.5, 0.5})), number(std::log(2.0)), 1e-15));
  BOOST_TEST(within(kl_divergence(of({1, 0}), of({1, 0})), number(0), 0));
  BOOST_TEST(within(of({1, 0}).entropy(), number(0), 0));
  BOOST_TEST(within(of({1, 0}).log_prob(Tensor::from({std::int64_t{1}})), numbers({-kInfinity}), 0));
  BOOST_TEST(within(kl_divergence(Uniform(number(0), number(2)), Uniform(number(0), number(1))), number(kInfinity), 0));
  for (const std::vector<double>& p : {std::vector<double>{0, 0}, {kInfinity, 1}}) BOOST_CHECK_THROW(of(p), ValueError);
}

/// Draws that their parameters push to an end stay where the density is finite, as PyTorch's gamma numbers do.
BOOST_AUTO_TEST_CASE(draws_lie_within_the_support) {
  const RandomKey key{.seed = 5};
  for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
    const auto of = [&](double v) { return full({}, v, dtype); };
    const auto all_finite = [](const Tensor& x) { return finite({x}); };
    const Gamma g(of(0.001), of(1));
    BOOST_TEST(all_finite(g.log_prob(g.sample(key, {2000}))));
    const nn::Beta b(of(0.001), of(0.001));
    BOOST_TEST(all_finite(b.log_prob(b.sample(key, {2000}))));
    // Floats near 1e7 are as far apart as the interval is wide.
    const Uniform u(of(1e7), of(1e7 + 1));
    BOOST_TEST(all_finite(u.log_prob(u.sample(key, {2000}))));
    const Exponential e(of(3));
    BOOST_TEST(all_finite(e.log_prob(e.sample(key, {2000}))));
  }
}

/// Means and variances are tested within six deviations of their errors: of x^(1/a) near concentrations of 1, where
/// Marsaglia and Tsang's first step changes, and of Poisson numbers on both sides of 10, where the method changes.
BOOST_AUTO_TEST_CASE(moments_of_draws_where_their_method_changes) {
  const std::int64_t n = 40000;
  const auto check = [&](const char* name, const Tensor& x, double mean, double variance, double kurtosis) {
    const Tensor y = cast(x, Dtype::f64);
    const double m = ferrite::mean(y).item<double>(), v = var(y).item<double>();
    BOOST_TEST(std::fabs(m - mean) < 6 * std::sqrt(variance / static_cast<double>(n)), name << " mean " << m);
    BOOST_TEST(std::fabs(v - variance) < 6 * variance * std::sqrt((kurtosis - 1) / static_cast<double>(n)),
               name << " variance " << v);
  };
  for (const double a : {0.3, 0.999, 1.0, 1.001, 4.0})
    check("gamma", gamma(full({n}, a), RandomKey{.seed = 3}), a, a, 3 + 6 / a);
  for (const double rate : {0.2, 3.0, 9.99, 10.0, 11.0, 300.0})
    check("poisson", poisson(full({n}, rate), RandomKey{.seed = 4}), rate, rate, 3 + 1 / rate);
}

BOOST_AUTO_TEST_SUITE_END()
