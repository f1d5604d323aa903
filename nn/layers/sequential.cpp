/// Chains of layers.
#include "ferrite/nn/layers/sequential.h"

#include <algorithm>
#include <array>

#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/norms.h"

namespace ferrite::nn {
namespace {

Tensor added(const Tensor& x, const Tensor& y) {
  if (y.shape() != x.shape())
    throw ShapeError("residual: the chain changes the shape: " + x.shape().str() + " to " + y.shape().str());
  return x + y;
}

/// i64 or bool [B, T]: whether the mask is set at a step or since the output before it.
Tensor resets_after(const Tensor& mask, const Pace& pace) {
  const std::int64_t B = mask.shape()[0], T = mask.shape()[1], s = pace.stride, left = (T + s - 1) / s;
  const Tensor earlier = full({B, s - 1}, 0, Dtype::boolean), later = full({B, left * s - T}, 0, Dtype::boolean);
  return any(reshape(slice(concat({earlier, mask, later}, 1), 1, 0, left * s), {B, left, s}), {2});
}

/// What the context says of the steps behind a layer. Throws ValueError where the layer changes their number otherwise
/// than it says.
template <class Item>
void follow_steps(const Item& item, const Tensor& x, const Tensor& y, Context& context) {
  const bool lengths = context.lengths.defined(), resets = context.reset_mask.defined();
  if ((!lengths && !resets) || x.rank() != 3 || y.rank() != 3) return;
  const std::int64_t T = x.shape()[1], left = y.shape()[1];
  const Pace p = item.layer->pace();
  const std::int64_t padded = T + p.after - p.delay - 1;
  if (padded < 0 || padded / p.stride + 1 != left)
    throw ValueError(
        "sequential: the layer '" + item.name + "' (" + item.layer->kind() + ") gives " + y.shape().str() + " for " +
        x.shape().str() +
        ", another number of steps than the context's lengths or resets count; run sequences of one length "
        "together");
  if (p == Pace{}) return;
  if (p.stride > 1 && context.carry)
    throw ValueError(
        "sequential: the layer '" + item.name + "' (" + item.layer->kind() + ") has a stride of " +
        std::to_string(p.stride) +
        ", and a row that ends or begins again within it cannot be carried on; give pieces without lengths "
        "and resets, and reset rows of the carry between them");
  if (lengths) context.lengths = item.layer->lengths_after(context.lengths);
  if (resets && p.stride > 1) context.reset_mask = resets_after(context.reset_mask, p);
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

const Layer& Sequential::layer(std::string_view wanted) const& {
  for (const Item& item : layers_) {
    if (item.name == wanted) return *item.layer;
    if (!wanted.starts_with(item.name) || wanted[item.name.size()] != '.') continue;
    if (const auto* const inner = dynamic_cast<const Sequential*>(item.layer.get()))
      return inner->layer(wanted.substr(item.name.size() + 1));
  }
  std::string known;
  for (const Item& item : layers_) known += (known.empty() ? "'" : ", '") + item.name + "'";
  throw ValueError(kind() + ": there is no layer '" + std::string(wanted) + "'; " +
                   (known.empty() ? "the chain is empty" : "there are " + known));
}

void Sequential::throw_other_class(std::string_view name, const Layer& found) {
  throw ValueError("sequential: the layer '" + std::string(name) + "' is of another class: it is a " + found.kind());
}

Tensor Sequential::forward(const Tensor& x, const Context& context) const {
  (void)whole();
  if (context.state.defined() || context.cell.defined()) check_takes_state();
  Tensor y = x;
  Context own = context;
  const detail::ChainCall call(*this, x, own);
  try {
    for (const Item& item : layers_) {
      Tensor next = (*item.layer)(y, own);
      follow_steps(item, y, next, own);
      detail::LengthsCall::passes(own.lengths);
      y = std::move(next);
    }
  } catch (...) {
    call.undo();
    throw;
  }
  return y;
}

bool Sequential::causal() const {
  return std::all_of(layers_.begin(), layers_.end(), [](const Item& item) { return item.layer->causal(); });
}

bool Sequential::streams() const {
  return std::all_of(layers_.begin(), layers_.end(), [](const Item& item) { return item.layer->streams(); });
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

Tensor Sequential::lengths_after(const Tensor& lengths) const {
  Tensor left = lengths;
  for (const Item& item : layers_) left = item.layer->lengths_after(left);
  return left;
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

std::size_t Sequential::add_steps(StepGraph& graph, std::size_t x) const {
  for (const Item& item : layers_) x = graph.add(*item.layer, x);
  return x;
}

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

std::size_t Residual::add_steps(StepGraph& graph, std::size_t x) const {
  const Pace p = pace();
  if (p.stride != 1 || p.delay != p.after)
    throw PaceError("residual: the chain gives one step for " + std::to_string(p.stride) + ", " +
                    std::to_string(p.delay - p.after) +
                    " fewer in all, so there is none to add to each; pad its windows (same, causal), and put strides "
                    "before or behind the residual");
  const std::array<std::size_t, 2> both = {x, Sequential::add_steps(graph, x)};
  const StepRows in = graph.rows(x), out = graph.rows(both[1]);
  if (out.width != in.width || out.dtype != in.dtype)
    throw ShapeError("residual: the chain changes the shape: " + std::to_string(in.width) + " to " +
                     std::to_string(out.width) + " features");
  if (is_float(in.dtype)) return graph.add(*this, detail::sum_step(in, 2), both);
  const std::array<StepRows, 2> rows = {in, out};
  auto sum = detail::program_of_values(rows, [](const Tensors& t) { return added(t[0], t[1]); });
  return graph.add(*this, std::move(sum), both);
}

std::unique_ptr<Layer> Residual::clone() const {
  auto copy = std::make_unique<Residual>();
  clone_into(*copy);
  return copy;
}

}  // namespace ferrite::nn
