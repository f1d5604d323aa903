/// Norms folded into the linear layers and convolutions before them.
#include "ferrite/nn/layers/sequential.h"

#include <optional>

#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/convolution.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/norms.h"
#include "ferrite/nn/layers/parametrized.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
namespace {

using LayerPtr = std::unique_ptr<Layer>;

/// y = x scale + shift, channel by channel.
struct Affine {
  Tensor scale, shift;
  int axes;  ///< of space
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

/// What a layer does to its channels in evaluation, where that is a norm by running numbers.
std::optional<Affine> affine_of(const Layer& layer) {
  std::optional<Affine> found;
  (void)(find_affine<true, 1>(layer, found) || find_affine<true, 2>(layer, found) ||
         find_affine<true, 3>(layer, found) || find_affine<false, 1>(layer, found) ||
         find_affine<false, 2>(layer, found) || find_affine<false, 3>(layer, found));
  return found;
}

// ---- weights times scales, one for each output ---------------------------------------------------------

Tensor scaled_weight(const Linear& layer, const Tensor& scale) { return layer.weight.peek() * scale; }

/// [out, in / groups, kernel...].
template <class L>
Tensor scaled_weight(const L& layer, const Tensor& scale) {
  const Tensor w = layer.weight.peek();
  Shape each{w.shape()[0]};
  for (int i = 1; i < w.rank(); ++i) each.push_back(1);
  return w * reshape(scale, each);
}

/// [in, out / groups, kernel...]: the inputs of a group have its outputs.
template <int N>
Tensor scaled_weight(const ConvTranspose<N>& layer, const Tensor& scale) {
  const Tensor w = layer.weight.peek();
  const std::int64_t groups = layer.options().groups, in = w.shape()[0], out = w.shape()[1];
  const Tensor each = reshape(expand(reshape(scale, {groups, 1, out}), {groups, in / groups, out}), {in, out, 1});
  return reshape(reshape(w, {in, out, w.numel() / (in * out)}) * each, w.shape());
}

/// A linear layer joined with a norm of features: of sequences the norm would take the steps for channels.
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

/// The layer followed by the affine map; null where they cannot be one.
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
  LayerPtr last;  // not yet in `to`
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
