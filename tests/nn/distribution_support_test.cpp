// Every distribution, and mixtures of it, at and beyond the ends of its support, with ordinary, tiny and huge
// parameters, in f32 and f64: no NaN in values or gradients, density 0 outside, cdf 0 and 1 there. torch.distributions
// 2.13 has NaN in the gradients of most of these.
#include <cmath>
#include <functional>
#include <limits>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/nn/distributions.h"
#include "ferrite/nn/gamma_distributions.h"
#include "support/compare.h"

using namespace ferrite;
using namespace ferrite::nn;

namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

/// A function of parameters and a value, both of rank 0.
using Value = std::function<Tensor(const Tensors& p, const Tensor& x)>;

struct Row {
  std::string name;
  double low, high;                   ///< ends of the support
  std::vector<Tensors> parameters{};  ///< f64
  Value log_prob{}, cdf{};
  std::function<Tensors(const Tensors& p)> moments{};  ///< entropy, mean, variance
  Value mixture{};  ///< log_prob of a mixture of two parts; p ends with the logits of their weights
};

std::vector<Tensors> all_pairs(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<Tensors> pairs;
  for (const double x : a)
    for (const double y : b) pairs.push_back({full({}, x, Dtype::f64), full({}, y, Dtype::f64)});
  return pairs;
}

template <class D>
Tensor of_two_parts(const Tensors& p, const Tensor& x) {
  const Tensor& logits = p[p.size() - 1];
  const auto twice = [](const Tensor& t) { return stack({t, t * 0.75}, 0); };
  if constexpr (std::is_constructible_v<D, const Tensor&, const Tensor&>) {
    return Mixture<D>(Categorical::from_logits(logits), D(twice(p[0]), stack({p[1], p[1]}, 0))).log_prob(x);
  } else {
    return Mixture<D>(Categorical::from_logits(logits), D(twice(p[0]))).log_prob(x);
  }
}

template <class D, bool has_cdf>
Row row_of_two(std::string name, double low, double high, const std::vector<double>& first,
               const std::vector<double>& second) {
  Row r{.name = std::move(name), .low = low, .high = high};
  r.parameters = all_pairs(first, second);
  r.log_prob = [](const Tensors& p, const Tensor& x) { return D(p[0], p[1]).log_prob(x); };
  if constexpr (has_cdf) r.cdf = [](const Tensors& p, const Tensor& x) { return D(p[0], p[1]).cdf(x); };
  r.moments = [](const Tensors& p) {
    const D d(p[0], p[1]);
    return Tensors{d.entropy(), d.mean(), d.variance()};
  };
  r.mixture = of_two_parts<D>;
  return r;
}

std::vector<Row> rows() {
  const std::vector<double> places = {0, 1, -1e30, 1e30}, widths = {1e-30, 1, 1e30}, shapes = {1e-6, 0.5, 1, 3, 1e6};
  std::vector<Row> all = {row_of_two<Normal, true>("normal", -kFar, kFar, places, widths),
                          row_of_two<Laplace, true>("laplace", -kFar, kFar, places, widths),
                          row_of_two<Gamma, false>("gamma", 0, kFar, shapes, widths),
                          row_of_two<nn::Beta, false>("beta", 0, 1, shapes, shapes)};
  Row uniform{.name = "uniform", .low = 0, .high = 1};
  uniform.parameters = {{full({}, 0, Dtype::f64), full({}, 1, Dtype::f64)}};
  uniform.log_prob = [](const Tensors& p, const Tensor& x) { return Uniform(p[0], p[1]).log_prob(x); };
  uniform.cdf = [](const Tensors& p, const Tensor& x) { return Uniform(p[0], p[1]).cdf(x); };
  uniform.moments = [](const Tensors& p) {
    const Uniform d(p[0], p[1]);
    return Tensors{d.entropy(), d.mean(), d.variance()};
  };
  uniform.mixture = of_two_parts<Uniform>;
  all.push_back(uniform);
  Row exponential{.name = "exponential", .low = 0, .high = kFar};
  for (const double w : widths) exponential.parameters.push_back({full({}, w, Dtype::f64)});
  exponential.log_prob = [](const Tensors& p, const Tensor& x) { return Exponential(p[0]).log_prob(x); };
  exponential.cdf = [](const Tensors& p, const Tensor& x) { return Exponential(p[0]).cdf(x); };
  exponential.moments = [](const Tensors& p) {
    const Exponential d(p[0]);
    return Tensors{d.entropy(), d.mean(), d.variance()};
  };
  exponential.mixture = of_two_parts<Exponential>;
  all.push_back(exponential);
  return all;
}

