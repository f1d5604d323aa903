// Optimisers apart from their formulas, which tests/golden compares with PyTorch.
#include <limits>
#include <memory>

#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/rmsprop.h"
#include "ferrite/nn/optim/schedule.h"
#include "ferrite/nn/optim/sgd.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

BOOST_AUTO_TEST_SUITE(optimisers)

BOOST_AUTO_TEST_CASE(an_undefined_gradient_leaves_everything_alone) {
  const Parameter a("a", ones({2}));
  const Parameter b("b", ones({2}));
  nn::Adam adam({a, b});
  adam.step({Tensor(), ones({2})});
  BOOST_TEST(identical(a.peek(), ones({2})));
  BOOST_TEST(!identical(b.peek(), ones({2})));
}

/// In the usual loop the tape lives until the end of the step, but holds nothing that it no longer needs.
BOOST_AUTO_TEST_CASE(a_step_under_a_living_tape_updates_in_place) {
  const Parameter p("p", full({300}, 2));
  const std::vector<Parameter> all{p};
  nn::Adam adam(all, {.learning_rate = 0.5});
  const void* const before = p.peek().identity();
  Tape tape;
  const Tensor loss = sum(p.value() * p.value());
  adam.step(tape.grad(loss, all));
  BOOST_TEST(p.peek().identity() == before);
  BOOST_TEST(within(p.peek(), full({300}, 1.5), 1e-6));
  BOOST_TEST(within(p.value(), full({300}, 1.5), 1e-6));  // reading is free once the gradient is taken
}

BOOST_AUTO_TEST_CASE(a_value_that_a_tape_still_needs_is_kept) {
  const Parameter p("p", full({300}, 2));
  const std::vector<Parameter> all{p};
  nn::Adam adam(all, {.learning_rate = 0.5});
  Tape tape;
  const Tensor loss = sum(p.value() * p.value());
  adam.step(tape.grad(loss, all, {.retain = true}));
  BOOST_TEST(within(p.peek(), full({300}, 1.5), 1e-6));
  BOOST_TEST(identical(tape.grad(loss, all)[0], full({300}, 4)));  // of the value that was read
}

BOOST_AUTO_TEST_CASE(nonfinite_gradients_are_skipped_if_asked) {
  const Parameter a("a", ones({2}));
  nn::Sgd careful({a}, {.learning_rate = 1, .skip_nonfinite = true});
  BOOST_TEST(!careful.step({Tensor::from({1.0F, NAN})}));
  BOOST_TEST(identical(a.peek(), ones({2})));
  BOOST_TEST(careful.step({ones({2})}));
  BOOST_TEST(identical(a.peek(), zeros({2})));
}

BOOST_AUTO_TEST_CASE(skipping_nonfinite_gradients_cannot_be_compiled) {
  const Parameter a("a", ones({2}));
  nn::Adam careful({a}, {.learning_rate = 1, .skip_nonfinite = true});
  auto step = compile([&](const Tensor& g) {
    (void)careful.step({g});
    return g;
  });
  BOOST_CHECK_EXCEPTION(step(ones({2})), TraceError, says("optimizer: skip_nonfinite: a traced gradient f32[2]"));
  BOOST_TEST(identical(a.peek(), ones({2})));
  BOOST_TEST(careful.step({ones({2})}));  // eager as before
}

BOOST_AUTO_TEST_CASE(errors) {
  const Parameter a("a", ones({2}));
  BOOST_CHECK_EXCEPTION(nn::Adam({a}, {.learning_rate = -1}), ValueError,
                        says("learning rate must be finite and must not be negative"));
  BOOST_CHECK_EXCEPTION(nn::Adam({a}, {.beta1 = 1}), ValueError, says("betas must lie in [0, 1)"));
  BOOST_CHECK_EXCEPTION(nn::Sgd({a}, {.nesterov = true}), ValueError, says("nesterov needs a momentum"));
  nn::Adam adam({a});
  BOOST_CHECK_EXCEPTION(adam.step(Tensors{}), ValueError, says("0 gradients for 1 parameters"));
  BOOST_CHECK_EXCEPTION(adam.step({ones({3})}), ShapeError, says("the gradient of 'a' has shape [3]"));
}

