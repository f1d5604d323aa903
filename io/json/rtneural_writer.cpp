/// Writes nets as RTNeural's JSON.
#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/json/json_numbers.h"
#include "ferrite/io/json/keras_layout.h"
#include "ferrite/io/rtneural.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/norms.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"

namespace ferrite::io {
namespace {

/// {"in_shape": [null, null, D], "layers": [...]}.
class Writer {
 public:
  explicit Writer(const nn::Sequential& net) : net_(net) {}

  std::string text() {
    for (std::size_t i = 0; i < net_.size(); ++i) i += layer(i);
    if (!features_) detail::refuse("save_rtneural", "the net has no layer with weights");
    return "{\"in_shape\": " + extents(in_features_) + ", \"layers\": [\n" + layers_ + "\n]}\n";
  }

 private:
  /// Writes layer i; how many of the following are written with it.
  std::size_t layer(std::size_t i) {
    where_ = "save_rtneural: layer " + std::to_string(i) + " (" + net_[i].kind() + ")";
    const nn::Layer& l = uncorrected(net_[i]);
    for (const auto& p : l.named_parameters())
      if (p.variable.dtype() != Dtype::f32)
        detail::refuse(where_, "the weights are " + p.variable.peek().spec().str() + ", not f32");
    if (const auto* linear = dynamic_cast<const nn::Linear*>(&l)) {
      const Tensor w = linear->weight.peek();
      const Tensor bias = linear->bias.defined() ? linear->bias.peek() : zeros({w.shape()[1]});
      entry("dense", following(i), w.shape(), {w, bias});
      return is_activation(i + 1) ? 1 : 0;
    }
    if (const auto* conv = dynamic_cast<const nn::CausalConv1d*>(&l)) return convolution(*conv, i);
    if (const auto* gru = dynamic_cast<const nn::Gru*>(&l)) {
      if (!gru->reset_after()) detail::refuse(where_, "the reset before the product cannot be written");
      recurrent(*gru);
    } else if (const auto* lstm = dynamic_cast<const nn::Lstm*>(&l)) {
      recurrent(*lstm);
    } else if (const auto* prelu = dynamic_cast<const nn::Prelu*>(&l)) {
      if (!features_) detail::refuse(where_, "a net cannot begin with an activation");
      entry("prelu", "", {features_, features_}, {unsqueeze(prelu->weight.peek(), 0)});
    } else if (const auto* norm = dynamic_cast<const nn::BatchNorm1d*>(&l)) {
      batch_norm(*norm);
    } else if (is_activation(i)) {
      if (!features_) detail::refuse(where_, "a net cannot begin with an activation");
      entry("activation", checked_activation(l.kind()), {features_, features_}, {});
    } else {
      detail::refuse(where_,
                     "cannot be written: RTNeural's layers here are dense, gru, lstm, conv1d, prelu, "
                     "batchnorm and activations");
    }
    return 0;
  }

  void recurrent(const nn::GatedRecurrent& l) {
    const nn::RecurrentSizes& s = l.sizes();
    if (s.bidirectional) detail::refuse(where_, "two directions cannot be written");
    if (s.proj_size) detail::refuse(where_, "a projection cannot be written");
    if (!s.bias) detail::refuse(where_, "a layer without bias cannot be written");
    for (std::int64_t k = 0; k < s.layers; ++k) {
      const nn::RecurrentWeights<Parameter>& w = l.weights(k);
      const auto in_keras = [&](const Parameter& p) { return detail::keras_gates(p.peek(), s.hidden_size); };
      const Tensor bias =
          l.kind() == "gru" ? stack({in_keras(w.bias_ih), in_keras(w.bias_hh)}) : w.bias_ih.peek() + w.bias_hh.peek();
      entry(l.kind(), "tanh", {w.weight_ih.shape()[0], s.hidden_size},
            {in_keras(w.weight_ih), in_keras(w.weight_hh), bias});
    }
  }

