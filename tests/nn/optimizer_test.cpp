// What optimisers do besides their formulas, which tests/golden compares with PyTorch.
#include "ferrite/autograd/tape.h"
#include "ferrite/compile/compile.h"
#include "ferrite/nn/optim/adam.h"
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

/// The usual loop: the tape lives until the end of the step. It holds nothing that it is done with.
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
  BOOST_CHECK_EXCEPTION((void)p.value(), TapeError, says("parameter 'p' was assigned after this tape read it"));
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
  BOOST_CHECK_EXCEPTION(nn::Adam({a}, {.learning_rate = -1}), ValueError, says("learning rate must not be negative"));
  BOOST_CHECK_EXCEPTION(nn::Adam({a}, {.beta1 = 1}), ValueError, says("betas must lie in [0, 1)"));
  BOOST_CHECK_EXCEPTION(nn::Sgd({a}, {.nesterov = true}), ValueError, says("nesterov needs a momentum"));
  nn::Adam adam({a});
  BOOST_CHECK_EXCEPTION(adam.step(Tensors{}), ValueError, says("0 gradients for 1 parameters"));
  BOOST_CHECK_EXCEPTION(adam.step({ones({3})}), ShapeError, says("the gradient of 'a' has shape [3]"));
}

BOOST_AUTO_TEST_CASE(state_is_named_and_complete) {
  const Parameter a("layer.a", ones({2}));
  const nn::Adam adam({a});
  std::vector<std::string> names;
  for (const auto& s : adam.states()) names.push_back(s.name);
  BOOST_TEST((names == std::vector<std::string>{"learning_rate", "exp_avg.layer.a", "exp_avg_sq.layer.a", "step"}));
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

BOOST_AUTO_TEST_SUITE_END()