BOOST_AUTO_TEST_CASE(there_must_be_something_to_train) {
  BOOST_CHECK_EXCEPTION(nn::Adam({}), ValueError, says("optimizer: there are no parameters to train"));
  BOOST_CHECK_EXCEPTION(nn::Sgd({Parameter()}), ValueError, says("parameter 0 of the list is an empty handle"));
  const Parameter a("a", ones({2}));
  nn::Adam adam({a});
  BOOST_CHECK_EXCEPTION(adam.step({Tensor()}), ValueError, says("no gradient of 1 is defined"));
  BOOST_CHECK_EXCEPTION((void)nn::clip_grad_norm({Tensor(), Tensor()}, 1), ValueError,
                        says("clip_grad_norm: no gradient of 2 is defined"));
  BOOST_CHECK_EXCEPTION((void)nn::clip_grad_norm({}, 1), ValueError, says("no gradient of 0 is defined"));
}

namespace {

/// Returns every value that a step may change.
std::vector<Tensor> all_values(const nn::Optimizer& o) {
  std::vector<Tensor> values;
  for (const Parameter& p : o.parameters()) values.push_back(p.peek() + 0);
  for (const auto& s : o.states()) values.push_back(s.variable.peek() + 0);
  return values;
}

void check_unchanged(const nn::Optimizer& o, const std::vector<Tensor>& before) {
  const std::vector<Tensor> now = all_values(o);
  BOOST_TEST_REQUIRE(now.size() == before.size());
  for (std::size_t i = 0; i < now.size(); ++i) BOOST_TEST(identical(now[i], before[i]), "value " << i);
}

/// w -= rate g, with a count; throws for a gradient above 10 in its last parameter, after the others have changed.
struct Nervous final : nn::Optimizer {
  explicit Nervous(std::vector<Parameter> p) : Optimizer(std::move(p), 1, false) { count = scalar_state("count", 0); }
  void begin() override { count.assign(count.value() + 1); }
  void update(std::size_t i, const Tensor& grad, const Tensor& rate) override {
    parameters()[i].assign(parameters()[i].value() - rate * grad);
    if (amax(grad).item<double>() > 10) throw ValueError("nervous: too steep");
  }
  State count;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_step_that_throws_has_changed_nothing) {
  const Parameter a("a", ones({2})), b("b", ones({2}));
  std::vector<std::unique_ptr<nn::Optimizer>> all;
  all.push_back(std::make_unique<nn::Adam>(std::vector{a, b}));
  all.push_back(std::make_unique<nn::AdamW>(std::vector{a, b}));
  all.push_back(std::make_unique<nn::Sgd>(std::vector{a, b}, nn::SgdOptions{.momentum = 0.9}));
  all.push_back(
      std::make_unique<nn::RmsProp>(std::vector{a, b}, nn::RmsPropOptions{.momentum = 0.9, .centered = true}));
  for (const auto& o : all) {
    BOOST_TEST(o->step(Tensors{ones({2}), ones({2})}));
    const std::vector<Tensor> before = all_values(*o);
    BOOST_CHECK_EXCEPTION(o->step(Tensors{ones({2}), ones({2}, Dtype::f64)}), DtypeError,
                          says("optimizer: the gradient of 'b' is f64[2], the parameter f32[2]"));
    BOOST_CHECK_THROW(o->step(Tensors{ones({2}), ones({3})}), ShapeError);
    BOOST_CHECK_THROW(o->step(Tensors{ones({2}), Tensor::abstract({{2}, Dtype::f32})}), TraceError);
    check_unchanged(*o, before);
    BOOST_TEST(o->step(Tensors{ones({2}), ones({2})}));
    BOOST_TEST(!identical(a.peek(), before[0]));
  }
}

BOOST_AUTO_TEST_CASE(what_an_optimiser_of_ones_own_did_before_it_threw_is_taken_back) {
  const Parameter a("a", ones({2}, Dtype::f64)), b("b", ones({2}, Dtype::f64));
  Nervous o({a, b});
  const Tensor small = ones({2}, Dtype::f64), large = full({2}, 11, Dtype::f64);
  BOOST_TEST(o.step(Tensors{small, small}));
  const std::vector<Tensor> before = all_values(o);
  BOOST_CHECK_EXCEPTION(o.step(Tensors{small, large}), ValueError, says("nervous: too steep"));
  check_unchanged(o, before);
  BOOST_TEST(o.step(Tensors{small, small}));
  BOOST_TEST(o.count.peek().item<double>() == 2.0);
}

BOOST_AUTO_TEST_CASE(state_is_named_and_complete) {
  const Parameter a("layer.a", ones({2}));
  const nn::Adam adam({a});
  std::vector<std::string> names;
  for (const auto& s : adam.states()) names.push_back(s.name);
  BOOST_TEST((names == std::vector<std::string>{"learning_rate", "exp_avg.layer.a", "exp_avg_sq.layer.a", "step"}));
}

BOOST_AUTO_TEST_CASE(rmsprop_names_its_states_as_pytorch_does_and_has_only_those_that_it_needs) {
  const Parameter a("layer.a", ones({2}));
  const auto names = [&](const nn::RmsPropOptions& options) {
    std::vector<std::string> list;
    for (const auto& s : nn::RmsProp({a}, options).states()) list.push_back(s.name);
    return list;
  };
  using Names = std::vector<std::string>;
  BOOST_TEST((names({}) == Names{"learning_rate", "square_avg.layer.a"}));
  BOOST_TEST((names({.momentum = 0.5, .centered = true}) ==
              Names{"learning_rate", "square_avg.layer.a", "momentum_buffer.layer.a", "grad_avg.layer.a"}));
}

BOOST_AUTO_TEST_CASE(rmsprop_refuses_options_out_of_range) {
  const std::vector<Parameter> a{{"a", ones({2})}};
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const double bad : {-0.1, 1.0, 1.5, nan, inf})
    BOOST_CHECK_EXCEPTION(nn::RmsProp(a, {.alpha = bad}), ValueError, says("rmsprop: alpha must lie in [0, 1), got"));
  for (const double bad : {-0.1, nan, inf}) {
    const auto refuses = says("rmsprop: epsilon, weight_decay and momentum must be finite and must not be negative");
    BOOST_CHECK_EXCEPTION(nn::RmsProp(a, {.epsilon = bad}), ValueError, refuses);
    BOOST_CHECK_EXCEPTION(nn::RmsProp(a, {.weight_decay = bad}), ValueError, refuses);
    BOOST_CHECK_EXCEPTION(nn::RmsProp(a, {.momentum = bad}), ValueError, refuses);
    BOOST_CHECK_EXCEPTION(nn::RmsProp(a, {.learning_rate = bad}), ValueError, says("the learning rate must be finite"));
  }
}

