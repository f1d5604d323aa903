/// Parallel layers, for whole sequences and step by step.
#include "ferrite/nn/layers/branches.h"

#include <algorithm>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/step_graph.h"

namespace ferrite::nn {

void Branches::add(std::string name, std::unique_ptr<Layer> layer) {
  (void)whole();
  if (!layer) throw ValueError(kind() + ": the branch '" + name + "' is null");
  if (name.empty()) throw ValueError(kind() + ": a branch needs a name");
  if (names_.contains(name)) throw ValueError(kind() + ": the name '" + name + "' is taken");
  adopt(name, *layer);
  names_.insert(name);
  branches_.push_back({std::move(name), std::move(layer)});
}

void Branches::check_any() const {
  if (whole(), branches_.empty()) throw ValueError(kind() + ": has no branches; add one");
}

bool Branches::causal() const {
  return std::all_of(branches_.begin(), branches_.end(), [](const Branch& b) { return b.layer->causal(); });
}

bool Branches::streams() const {
  return std::all_of(branches_.begin(), branches_.end(), [](const Branch& b) { return b.layer->streams(); });
}

Tensor Branches::forward(const Tensor& x, const Context& context) const {
  check_any();
  if (context.state.defined() || context.cell.defined()) check_takes_state();
  Tensors outputs;
  for (const Branch& b : branches_) outputs.push_back((*b.layer)(x, context));
  return together(outputs);
}

StepInput Branches::step_input() const {
  StepInput any{0, Dtype::f32, true};
  for (const Branch& b : branches_) {
    const StepInput input = b.layer->step_input();
    if (input.width > 0) return input;
    if (!b.layer->named_parameters().empty()) any.dtype = input.dtype;
    any.keeps_width = any.keeps_width && input.keeps_width;
  }
  return any;
}

StepInput Concat::step_input() const {
  StepInput input = Branches::step_input();
  input.keeps_width = input.keeps_width && size() == 1;
  return input;
}

Pace Branches::pace() const {
  Pace latest;
  for (const Branch& b : branches_)
    if (const Pace own = b.layer->pace(); &b == &branches_[0] || own.delay > latest.delay) latest = own;
  return latest;
}

Tensor Branches::lengths_after(const Tensor& lengths) const {
  return branches_.empty() ? lengths : branches_[0].layer->lengths_after(lengths);
}

std::vector<StepState> Branches::states(const StepRows& in) const {
  std::vector<StepState> all;
  for (const Branch& b : branches_)
    for (StepState s : b.layer->states(in)) {
      s.name = b.name + "." + s.name;
      all.push_back(std::move(s));
    }
  return all;
}

StepResult Branches::step(const Tensor& x, const Tensors& states) const {
  check_any();
  StepResult r;
  Tensors outputs;
  std::size_t next = 0;
  for (const Branch& b : branches_) {
    Tensors given;
    bool grows = false;
    for (const StepState& s : b.layer->states(detail::rows_of(x))) {
      given.push_back(states[next++]);
      grows |= s.capacity > 0;
    }
    if (grows) given.push_back(states[states.size() - 1]);
    StepResult of = b.layer->advance(x, given);
    outputs.push_back(std::move(of.y));
    for (Tensor& s : of.states) r.states.push_back(std::move(s));
  }
  r.y = together(outputs);
  return r;
}

std::size_t Branches::add_steps(StepGraph& graph, std::size_t x) const {
  check_any();
  std::vector<std::size_t> given;
  std::vector<StepRows> rows;
  const Pace first = branches_[0].layer->pace();
  for (const Branch& b : branches_) {
    const Pace own = b.layer->pace();
    if (own.stride != first.stride || own.delay - own.after != first.delay - first.after)
      throw PaceError(kind() + ": the branch '" + b.name + "' gives one step for " + std::to_string(own.stride) + ", " +
                      std::to_string(own.delay - own.after) + " fewer in all, '" + branches_[0].name + "' one for " +
                      std::to_string(first.stride) + ", " + std::to_string(first.delay - first.after) +
                      " fewer; give all the same strides, and pad their windows (same, causal)");
    given.push_back(graph.add(*b.layer, x));
    rows.push_back(graph.rows(given.back()));
  }
  return graph.add(*this, joined(rows), given);
}

std::unique_ptr<Step> Branches::joined(std::span<const StepRows> rows) const {
  return detail::program_of_values(rows, [this](const Tensors& outputs) { return together(outputs); });
}

void Branches::clone_into(Branches& to) const {
  (void)whole();
  for (const Branch& b : branches_) to.add(b.name, b.layer->clone());
  to.take_after(*this);
}

Tensor Parallel::together(const Tensors& outputs) const {
  Tensor y = outputs[0];
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    if (outputs[i].shape() != y.shape())
      throw ShapeError("parallel: the branches give different shapes: " + y.shape().str() + " and " +
                       outputs[i].shape().str());
    y = y + outputs[i];
  }
  return y;
}

Tensor Concat::together(const Tensors& outputs) const {
  for (const Tensor& y : outputs)
    if (y.rank() < 2) throw ShapeError("concat: a branch gives " + y.shape().str() + ", without features");
  return concat(std::span<const Tensor>(outputs.data(), outputs.size()), outputs[0].rank() > 3 ? 1 : -1);
}

std::unique_ptr<Step> Parallel::joined(std::span<const StepRows> rows) const {
  if (rows.size() == 1 || !is_float(rows[0].dtype)) return Branches::joined(rows);
  for (const StepRows& r : rows)
    if (r.width != rows[0].width || r.dtype != rows[0].dtype) return Branches::joined(rows);  // which throws
  return detail::sum_step(rows[0], rows.size());
}

std::unique_ptr<Step> Concat::joined(std::span<const StepRows> rows) const {
  for (const StepRows& r : rows)
    if (r.dtype != rows[0].dtype) return Branches::joined(rows);
  return detail::concat_step(rows);
}

std::unique_ptr<Layer> Parallel::clone() const {
  auto copy = std::make_unique<Parallel>();
  clone_into(*copy);
  return copy;
}

std::unique_ptr<Layer> Concat::clone() const {
  auto copy = std::make_unique<Concat>();
  clone_into(*copy);
  return copy;
}

}  // namespace ferrite::nn
