/// Optimisers whose states are spread over the ranks: parts, updates and the gathering of parameters.
#include "ferrite/distributed/sharded_optimizer.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ferrite/distributed/detail/spread_states.h"

namespace ferrite::mpi {

struct ShardedOptimizer::State {
  const World& world;
  std::vector<Parameter> parameters;
  Make make;
  std::vector<int> owner;                ///< by parameter, ascending
  std::unique_ptr<nn::Optimizer> own{};  ///< may be null
  std::optional<detail::ParameterGathering> gathering{};

  std::unique_ptr<nn::Optimizer> made(std::vector<Parameter> of) const {
    std::unique_ptr<nn::Optimizer> o = make(std::move(of));
    if (!o) throw ValueError("mpi::ShardedOptimizer: the function gives no optimiser: null");
    return o;
  }
};

ShardedOptimizer::ShardedOptimizer(const World& world, std::vector<Parameter> parameters, Make make) {
  if (!make) throw ValueError("mpi::ShardedOptimizer: the function is null");
  if (parameters.empty()) throw ValueError("mpi::ShardedOptimizer: there are no parameters to train");
  state_.reset(new State{world, std::move(parameters), std::move(make), {}});
  State& s = *state_;
  s.owner = detail::owners_of(s.parameters, world.size());
  s.gathering.emplace(world, s.parameters, s.owner);
  std::vector<Parameter> mine;
  for (std::size_t i = 0; i < s.parameters.size(); ++i)
    if (s.owner[i] == world.rank()) mine.push_back(s.parameters[i]);
  if (!mine.empty()) s.own = s.made(std::move(mine));
}
ShardedOptimizer::~ShardedOptimizer() = default;

void ShardedOptimizer::step(const Tensors& gradients) const {
  const State& s = *state_;
  if (gradients.size() != s.parameters.size())
    throw ValueError("mpi::ShardedOptimizer: " + std::to_string(gradients.size()) + " gradients for " +
                     std::to_string(s.parameters.size()) + " parameters");
  Tensors mine;
  bool any = false;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (s.owner[i] != s.world.rank()) continue;
    mine.push_back(gradients[i]);
    any |= gradients[i].defined();
  }
  if (any) s.own->step(mine);
  s.gathering->run();
}

void ShardedOptimizer::set_learning_rate(double rate) const {
  ferrite::detail::check_not_negative("optimizer: the learning rate", {rate});
  if (state_->own) state_->own->set_learning_rate(rate);
}

const std::vector<Parameter>& ShardedOptimizer::parameters() const noexcept { return state_->parameters; }
const nn::Optimizer* ShardedOptimizer::own() const noexcept { return state_->own.get(); }
int ShardedOptimizer::owner(std::size_t parameter) const { return state_->owner.at(parameter); }
std::unique_ptr<nn::Optimizer> ShardedOptimizer::fresh() const { return state_->made(state_->parameters); }

/// Each state comes from the rank that has it; shared ones (rates, counts) from any rank that has an optimiser.
std::unique_ptr<nn::Optimizer> ShardedOptimizer::whole() const {
  const State& s = *state_;
  std::unique_ptr<nn::Optimizer> all = fresh();
  std::map<std::string, ferrite::State> mine;
  if (s.own)
    for (const auto& state : s.own->states()) mine[state.name] = state.variable;
  for (const auto& state : all->states()) {
    const auto at = mine.find(state.name);
    const bool here = at != mine.end() && at->second.spec() == state.variable.spec();
    int root = 0;  // the lowest rank that has it
    while (root < s.world.size() && !s.world.any(here && s.world.rank() == root)) ++root;
    if (root == s.world.size())
      throw ValueError("mpi::ShardedOptimizer: no rank has the state '" + state.name +
                       "'; give parameters different names");
    state.variable.assign(s.world.broadcast(here ? at->second.peek() : state.variable.peek(), root));
  }
  return all;
}

void ShardedOptimizer::take(const nn::Optimizer& whole) const {
  if (!state_->own) return;
  std::map<std::string, Tensor> values;
  for (const auto& state : whole.states()) values[state.name] = state.variable.peek();
  const auto check = [&](const nn::Named<ferrite::State>& state) {
    const auto at = values.find(state.name);
    if (at == values.end() || !(at->second.spec() == state.variable.spec()))
      throw ValueError("mpi::ShardedOptimizer: the optimiser given has no state like '" + state.name + "', " +
                       state.variable.spec().str() + "; give one of all parameters, made alike");
  };
  for (const auto& state : state_->own->states()) check(state);
  for (const auto& state : state_->own->states()) state.variable.assign(values.at(state.name));
}

}  // namespace ferrite::mpi
