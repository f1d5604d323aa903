// Steps are counted for each parameter: a late one, frozen or without a gradient before, starts at its first step.
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/nadam.h"
#include "ferrite/nn/optim/sgd.h"
#include "support/compare.h"

using namespace ferrite;
using support::identical;
using support::within;

namespace {

std::vector<std::int64_t> counts_of(const nn::Optimizer& optimizer, const std::string& name = "step") {
  for (const auto& s : optimizer.states())
    if (s.name == name) return s.variable.peek().to_vector<std::int64_t>();
  return {};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(late_parameters)

/// Adam's first update from zero moments is rate g / (|g| + epsilon sqrt(1 - beta2)): one rate in the direction of the
/// gradient.
BOOST_AUTO_TEST_CASE(the_first_update_after_a_thousand_idle_steps_is_one_learning_rate) {
  for (const bool frozen : {false, true})
    for (const bool amsgrad : {false, true}) {
      const Parameter a("a", ones({3}, Dtype::f64)), late("late", ones({3}, Dtype::f64));
      nn::Adam adam({a, late}, {.learning_rate = 0.1, .epsilon = 0, .amsgrad = amsgrad});
      const Tensor g = full({3}, 0.5, Dtype::f64);
      if (frozen) adam.freeze(std::vector<Parameter>{late});
      for (int t = 0; t < 1000; ++t) adam.step({g, frozen ? g : Tensor()});
      if (frozen) adam.unfreeze(std::vector<Parameter>{late});
      BOOST_TEST(identical(late.peek(), ones({3}, Dtype::f64)));
      adam.step({g, g});
      BOOST_TEST(within(late.peek(), full({3}, 0.9, Dtype::f64), 1e-12), frozen << amsgrad);
      BOOST_TEST((counts_of(adam) == std::vector<std::int64_t>{1001, 1}));
    }
}

BOOST_AUTO_TEST_CASE(every_group_has_the_counts_of_its_own_parameters) {
  const Parameter a("a", ones({2})), b("b", ones({2})), c("c", ones({2}));
  nn::Adam adam({a});
  adam.add_group({b, c});
  const Tensor g = ones({2});
  adam.step({g, Tensor(), Tensor()});
  adam.step({Tensor(), Tensor(), g});
  adam.step({g, g, g});
  BOOST_TEST((counts_of(adam) == std::vector<std::int64_t>{2}));
  BOOST_TEST((counts_of(adam, "step.1") == std::vector<std::int64_t>{1, 2}));
}

/// The first velocity is the gradient, without and with dampening.
BOOST_AUTO_TEST_CASE(a_late_parameter_of_sgd_is_not_dampened_at_first) {
  const Parameter a("a", zeros({1})), late("late", zeros({1}));
  nn::Sgd sgd({a, late}, {.learning_rate = 1, .momentum = 0.5, .dampening = 0.75});
  sgd.step({ones({1}), Tensor()});
  sgd.step({ones({1}), ones({1})});
  BOOST_TEST(late.peek().item<float>() == -1.0F);
  BOOST_TEST(a.peek().item<float>() == -1.75F);  // 0.5 + 0.25 the second time
}

/// Many parameters take turns, so that their counts differ: each has its own powers.
BOOST_AUTO_TEST_CASE(parameters_that_take_turns_have_the_values_of_parameters_alone) {
  std::vector<Parameter> together, alone;
  std::vector<nn::NAdam> nadams;
  std::vector<nn::AdamW> adams;
  const auto start = [](int i) { return uniform({5}, {1, static_cast<std::uint64_t>(i), 0}); };
  std::vector<Parameter> first, second;
  for (int i = 0; i < 4; ++i) first.emplace_back("p", start(i)), second.emplace_back("p", start(i));
  nn::NAdam nadam(first);
  nn::AdamW adamw(second);
  for (int i = 0; i < 4; ++i) {
    alone.emplace_back("p", start(i));
    nadams.emplace_back(std::vector<Parameter>{alone.back()});
    together.emplace_back("p", start(i));
    adams.emplace_back(std::vector<Parameter>{together.back()});
  }
  for (int t = 0; t < 12; ++t) {
    Tensors g;
    for (int i = 0; i < 4; ++i) {
      const Tensor mine = uniform({5}, {2, static_cast<std::uint64_t>(i), static_cast<std::uint32_t>(t)}, -1, 1);
      const bool has = i == 0 || (t % (i + 1) == 0 && t >= i);
      g.push_back(has ? mine : Tensor());
      if (has) nadams[static_cast<std::size_t>(i)].step({mine}), adams[static_cast<std::size_t>(i)].step({mine});
    }
    nadam.step(g);
    adamw.step(g);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    BOOST_TEST(identical(first[i].peek(), alone[i].peek()), i);
    BOOST_TEST(identical(second[i].peek(), together[i].peek()), i);
  }
}

BOOST_AUTO_TEST_SUITE_END()
