/// A chain of layers, and its copy for evaluation with norms folded into the linear layers and convolutions before
/// them.
#include "ferrite/nn/layers/sequential.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/convolution.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/norms.h"
#include "ferrite/nn/layers/parametrized.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/norms.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
namespace {

Tensor added(const Tensor& x, const Tensor& y) {
  if (y.shape() != x.shape())
    throw ShapeError("residual: the chain changes the shape: " + x.shape().str() + " to " + y.shape().str());
  return x + y;
}

/// Returns whether the mask is set at the step of an output, or since the output before it: bool, [B, outputs].
Tensor resets_after(const Tensor& mask, const Pace& pace) {
  const std::int64_t B = mask.shape()[0], T = mask.shape()[1], s = pace.stride, left = (T + s - 1) / s;
  const Tensor earlier = full({B, s - 1}, 0, Dtype::boolean), later = full({B, left * s - T}, 0, Dtype::boolean);
  return any(reshape(slice(concat({earlier, mask, later}, 1), 1, 0, left * s), {B, left, s}), {2});
}

/// Updates what the context says about steps for the next layer. Throws ValueError if the layer changes their number in
/// another way than its pace says.
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
                    "before or after the residual");
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

// ---- norms folded into the layers before them ----------------------------------------------------------

namespace {

using LayerPtr = std::unique_ptr<Layer>;

/// An affine map y = x scale + shift, channel by channel.
struct Affine {
  Tensor scale, shift;
  int axes;  ///< number of axes of space
  bool channels_last;
};

Tensor value_or(const Parameter& p, const Tensor& otherwise) { return p.defined() ? p.peek() : otherwise; }

template <bool over_batch, int N>
bool find_affine(const Layer& layer, std::optional<Affine>& found) {
  const auto* norm = dynamic_cast<const ChannelNorm<over_batch, N>*>(&layer);
  if (!norm || !norm->options().track_running_stats) return false;
  const Tensor mean = norm->running_mean.peek(), var = norm->running_var.peek();
  const Tensor scale = value_or(norm->weight, ones_like(mean)) * rsqrt(var + norm->options().epsilon);
  found = {scale, value_or(norm->bias, zeros_like(mean)) - mean * scale, N, norm->options().channels_last};
  return true;
}

/// Returns what a layer does to its channels in evaluation if it is a norm by running statistics.
std::optional<Affine> affine_of(const Layer& layer) {
  std::optional<Affine> found;
  (void)(find_affine<true, 1>(layer, found) || find_affine<true, 2>(layer, found) ||
         find_affine<true, 3>(layer, found) || find_affine<false, 1>(layer, found) ||
         find_affine<false, 2>(layer, found) || find_affine<false, 3>(layer, found));
  return found;
}

// ---- weights times scales, one for each output ---------------------------------------------------------

Tensor scaled_weight(const Linear& layer, const Tensor& scale) { return layer.weight.peek() * scale; }

/// Scales a weight [out, in / groups, kernel...].
template <class L>
Tensor scaled_weight(const L& layer, const Tensor& scale) {
  const Tensor w = layer.weight.peek();
  Shape each{w.shape()[0]};
  for (int i = 1; i < w.rank(); ++i) each.push_back(1);
  return w * reshape(scale, each);
}

/// Scales a weight [in, out / groups, kernel...]: the inputs of a group have the outputs of that group.
template <int N>
Tensor scaled_weight(const ConvTranspose<N>& layer, const Tensor& scale) {
  const Tensor w = layer.weight.peek();
  const std::int64_t groups = layer.options().groups, in = w.shape()[0], out = w.shape()[1];
  const Tensor each = reshape(expand(reshape(scale, {groups, 1, out}), {groups, in / groups, out}), {in, out, 1});
  return reshape(reshape(w, {in, out, w.numel() / (in * out)}) * each, w.shape());
}

/// A linear layer merged with a norm of features; for sequences the norm would take the steps for channels.
class FeaturesLinear final : public LayerOf<FeaturesLinear, LinearOptions> {
 public:
  static constexpr auto name = "linear";
  explicit FeaturesLinear(const LinearOptions& options, const Init& init) : LayerOf(options), linear_(options, init) {
    adopt("", linear_);
  }
  explicit FeaturesLinear(Linear linear) : LayerOf(linear.options()), linear_(std::move(linear)) { adopt("", linear_); }
  Tensor forward(const Tensor& x, const Context& context) const override {
    if (x.rank() != 2)
      throw ShapeError("linear: is joined with a batch norm of features [B, D], got x " + x.shape().str());
    return linear_(x, context);
  }