  /// A correction of the rate is the reader's choice: the layer in it is written.
  static const nn::Layer& uncorrected(const nn::Layer& l) {
    const auto* corrected = dynamic_cast<const RateCorrected*>(&l);
    return corrected ? corrected->layer() : l;
  }
  bool is_activation(std::size_t i) const {
    if (i >= net_.size()) return false;
    const auto* elu = dynamic_cast<const nn::Elu*>(&net_[i]);
    return dynamic_cast<const nn::Activation*>(&net_[i]) || (elu && elu->options().alpha == 1);
  }
  /// The activation behind layer i, which is written with it.
  std::string following(std::size_t i) const {
    return is_activation(i + 1) ? checked_activation(net_[i + 1].kind()) : "";
  }

  std::size_t convolution(const nn::CausalConv1d& conv, std::size_t i) {
    const nn::CausalConv1dOptions& o = conv.options();
    if (o.stride != 1) detail::refuse(where_, "a stride cannot be written");
    const Tensor bias = conv.bias.defined() ? conv.bias.peek() : zeros({o.out_channels});
    const auto list = [](const char* key, std::int64_t n) {
      return std::string(", \"") + key + "\": [" + std::to_string(n) + "]";
    };
    entry("conv1d", following(i), {o.in_channels, o.out_channels}, {permute(conv.weight.peek(), {2, 1, 0}), bias},
          list("kernel_size", o.kernel_size) + list("dilation", o.dilation) +
              ", \"groups\": " + std::to_string(o.groups));
    return is_activation(i + 1) ? 1 : 0;
  }

  void batch_norm(const nn::BatchNorm1d& norm) {
    const nn::BatchNormOptions& o = norm.options();
    if (!o.channels_last || !o.track_running_stats)
      detail::refuse(where_, "cannot be written: RTNeural's batchnorm has the channels last, and running numbers");
    std::string epsilon = ", \"epsilon\": ";
    std::size_t at = 0;
    const auto e = static_cast<float>(o.epsilon);
    detail::append_numbers(epsilon, std::span(&e, 1), {}, at);
    Tensors weights;
    if (o.affine) weights = {norm.weight.peek(), norm.bias.peek()};
    weights.push_back(norm.running_mean.peek());
    weights.push_back(norm.running_var.peek());
    entry("batchnorm", "", {o.num_features, o.num_features}, weights, epsilon);
  }

  std::string checked_activation(const std::string& name) const {
    for (const char* known : {"tanh", "relu", "sigmoid", "softmax", "elu"})
      if (name == known) return name;
    detail::refuse(where_, "the activation " + detail::quote(name) + " cannot be written");
  }

  void entry(const std::string& type, const std::string& activation, const Shape& sizes, const Tensors& weights,
             const std::string& more = "") {
    if (!features_) in_features_ = sizes[0];
    features_ = sizes[1];
    layers_ += std::string(layers_.empty() ? "" : ",\n") + "{\"type\": \"" + type + "\", \"activation\": \"" +
               activation + "\", \"shape\": " + extents(features_) + more + ", \"weights\": [";
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (i) layers_ += ", ";
      const std::vector<float> values = weights[i].to_vector<float>();
      std::size_t at = 0;
      detail::append_numbers(layers_, values, weights[i].shape(), at);
    }
    layers_ += "]}";
  }

  static std::string extents(std::int64_t n) { return "[null, null, " + std::to_string(n) + "]"; }

  const nn::Sequential& net_;
  std::string where_;
  std::string layers_;
  std::int64_t in_features_ = 0;
  std::int64_t features_ = 0;  // of the last layer written
};

}  // namespace

std::string serialize_rtneural(const nn::Sequential& net) { return Writer(net).text(); }

void save_rtneural(const nn::Sequential& net, const std::filesystem::path& path) {
  const std::string text = serialize_rtneural(net);
  write_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace ferrite::io
