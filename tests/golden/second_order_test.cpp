// L-BFGS compared with torch.optim.LBFGS, Levenberg and Marquardt's method with scipy.optimize.least_squares:
// tests/data/make_optimizer_fixtures.py writes the runs.
#include "ferrite/autograd/tape.h"
#include "ferrite/nn/optim/lbfgs.h"
#include "ferrite/nn/optim/levenberg_marquardt.h"
#include "support/compare.h"
#include "support/fixtures.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

io::TensorFile numbers() { return support::fixture("second_order.safetensors"); }

Tensor joined(const std::vector<Parameter>& p) { return concat({p[0].value(), p[1].value()}, 0); }

/// Returns Rosenbrock's function in four dimensions, whose variables are two parameters.
nn::LossAndGradients rosenbrock(const std::vector<Parameter>& p) {
  Tape tape;
  const Tensor x = joined(p);
  const Tensor low = slice(x, 0, 0, 3), high = slice(x, 0, 1, 4);
  const Tensor loss = sum(10 * square(high - square(low)) + square(1 - low));
  const double value = detach(loss).item<double>();
  return {value, tape.grad(loss, p)};
}

std::vector<Parameter> at_start() {
  const Tensor x = numbers().tensor("lbfgs/start");
  return {{"a", contiguous(slice(x, 0, 0, 2))}, {"b", contiguous(slice(x, 0, 2, 4))}};
}

