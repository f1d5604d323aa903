// Groups of parameters, freezing, momenta that schedules change, clipping and accumulation.
#include <functional>

#include "ferrite/compile/compile.h"
#include "ferrite/nn/optim/accumulate_gradients.h"
#include "ferrite/nn/optim/adadelta.h"
#include "ferrite/nn/optim/adafactor.h"
#include "ferrite/nn/optim/adagrad.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/adamax.h"
#include "ferrite/nn/optim/cyclic_schedule.h"
#include "ferrite/nn/optim/lion.h"
#include "ferrite/nn/optim/nadam.h"
#include "ferrite/nn/optim/plateau_schedule.h"
#include "ferrite/nn/optim/radam.h"
#include "ferrite/nn/optim/rmsprop.h"
#include "ferrite/nn/optim/sgd.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::says;
using support::within;

namespace {

Tensor draw(const Shape& shape, std::uint64_t stream) { return uniform(shape, {7, stream, 0}, -1, 1); }

std::vector<Parameter> one(const char* name, std::uint64_t stream = 0) { return {{name, draw({5, 7}, stream)}}; }

/// Checks that two groups of one optimiser do what two optimisers do.
template <class O, class Options>
void check_groups(const Options& first, const Options& second) {
  const auto a = one("w", 1), b = one("w", 2), c = one("w", 1), d = one("w", 2);
  O grouped(a, first);
  grouped.add_group(b, second);
  O alone_a(c, first), alone_b(d, second);
  for (std::uint64_t t = 0; t < 4; ++t) {
    const Tensor g = draw({5, 7}, 10 + t), h = draw({5, 7}, 20 + t);
    // The first group pauses, and counts no step then.
    const bool pauses = t == 1;
    grouped.step({pauses ? Tensor() : g, h});
    if (!pauses) alone_a.step({g});
    alone_b.step({h});
    BOOST_TEST(identical(a[0].peek(), c[0].peek()), "step " << t);
    BOOST_TEST(identical(b[0].peek(), d[0].peek()), "step " << t);
  }
  BOOST_TEST(grouped.groups() == 2U);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(optimiser_groups)

BOOST_AUTO_TEST_CASE(groups_have_their_own_options_and_counts) {
  check_groups<nn::Sgd, nn::SgdOptions>({.momentum = 0.9}, {.learning_rate = 0.5, .weight_decay = 0.1});
  check_groups<nn::Sgd, nn::SgdOptions>({.momentum = 0.9, .dampening = 0.2}, {.maximize = true});
  check_groups<nn::RmsProp, nn::RmsPropOptions>({.momentum = 0.9}, {.alpha = 0.5, .centered = true});
  check_groups<nn::Adam, nn::AdamOptions>({}, {.learning_rate = 0.1, .beta1 = 0.5, .amsgrad = true});
  check_groups<nn::AdamW, nn::AdamOptions>({.weight_decay = 0.3}, {.learning_rate = 0.1, .beta2 = 0.5});
  check_groups<nn::NAdam, nn::NAdamOptions>({}, {.learning_rate = 0.1, .weight_decay = 0.2});
  check_groups<nn::RAdam, nn::RAdamOptions>({}, {.learning_rate = 0.1, .beta2 = 0.7});
  check_groups<nn::Adamax, nn::AdamaxOptions>({}, {.learning_rate = 0.1, .beta2 = 0.7});
  check_groups<nn::Adagrad, nn::AdagradOptions>({.learning_rate_decay = 0.3}, {.initial_accumulator = 0.2});
  check_groups<nn::Adadelta, nn::AdadeltaOptions>({}, {.rho = 0.3});
  check_groups<nn::Adafactor, nn::AdafactorOptions>({}, {.learning_rate = 0.5, .weight_decay = 0.1});
  check_groups<nn::Lion, nn::LionOptions>({}, {.learning_rate = 0.1, .beta1 = 0.3});
}

BOOST_AUTO_TEST_CASE(states_of_further_groups_are_named_by_their_number) {
  nn::Adam adam(one("w"));
  adam.add_group(one("w"));
  std::vector<std::string> names;
  for (const auto& s : adam.states()) names.push_back(s.name);
  BOOST_TEST((names == std::vector<std::string>{"learning_rate", "exp_avg.w", "exp_avg_sq.w", "step", "learning_rate.1",
                                                "exp_avg.w#2", "exp_avg_sq.w#2", "step.1"}));
  adam.set_learning_rate(0.5, 1);
  BOOST_TEST(adam.learning_rate(0) == 1e-3);
  BOOST_TEST(adam.learning_rate(1) == 0.5);
  adam.set_learning_rate(0.25);
  BOOST_TEST(adam.learning_rate(0) + adam.learning_rate(1) == 0.5);
  BOOST_TEST(!adam.fault_of("step.1", full({}, -1, Dtype::f64)).empty());
  BOOST_TEST(!adam.fault_of("learning_rate.1", full({}, -1, Dtype::f64)).empty());
}

/// A refused group leaves the optimiser as it was.
BOOST_AUTO_TEST_CASE(a_group_that_is_refused_changes_nothing) {
  const auto a = one("a");
  nn::Adam adam(a);
  const std::size_t states = adam.states().size();
  BOOST_CHECK_THROW(adam.add_group(a), ValueError);
  BOOST_CHECK_THROW(adam.add_group({}), ValueError);
  BOOST_CHECK_THROW(adam.add_group(one("b"), {.learning_rate = -1}), ValueError);
  BOOST_CHECK_THROW(adam.add_group(one("b"), {.beta1 = 2}), ValueError);
  BOOST_TEST(adam.groups() == 1U);
  BOOST_TEST(adam.states().size() == states);
  BOOST_TEST(adam.parameters().size() == 1U);
  BOOST_TEST(adam.step({draw({5, 7}, 1)}));
}

BOOST_AUTO_TEST_CASE(frozen_parameters_stay_with_their_states_until_they_are_unfrozen) {
  const auto a = one("a"), b = one("b");
  nn::Adam adam({a[0], b[0]}, {.learning_rate = 0.1, .skip_nonfinite = true});
  const Tensor g = draw({5, 7}, 3), bad = full({5, 7}, NAN);
  adam.step({g, g});
  adam.freeze(a);
  BOOST_TEST(adam.frozen(a[0]));
  const Tensor before = a[0].peek() + 0, moment = adam.states()[1].variable.peek() + 0, other = b[0].peek() + 0;
  BOOST_TEST(adam.step({bad, g}));  // the gradient of the frozen parameter is not read
  BOOST_TEST(identical(a[0].peek(), before));
  BOOST_TEST(identical(adam.states()[1].variable.peek(), moment));
  BOOST_TEST(!identical(b[0].peek(), other));
  BOOST_CHECK_EXCEPTION(adam.step({g, Tensor()}), ValueError,
                        says("optimizer: every parameter that has a gradient is frozen; unfreeze one"));
  adam.unfreeze(a);
  BOOST_TEST(adam.step({g, g}));
  BOOST_TEST(!identical(a[0].peek(), before));
}

BOOST_AUTO_TEST_CASE(compiled_steps_follow_what_is_frozen) {
  const auto a = one("a"), b = one("b");
  nn::NAdam nadam({a[0], b[0]});
  const auto step = compile([&](const Tensor& g) {
    nadam.step({g, g});
    return g;
  });
  const Tensor g = draw({5, 7}, 3);
  (void)step(g);
  nadam.freeze(a);
  const Tensor frozen = a[0].peek() + 0, moving = b[0].peek() + 0;
  (void)step(g);
  BOOST_TEST(identical(a[0].peek(), frozen));
  BOOST_TEST(!identical(b[0].peek(), moving));
  nadam.unfreeze(a);
  (void)step(g);
  BOOST_TEST(!identical(a[0].peek(), frozen));
  BOOST_TEST(step.plans() == 2);
}

BOOST_AUTO_TEST_CASE(compiled_steps_train_a_group_that_is_added_later) {
  const auto a = one("w", 1), b = one("w", 2), c = one("w", 1), d = one("w", 2);
  nn::Sgd eager(a, {.learning_rate = 0.1}), planned(c, {.learning_rate = 0.1});
  const auto step = compile([&](const Tensor& g) {
    planned.step(std::vector<Tensor>(planned.parameters().size(), g));
    return g;
  });
  for (int groups = 1; groups <= 2; ++groups) {
    const Tensor g = draw({5, 7}, static_cast<std::uint64_t>(30 + groups));
    eager.step(std::vector<Tensor>(eager.parameters().size(), g));
    (void)step(g);
    BOOST_TEST(identical(a[0].value(), c[0].value()));
    BOOST_TEST(identical(b[0].value(), d[0].value()));
    if (groups > 1) break;
    eager.add_group(b, {.learning_rate = 0.01});
    planned.add_group(d, {.learning_rate = 0.01});
  }
  BOOST_TEST(!identical(d[0].value(), draw({5, 7}, 2)));
}

namespace {

/// Runs steps under a schedule of the momentum, eager and compiled, also with a program made before the momentum was
/// ever set.
template <class O, class Options>
void check_cycled(const Options& options) {
  const auto a = one("w"), b = one("w");
  O eager(a, options), planned(b, options);
  const auto step = compile([&](const Tensor& g) {
    planned.step({g});
    return g;
  });
  const Tensor before = draw({5, 7}, 5);
  eager.step({before});
  (void)step(before);
  const nn::OneCycleOptions cycle{.max_learning_rate = {0.1}, .total_steps = 10};
  nn::OneCycleSchedule first(eager, cycle), second(planned, cycle);
  const Tensor start = a[0].peek() + 0;
  for (std::uint64_t t = 0; t < 8; ++t) {
    const Tensor g = draw({5, 7}, 30 + t);
    eager.step({g});
    (void)step(g);
    first.advance();
    second.advance();
    BOOST_TEST_REQUIRE(identical(a[0].peek(), b[0].peek()), "step " << t);
  }
  BOOST_TEST(!identical(a[0].peek(), start));
  BOOST_TEST(eager.momentum() < 0.95);
  BOOST_TEST(step.plans() == 2);
}

}  // namespace

BOOST_AUTO_TEST_CASE(compiled_steps_follow_a_momentum_that_is_cycled) {
  check_cycled<nn::Sgd>(nn::SgdOptions{.momentum = 0.5, .weight_decay = 0.1});
  check_cycled<nn::RmsProp>(nn::RmsPropOptions{.momentum = 0.5, .centered = true});
  check_cycled<nn::Adam>(nn::AdamOptions{.weight_decay = 0.1});
  check_cycled<nn::AdamW>(nn::AdamOptions{});
  check_cycled<nn::NAdam>(nn::NAdamOptions{});
  check_cycled<nn::RAdam>(nn::RAdamOptions{.beta2 = 0.6});
  check_cycled<nn::Adamax>(nn::AdamaxOptions{});
  check_cycled<nn::Lion>(nn::LionOptions{.weight_decay = 0.1});
}

BOOST_AUTO_TEST_CASE(clipping_by_any_norm_and_by_value) {
  const Tensors g = {Tensor::from({3.0, -4.0}), Tensor(), Tensor::from({12.0})};
  const auto norm = [&](double order) { return nn::clip_grad_norm(g, 1, order).norm.item<double>(); };
  BOOST_TEST(norm(2) == 13.0);
  BOOST_TEST(norm(1) == 19.0);
  BOOST_TEST(norm(nn::kInfinityNorm) == 12.0);
  BOOST_TEST(std::fabs(norm(3) - std::cbrt(27.0 + 64 + 1728)) < 1e-12);
  BOOST_TEST(within(nn::clip_grad_norm(g, 6, nn::kInfinityNorm).grads[0], Tensor::from({1.5, -2.0}), 1e-6));
  const Tensors clipped = nn::clip_grad_value(g, 3.5);
  BOOST_TEST(identical(clipped[0], Tensor::from({3.0, -3.5})));
  BOOST_TEST(!clipped[1].defined());
  BOOST_TEST(identical(clipped[2], Tensor::from({3.5})));
}

BOOST_AUTO_TEST_CASE(gradients_are_accumulated) {
  nn::GradientAccumulator sum(2), mean(2, true);
  const Tensor a = Tensor::from({1.0, 2.0}), b = Tensor::from({3.0, 5.0});
  for (nn::GradientAccumulator* acc : {&sum, &mean}) {
    BOOST_TEST(!acc->add({a, Tensor(), Tensor()}));
    BOOST_TEST(acc->add({b, b, Tensor()}));
  }
  const Tensors s = sum.take(), m = mean.take();
  BOOST_TEST(identical(s[0], Tensor::from({4.0, 7.0})));
  BOOST_TEST(identical(s[1], b));
  BOOST_TEST(!s[2].defined());
  BOOST_TEST(identical(m[0], Tensor::from({2.0, 3.5})));
  BOOST_TEST(sum.count() == 0);
  BOOST_TEST(!sum.add({a}));  // the following ones may be others
}

namespace {

struct Wrong {
  std::string sentence;
  std::function<void()> call;
};

}  // namespace

/// Every wrong call has its full message.
BOOST_AUTO_TEST_CASE(wrong_calls) {
  const auto p = one("w");
  nn::Sgd plain(p), sgd(p, {.momentum = 0.9});
  nn::GradientAccumulator full_one(1), begun(3);
  full_one.add({ones({2})});
  begun.add({ones({2})});
  const std::vector<Wrong> table = {
      {"sgd: dampening must lie in [0, 1], got 1.5", [&] { nn::Sgd(p, {.momentum = 0.5, .dampening = 1.5}); }},
      {"sgd: nesterov needs a dampening of 0, got 0.1",
       [&] { nn::Sgd(p, {.momentum = 0.5, .dampening = 0.1, .nesterov = true}); }},
      {"nadam: beta1 must lie in [0, 1), got 1.0", [&] { nn::NAdam(p, {.beta1 = 1}); }},
      {"radam: beta2 must lie in [0, 1), got -0.1", [&] { nn::RAdam(p, {.beta2 = -0.1}); }},
      {"adamax: beta1 must lie in [0, 1), got nan", [&] { nn::Adamax(p, {.beta1 = NAN}); }},
      {"lion: beta2 must lie in [0, 1), got 1.0", [&] { nn::Lion(p, {.beta2 = 1}); }},
      {"adadelta: rho must lie in [0, 1), got 1.0", [&] { nn::Adadelta(p, {.rho = 1}); }},
      {"adafactor: beta2_decay must be finite and at most 0, got 0.1", [&] { nn::Adafactor(p, {.beta2_decay = 0.1}); }},
      {"adafactor: clipping_threshold must be at least 1, got 0.5",
       [&] { nn::Adafactor(p, {.clipping_threshold = 0.5}); }},
      {"optimizer: there is no group 1: it has 1", [&] { (void)plain.learning_rate(1); }},
      {"optimizer: there is no group 2: it has 1", [&] { plain.set_learning_rate(0.1, 2); }},
      {"optimizer: it has no momentum", [&] { (void)plain.momentum(); }},
      {"optimizer: it has no momentum to set: 0.5; make it with one", [&] { plain.set_momentum(0.5); }},
      {"optimizer: the momentum must lie in [0, 1), got 1.0", [&] { sgd.set_momentum(1); }},
      {"optimizer: the momentum was never set, so it is no variable", [&] { (void)sgd.momentum_variable(); }},
      {"optimizer: freeze: it does not have the parameter 'other'", [&] { sgd.freeze(one("other")); }},
      {"optimizer: unfreeze: the parameter is an empty handle", [&] { sgd.unfreeze(std::vector{Parameter()}); }},
      {"clip_grad_norm: the order must be positive, got 0.0", [&] { nn::clip_grad_norm({ones({1})}, 1, 0); }},
      {"clip_grad_value: the value must be finite and positive, got -1.0",
       [&] { nn::clip_grad_value({ones({1})}, -1); }},
      {"gradient accumulator: the number of batches must be positive, got 0", [] { nn::GradientAccumulator(0); }},
      {"gradient accumulator: 1 batches are summed already; take them", [&] { full_one.add({ones({2})}); }},
      {"gradient accumulator: 2 gradients, there were 1 before",
       [&] {
         begun.add({ones({2}), ones({2})});
       }},
      {"gradient accumulator: no gradients were added", [] { nn::GradientAccumulator(1).take(); }},
      {"step schedule: the interval must be positive, got 0", [] { nn::step_rate(0); }},
      {"multistep schedule: the milestone must be positive, got -1", [] { nn::multistep_rate({-1}); }},
      {"constant schedule: the length must be positive, got 0", [] { nn::constant_rate(1, 0); }},
      {"warm restarts: the multiple must be positive, got 0", [] { nn::warm_restarts_rate(3, 0); }},
      {"warm-up: function 0 is null", [] { nn::warm_up_rate(3, {}); }},
      {"multiplicative schedule: the function is null", [] { nn::multiplicative_rate({}); }},
      {"chained schedule: there are no functions", [] { nn::chained_rate({}); }},
      {"sequential schedule: 0 milestones for 2 functions; there must be one fewer",
       [] {
         nn::sequential_rate({nn::step_rate(1), nn::step_rate(1)}, {});
       }},
      {"sequential schedule: milestones must be positive and ascend, got 0 at place 0",
       [] {
         nn::sequential_rate({nn::step_rate(1), nn::step_rate(1)}, {0});
       }},
      {"schedule: the function of the rate is null", [&] { nn::FunctionSchedule(sgd, {}); }},
      {"one cycle: total_steps must be positive, got 0",
       [&] { nn::OneCycleSchedule(sgd, {.max_learning_rate = {1}}); }},
      {"one cycle: 2 values of max_learning_rate for 1 groups; give one, or one for each",
       [&] {
         nn::OneCycleSchedule(sgd, {.max_learning_rate = {1, 2}, .total_steps = 5});
       }},
      {"one cycle: warm_up must lie in [0, 1], got 2.0",
       [&] { nn::OneCycleSchedule(sgd, {.max_learning_rate = {1}, .total_steps = 5, .warm_up = 2}); }},
      {"one cycle: divisions must be finite and positive, got 0.0 and 10000.0",
       [&] { nn::OneCycleSchedule(sgd, {.max_learning_rate = {1}, .total_steps = 5, .division = 0}); }},
      {"optimizer: it has no momentum",
       [&] { nn::OneCycleSchedule(plain, {.max_learning_rate = {1}, .total_steps = 5}); }},
      {"cyclic schedule: steps_up and steps_down must be positive, got 5 and 0",
       [&] {
         nn::CyclicSchedule(sgd, {.base_learning_rate = {0}, .max_learning_rate = {1}, .steps_up = 5, .steps_down = 0});
       }},
      {"cyclic schedule: momenta must lie in [0, 1), got 0.8 and 1.0",
       [&] { nn::CyclicSchedule(sgd, {.base_learning_rate = {0}, .max_learning_rate = {1}, .max_momentum = 1}); }},
      {"plateau schedule: the factor must lie in [0, 1), got 1.0", [&] { nn::PlateauSchedule(sgd, {.factor = 1}); }},
  };
  for (const Wrong& w : table)
    BOOST_CHECK_EXCEPTION(w.call(), ValueError, [&](const ValueError& e) {
      BOOST_TEST(e.what() == w.sentence);
      return true;
    });
  BOOST_CHECK_EXCEPTION(begun.add({ones({3})}), ShapeError,
                        says("gradient accumulator: gradient 0 has shape [3], it had [2]"));
  BOOST_CHECK_EXCEPTION(begun.add({ones({2}, Dtype::f64)}), DtypeError,
                        says("gradient accumulator: gradient 0 is f64[2], it was f32[2]"));
  BOOST_TEST(begun.count() == 1);
}

BOOST_AUTO_TEST_CASE(a_one_cycle_ends) {
  nn::Sgd sgd(one("w"), {.momentum = 0.9});
  nn::OneCycleSchedule schedule(sgd, {.max_learning_rate = {1}, .total_steps = 3});
  for (int i = 0; i < 3; ++i) schedule.advance();
  BOOST_CHECK_EXCEPTION(schedule.advance(), ValueError, says("one cycle: it has 3 steps, asked for step 4"));
  BOOST_TEST(schedule.steps() == 3);
}

/// The rates of torch.optim.lr_scheduler.OneCycleLR (2.13.0) with max_lr = 1, total_steps = 7 and linear annealing.
/// After the last step PyTorch continues to -0.204 and -0.0105; ours stays at the lowest rate.
BOOST_AUTO_TEST_CASE(a_linear_one_cycle_advances_to_its_end) {
  const Parameter w("w", zeros({1}));
  const std::vector<double> two = {0.04,
                                   0.9127272727272727,
                                   0.8163272653061224,
                                   0.6122464489795919,
                                   0.40816563265306127,
                                   0.20408481632653075,
                                   4.000000000004e-06,
                                   4e-06},
                            three = {0.04,
                                     0.9127272727272727,
                                     0.2145454545454547,
                                     0.031579789473684214,
                                     0.021054526315789475,
                                     0.010529263157894736,
                                     3.9999999999970615e-06,
                                     4e-06};
  for (const bool phases : {false, true}) {
    nn::Sgd sgd({w}, {.learning_rate = 0.1, .momentum = 0.9});
    nn::OneCycleSchedule schedule(
        sgd, {.max_learning_rate = {1}, .total_steps = 7, .anneal = nn::Anneal::linear, .three_phases = phases});
    for (const double wanted : phases ? three : two) {
      BOOST_TEST(std::abs(sgd.learning_rate() - wanted) < 1e-12, schedule.steps());
      BOOST_TEST(sgd.momentum() < 0.9500001);
      if (schedule.steps() < 7) schedule.advance();
    }
    BOOST_TEST(schedule.steps() == 7);
    BOOST_CHECK_THROW(schedule.advance(), ValueError);
  }
}

/// The last update of an epoch may have fewer batches: means are over those that came, (1 + 5) / 2.
BOOST_AUTO_TEST_CASE(gradients_taken_before_all_batches_came_are_means_over_those_that_came) {
  nn::GradientAccumulator mean(4, /*mean=*/true);
  BOOST_TEST(!mean.add({full({}, 1)}));
  BOOST_TEST(!mean.add({full({}, 5)}));
  BOOST_TEST(mean.take()[0].item<float>() == 3);
  BOOST_TEST(mean.count() == 0);
}

/// A compiled function would take the sums of its trace again in every call.
BOOST_AUTO_TEST_CASE(sums_are_not_taken_inside_a_compiled_function) {
  nn::GradientAccumulator all(1);
  (void)all.add({ones({2})});
  const auto step = compile([&](const Tensor& x) { return x + all.take()[0]; });
  BOOST_CHECK_THROW((void)step(ones({2})), TraceError);
  BOOST_TEST(all.count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
