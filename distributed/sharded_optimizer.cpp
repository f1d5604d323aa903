/// Optimisers whose states are spread over the ranks: their parts, updates, and collecting and restoring all states.
#include "ferrite/distributed/sharded_optimizer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ferrite/distributed/detail/spread_states.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::mpi {
namespace {

/// An element of a state that the parameters of a group share.
struct Element {
  const ferrite::State* state = nullptr;  ///< the state; null if there is none
  std::size_t at = 0;
};

/// Returns the element of a parameter in the state `name` of an optimiser, which may be null.
Element element_of(const nn::Optimizer* optimizer, const std::string& name, const Parameter& parameter) {
  if (!optimizer) return {};
  for (const nn::StateSlot& slot : optimizer->slots()) {
    if (slot.share != nn::StateShare::element || slot.name != name) continue;
    const auto [first, count] = optimizer->group_range(slot.group);
    for (std::size_t k = 0; k < count; ++k)
      if (optimizer->parameters()[first + k] == parameter) return {&slot.states[0], k};
  }
  return {};
}

double value_of(const Element& e) {
  return cast(select(e.state->peek(), 0, static_cast<std::int64_t>(e.at)), Dtype::f64).item<double>();
}

/// Returns the value of a state whose elements are those of `from` for the same parameters; undefined if one is
/// missing. Elements of parameters that are not `wanted` are 0.
Tensor gathered(const nn::Optimizer& optimizer, const nn::StateSlot& slot, const nn::Optimizer* from,
                const std::function<bool(const Parameter&)>& wanted) {
  const auto [first, count] = optimizer.group_range(slot.group);
  std::vector<double> values(count);
  for (std::size_t k = 0; k < count; ++k) {
    const Parameter& p = optimizer.parameters()[first + k];
    if (!wanted(p)) continue;
    const Element e = element_of(from, slot.name, p);
    if (!e.state) return {};
    values[k] = value_of(e);
  }
  return cast(Tensor::from(values, {static_cast<std::int64_t>(values.size())}), slot.states[0].dtype());
}

}  // namespace

struct ShardedOptimizer::State {
  const World& world;
  std::vector<Parameter> parameters;
  Make make;
  std::vector<int> owner;                ///< rank that updates each parameter, ascending
  std::unique_ptr<nn::Optimizer> own{};  ///< optimiser of this rank's parameters; null if it has none
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

/// Each state comes from the rank that has it, the counts of parameters from their owners, and shared states (rates)
/// from the lowest rank that has an optimiser.
std::unique_ptr<nn::Optimizer> ShardedOptimizer::whole() const {
  const State& s = *state_;
  std::unique_ptr<nn::Optimizer> all = fresh();
  std::map<std::string, ferrite::State> mine;
  if (s.own)
    for (const auto& state : s.own->states()) mine[state.name] = state.variable;
  const auto is_mine = [&](const Parameter& p) {
    const auto at = std::find(s.parameters.begin(), s.parameters.end(), p) - s.parameters.begin();
    return s.owner[static_cast<std::size_t>(at)] == s.world.rank();
  };
  std::set<const void*> by_element;
  for (const nn::StateSlot& slot : all->slots()) {
    if (slot.share != nn::StateShare::element) continue;
    by_element.insert(slot.states[0].identity());
    const Tensor part = gathered(*all, slot, s.own.get(), is_mine);
    if (s.world.any(!part.defined()))
      throw ValueError("mpi::ShardedOptimizer: no rank has the state '" + slot.name +
                       "' of a parameter; make optimisers of the same class");
    Tensor sum = zeros(part.shape(), part.dtype());  // each rank has zeros for the others' elements
    for (int r = 0; r < s.world.size(); ++r) sum = sum + s.world.broadcast(part, r);
    slot.states[0].assign(sum);
  }
  for (const auto& state : all->states()) {
    if (by_element.contains(state.variable.identity())) continue;
    const auto at = mine.find(state.name);
    const bool here = at != mine.end() && at->second.spec() == state.variable.spec();
    int root = 0;  // the lowest rank that has the state
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
                       state.variable.spec().str() + "; give one of all parameters, made with the same options");
  };
  std::map<const void*, Tensor> by_element;
  for (const nn::StateSlot& slot : state_->own->slots()) {
    if (slot.share != nn::StateShare::element) continue;
    Tensor& value = by_element[slot.states[0].identity()];
    value = gathered(*state_->own, slot, &whole, [](const Parameter&) { return true; });
    if (!value.defined())
      throw ValueError("mpi::ShardedOptimizer: the optimiser given has no state like '" + slot.name +
                       "'; give one of all parameters, made with the same options");
  }
  for (const auto& state : state_->own->states())
    if (!by_element.contains(state.variable.identity())) check(state);
  for (const auto& state : state_->own->states()) {
    const auto element = by_element.find(state.variable.identity());
    state.variable.assign(element != by_element.end() ? element->second : values.at(state.name));
  }
}

}  // namespace ferrite::mpi
