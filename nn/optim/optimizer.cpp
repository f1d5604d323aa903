/// The step that all optimisers share: checks, updates, undoing on errors.
#include "ferrite/nn/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
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

/// Whether to skip is decided outside of programs: what a traced program does never depends on values.
bool all_finite(std::span<const Tensor> grads) {
  for (const Tensor& g : grads) {
    if (!g.defined() || !g.numel()) continue;
    if (g.is_abstract())
      throw TraceError("optimizer: skip_nonfinite: a traced gradient " + g.spec().str() +
                       " has no values to decide by; compile the gradients and step outside, or replace what is not "
                       "finite with where() and turn skip_nonfinite off");
    if (!finite(g)) return false;
  }
  return true;
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
    : parameters_(std::move(parameters)), skip_nonfinite_(skip_nonfinite) {
  check_rate(learning_rate);
  check_parameters(parameters_);
  rate_ = scalar_state("learning_rate", learning_rate);
}

State Optimizer::scalar_state(std::string_view name, double value, Dtype dtype) {
  State s(std::string(name), full({}, value, dtype));
  states_.push_back({std::string(name), s});
  return s;
}

std::vector<State> Optimizer::states_like_parameters(std::string_view name) {
  std::vector<State> list;
  std::unordered_map<std::string, int> seen;  // layers that were not told a prefix share names
  for (const Parameter& p : parameters_) {
    const int count = ++seen[p.name()];
    const std::string full_name =
        std::string(name) + "." + p.name() + (count > 1 ? "#" + std::to_string(count) : std::string());
    list.emplace_back(full_name, zeros(p.shape(), p.dtype()));
    states_.push_back({full_name, list.back()});
  }
  return list;
}

std::string Optimizer::fault_of(std::string_view name, const Tensor& value) const {
  if (name != "learning_rate" && name != "step") return {};
  const double v = cast(value, Dtype::f64).item<double>();
  if (!(v >= 0) || !std::isfinite(v)) return "must be at least 0 and finite, is " + std::to_string(v);
  return name == "step" && v != std::floor(v) ? "must be a whole number, is " + std::to_string(v) : std::string();
}

double Optimizer::learning_rate() const { return rate_.peek().item<double>(); }

void Optimizer::set_learning_rate(double rate) const {
  check_rate(rate);
  rate_.assign(full({}, rate, Dtype::f64));
}

void Optimizer::check_gradients(std::span<const Tensor> grads) const {
  if (grads.size() != parameters_.size())
    throw ValueError("optimizer: " + std::to_string(grads.size()) + " gradients for " +
                     std::to_string(parameters_.size()) + " parameters");
  bool any = false, any_tied = false;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Tensor& g = grads[i];
    const Parameter& p = parameters_[i];
    any_tied |= p.tied();
    if (!g.defined()) continue;
    any = true;
    if (g.shape() != p.shape())
      throw ShapeError("optimizer: the gradient of '" + p.name() + "' has shape " + g.shape().str() +
                       ", the parameter " + p.shape().str());
    if (g.dtype() != p.dtype())
      throw DtypeError("optimizer: the gradient of '" + p.name() + "' is " + g.spec().str() + ", the parameter " +
                       Spec{p.shape(), p.dtype()}.str() + "; cast one of them");
  }
  if (any_tied) check_unique(parameters_);  // tied since the optimiser was made
  if (!any)
    throw ValueError("optimizer: no gradient of " + std::to_string(grads.size()) +
                     " is defined, so nothing would be trained; was the loss computed from these parameters?");
}

bool Optimizer::step(std::span<const Tensor> grads) {
  check_gradients(grads);
  if (skip_nonfinite_ && !all_finite(grads)) return false;
  const NoTapes frame;  // an update is no part of a gradient: what a tape has read it does not read again
  recorded_ = !ferrite::detail::frame().recorders.empty();
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
  const Tensor rate = rate_.value();
  rate_f32_ = rate_f64_ = Tensor();
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    const Dtype dtype = grads[i].dtype();  // the parameter's
    Tensor& same_dtype = dtype == Dtype::f64 ? rate_f64_ : rate_f32_;
    if (!same_dtype.defined()) same_dtype = cast(rate, dtype);
    update(i, grads[i], same_dtype);
  }
}

ClippedGradients clip_grad_norm(const Tensors& grads, double max_norm) {
  if (!(max_norm > 0)) throw ValueError("clip_grad_norm: max_norm must be positive, got " + std::to_string(max_norm));
  Tensor total;
  for (const Tensor& g : grads) {
    if (!g.defined()) continue;
    const Tensor squares = sum(square(g));
    total = total.defined() ? total + squares : squares;
  }
  if (!total.defined())
    throw ValueError("clip_grad_norm: no gradient of " + std::to_string(grads.size()) +
                     " is defined; was the loss computed from these parameters?");
  ClippedGradients out;
  out.norm = sqrt(total);
  const Tensor scale = minimum(max_norm / (out.norm + 1e-6), 1.0);
  for (const Tensor& g : grads) out.grads.push_back(g.defined() ? g * scale : Tensor());
  return out;
}

}  // namespace ferrite::nn
