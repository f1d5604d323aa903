/// What of an optimiser changes from outside: which parameters are frozen, and momenta that schedules set.
#include <algorithm>

#include "ferrite/nn/optim/optimizer.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
namespace {

std::size_t index_of(const std::vector<Parameter>& parameters, const Parameter& wanted, const char* who) {
  if (!wanted.defined()) throw ValueError(std::string("optimizer: ") + who + ": the parameter is an empty handle");
  const auto found = std::find(parameters.begin(), parameters.end(), wanted);
  if (found == parameters.end())
    throw ValueError(std::string("optimizer: ") + who + ": it does not have the parameter '" + wanted.name() + "'");
  return static_cast<std::size_t>(found - parameters.begin());
}

}  // namespace

void Optimizer::set_frozen(std::span<const Parameter> parameters, bool frozen) {
  std::vector<std::size_t> places;
  for (const Parameter& p : parameters) places.push_back(index_of(parameters_, p, frozen ? "freeze" : "unfreeze"));
  for (const std::size_t i : places) frozen_[i]->store(frozen);
  any_frozen_ = static_cast<std::size_t>(
      std::count_if(frozen_.begin(), frozen_.end(), [](const auto& flag) { return flag->load(); }));
}

/// A program that asks while it is traced runs again only while the answer is the same.
bool Optimizer::frozen(const Parameter& parameter) const {
  return ferrite::detail::read_flag(frozen_[index_of(parameters_, parameter, "frozen")]);
}

double Optimizer::momentum(std::size_t group) const {
  const Group& g = at(group);
  if (!g.momentum) throw ValueError("optimizer: it has no momentum");
  return g.cycled.defined() ? g.cycled.peek().item<double>() : *g.momentum;
}

void Optimizer::set_momentum(double momentum, std::size_t group) {
  if (!at(group).momentum)
    throw ValueError("optimizer: it has no momentum to set: " + Scalar(momentum).str() + "; make it with one");
  if (!(momentum >= 0 && momentum < 1))
    throw ValueError("optimizer: the momentum must lie in [0, 1), got " + Scalar(momentum).str());
  if (ferrite::detail::frame().tracing)
    throw TraceError("optimizer: a momentum is set outside of the program that is traced; set it after the step");
  Group& g = groups_[group];
  const Tensor value = full({}, momentum, Dtype::f64);
  if (g.cycled.defined()) return g.cycled.assign(value);
  const std::string name = "cycled_momentum" + (group > 0 ? "." + std::to_string(group) : std::string());
  State state(name, value);
  states_.push_back({name, state});
  g.cycled = state;
  g.cycles->store(true);
}

const State& Optimizer::momentum_variable(std::size_t group) const& {
  if (!at(group).cycled.defined()) throw ValueError("optimizer: the momentum was never set, so it is no variable");
  return at(group).cycled;
}

Tensor Optimizer::momentum_now(std::size_t group) const {
  const Group& g = groups_[group];
  return g.cycled.defined() ? g.cycled.value() : full({}, g.momentum.value_or(0), Dtype::f64);
}

}  // namespace ferrite::nn
