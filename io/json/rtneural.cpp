/// Reads RTNeural's nets in JSON as a stream, layer by layer, and writes them; runs recurrent layers at a higher sample
/// rate than that of their training.
#include "ferrite/io/rtneural.h"

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/compile/scan.h"
#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/json/json_reader.h"
#include "ferrite/io/json/keras_layout.h"
#include "ferrite/nn/carry.h"
#include "ferrite/nn/layers/activations.h"
#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/norms.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/tensor/scalar.h"

namespace ferrite::io::detail {
namespace {

constexpr std::size_t kMostWeights = 4;  ///< number of arrays that a layer can need; further ones are only counted

/// One entry of "layers" in the file.
struct RtneuralEntry {
  explicit RtneuralEntry(std::size_t position, std::string_view file)
      : where(std::string(file) + ": layer " + std::to_string(position)) {}

  std::string where, type, activation;  ///< empty where the file has none
  std::vector<Tensor> arrays;           ///< undefined for a value that is not an array of numbers
  std::size_t weights = 0;              ///< number of values in the file's list
  /// The numbers under these keys, alone or as the last of a list; empty where the file has none.
  std::optional<float> kernel_size{}, dilation{}, groups{}, strides{}, epsilon{};

  /// Returns array i of weights. This and the next ones throw IoError for an array that is missing.
  Tensor weight(std::size_t i) const;
  Tensor matrix(std::size_t i) const;
  void expect_weights(std::size_t n) const;
  /// Returns whether a matrix or kernel has a bias. Throws IoError for other numbers of arrays.
  bool expect_bias_or_none() const;
};

// ---- layers --------------------------------------------------------------------------------------------

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

/// Returns array i as a vector of n elements.
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

/// Returns the size under a key, or 1.
std::int64_t size_of(const Entry& e, const std::optional<float>& value, const char* key) {
  if (!value) return 1;
  if (*value < 1 || *value > 1e6F || *value != std::floor(*value))
    refuse(e.where, quote(key) + " is no size from 1 to 1000000: " + Scalar(*value).str());
  return static_cast<std::int64_t>(*value);
}

/// Adds a convolution, whose kernel [k, in / groups, out] in Keras's layout becomes [out, in / groups, k].
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

/// Adds a PReLU with Keras's alpha [1, C], or [1, 1] for all channels.
void add_prelu(nn::Sequential& net, const Entry& e) {
  e.expect_weights(1);
  const Tensor alpha = e.matrix(0);
  if (alpha.shape()[0] != 1) refuse(e.where, "a prelu's weights have shape " + alpha.shape().str() + ", not [1, C]");
  auto prelu = std::make_unique<nn::Prelu>(nn::PreluOptions{.num_parameters = alpha.shape()[1], .channels_last = true});
  prelu->weight.assign(select(alpha, 0, 0));
  add(net, std::move(prelu));
  add_activation(net, e);
}

/// Adds a batch normalisation with gamma, beta, mean and variance, or only the last two.
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

/// Appends the layers of an entry. Throws IoError for one that is not supported or does not fit.
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

}  // namespace

}  // namespace ferrite::io::detail

// ---- reading -------------------------------------------------------------------------------------------

namespace ferrite::io {
namespace {

/// Builds the net while the text is read, each layer at the end of its entry.
class NetReader final : public detail::JsonEvents {
 public:
  NetReader(std::string_view where, const RtneuralOptions& options) : where_(where), options_(options) {}

  std::unique_ptr<nn::Sequential> finish() {
    if (!has_layers_) detail::refuse(where_, "has no 'layers'; names and weights are read with io::read_json_weights");
    if (entries_ == 0) detail::refuse(where_, "has no layers: 'layers' is empty or no list");
    return std::move(net_);
  }

  void number(float v) override {
    if (weights_open_) {
      if (whole_ && !shape_.number()) whole_ = false;
      if (whole_) numbers_.push(v);
    }
    if (entry_ && !weights_open_) set_number(v);
    value(Kind::number);
    end_array();
  }
  void text(std::string_view v) override {
    if (in_entry() && field_ == Field::type) entry_->type = v;
    if (in_entry() && field_ == Field::activation) entry_->activation = v;
    if (in_entry() && field_ == Field::padding && v != "causal")
      detail::refuse(entry_->where, "the padding " + detail::quote(v) + " is not supported");
    value(Kind::text);
    end_array();
  }
  void other() override {
    value(Kind::other);
    end_array();
  }
  void begin_object() override {
    if (in_layers()) {
      entry_.emplace(entries_, where_);
      field_ = Field::other;
    } else {
      value(Kind::object);
    }
    keys_.begin_object();
    if (levels_++ == 0) is_object_ = true;
  }
  void key(std::string_view name) override {
    keys_.key(name);
    if (levels_ == 1) is_layers_ = is_object_ && name == "layers";
    has_layers_ |= levels_ == 1 && is_layers_;
    if (!in_entry()) return;
    field_ = name == "type"         ? Field::type
             : name == "activation" ? Field::activation
             : name == "weights"    ? Field::weights
             : name == "padding"    ? Field::padding
                                    : Field::other;
    key_ = name;
  }
  void end_object() override {
    keys_.end_object(where_);
    --levels_;
    if (levels_ == kInLayers && entry_) {
      detail::add_entry(*net_, *entry_, options_);
      entry_.reset();
      ++entries_;
    }
    end_array();
  }
  void begin_list() override {
    if (levels_ == 1 && is_layers_) layers_open_ = true;
    if (in_entry() && field_ == Field::weights) {
      weights_open_ = true;
    } else {
      value(Kind::list);
    }
    if (++levels_ > kInWeights && weights_open_ && whole_ && !shape_.open()) whole_ = false;
  }
  void end_list() override {
    if (levels_ > kInWeights && weights_open_ && whole_ && !shape_.close()) whole_ = false;
    --levels_;
    if (in_entry()) weights_open_ = false;
    if (levels_ == 1) layers_open_ = false;
    end_array();
  }

