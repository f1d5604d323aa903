// Distributions, their gradients and second gradients compared with torch.distributions 2.13:
// tests/data/make_distribution_fixtures.py writes the cases. Draws are compared with moments, with fixed seeds and
// limits that a correct draw exceeds once in a million times.
#include <cmath>
#include <map>
#include <set>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/distributions.h"
#include "ferrite/nn/gamma_distributions.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using nn::kl_divergence;
using support::within;

namespace {

using In = const Tensors&;
using Function = std::function<Tensor(In x, In c)>;

nn::Uniform wide(const Tensor& low, const Tensor& width) { return {low, low + width}; }

const std::map<std::string, Function>& functions() {
  using nn::Bernoulli, nn::Beta, nn::Categorical, nn::Gamma, nn::Exponential, nn::Laplace, nn::Normal, nn::Uniform;
  static const std::map<std::string, Function> table = {
      {"normal_log_prob", [](In x, In) { return Normal(x[0], x[1]).log_prob(x[2]); }},
      {"normal_broadcast", [](In x, In) { return Normal(x[0], x[1]).log_prob(x[2]); }},
      {"normal_cdf", [](In x, In) { return Normal(x[0], x[1]).cdf(x[2]); }},
      {"normal_entropy", [](In x, In) { return Normal(x[0], x[1]).entropy(); }},
      {"normal_mean", [](In x, In) { return Normal(x[0], x[1]).mean(); }},
      {"normal_variance", [](In x, In) { return Normal(x[0], x[1]).variance(); }},
      {"laplace_log_prob", [](In x, In) { return Laplace(x[0], x[1]).log_prob(x[2]); }},
      {"laplace_cdf", [](In x, In) { return Laplace(x[0], x[1]).cdf(x[2]); }},
      {"laplace_entropy", [](In x, In) { return Laplace(x[0], x[1]).entropy(); }},
      {"laplace_mean", [](In x, In) { return Laplace(x[0], x[1]).mean(); }},
      {"laplace_variance", [](In x, In) { return Laplace(x[0], x[1]).variance(); }},
      {"uniform_log_prob", [](In x, In) { return wide(x[0], x[1]).log_prob(x[2]); }},
      {"uniform_outside",
       [](In x, In) {
         const Tensor at = Tensor::from({0.0, 0.25, 0.625, 0.75});
         return wide(x[0], x[1]).log_prob(x[0] + 2 * x[1] * at);
       }},
      {"uniform_cdf", [](In x, In) { return wide(x[0], x[1]).cdf(x[2]); }},
      {"uniform_entropy", [](In x, In) { return wide(x[0], x[1]).entropy(); }},
      {"uniform_mean", [](In x, In) { return wide(x[0], x[1]).mean(); }},
      {"uniform_variance", [](In x, In) { return wide(x[0], x[1]).variance(); }},
      {"exponential_log_prob", [](In x, In) { return Exponential(x[0]).log_prob(x[1]); }},
      {"exponential_cdf", [](In x, In) { return Exponential(x[0]).cdf(x[1]); }},
      {"exponential_entropy", [](In x, In) { return Exponential(x[0]).entropy(); }},
      {"exponential_mean", [](In x, In) { return Exponential(x[0]).mean(); }},
      {"exponential_variance", [](In x, In) { return Exponential(x[0]).variance(); }},
      {"bernoulli_log_prob", [](In x, In c) { return Bernoulli::from_logits(x[0]).log_prob(c[0]); }},
      {"bernoulli_entropy", [](In x, In) { return Bernoulli::from_logits(x[0]).entropy(); }},
      {"bernoulli_probabilities", [](In x, In c) { return Bernoulli::from_probabilities(x[0]).log_prob(c[0]); }},
      {"bernoulli_variance", [](In x, In) { return Bernoulli::from_logits(x[0]).variance(); }},
      {"categorical_log_prob", [](In x, In c) { return Categorical::from_logits(x[0]).log_prob(c[0]); }},
      {"categorical_many", [](In x, In c) { return Categorical::from_logits(x[0]).log_prob(c[0]); }},
      {"categorical_entropy", [](In x, In) { return Categorical::from_logits(x[0]).entropy(); }},
      {"categorical_probabilities", [](In x, In c) { return Categorical::from_probabilities(x[0]).log_prob(c[0]); }},
      {"kl_normal", [](In x, In) { return kl_divergence(Normal(x[0], x[1]), Normal(x[2], x[3])); }},
      {"kl_laplace", [](In x, In) { return kl_divergence(Laplace(x[0], x[1]), Laplace(x[2], x[3])); }},
      {"kl_uniform",
       [](In x, In) { return kl_divergence(wide(x[0], x[1]), Uniform(x[0] - x[2], x[0] + x[1] + x[3])); }},
      {"kl_uniform_outside",
       [](In x, In) { return kl_divergence(wide(x[0], x[1]), Uniform(x[0] + 0.125, x[0] + x[1])); }},
      {"kl_exponential", [](In x, In) { return kl_divergence(Exponential(x[0]), Exponential(x[1])); }},
      {"kl_bernoulli",
       [](In x, In) { return kl_divergence(Bernoulli::from_logits(x[0]), Bernoulli::from_logits(x[1])); }},
      {"kl_categorical",
       [](In x, In) { return kl_divergence(Categorical::from_logits(x[0]), Categorical::from_logits(x[1])); }},
      {"kl_uniform_normal", [](In x, In) { return kl_divergence(wide(x[0], x[1]), Normal(x[2], x[3])); }},
      {"kl_exponential_normal", [](In x, In) { return kl_divergence(Exponential(x[0]), Normal(x[1], x[2])); }},
      {"gamma_log_prob", [](In x, In) { return Gamma(x[0], x[1]).log_prob(x[2]); }},
      {"gamma_entropy", [](In x, In) { return Gamma(x[0], x[1]).entropy(); }},
      {"gamma_variance", [](In x, In) { return Gamma(x[0], x[1]).variance(); }},
      {"beta_log_prob", [](In x, In) { return Beta(x[0], x[1]).log_prob(x[2]); }},
      {"beta_entropy", [](In x, In) { return Beta(x[0], x[1]).entropy(); }},
      {"beta_variance", [](In x, In) { return Beta(x[0], x[1]).variance(); }},
      {"kl_gamma", [](In x, In) { return kl_divergence(Gamma(x[0], x[1]), Gamma(x[2], x[3])); }},
      {"kl_beta", [](In x, In) { return kl_divergence(Beta(x[0], x[1]), Beta(x[2], x[3])); }},
      {"mixture_log_prob",
       [](In x, In) { return nn::Mixture<Normal>(Categorical::from_logits(x[0]), Normal(x[1], x[2])).log_prob(x[3]); }},
      {"mixture_laplace",
       [](In x, In) {
         return nn::Mixture<Laplace>(Categorical::from_logits(x[0]), Laplace(x[1], x[2])).log_prob(x[3]);
       }},
      {"mixture_mean",
       [](In x, In) { return nn::Mixture<Normal>(Categorical::from_logits(x[0]), Normal(x[1], x[2])).mean(); }},
  };
  return table;
}

Tensors numbered(const io::TensorFile& file, const std::string& prefix) {
  Tensors list;
  for (int k = 0; file.contains(prefix + std::to_string(k)); ++k)
    list.push_back(file.tensor(prefix + std::to_string(k)));
  return list;
}

void check(const std::string& name, const Function& f) {
  const io::TensorFile file = support::fixture("distributions.safetensors");
  const Tensors wanted = numbered(file, name + "/g"), directions = numbered(file, name + "/v"),
                second = numbered(file, name + "/h");
  Tape tape;
  Tensors x;
  for (const Tensor& in : numbered(file, name + "/in")) x.push_back(tape.watch(in));
  const std::span<const Tensor> variables(x.data(), x.size());
  const Tensor out = f(x, numbered(file, name + "/c"));
  BOOST_TEST(within(out, file.tensor(name + "/out"), 1e-12));
  const Tensors g = detail::lenient_grad(tape, {out, file.tensor(name + "/cot")}, variables, {.create_graph = true});
  Tensor total = zeros({}, Dtype::f64);
  for (std::size_t k = 0; k < g.size(); ++k) {
    BOOST_TEST(within(g[k], wanted[k], 1e-12), "gradient " << k);
    total = total + sum(directions[k] * g[k]);
  }
  const Tensors h = detail::lenient_grad(tape, {total, {}}, variables);
  for (std::size_t k = 0; k < h.size(); ++k) BOOST_TEST(within(h[k], second[k], 1e-10), "second derivative " << k);
}

const bool registered = [] {
  for (const auto& [name, f] : functions())
    boost::unit_test::framework::current_auto_test_suite().add(boost::unit_test::make_test_case(
        [name = name, f = f] { check(name, f); }, "distribution_" + name, __FILE__, __LINE__));
  return true;
}();

constexpr std::int64_t kMany = 20000;

/// Checks that mean and variance of many draws [kMany] are those of the distribution, within 4.9 standard errors of the
/// mean, and of the variance for tails as heavy as Laplace's.
template <class D>
void check_moments(const D& d, const char* what) {
  const Tensor x = cast(d.sample(RandomKey{.seed = 31}, {kMany}), Dtype::f64);
  const double mean_of = d.mean().template item<double>(), variance = d.variance().template item<double>();
  BOOST_TEST(std::fabs(mean(x).template item<double>() - mean_of) < 4.9 * std::sqrt(variance / kMany), what);
  const double spread = mean(square(x - mean_of)).template item<double>();
  BOOST_TEST(std::fabs(spread / variance - 1) < 4.9 * std::sqrt(8.0 / kMany), what);
}

Tensor number(double v) { return full({}, v, Dtype::f64); }

}  // namespace

