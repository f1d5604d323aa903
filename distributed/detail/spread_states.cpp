/// States of optimisers spread over the ranks, and the gathering of parameters.
#include "ferrite/distributed/detail/spread_states.h"

#include <algorithm>

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::mpi::detail {

std::vector<int> owners_of(const std::vector<Parameter>& parameters, int ranks) {
  double all = 0, before = 0;
  for (const Parameter& p : parameters) all += static_cast<double>(p.numel());
  std::vector<int> owner;
  for (const Parameter& p : parameters) {
    const double middle = before + static_cast<double>(p.numel()) / 2;
    owner.push_back(all > 0 ? std::min(ranks - 1, static_cast<int>(middle / all * ranks)) : 0);
    before += static_cast<double>(p.numel());
  }
  return owner;
}

ParameterGathering::ParameterGathering(const World& world, const std::vector<Parameter>& parameters,
                                       const std::vector<int>& owner)
    : world_(world), parameters_(parameters), owner_(owner) {
  std::map<Dtype, std::vector<std::int64_t>> counts;  // number of elements of each rank
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::vector<std::int64_t>& of_dtype = counts[parameters[i].dtype()];
    of_dtype.resize(static_cast<std::size_t>(world.size()));
    of_dtype[static_cast<std::size_t>(owner[i])] += parameters[i].numel();
  }
  for (const auto& [dtype, by_rank] : counts)
    routes_[dtype] = route_of(world.link(), {.join = Join::gather, .channel = 1, .nodes = {}, .counts = by_rank});
}

void ParameterGathering::run() const {
  const NoTapes frame;
  for (const auto& [dtype, route] : routes_)
    if (!route.alone) gather(dtype, route);
}

void ParameterGathering::gather(Dtype dtype, const Route& route) const {
  std::vector<Tensor> mine;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].dtype() != dtype) continue;
    total += parameters_[i].numel();
    if (owner_[i] == world_.rank()) mine.push_back(reshape(parameters_[i].value(), {-1}));
  }
  const Tensor flat = mine.empty() ? zeros({0}, dtype) : concat(std::span<const Tensor>(mine), 0);
  const Tensor whole = wait(route, start(route, {flat}, total));
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    if (p.dtype() != dtype) continue;
    if (owner_[i] != world_.rank()) p.assign(reshape(slice(whole, 0, begin, begin + p.numel()), p.shape()));
    begin += p.numel();
  }
}

SpreadStates::SpreadStates(const World& world, nn::Optimizer& optimizer)
    : world_(world),
      optimizer_(optimizer),
      owner_(owners_of(optimizer.parameters(), world.size())),
      gathering_(world, optimizer.parameters(), owner_) {
  release();
}

/// Calls f(state, owner) for the states that belong to single parameters.
template <class F>
void SpreadStates::for_each_own_state(F f) const {
  for (const nn::StateSlot& slot : optimizer_.slots()) {
    if (slot.share != nn::StateShare::own) continue;
    const std::size_t first = optimizer_.group_range(slot.group).first;
    for (std::size_t i = 0; i < slot.states.size(); ++i)
      if (slot.states[i].defined()) f(slot.states[i], owner_[first + i]);
  }
}

/// Every rank reads which parameters of all ranks are frozen, so that either all or none trace a compiled step again.
/// If there is nothing to update at all, the optimiser throws on every rank.
void SpreadStates::step(const Tensors& gradients) const {
  const std::vector<Parameter>& parameters = optimizer_.parameters();
  Tensors mine(gradients.size());
  bool any = false, any_here = false;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const bool here = owner_.at(i) == world_.rank(),
               updates = !optimizer_.frozen(parameters[i]) && gradients[i].defined();
    if (here) mine[i] = gradients[i];
    any |= updates;
    any_here |= here && updates;
  }
  if (any_here || !any) optimizer_.step(any ? mine : gradients);
  gathering_.run();
}

/// A rank counts the steps of its parameters alone, so each element of such a state comes from its owner. A state that
/// a group has once, as in an optimiser from outside the library, is taken for a count, of which the largest is right.
void SpreadStates::make_whole(bool everywhere) const {
  const NewFrame frame;
  for_each_own_state([&](const State& state, int owner) {
    const Tensor value = world_.broadcast(state.peek(), owner);
    if (everywhere || world_.rank() == 0) state.assign(value);
  });
  for (const nn::StateSlot& slot : optimizer_.slots()) {
    if (slot.share == nn::StateShare::own) continue;
    const auto [first, count] = optimizer_.group_range(slot.group);
    const State& state = slot.states[0];
    Tensor whole = state.peek();
    for (int r = 0; r < world_.size(); ++r) {
      const Tensor theirs = world_.broadcast(state.peek(), r);
      if (slot.share == nn::StateShare::group) {
        whole = maximum(whole, theirs);
        continue;
      }
      std::vector<std::int64_t> is_theirs;
      for (std::size_t i = first; i < first + count; ++i) is_theirs.push_back(owner_[i] == r ? 1 : 0);
      whole = where(Tensor::from(is_theirs, {static_cast<std::int64_t>(count)}) > 0, theirs, whole);
    }
    state.assign(whole);
  }
}

void SpreadStates::release() const {
  const NewFrame frame;
  for_each_own_state([&](const State& state, int owner) {
    if (owner != world_.rank())
      state.assign(expand(zeros(Shape::filled(state.shape().rank(), 1), state.dtype()), state.shape()));
  });
}

}  // namespace ferrite::mpi::detail