 private:
  enum class Kind : std::uint8_t { number, text, other, object, list };
  enum class Field : std::uint8_t { other, type, activation, weights, padding };
  /// Numbers of lists and objects that are open in the list of layers, in one of them, and in its weights.
  static constexpr std::size_t kInLayers = 2, kInEntry = 3, kInWeights = 4;

  bool in_layers() const { return layers_open_ && levels_ == kInLayers; }
  bool in_entry() const { return entry_ && levels_ == kInEntry; }

  /// Sets an option of the entry, which is a number, alone or in a list.
  void set_number(float v) {
    if (key_ == "kernel_size") entry_->kernel_size = v;
    if (key_ == "dilation") entry_->dilation = v;
    if (key_ == "groups") entry_->groups = v;
    if (key_ == "strides") entry_->strides = v;
    if (key_ == "epsilon") entry_->epsilon = v;
  }

  /// Checks a value that is not allowed everywhere.
  void value(Kind kind) {
    if (in_layers()) detail::refuse(std::string(where_) + ": layer " + std::to_string(entries_), "is no object");
    if (in_entry() && kind != Kind::text && field_ == Field::type) detail::refuse(entry_->where, "'type' is no text");
    if (in_entry() && kind != Kind::text && field_ == Field::activation)
      detail::refuse(entry_->where, "'activation' is no text");
    if (weights_open_ && kind != Kind::number && kind != Kind::list) whole_ = false;
  }

  /// Ends a value, and adds it to the arrays of weights if it is one of them.
  void end_array() {
    if (!weights_open_ || levels_ != kInWeights) return;
    if (entry_->weights++ < detail::kMostWeights) entry_->arrays.push_back(whole_ ? array() : Tensor());
    shape_ = {};
    numbers_.clear();
    whole_ = true;
  }
  Tensor array() const {
    return Tensor::build<float>(shape_.shape(), [&](std::span<float> to) { numbers_.copy(0, to); });
  }

  std::string_view where_;
  RtneuralOptions options_;
  std::unique_ptr<nn::Sequential> net_ = std::make_unique<nn::Sequential>();
  detail::KeyCheck keys_;
  std::size_t levels_ = 0;
  std::size_t entries_ = 0;
  bool is_object_ = false, has_layers_ = false;
  bool is_layers_ = false;  ///< whether the last key of the root is "layers"
  bool layers_open_ = false, weights_open_ = false;
  std::optional<detail::RtneuralEntry> entry_;
  std::string key_;  ///< last key of the entry
  Field field_ = Field::other;
  detail::NumberShape shape_;  ///< shape of the present array
  detail::FloatStore numbers_;
  bool whole_ = true;  ///< whether the present value is an array of numbers so far
};

}  // namespace

std::unique_ptr<nn::Sequential> parse_rtneural(std::span<const std::byte> bytes, std::string_view where,
                                               const RtneuralOptions& options) {
  if (!(options.rate_ratio >= 1 && options.rate_ratio <= kMostRateRatio))
    throw ValueError("read_rtneural: rate_ratio must be from 1 to " + Scalar(kMostRateRatio).str() + ", got " +
                     Scalar(options.rate_ratio).str());
  NetReader reader(where, options);
  detail::read_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, where, reader);
  return reader.finish();
}

std::unique_ptr<nn::Sequential> read_rtneural(const std::filesystem::path& path, const RtneuralOptions& options) {
  const detail::WholeFile file = detail::read_whole(path);
  return parse_rtneural(file.bytes.span(), file.where, options);
}

// ---- writing -------------------------------------------------------------------------------------------

namespace {

/// Writes a net as {"in_shape": [null, null, D], "layers": [...]}.
class Writer {
 public:
  explicit Writer(const nn::Sequential& net) : net_(net) {}

  std::string text() {
    for (std::size_t i = 0; i < net_.size(); ++i) i += layer(i);
    if (!features_) detail::refuse("save_rtneural", "the net has no layer with weights");
    return "{\"in_shape\": " + extents(in_features_) + ", \"layers\": [\n" + layers_ + "\n]}\n";
  }