BOOST_AUTO_TEST_SUITE(distributions)

BOOST_AUTO_TEST_CASE(every_case_of_the_fixture_has_its_counterpart) {
  BOOST_TEST(registered);
  const io::TensorFile file = support::fixture("distributions.safetensors");
  std::set<std::string> cases;
  for (const std::string_view name : file.names()) cases.insert(std::string(name.substr(0, name.find('/'))));
  for (const std::string& name : cases) BOOST_TEST(functions().contains(name), name);
  BOOST_TEST(cases.size() == functions().size());
}

BOOST_AUTO_TEST_CASE(moments_of_draws) {
  check_moments(nn::Normal(number(1), number(2)), "normal");
  check_moments(nn::Laplace(number(1), number(2)), "laplace");
  check_moments(nn::Uniform(number(1), number(4)), "uniform");
  check_moments(nn::Exponential(number(0.5)), "exponential");
  check_moments(nn::Gamma(number(3), number(2)), "gamma");
  check_moments(nn::Beta(number(2), number(3)), "beta");
  check_moments(nn::Bernoulli::from_probabilities(number(0.3)), "bernoulli");
  const nn::Mixture<nn::Normal> mixture(nn::Categorical::from_probabilities(Tensor::from({1.0, 3.0})),
                                        nn::Normal(Tensor::from({-2.0, 2.0}), Tensor::from({0.5, 1.0})));
  const Tensor x = mixture.sample({.seed = 3}, {kMany});
  BOOST_TEST(std::fabs(mean(x).item<double>() - 1) < 4.9 * std::sqrt((0.25 * 0.25 + 0.75 + 3) / kMany));
  const double low = mean(cast(lt(x, -0.5), Dtype::f64)).item<double>();
  BOOST_TEST(std::fabs(low - 0.2540) < 4.9 * std::sqrt(0.19 / kMany));  // 0.25 Phi(3) + 0.75 Phi(-2.5)
}