bool any_nan(const Tensor& t) {
  for (const double v : support::doubles(t))
    if (std::isnan(v)) return true;
  return false;
}

/// Returns f, after a check that neither f nor a gradient is NaN.
double checked_value(const std::string& what, const std::function<Tensor(const Tensors&)>& f, const Tensors& operands) {
  Tape tape;
  Tensors x;
  for (const Tensor& t : operands) x.push_back(tape.watch(t));
  const Tensor y = f(x);
  std::string of = what + " of";
  for (const Tensor& t : operands) of += " " + t.str();
  BOOST_TEST(!any_nan(y), of << " is NaN");
  const Tensors g = detail::lenient_grad(tape, {sum(y), {}}, {x.data(), x.size()});
  for (std::size_t i = 0; i < g.size(); ++i) BOOST_TEST(!any_nan(g[i]), "gradient " << i << " of " << of << " is NaN");
  return support::doubles(y)[0];
}

}  // namespace

BOOST_AUTO_TEST_SUITE(distribution_support)

BOOST_AUTO_TEST_CASE(no_value_and_no_gradient_is_nan_at_any_end) {
  const std::vector<double> values = {-kFar, -3e38, -1, -1e-40, -0.0, 0, 1e-40, 1e-30, 0.5, 1, 2, 1e20, 3e38, kFar};
  for (const Row& r : rows())
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const Tensors& given : r.parameters) {
        Tensors p;
        for (const Tensor& t : given) p.push_back(cast(t, dtype));
        Tensors with_logits = p;
        with_logits.push_back(cast(Tensor::from<double>({0.3, -0.2}), dtype));
        const auto at = [&](const std::string& what, const Value& f, double v) {
          Tensors operands = what == " mixture" ? with_logits : p;
          operands.push_back(full({}, v, dtype));
          return checked_value(
              r.name + what,
              [&](const Tensors& x) {
                return f({x.begin(), x.end() - 1}, x[x.size() - 1]);
              },
              operands);
        };
        for (const double v : values) {
          const double y = at(".log_prob", r.log_prob, v);
          if (v < r.low || v > r.high || std::isinf(v)) BOOST_TEST(y == -kFar, r.name << ".log_prob of " << v);
          const double m = at(" mixture", r.mixture, v);
          if (r.name != "uniform" && (v < r.low || v > r.high || std::isinf(v)))
            BOOST_TEST(m == -kFar, r.name << " mixture of " << v);
          if (!r.cdf) continue;
          const double share = at(".cdf", r.cdf, v);
          BOOST_TEST((share >= 0 && share <= 1), r.name << ".cdf of " << v << " is " << share);
          if (v == -kFar) BOOST_TEST(share == 0, r.name);
          if (v == kFar) BOOST_TEST(share == 1, r.name);
        }
        for (const std::size_t i : {0U, 1U, 2U})
          (void)checked_value(
              r.name + " moment " + std::to_string(i), [&](const Tensors& x) { return r.moments(x)[i]; }, p);
      }
}

/// In f32 the quotient of 1e30 and 1e-30 is infinite, and its inverse 0. In units of 1e60 a normal has (s^2 - 1) / 2 -
/// ln s and others s - 1 - ln s, of which s or ln s remains.
BOOST_AUTO_TEST_CASE(divergences_of_widths_far_apart) {
  const auto of = [](double v) { return full({}, v, Dtype::f32); };
  using Of = std::function<Tensor(const Tensors&)>;
  const std::vector<std::pair<std::string, Of>> all = {
      {"normal", [&](const Tensors& x) { return kl_divergence(Normal(of(0), x[0]), Normal(of(0), x[1])); }},
      {"laplace", [&](const Tensors& x) { return kl_divergence(Laplace(of(0), x[0]), Laplace(of(0), x[1])); }},
      {"exponential", [&](const Tensors& x) { return kl_divergence(Exponential(x[1]), Exponential(x[0])); }}};
  for (const auto& [name, f] : all) {
    BOOST_TEST(checked_value(name, f, {of(1e30), of(1e-30)}) == kFar, name);
    const double least = checked_value(name, f, {of(1e-30), of(1e30)});  // 60 ln 10 - 1 or - 1/2
    BOOST_TEST(std::fabs(least - (60 * std::log(10.0) - (name == "normal" ? 0.5 : 1))) < 1e-4, name << ": " << least);
  }
}

BOOST_AUTO_TEST_SUITE_END()