 private:
  /// Writes layer i; returns the number of the following layers that are written with it.
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

  /// Returns the layer within a RateCorrected, or the layer itself: the rate is the reader's choice.
  static const nn::Layer& uncorrected(const nn::Layer& l) {
    const auto* corrected = dynamic_cast<const RateCorrected*>(&l);
    return corrected ? corrected->layer() : l;
  }
  bool is_activation(std::size_t i) const {
    if (i >= net_.size()) return false;
    const auto* elu = dynamic_cast<const nn::Elu*>(&net_[i]);
    return dynamic_cast<const nn::Activation*>(&net_[i]) || (elu && elu->options().alpha == 1);
  }
  /// Returns the activation after layer i, which is written with it.
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
  std::int64_t features_ = 0;  // number of features of the last layer written
};

}  // namespace

std::string serialize_rtneural(const nn::Sequential& net) { return Writer(net).text(); }

void save_rtneural(const nn::Sequential& net, const std::filesystem::path& path) {
  const std::string text = serialize_rtneural(net);
  write_atomically(path, std::as_bytes(std::span(text)));
}

// ---- sample rates --------------------------------------------------------------------------------------

RateCorrected::RateCorrected(std::unique_ptr<nn::GatedRecurrent> layer, double ratio)
    : layer_(std::move(layer)), ratio_(ratio) {
  if (!layer_) throw ValueError("rate_corrected: the layer is null");
  if (layer_->sizes().layers != 1 || layer_->sizes().bidirectional)
    throw ValueError("rate_corrected: takes a recurrent layer of one level and one direction");
  if (!(ratio >= 1 && ratio <= kMostRateRatio))
    throw ValueError("rate_corrected: the ratio must be from 1 to " + Scalar(kMostRateRatio).str() + ", got " +
                     Scalar(ratio).str());
  adopt("layer", *layer_);
  for (const nn::StepState& s : layer_->states({1, layer_->input_size(), step_input().dtype}))
    carries(s.name, held(), s.shape[2], s.dtype);
}

/// Returns the number of steps whose states are kept: the ratio, rounded up.
std::int64_t RateCorrected::held() const { return static_cast<std::int64_t>(std::ceil(ratio_)); }

/// Returns the state for the next step, [1, B, H], from those of the last steps, [held, B, H].
Tensor RateCorrected::delayed(const Tensor& held_states) const {
  const auto N = static_cast<std::int64_t>(std::floor(ratio_));
  const Tensor whole = slice(held_states, 0, N - 1, N);
  const double f = ratio_ - static_cast<double>(N);
  return f > 0 ? f * slice(held_states, 0, N, N + 1) + (1 - f) * whole : whole;
}

std::vector<nn::StepState> RateCorrected::states(const nn::StepRows& in) const {
  std::vector<nn::StepState> all = layer_->states(in);
  for (nn::StepState& s : all) s.shape[0] = held();
  return all;
}

nn::StepResult RateCorrected::step(const Tensor& x, const Tensors& states) const {
  Tensors before;
  for (const Tensor& s : states) before.push_back(delayed(s));
  const nn::StepResult r = layer_->advance(x, before);
  Tensors after;
  for (std::size_t i = 0; i < states.size(); ++i)
    after.push_back(held() == 1 ? r.states[i] : concat({r.states[i], slice(states[i], 0, 0, held() - 1)}, 0));
  return {squeeze(delayed(after[0]), 0), after};
}

Tensor RateCorrected::forward(const Tensor& x, const nn::Context& context) const {
  if (context.lengths.defined() || context.reset_mask.defined())
    throw ValueError("rate_corrected: takes sequences of one length, without resets");
  if (x.rank() != 3) throw ShapeError("rate_corrected: expects [B, T, D], got " + x.shape().str());
  const std::int64_t B = x.shape()[0];
  const std::span<const State> carried = context.carry ? context.carry->states_of(*this, B) : std::span<const State>();
  Tensors init;
  for (const nn::StepState& s : states({B, x.shape()[2], x.dtype()}))
    init.push_back(carried.empty() ? zeros(s.shape, s.dtype) : Tensor(carried[init.size()]));
  const auto body = [this](const Tensors& carry, const Tensors& xs) -> ScanStep {
    nn::StepResult r = step(xs[0], carry);
    return {std::move(r.states), {std::move(r.y)}};
  };
  const ScanResult r = scan(body, init, {transpose(x, 0, 1)});
  for (std::size_t i = 0; i < carried.size(); ++i) carried[i].assign(contiguous(r.carry[i]));
  return transpose(r.y[0], 0, 1);
}

std::unique_ptr<nn::Layer> RateCorrected::clone() const {
  std::unique_ptr<nn::Layer> inner = layer_->clone();
  std::unique_ptr<nn::GatedRecurrent> layer(&dynamic_cast<nn::GatedRecurrent&>(*inner));
  (void)inner.release();
  auto copy = std::make_unique<RateCorrected>(std::move(layer), ratio_);
  copy->take_after(*this);
  return copy;
}

}  // namespace ferrite::io
