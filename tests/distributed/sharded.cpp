// An optimiser spread over the ranks, compared with one of all parameters: changed rates, parameters that join late,
// states taken from a whole one; run on one rank and on several.
#include <iostream>

#include "ferrite/distributed/sharded_optimizer.h"
#include "ferrite/nn/optim/adam.h"
#include "ferrite/nn/optim/nadam.h"
#include "ranks.h"

using namespace ferrite;

namespace {

std::vector<Parameter> parameters() {
  std::vector<Parameter> list;
  for (std::uint64_t i = 0; i < 5; ++i)
    list.emplace_back("p" + std::to_string(i), uniform({static_cast<std::int64_t>(3 + i)}, {.seed = 7, .stream = i}));
  return list;
}

/// Returns gradients: the first parameter always has one, the others in turn, the last from the fourth step on.
Tensors gradients(const std::vector<Parameter>& list, int step) {
  Tensors g;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool has = i == 0 || (i < 4 ? step % static_cast<int>(i + 1) == 0 : step >= 4);
    const RandomKey key{.seed = 8, .stream = i, .call = static_cast<std::uint64_t>(step)};
    g.push_back(has ? normal(list[i].shape(), key) : Tensor());
  }
  return g;
}

}  // namespace

namespace ranks {

int sharded(const mpi::World& world, const Arguments&) {
  int wrong = 0;
  const auto check = [&](bool right, const std::string& what) {
    if (!right) std::cout << "wrong: " << what << '\n';
    wrong += !right;
  };
  const auto same_states = [&](const nn::Optimizer& a, const nn::Optimizer& b, const std::string& what) {
    for (std::size_t i = 0; i < b.states().size(); ++i)
      check(same(a.states()[i].variable.peek(), b.states()[i].variable.peek()), what + ": " + b.states()[i].name);
  };
  const std::vector<Parameter> ours = parameters(), theirs = parameters();
  const auto make = [](std::vector<Parameter> p) { return std::make_unique<nn::NAdam>(std::move(p)); };
  const mpi::ShardedOptimizer parts(world, ours, make);
  const auto one = make(theirs);
  for (int step = 0; step < 8; ++step) {
    if (step == 2) {  // on every rank, and for all following steps
      parts.set_learning_rate(0.25);
      one->set_learning_rate(0.25);
      check(!parts.own() || parts.own()->learning_rate() == 0.25, "the rate that was set");
    }
    parts.step(gradients(ours, step));
    one->step(gradients(theirs, step));
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const std::string what = "step " + std::to_string(step) + ": " + ours[i].name();
      check(same(ours[i].peek(), theirs[i].peek()), what);
    }
  }
  const auto whole = parts.whole();
  check(whole->learning_rate() == 0.25, "the rate of the whole");
  same_states(*whole, *one, "whole");
  parts.step(gradients(ours, 9));
  const auto given = parts.fresh();
  for (std::size_t i = 0; i < given->states().size(); ++i)
    given->states()[i].variable.assign(one->states()[i].variable.peek());
  parts.take(*given);
  same_states(*parts.whole(), *one, "taken");
  bool refused = false;
  try {
    parts.set_learning_rate(-1);
  } catch (const ValueError&) {
    refused = true;
  }
  check(refused, "a rate below 0 is refused");
  tell(world, wrong ? "wrong" : "digest 1");
  return wrong ? 1 : 0;
}

}  // namespace ranks