/// The mean of squares less the square of the mean is the square of a deviation, although f32 rounds it below 0.
BOOST_AUTO_TEST_CASE(centered_rmsprop_under_a_gradient_that_does_not_change_gives_numbers) {
  const Tensor g = uniform({64}, {.seed = 1}, 0.1, 3);
  for (const bool is_compiled : {false, true}) {
    const Parameter a("a", zeros({64}));
    nn::RmsProp centered({a}, {.alpha = 0.5, .epsilon = 1, .centered = true});
    const auto compiled = compile([&](const Tensor& gradient) {
      centered.step({gradient});
      return a.value();
    });
    bool negative = false;
    for (int step = 0; step < 60; ++step) {
      if (is_compiled) (void)compiled(g);
      if (!is_compiled) centered.step({g});
      const auto& s = centered.states();
      negative |= amin(s[1].variable.peek() - square(s[2].variable.peek())).item() < 0;
      BOOST_TEST_REQUIRE(std::isfinite(amax(abs(a.peek())).item()));
    }
    BOOST_TEST(negative);  // else this test proves nothing
  }
}

BOOST_AUTO_TEST_CASE(compiled_steps_of_rmsprop_have_the_bits_of_eager_ones) {
  for (const nn::RmsPropOptions& options :
       {nn::RmsPropOptions{}, nn::RmsPropOptions{.momentum = 0.9}, nn::RmsPropOptions{.centered = true},
        nn::RmsPropOptions{.weight_decay = 0.1, .momentum = 0.9, .centered = true}}) {
    const std::vector<Parameter> eager{{"w", uniform({5, 7}, {.seed = 1}, -1, 1)}, {"b", ones({37})}};
    const std::vector<Parameter> planned{{"w", eager[0].peek()}, {"b", eager[1].peek()}};
    nn::RmsProp first(eager, options), second(planned, options);
    const auto train = [](const std::vector<Parameter>& p, nn::RmsProp& o, const Tensor& x) {
      Tape tape;
      const Tensor loss = sum(square(p[0] - x)) + sum(exp(p[1]));
      o.step(tape.grad(loss, p));
      return loss;
    };
    const auto step = compile([&](const Tensor& x) { return train(planned, second, x); });
    for (std::uint64_t i = 0; i < 20; ++i) {
      const Tensor x = uniform({5, 7}, {.seed = 2 + i}, -1, 1);
      BOOST_TEST_REQUIRE(identical(step(x), train(eager, first, x)), "step " << i);
    }
    const std::vector<Tensor> a = all_values(first), b = all_values(second);
    BOOST_TEST_REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) BOOST_TEST(identical(a[i], b[i]), "value " << i);
    BOOST_TEST(step.plans() == 1);
  }
}

