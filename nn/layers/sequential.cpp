/// Chains of layers.
#include "ferrite/nn/layers/sequential.h"

#include <algorithm>

#include "ferrite/nn/detail/steps.h"

namespace ferrite::nn {
namespace {

Tensor added(const Tensor& x, const Tensor& y) {
  if (y.shape() != x.shape())
    throw ShapeError("residual: the chain changes the shape: " + x.shape().str() + " to " + y.shape().str());
  return x + y;
}

/// Throws ValueError where a sequence leaves a layer with another number of steps while the context counts the former.
template <class Item>
void check_steps(const Item& item, const Tensor& x, const Tensor& y, const Context& context) {
  if (!context.lengths.defined() || x.rank() != 3 || y.rank() != 3 || x.shape()[1] == y.shape()[1]) return;
  throw ValueError("sequential: the layer '" + item.name + "' (" + item.layer->kind() + ") gives " + y.shape().str() +
                   " for " + x.shape().str() +
                   ", another number of steps than the context's lengths count; run sequences of one length together");
}

}  // namespace

void Sequential::add(std::string name, std::unique_ptr<Layer> layer) {
  (void)whole();
  if (!layer) throw ValueError("sequential: the layer '" + name + "' is null");
  if (name.empty()) throw ValueError("sequential: a layer needs a name");
  if (names_.contains(name)) throw ValueError("sequential: the name '" + name + "' is taken");
  adopt(name, *layer);
  names_.insert(name);
  layers_.push_back({std::move(name), std::move(layer)});
}

Tensor Sequential::forward(const Tensor& x, const Context& context) const {
  (void)whole();
  if (context.state.defined() || context.cell.defined()) check_takes_state();
  Tensor y = x;
  for (const Item& item : layers_) {
    Tensor next = (*item.layer)(y, context);
    check_steps(item, y, next, context);
    y = std::move(next);
  }
  return y;
}

bool Sequential::causal() const {
  return std::all_of(layers_.begin(), layers_.end(), [](const Item& item) { return item.layer->causal(); });
}

StepInput Sequential::step_input() const {
  StepInput any{0, Dtype::f32, true};
  for (const Item& item : layers_) {
    const StepInput input = item.layer->step_input();
    if (input.width > 0 || !input.keeps_width) return input;
    if (!item.layer->named_parameters().empty()) any.dtype = input.dtype;  // one weight for all features
  }
  return any;
}

Pace Sequential::pace() const {
  Pace all;
  for (const Item& item : layers_) all = all.then(item.layer->pace());
  return all;
}

std::vector<StepState> Sequential::states(const StepRows& in) const {
  std::vector<StepState> all;
  StepRows rows = in;
  for (const Item& item : layers_) {
    const std::vector<StepState> own = item.layer->states(rows);
    for (const StepState& s : own) {
      all.push_back(s);
      all.back().name = item.name + "." + s.name;
    }
    rows = detail::rows_after(*item.layer, rows, own);
  }
  return all;
}

StepResult Sequential::step(const Tensor& x, const Tensors& states) const {
  StepResult r{x};
  std::size_t next = 0;
  for (const Item& item : layers_) {
    Tensors given;
    bool grows = false;
    for (const StepState& s : item.layer->states(detail::rows_of(r.y))) {
      given.push_back(states[next++]);
      grows |= s.capacity > 0;
    }
    if (grows) given.push_back(states[states.size() - 1]);
    StepResult of = item.layer->advance(r.y, given);
    r.y = std::move(of.y);
    for (Tensor& s : of.states) r.states.push_back(std::move(s));
  }
  return r;
}

std::unique_ptr<Step> Sequential::make_chain(const StepRows& in, bool adds) const {
  std::vector<std::unique_ptr<Step>> steps;
  StepRows rows = in;
  for (const Item& item : layers_) {
    steps.push_back(detail::step_of(*item.layer, rows));
    rows = steps.back()->result();
  }
  return detail::chain_step(std::move(steps), in, adds);
}

std::unique_ptr<Step> Sequential::make_step(const StepRows& in) const { return make_chain(in, false); }

void Sequential::clone_into(Sequential& to) const {
  (void)whole();
  for (const Item& item : layers_) to.add(item.name, item.layer->clone());
  to.take_after(*this);
}

std::unique_ptr<Layer> Sequential::clone() const {
  auto copy = std::make_unique<Sequential>();
  clone_into(*copy);
  return copy;
}

Tensor Residual::forward(const Tensor& x, const Context& context) const {
  return added(x, Sequential::forward(x, context));
}

StepResult Residual::step(const Tensor& x, const Tensors& states) const {
  StepResult r = Sequential::step(x, states);
  r.y = added(x, r.y);
  return r;
}

std::unique_ptr<Step> Residual::make_step(const StepRows& in) const {
  if (!pace().even())
    throw PaceError("residual: the chain gives one step for " + std::to_string(pace().stride) + ", the first one " +
                    std::to_string(pace().delay) +
                    " later, so there is none to add to each; pad its windows in front (causal), and put strides "
                    "before or behind the residual");
  return make_chain(in, true);
}

std::unique_ptr<Layer> Residual::clone() const {
  auto copy = std::make_unique<Residual>();
  clone_into(*copy);
  return copy;
}

}  // namespace ferrite::nn