/// The gradient of a draw is that of its location and scale; a sample has no gradient.
BOOST_AUTO_TEST_CASE(gradients_reach_parameters_through_draws) {
  Tape tape;
  const Tensor m = tape.watch(Tensor::from({1.0, -1.0})), s = tape.watch(Tensor::from({0.5, 2.0}));
  const nn::Normal d(m, s);
  const Tensor x = d.rsample(RandomKey{.seed = 1}, {3}), fixed = d.sample(RandomKey{.seed = 1}, {3});
  BOOST_TEST(support::identical(x, fixed));
  const Tensors g = tape.grad(sum(x), {m, s}, {.retain = true});
  BOOST_TEST(within(g[0], full({2}, 3.0, Dtype::f64), 1e-15));
  BOOST_TEST(within(g[1], sum((fixed - m) / s, {0}), 1e-12));
  BOOST_CHECK_THROW((void)tape.grad(sum(fixed), {m, s}), TapeError);
}

BOOST_AUTO_TEST_CASE(compiled_functions_draw_the_same) {
  const Generator eager(4), planned(4);
  const Tensor m = linspace(-1, 1, 5);
  const auto draw = [&](const Generator& g) {
    return [&g](const Tensor& mean) {
      return nn::Normal(mean, exp(mean)).sample(g, {3}) + nn::Laplace(mean, exp(mean)).sample(g, {3});
    };
  };
  const auto compiled = compile(draw(planned));
  for (int i = 0; i < 3; ++i) BOOST_TEST(support::identical(compiled(m), draw(eager)(m)), "call " << i);
}