 private:
  Linear linear_;
};

template <class L>
LayerPtr joined(const L& layer, const Affine& affine) {
  auto options = layer.options();
  options.bias = true;
  auto copy = std::make_unique<L>(options, Init{.seed = {}, .prefix = {}, .dtype = layer.weight.dtype()});
  copy->weight.assign(scaled_weight(layer, affine.scale));
  copy->bias.assign(value_or(layer.bias, zeros_like(affine.scale)) * affine.scale + affine.shift);
  return copy;
}

bool fits(std::int64_t outputs, const Parameter& weight, const Affine& affine) {
  return outputs == affine.scale.numel() && weight.dtype() == affine.scale.dtype();
}

template <class L, int N>
bool join(const Layer& layer, const Affine& affine, LayerPtr& both) {
  const auto* conv = dynamic_cast<const L*>(&layer);
  if (!conv || affine.axes != N || !fits(conv->options().out_channels, conv->weight, affine)) return false;
  bool channels_last = true;
  if constexpr (requires { conv->options().channels_last; }) channels_last = conv->options().channels_last;
  if (channels_last == affine.channels_last) both = joined(*conv, affine);
  return true;
}

bool join_linear(const Layer& layer, const Affine& affine, LayerPtr& both) {
  const auto* linear = dynamic_cast<const Linear*>(&layer);
  if (!linear || affine.axes != 1 || !fits(linear->out_features(), linear->weight, affine)) return false;
  both = joined(*linear, affine);
  if (!affine.channels_last) both = std::make_unique<FeaturesLinear>(std::move(dynamic_cast<Linear&>(*both)));
  return true;
}

/// Returns the layer followed by the affine map as one layer; null if that is not possible.
LayerPtr folded(const Layer& layer, const Affine& affine) {
  LayerPtr both;
  (void)(join_linear(layer, affine, both) || join<CausalConv1d, 1>(layer, affine, both) ||
         join<Conv1d, 1>(layer, affine, both) || join<Conv2d, 2>(layer, affine, both) ||
         join<Conv3d, 3>(layer, affine, both) || join<ConvTranspose1d, 1>(layer, affine, both) ||
         join<ConvTranspose2d, 2>(layer, affine, both) || join<ConvTranspose3d, 3>(layer, affine, both));
  return both;
}

void fold_into(const Sequential& from, Sequential& to);

LayerPtr copy_of(const Layer& layer) {
  if (const auto* p = dynamic_cast<const Parametrized*>(&layer)) return copy_of(*p->plain());
  if (const auto* r = dynamic_cast<const Residual*>(&layer)) {
    auto copy = std::make_unique<Residual>();
    fold_into(*r, *copy);
    return copy;
  }
  if (const auto* s = dynamic_cast<const Sequential*>(&layer)) return fold_batch_norms(*s);
  return layer.clone();
}

void fold_into(const Sequential& from, Sequential& to) {
  std::string name;
  LayerPtr last;  // the last layer, not yet in `to`
  const auto put = [&] {
    if (last) to.add(name, std::move(last));
  };
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (last)
      if (const std::optional<Affine> affine = affine_of(from[i]))
        if (LayerPtr both = folded(*last, *affine)) {
          last = std::move(both);
          continue;
        }
    put();
    name = from.name(i);
    last = copy_of(from[i]);
  }
  put();
}

}  // namespace

std::unique_ptr<Sequential> fold_batch_norms(const Sequential& chain) {
  const NoTapes frame;
  auto copy = std::make_unique<Sequential>();
  fold_into(chain, *copy);
  copy->eval();
  return copy;
}

}  // namespace ferrite::nn