void check_lbfgs(const std::string& name, const nn::LbfgsOptions& options) {
  const std::vector<Parameter> p = at_start();
  nn::Lbfgs lbfgs(p, options);
  for (std::int64_t step = 0; step < 4; ++step) {
    const double loss = lbfgs.step([&] { return rosenbrock(p); });
    const double wanted = select(numbers().tensor("lbfgs/" + name + "/loss"), 0, step).item<double>();
    BOOST_TEST(std::fabs(loss - wanted) <= 1e-8 * std::max(1.0, wanted), name << ", step " << step << ": " << loss);
    BOOST_TEST(within(joined(p), select(numbers().tensor("lbfgs/" + name + "/x"), 0, step), 1e-8),
               name << ", step " << step);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(second_order)

BOOST_AUTO_TEST_CASE(lbfgs_takes_pytorchs_steps) {
  check_lbfgs("plain", {.learning_rate = 0.2, .most_iterations = 10});
  check_lbfgs("wolfe", {.most_iterations = 10, .strong_wolfe = true});
  check_lbfgs("short", {.most_iterations = 12, .history = 2, .strong_wolfe = true});
  check_lbfgs("few", {.most_iterations = 20, .most_evaluations = 9, .strong_wolfe = true});
}

BOOST_AUTO_TEST_CASE(a_step_of_lbfgs_that_throws_has_changed_nothing) {
  const std::vector<Parameter> p = at_start();
  nn::Lbfgs lbfgs(p, {.most_iterations = 3, .strong_wolfe = true}), other(at_start(), {});
  lbfgs.step([&] { return rosenbrock(p); });
  const Tensor before = joined(p) + 0;
  const std::int64_t evaluations = lbfgs.evaluations();
  int calls = 0;
  BOOST_CHECK_THROW(lbfgs.step([&] {
    if (++calls == 3) throw ValueError("no more");
    return rosenbrock(p);
  }),
                    ValueError);
  BOOST_TEST(identical(joined(p), before));
  BOOST_TEST(lbfgs.evaluations() == evaluations);
  BOOST_CHECK_EXCEPTION(lbfgs.step([] {
    return nn::LossAndGradients{1, {Tensor()}};
  }),
                        ValueError, says("lbfgs: 1 gradients for 2 parameters"));
  BOOST_CHECK_EXCEPTION(lbfgs.step([] {
    return nn::LossAndGradients{1, {ones({3}), Tensor()}};
  }),
                        ShapeError, says("lbfgs: the gradient of 'a' has shape [3], the parameter [2]"));
  BOOST_CHECK_EXCEPTION(nn::Lbfgs({}), ValueError, says("lbfgs: there are no parameters to train"));
  BOOST_CHECK_EXCEPTION(nn::Lbfgs({p[0], p[0]}), ValueError, says("lbfgs: the parameter 'a' is given twice"));
  BOOST_CHECK_EXCEPTION(nn::Lbfgs(p, {.history = 0}), ValueError,
                        says("lbfgs: most_iterations, most_evaluations and history must be positive, got 20, 1 and 0"));
}

namespace {

constexpr nn::LevenbergMarquardtOptions kExact = {
    .most_iterations = 400, .cost_tolerance = 1e-15, .step_tolerance = 1e-13, .gradient_tolerance = 1e-13};

void check_found(const std::string& name, const Parameter& p, const std::function<Tensor()>& residuals) {
  const auto result = nn::levenberg_marquardt(std::vector{p}, residuals, kExact);
  const io::TensorFile file = numbers();
  BOOST_TEST(result.converged, name);
  const double wanted = file.tensor("lm/" + name + "/cost").item<double>();
  BOOST_TEST(std::fabs(result.cost - wanted) <= 1e-12, name << ": " << result.cost << ", " << wanted);
  BOOST_TEST(within(p.peek(), file.tensor("lm/" + name + "/x"), 1e-6), name);
  BOOST_TEST(result.iterations < 100, name << ": " << result.iterations);
}

}  // namespace

BOOST_AUTO_TEST_CASE(least_squares_are_scipys) {
  const io::TensorFile file = numbers();
  const Parameter decay("p", file.tensor("lm/decay/start"));
  const Tensor t = file.tensor("lm/decay/t"), y = file.tensor("lm/decay/y");
  check_found("decay", decay, [&] {
    const Tensor p = decay.value();
    return select(p, 0, 0) * exp(-(select(p, 0, 1) * t)) + select(p, 0, 2) - y;
  });
  const Parameter valley("p", file.tensor("lm/rosenbrock/start"));
  check_found("rosenbrock", valley, [&] {
    const Tensor p = valley.value(), x = slice(p, 0, 0, 1);
    return concat({10 * (slice(p, 0, 1, 2) - square(x)), 1 - x}, 0);
  });
  const Parameter net("p", file.tensor("lm/net/start"));
  const Tensor x = file.tensor("lm/net/inputs"), outputs = file.tensor("lm/net/outputs");
  check_found("net", net, [&] {
    const Tensor p = net.value();
    const Tensor hidden = tanh(matmul(x, reshape(slice(p, 0, 0, 6), {2, 3})) + slice(p, 0, 6, 9));
    return reshape(matmul(hidden, reshape(slice(p, 0, 9, 12), {3, 1})), {40}) + select(p, 0, 12) - outputs;
  });
}

BOOST_AUTO_TEST_CASE(least_squares_that_cannot_begin_change_nothing) {
  const Parameter p("p", Tensor::from({1.0, 2.0}));
  const Tensor before = p.peek() + 0;
  const auto run = [&](const std::function<Tensor()>& residuals) {
    (void)nn::levenberg_marquardt(std::vector{p}, residuals);
  };
  BOOST_CHECK_EXCEPTION(
      run([&] { return sum(p.value()); }), ValueError,
      says("levenberg_marquardt: there are 1 residuals for 2 elements of parameters; it takes at least "
           "as many"));
  BOOST_CHECK_EXCEPTION(run([&] { return p.value() / 0.0; }), ValueError,
                        says("levenberg_marquardt: the residuals at first are not finite"));
  int calls = 0;
  BOOST_CHECK_THROW(run([&] {
                      if (++calls == 3) throw ValueError("no more");
                      return square(p.value());
                    }),
                    ValueError);
  BOOST_TEST(identical(p.peek(), before));
  BOOST_CHECK_THROW(nn::levenberg_marquardt({}, [&] { return p.value(); }), ValueError);
  BOOST_CHECK_THROW(nn::levenberg_marquardt(std::vector{p}, [&] { return p.value(); }, {.damping = -1}), ValueError);
}

BOOST_AUTO_TEST_SUITE_END()