BOOST_AUTO_TEST_CASE(wrong_calls) {
  const auto says = support::says;
  BOOST_CHECK_EXCEPTION(nn::Normal(ones({2}), zeros({2})), ValueError, says("normal: deviation 0 lies outside"));
  BOOST_CHECK_EXCEPTION(nn::Normal(ones({2}), ones({3})), ShapeError,
                        says("normal: shapes do not broadcast: [2] with [3]"));
  BOOST_CHECK_EXCEPTION(nn::Normal(ones({2}), ones({2}, Dtype::f64)), DtypeError,
                        says("normal: dtypes differ: f32[2] and f64[2]; cast one of them"));
  BOOST_CHECK_EXCEPTION(nn::Normal(arange(2), ones({2})), DtypeError,
                        says("normal: parameters must be f32 or f64, got i64[2]; cast them"));
  BOOST_CHECK_EXCEPTION(nn::Laplace(ones({2}), -ones({2})), ValueError, says("laplace: scale -1 lies outside"));
  BOOST_CHECK_EXCEPTION(nn::Uniform(ones({2}), ones({2})), ValueError, says("uniform: high - low 0 lies outside"));
  BOOST_CHECK_EXCEPTION(nn::Exponential(zeros({2})), ValueError, says("exponential: rate 0 lies outside"));
  BOOST_CHECK_EXCEPTION(nn::Gamma(zeros({2}), ones({2})), ValueError, says("gamma: concentration 0 lies outside"));
  BOOST_CHECK_EXCEPTION(nn::Beta(ones({2}), -ones({2})), ValueError, says("beta: b -1 lies outside"));
  BOOST_CHECK_EXCEPTION(nn::Bernoulli::from_probabilities(2 * ones({2})), ValueError,
                        says("bernoulli: probability 2 lies outside 0..1"));
  BOOST_CHECK_EXCEPTION(nn::Categorical::from_logits(ones({})), ShapeError,
                        says("categorical: logits must be [..., C], got []"));
  BOOST_CHECK_EXCEPTION(nn::Categorical::from_probabilities(-ones({2})), ValueError,
                        says("categorical: probability -1 lies outside 0..inf"));
  const auto c = nn::Categorical::from_logits(ones({2, 3}));
  BOOST_CHECK_EXCEPTION((void)c.log_prob(full({2}, 3, Dtype::i64)), ShapeError,
                        says("categorical: value 3 lies outside 0..2"));
  BOOST_CHECK_EXCEPTION((void)c.log_prob(ones({2})), DtypeError,
                        says("categorical: values must be i64 or i32, got f32[2]"));
  BOOST_CHECK_EXCEPTION(
      nn::Mixture<nn::Exponential>(c, nn::Exponential(ones({2, 2}))), ShapeError,
      says("mixture: the batch of the parts must be [..., K], that of the weights, [2, 3], got [2, 2]"));
}

BOOST_AUTO_TEST_SUITE_END()
