/// Parts shared by all optimisers: the step with its checks, updates and undo on errors; changes from outside (frozen
/// parameters, momenta set by schedules); gradient clipping; and values that several optimisers compute.
#include "ferrite/nn/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "ferrite/nn/optim/detail/optimizer_values.h"
#include "ferrite/tensor/inline_vector.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::nn::detail {
namespace {

/// A recorder that remembers the values of variables before their assignment.
class Journal final : public Recorder {
 public:
  void record(const Primitive&, const Attrs&, Inputs, std::span<Tensor>) override {}
  void read(const Variable&, Tensor&) override {}
  bool write(const Variable& variable, const Tensor&) override {
    before_.push_back({variable, variable.peek()});
    return false;
  }
  /// Restores the first values of the variables. Must not be called while the journal records.
  void undo() const {
    for (auto e = before_.rbegin(); e != before_.rend(); ++e) e->variable.assign(e->value);
  }

 private:
  struct Entry {
    Variable variable;
    Tensor value;
  };
  ferrite::detail::PooledVector<Entry> before_;
};

}  // namespace

}  // namespace ferrite::nn::detail

// ---- the step ------------------------------------------------------------------------------------------

namespace ferrite::nn {
namespace {

bool finite(const Tensor& g) {
  const NewFrame frame;
  const Tensor worst = amax(abs(cast(g, Dtype::f64)));
  return std::isfinite(worst.item<double>());
}

void check_rate(double rate) { ferrite::detail::check_not_negative("optimizer: the learning rate", {rate}); }

/// Throws ValueError if a parameter occurs twice: its second update would start from the result of the first.
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
    if (!p.drawn()) (void)p.peek();  // throws and says what to do
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

/// Returns the name of a state of the newest group: "step" in the first group, "step.1" in the second.
std::string Optimizer::full_name(std::string_view name) const {
  return std::string(name) + (groups_.size() > 1 ? "." + std::to_string(groups_.size() - 1) : std::string());
}

/// Returns the name of a parameter's state, with a number if layers without a prefix share the parameter's name.
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

/// Returns whether all gradients in use are finite. Decided outside programs: a traced program never depends on values.
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

/// Reads the flags of the step: a traced program runs again only with the same frozen parameters and no further groups.
void Optimizer::tell_flags() const {
  ferrite::detail::read_flag(groups_.back().is_followed);
  for (const auto& flag : frozen_) ferrite::detail::read_flag(flag);
  for (const Group& group : groups_)
    if (group.momentum) ferrite::detail::read_flag(group.cycles);
}

bool Optimizer::step(std::span<const Tensor> grads) {
  check_gradients(grads);
  if (skip_nonfinite_ && !all_finite(grads)) return false;
  const NoTapes frame;  // no tape records an update: values that it has read are not read again
  recorded_ = !ferrite::detail::frame().recorders.empty();
  if (recorded_) tell_flags();
  if (ferrite::detail::frame().tracing) {  // nothing is assigned before the trace ends
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
    const Dtype dtype = grads[i].dtype();  // same as the parameter's
    Tensor& same_dtype = dtype == Dtype::f64 ? g.rate_f64 : g.rate_f32;
    if (rate.defined() && !same_dtype.defined()) same_dtype = cast(rate, dtype);
    update(i, grads[i], same_dtype);
  }
}

// ---- frozen parameters and momenta ---------------------------------------------------------------------

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

/// Reads a flag: a program that asks while it is traced runs again only while the answer is the same.
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

// ---- clipping of gradients -----------------------------------------------------------------------------

namespace {

/// Returns a tensor's part of a norm: a sum of powers, or the largest element.
Tensor part_of_norm(const Tensor& g, double order) {
  if (order == 2) return sum(square(g));
  if (order == 1) return sum(abs(g));
  if (std::isinf(order)) return g.numel() > 0 ? amax(abs(g)) : zeros({}, g.dtype());
  return sum(pow(abs(g), order));
}

Tensor whole_norm(const Tensor& total, double order) {
  if (order == 2) return sqrt(total);
  if (order == 1 || std::isinf(order)) return total;
  return pow(total, 1 / order);
}

/// Returns the parts of all gradients together; undefined for none.
Tensor total_of(const Tensors& grads, double order) {
  Tensor total;
  for (const Tensor& g : grads) {
    if (!g.defined()) continue;
    const Tensor part = part_of_norm(g, order);
    total = !total.defined() ? part : std::isinf(order) ? maximum(total, part) : total + part;
  }
  return total;
}

/// Returns what gradients are divided by first, so that nothing leaves the range of the dtype: a power of two, which
/// does not round, if `total` comes near its ends, otherwise 1. For orders whose powers reach further it is the largest
/// element.
Tensor divisor_of(const Tensors& grads, const Tensor& total, double order) {
  const bool narrow = total.dtype() == Dtype::f32;
  const Tensor one = full({}, 1, total.dtype());
  if (order != 1 && order != 2 && !std::isinf(order)) {
    const Tensor largest = maximum(total_of(grads, kInfinityNorm), narrow ? 0x1p-100 : 0x1p-900);
    return where(largest <= (narrow ? 0x1.fffffep127 : 0x1.fffffffffffffp1023), largest, one);
  }
  const double high = narrow ? 0x1p100 : 0x1p900, low = narrow ? 0x1p-80 : 0x1p-800;
  const double large = narrow ? 0x1p88 : 0x1p700, small = narrow ? 0x1p-86 : 0x1p-600;
  return where(total > high, one * large, where(total < low, one * small, one));
}

/// Returns whether the divisor is known to be 1, so that the division may be omitted.
bool is_one(const Tensor& divisor) {
  const ferrite::detail::Frame& frame = ferrite::detail::frame();
  if (!frame.recorders.empty() || frame.tracing || divisor.is_abstract()) return false;
  return cast(divisor, Dtype::f64).item<double>() == 1;
}

}  // namespace

ClippedGradients clip_grad_norm(const Tensors& grads, double max_norm, double order) {
  if (!(max_norm > 0)) throw ValueError("clip_grad_norm: max_norm must be positive, got " + Scalar(max_norm).str());
  if (!(order > 0)) throw ValueError("clip_grad_norm: the order must be positive, got " + Scalar(order).str());
  const Tensor total = total_of(grads, order);
  if (!total.defined())
    throw ValueError("clip_grad_norm: no gradient of " + std::to_string(grads.size()) +
                     " is defined; was the loss computed from these parameters?");
  const Tensor divisor = divisor_of(grads, total, order);
  ClippedGradients out;
  if (is_one(divisor)) {
    out.norm = whole_norm(total, order);
    const Tensor scale = minimum(max_norm / (out.norm + 1e-6), 1.0);
    for (const Tensor& g : grads) out.grads.push_back(g.defined() ? g * scale : Tensor());
    return out;
  }
  Tensors small;
  for (const Tensor& g : grads) small.push_back(g.defined() ? g / divisor : Tensor());
  const Tensor norm = whole_norm(total_of(small, order), order);
  out.norm = norm * divisor;
  // min(1, max_norm / (norm divisor + 1e-6)) is pace / divisor, in two steps that stay in range. NaN stays NaN.
  const Tensor pace = max_norm / (norm + 1e-6 / divisor), one = full({}, 1, total.dtype());
  const Tensor keeps = pace >= divisor;
  const Tensor first = where(keeps, one, divisor), scale = where(keeps, one, pace);
  for (const Tensor& g : grads) out.grads.push_back(g.defined() ? g / first * scale : Tensor());
  return out;
}

Tensors clip_grad_value(const Tensors& grads, double value) {
  if (!(value > 0) || !std::isfinite(value))
    throw ValueError("clip_grad_value: the value must be finite and positive, got " + Scalar(value).str());
  Tensors out;
  for (const Tensor& g : grads) out.push_back(g.defined() ? clamp(g, -value, value) : Tensor());
  return out;
}

}  // namespace ferrite::nn

// ---- values --------------------------------------------------------------------------------------------

namespace ferrite::nn::detail {

void check_below_one(const char* who, const char* what, double value) {
  if (!(value >= 0 && value < 1))
    throw ValueError(std::string(who) + ": " + what + " must lie in [0, 1), got " + Scalar(value).str());
}

RuleDecay decay_of(double weight_decay, bool decoupled) {
  if (weight_decay == 0) return RuleDecay::none;
  return decoupled ? RuleDecay::weights : RuleDecay::gradient;
}

Tensor count_step(const State& steps, const Tensor& updated) {
  const Tensor before = steps.value();
  const Tensor next = updated.defined() ? before + updated : before + 1;
  steps.assign(next);
  const Tensor t = cast(next, Dtype::f64);
  return updated.defined() ? maximum(t, 1) : t;  // the others are not read but must be numbers
}

Tensor number_at(const Tensor& number, std::size_t place) {
  return number.rank() == 0 ? number : select(number, 0, static_cast<std::int64_t>(place));
}

Tensor correction(const Tensor& beta, const Tensor& steps) { return 1 - pow(beta, steps); }
Tensor correction(double beta, const Tensor& steps) { return 1 - pow(beta, steps); }

OptionValue pair_option(double a, double b) { return std::vector<std::optional<double>>{a, b}; }

void append(std::vector<State>& list, const std::vector<State>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace ferrite::nn::detail
