/// The step that all optimisers share: checks, updates, undoing on errors.
#include "ferrite/nn/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "ferrite/nn/optim/detail/journal.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
namespace {

bool finite(const Tensor& g) {
  const NewFrame frame;
  const Tensor worst = amax(abs(cast(g, Dtype::f64)));
  return std::isfinite(worst.item<double>());
}

void check_rate(double rate) { ferrite::detail::check_not_negative("optimizer: the learning rate", {rate}); }

/// A second update would start from the first one's result.
void check_unique(const std::vector<Parameter>& parameters) {
  std::unordered_set<const void*> seen;
  for (const Parameter& p : parameters)
    if (!seen.insert(p.identity()).second)
      throw ValueError("optimizer: the parameter '" + p.name() + "' is given twice");
}

void check_parameters(const std::vector<Parameter>& parameters) {
  if (parameters.empty()) throw ValueError("optimizer: there are no parameters to train");
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].defined())
      throw ValueError("optimizer: parameter " + std::to_string(i) + " of the list is an empty handle");
  for (const Parameter& p : parameters)
    if (!p.drawn()) (void)p.peek();  // throws, and says what to do
  check_unique(parameters);
}

}  // namespace

Optimizer::Optimizer(std::vector<Parameter> parameters, double learning_rate, bool skip_nonfinite)
    : skip_nonfinite_(skip_nonfinite) {
  add_parameters(std::move(parameters), learning_rate);
}

std::size_t Optimizer::add_parameters(std::vector<Parameter> parameters, double learning_rate) {
  check_rate(learning_rate);
  check_parameters(parameters);
  std::vector<Parameter> all = parameters_;
  all.insert(all.end(), parameters.begin(), parameters.end());
  check_unique(all);
  std::vector<std::shared_ptr<std::atomic<bool>>> flags = frozen_;
  while (flags.size() < all.size()) flags.push_back(std::make_shared<std::atomic<bool>>(false));
  if (!groups_.empty()) groups_.back().is_followed->store(true);
  groups_.push_back({.begin = parameters_.size(), .end = all.size()});
  parameters_ = std::move(all);
  frozen_ = std::move(flags);
  const std::string name = full_name("learning_rate");
  groups_.back().rate = State(name, full({}, learning_rate, Dtype::f64));
  states_.push_back({name, groups_.back().rate});
  return groups_.size() - 1;
}

/// A shared name in the newest group: "step" in the first, "step.1" in the second.
std::string Optimizer::full_name(std::string_view name) const {
  return std::string(name) + (groups_.size() > 1 ? "." + std::to_string(groups_.size() - 1) : std::string());
}

/// Layers that were not told a prefix share names: a number tells their parameters apart.
std::string Optimizer::name_like(std::string_view name, std::size_t i) const {
  const auto same = std::count_if(parameters_.begin(), parameters_.begin() + static_cast<std::ptrdiff_t>(i),
                                  [&](const Parameter& p) { return p.name() == parameters_[i].name(); });
  return std::string(name) + "." + parameters_[i].name() + (same > 0 ? "#" + std::to_string(same + 1) : std::string());
}

State Optimizer::group_state(std::string_view name, StateShare share, const Shape& shape, double value, Dtype dtype) {
  const std::string own = full_name(name);
  State s(own, cast(full(shape, value, Dtype::f64), dtype));
  states_.push_back({own, s});
  slots_.push_back({std::string(name), groups_.size() - 1, share, value, {s}});
  return s;
}

State Optimizer::scalar_state(std::string_view name, double value, Dtype dtype) {
  return group_state(name, StateShare::group, {}, value, dtype);
}

State Optimizer::element_state(std::string_view name, double value, Dtype dtype) {
  const auto count = static_cast<std::int64_t>(groups_.back().end - groups_.back().begin);
  return group_state(name, StateShare::element, {count}, value, dtype);
}

std::vector<State> Optimizer::states_like_parameters(std::string_view name, double value) {
  return states_shaped(
      name, value, [](const Shape& shape) { return shape; }, [](const Shape&) { return true; });
}

std::vector<State> Optimizer::states_shaped(std::string_view name, double value, Shape (*shape_of)(const Shape&),
                                            bool (*wanted)(const Shape&)) {
  std::vector<State> list;
  const Group& group = groups_.back();
  for (std::size_t i = group.begin; i < group.end; ++i) {
    const Parameter& p = parameters_[i];
    if (!wanted(p.shape())) {
      list.emplace_back();
      continue;
    }
    const std::string own = name_like(name, i);
    list.emplace_back(own, full(shape_of(p.shape()), value, p.dtype()));
    states_.push_back({own, list.back()});
  }
  slots_.push_back({std::string(name), groups_.size() - 1, StateShare::own, value, list});
  return list;
}

std::string Optimizer::fault_of(std::string_view name, const Tensor& value) const {
  const auto is = [&](std::string_view kind) { return name == kind || name.starts_with(std::string(kind) + "."); };
  const bool momentum = is("cycled_momentum"), step = is("step");
  if (!is("learning_rate") && !step && !momentum) return {};
  for (const double v : contiguous(cast(value, Dtype::f64)).to_vector<double>()) {
    if (!(v >= 0) || !std::isfinite(v)) return "must be at least 0 and finite, is " + Scalar(v).str();
    if (momentum && v >= 1) return "must be below 1, is " + Scalar(v).str();
    if (step && v != std::floor(v)) return "must be a whole number, is " + Scalar(v).str();
  }
  return {};
}