BOOST_AUTO_TEST_CASE(clipping) {
  const Tensors g = {Tensor::from({3.0, 0.0}), Tensor(), Tensor::from({4.0})};
  const nn::ClippedGradients c = nn::clip_grad_norm(g, 1);
  BOOST_TEST(c.norm.item<double>() == 5.0);
  BOOST_TEST(within(c.grads[0], Tensor::from({0.6, 0.0}), 1e-6));
  BOOST_TEST(!c.grads[1].defined());
  BOOST_TEST(identical(nn::clip_grad_norm(g, 10).grads[2], g[2]));
}

BOOST_AUTO_TEST_CASE(a_schedule_can_be_resumed) {
  const Parameter a("a", ones({2}));
  nn::Sgd sgd({a}, {.learning_rate = 1});
  nn::StepSchedule schedule(sgd, 2, 0.1);
  schedule.set_steps(5);
  BOOST_TEST(std::fabs(sgd.learning_rate() - 0.01) < 1e-15);
}

BOOST_AUTO_TEST_CASE(a_schedule_that_throws_has_changed_nothing) {
  const Parameter a("a", ones({2}));
  nn::Sgd sgd({a}, {.learning_rate = 1});
  nn::StepSchedule schedule(sgd, 2, 0.1);
  schedule.advance();
  const double inf = std::numeric_limits<double>::infinity();
  for (const double bad : {-1.0, inf, std::numeric_limits<double>::quiet_NaN()}) {
    BOOST_CHECK_EXCEPTION(schedule.restore(7, bad), ValueError, says("must be finite and must not be negative"));
    BOOST_CHECK_EXCEPTION(sgd.set_learning_rate(bad), ValueError, says("must be finite and must not be negative"));
    BOOST_CHECK_THROW(nn::StepSchedule(sgd, 2, bad), ValueError);
    BOOST_CHECK_THROW(nn::CosineSchedule(sgd, 2, bad), ValueError);
  }
  BOOST_CHECK_THROW(schedule.set_steps(-1), ValueError);
  BOOST_TEST(schedule.steps() == 1);
  BOOST_TEST(schedule.base() == 1);
  BOOST_TEST(sgd.learning_rate() == 1);
  const nn::Sgd moved = std::move(sgd);  // the schedule stays with the rate
  schedule.advance();
  BOOST_TEST(std::fabs(moved.learning_rate() - 0.1) < 1e-15);
}

BOOST_AUTO_TEST_SUITE_END()
