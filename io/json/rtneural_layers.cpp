/// The layers of RTNeural's JSON.
#include <cmath>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/json/keras_layout.h"
#include "ferrite/io/json/rtneural_entry.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/norms.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"

namespace ferrite::io::detail {
namespace {

using Entry = RtneuralEntry;

void add(nn::Sequential& net, std::unique_ptr<nn::Layer> layer) {
  net.add(std::to_string(net.size()), std::move(layer));
}

void add_activation(nn::Sequential& net, const Entry& e) {
  const std::string& name = e.activation;
  if (name.empty()) return;
  if (name == "elu") return add(net, std::make_unique<nn::Elu>());
  const nn::Activation::Function f = nn::activation(name);
  if (!f) refuse(e.where, "the activation " + quote(name) + " is not supported");
  add(net, std::make_unique<nn::Activation>(name, f));
}

/// A vector of so many elements.
Tensor vector(const Entry& e, std::size_t i, std::int64_t n) {
  const Tensor v = e.weight(i);
  if (v.shape() != Shape{n})
    refuse(e.where,
           "weights " + std::to_string(i) + " have shape " + v.shape().str() + ", must be [" + std::to_string(n) + "]");
  return v;
}

void add_dense(nn::Sequential& net, const Entry& e) {
  const bool has_bias = e.expect_bias_or_none();
  const Tensor kernel = e.matrix(0);
  const Tensor bias = has_bias ? e.weight(1) : Tensor();
  if (has_bias && bias.shape() != Shape{kernel.shape()[1]})
    refuse(e.where, "the bias " + bias.shape().str() + " does not fit the weights " + kernel.shape().str());
  auto linear = std::make_unique<nn::Linear>(nn::LinearOptions{kernel.shape()[0], kernel.shape()[1], has_bias});
  linear->weight.assign(kernel);
  if (has_bias) linear->bias.assign(bias);
  add(net, std::move(linear));
  add_activation(net, e);
}

template <class L>
void add_recurrent(nn::Sequential& net, const Entry& e, int gates, double rate_ratio) {
  e.expect_weights(3);
  if (const std::string& a = e.activation; !a.empty() && a != "tanh")
    refuse(e.where, "a " + e.type + " with the activation " + quote(a) + " is not supported");
  const Tensor kernel = e.matrix(0);
  const Tensor recurrent = e.matrix(1);
  if (recurrent.shape()[1] != gates * recurrent.shape()[0])
    refuse(e.where, "a " + e.type + "'s recurrent weights have shape " + recurrent.shape().str());
  auto layer = std::make_unique<L>(kernel.shape()[0], recurrent.shape()[0]);
  set_from_keras(layer->weights(), {kernel, recurrent, e.weight(2), e.where}, e.where);
  if (rate_ratio == 1) return add(net, std::move(layer));
  add(net, std::make_unique<RateCorrected>(std::move(layer), rate_ratio));
}

/// A size that a key says, or else 1.
std::int64_t size_of(const Entry& e, const std::optional<float>& value, const char* key) {
  if (!value) return 1;
  if (*value < 1 || *value > 1e6F || *value != std::floor(*value))
    refuse(e.where, quote(key) + " is no size from 1 to 1000000: " + Scalar(*value).str());
  return static_cast<std::int64_t>(*value);
}

/// Keras's kernel [k, in / groups, out] as [out, in / groups, k].
void add_conv1d(nn::Sequential& net, const Entry& e) {
  const bool has_bias = e.expect_bias_or_none();
  const Tensor kernel = e.weight(0);
  if (kernel.rank() != 3 || kernel.numel() == 0)
    refuse(e.where, "weights 0 are no kernel of three axes: their shape is " + kernel.shape().str());
  if (!e.kernel_size) refuse(e.where, "a conv1d has no 'kernel_size'");
  if (!e.dilation) refuse(e.where, "a conv1d has no 'dilation'");
  const std::int64_t k = size_of(e, e.kernel_size, "kernel_size"), groups = size_of(e, e.groups, "groups");
  const std::int64_t stride = size_of(e, e.strides, "strides"), out = kernel.shape()[2];
  if (stride != 1) refuse(e.where, "a conv1d with strides of " + std::to_string(stride) + " is not supported");
  if (k != kernel.shape()[0])
    refuse(e.where, "the kernel_size is " + std::to_string(k) + ", the weights have shape " + kernel.shape().str());
  if (out % groups != 0)
    refuse(e.where, std::to_string(groups) + " groups do not divide " + std::to_string(out) + " channels");
  auto conv = std::make_unique<nn::CausalConv1d>(nn::CausalConv1dOptions{
      kernel.shape()[1] * groups, out, k, size_of(e, e.dilation, "dilation"), 1, groups, has_bias});
  conv->weight.assign(contiguous(permute(kernel, {2, 1, 0})));
  if (has_bias) conv->bias.assign(vector(e, 1, out));
  add(net, std::move(conv));
  add_activation(net, e);
}

/// Keras's alpha [1, C], or [1, 1] for all channels.
void add_prelu(nn::Sequential& net, const Entry& e) {
  e.expect_weights(1);
  const Tensor alpha = e.matrix(0);
  if (alpha.shape()[0] != 1) refuse(e.where, "a prelu's weights have shape " + alpha.shape().str() + ", not [1, C]");
  auto prelu = std::make_unique<nn::Prelu>(nn::PreluOptions{.num_parameters = alpha.shape()[1], .channels_last = true});
  prelu->weight.assign(select(alpha, 0, 0));
  add(net, std::move(prelu));
  add_activation(net, e);
}

/// gamma, beta, mean and variance, or only the last two.
void add_batchnorm(nn::Sequential& net, const Entry& e) {
  const bool affine = e.weights != 2;
  e.expect_weights(affine ? 4 : 2);
  if (!e.epsilon || *e.epsilon < 0) refuse(e.where, "a batchnorm has no 'epsilon' of 0 or more");
  const std::size_t mean = affine ? 2 : 0;
  const std::int64_t C = e.weight(mean).numel();
  if (C == 0) refuse(e.where, "a batchnorm has no channels");
  auto norm = std::make_unique<nn::BatchNorm1d>(nn::BatchNormOptions{
      .num_features = C, .epsilon = *e.epsilon, .momentum = 0.01, .affine = affine, .channels_last = true});
  if (affine) norm->weight.assign(vector(e, 0, C)), norm->bias.assign(vector(e, 1, C));
  norm->running_mean.assign(vector(e, mean, C));
  norm->running_var.assign(vector(e, mean + 1, C));
  norm->eval();
  add(net, std::move(norm));
  add_activation(net, e);
}

}  // namespace

Tensor RtneuralEntry::weight(std::size_t i) const {
  if (!arrays[i].defined())
    refuse(where, "weights " + std::to_string(i) + " are no array of numbers; are its rows equally long?");
  return arrays[i];
}

void RtneuralEntry::expect_weights(std::size_t n) const {
  if (weights != n)
    refuse(where, type + " needs " + std::to_string(n) + " arrays of weights, has " + std::to_string(weights));
}

bool RtneuralEntry::expect_bias_or_none() const {
  if (weights != 1) expect_weights(2);
  return weights == 2;
}

Tensor RtneuralEntry::matrix(std::size_t i) const {
  Tensor w = weight(i);
  if (w.rank() != 2 || w.numel() == 0)
    refuse(where, "weights " + std::to_string(i) + " are no matrix: their shape is " + w.shape().str());
  return w;
}

void add_entry(nn::Sequential& net, const Entry& e, const RtneuralOptions& options) {
  if (e.type == "dense" || e.type == "time-distributed-dense") return add_dense(net, e);
  if (e.type == "gru") return add_recurrent<nn::Gru>(net, e, 3, options.rate_ratio);
  if (e.type == "lstm") return add_recurrent<nn::Lstm>(net, e, 4, options.rate_ratio);
  if (e.type == "conv1d") return add_conv1d(net, e);
  if (e.type == "prelu") return add_prelu(net, e);
  if (e.type == "batchnorm") return add_batchnorm(net, e);
  if (e.type == "activation") return add_activation(net, e);
  refuse(e.where, "the type " + quote(e.type) +
                      " is not supported; supported are dense, time-distributed-dense, gru, lstm, conv1d, prelu, "
                      "batchnorm, activation");
}

}  // namespace ferrite::io::detail