const Optimizer::Group& Optimizer::at(std::size_t group) const {
  if (group >= groups_.size())
    throw ValueError("optimizer: there is no group " + std::to_string(group) + ": it has " +
                     std::to_string(groups_.size()));
  return groups_[group];
}

double Optimizer::learning_rate(std::size_t group) const { return at(group).rate.peek().item<double>(); }

void Optimizer::set_learning_rate(double rate) const {
  check_rate(rate);
  for (const Group& g : groups_) g.rate.assign(full({}, rate, Dtype::f64));
}

void Optimizer::set_learning_rate(double rate, std::size_t group) const {
  check_rate(rate);
  at(group).rate.assign(full({}, rate, Dtype::f64));
}

void Optimizer::check_gradients(std::span<const Tensor> grads) const {
  if (grads.size() != parameters_.size())
    throw ValueError("optimizer: " + std::to_string(grads.size()) + " gradients for " +
                     std::to_string(parameters_.size()) + " parameters");
  bool any = false, any_defined = false, any_tied = false;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Tensor& g = grads[i];
    const Parameter& p = parameters_[i];
    any_tied |= p.tied();
    if (!g.defined()) continue;
    any |= used(grads, i);
    any_defined = true;
    if (g.shape() != p.shape())
      throw ShapeError("optimizer: the gradient of '" + p.name() + "' has shape " + g.shape().str() +
                       ", the parameter " + p.shape().str());
    if (g.dtype() != p.dtype())
      throw DtypeError("optimizer: the gradient of '" + p.name() + "' is " + g.spec().str() + ", the parameter " +
                       Spec{p.shape(), p.dtype()}.str() + "; cast one of them");
  }
  if (any_tied) check_unique(parameters_);  // tied since the optimiser was made
  if (any_defined && !any) throw ValueError("optimizer: every parameter that has a gradient is frozen; unfreeze one");
  if (!any)
    throw ValueError("optimizer: no gradient of " + std::to_string(grads.size()) +
                     " is defined, so nothing would be trained; was the loss computed from these parameters?");
}

/// Whether to skip is decided outside of programs: what a traced program does never depends on values.
bool Optimizer::all_finite(std::span<const Tensor> grads) const {
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Tensor& g = grads[i];
    if (!used(grads, i) || !g.numel()) continue;
    if (g.is_abstract())
      throw TraceError("optimizer: skip_nonfinite: a traced gradient " + g.spec().str() +
                       " has no values to decide by; compile the gradients and step outside, or replace what is not "
                       "finite with where() and turn skip_nonfinite off");
    if (!finite(g)) return false;
  }
  return true;
}

/// A program that is being traced runs again only while the same parameters are frozen and there are no further groups.
void Optimizer::tell_flags() const {
  ferrite::detail::read_flag(groups_.back().is_followed);
  for (const auto& flag : frozen_) ferrite::detail::read_flag(flag);
  for (const Group& group : groups_)
    if (group.momentum) ferrite::detail::read_flag(group.cycles);
}

bool Optimizer::step(std::span<const Tensor> grads) {
  check_gradients(grads);
  if (skip_nonfinite_ && !all_finite(grads)) return false;
  const NoTapes frame;  // an update is no part of a gradient: what a tape has read it does not read again
  recorded_ = !ferrite::detail::frame().recorders.empty();
  if (recorded_) tell_flags();
  if (ferrite::detail::frame().tracing) {  // nothing is assigned before the trace has ended
    update_all(grads);
    finish();
    return true;
  }
  detail::Journal journal;
  try {
    const Recording recording(journal);
    update_all(grads);
  } catch (...) {
    journal.undo();
    throw;
  }
  finish();
  return true;
}

void Optimizer::update_all(std::span<const Tensor> grads) {
  begin();
  for (std::size_t group = 0; group < groups_.size(); ++group) update_group(group, grads);
}

Tensor Optimizer::updated_in(const Group& group, std::span<const Tensor> grads) const {
  std::size_t first = group.begin;
  while (first < group.end && used(grads, first)) ++first;
  if (first == group.end) return {};
  std::vector<std::int64_t> flags;
  for (std::size_t i = group.begin; i < group.end; ++i) flags.push_back(used(grads, i) ? 1 : 0);
  return Tensor::from(flags, {static_cast<std::int64_t>(flags.size())});
}

void Optimizer::update_group(std::size_t group, std::span<const Tensor> grads) {
  Group& g = groups_[group];
  std::size_t i = g.begin;
  while (i < g.end && !used(grads, i)) ++i;
  if (i == g.end) return;
  group_now_ = group;
  begin_now_ = g.begin;
  updated_now_ = updated_in(g, grads);
  begin_group(group);
  const Tensor rate = takes_rate() ? g.rate.value() : Tensor();
  g.rate_f32 = g.rate_f64 = Tensor();
  for (; i < g.end; ++i) {
    if (!used(grads, i)) continue;
    const Dtype dtype = grads[i].dtype();  // the parameter's
    Tensor& same_dtype = dtype == Dtype::f64 ? g.rate_f64 : g.rate_f32;
    if (rate.defined() && !same_dtype.defined()) same_dtype = cast(rate, dtype);
    update(i, grads[i], same_dtype);
  }
}

}  // namespace ferrite::nn
