/// RTNeural's nets in JSON: read as a stream, layer by layer, and written.
#include "ferrite/io/rtneural.h"

#include <optional>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/json/keras_layout.h"
#include "ferrite/io/json/numbers.h"
#include "ferrite/io/json/reader.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"

namespace ferrite::io {
namespace {

using LayerPtr = std::unique_ptr<nn::Layer>;

constexpr std::size_t kMostWeights = 3;  // arrays that a layer can need; of more only their number is kept

/// One entry of "layers" as the file has it.
struct Entry {
  explicit Entry(std::size_t position, std::string_view file)
      : where(std::string(file) + ": layer " + std::to_string(position)) {}

  std::string where, type, activation;  ///< empty where the file has none
  std::vector<Tensor> arrays;           ///< undefined where it is no array of numbers
  std::size_t weights = 0;              ///< how many there are

  Tensor weight(std::size_t i) const {
    if (!arrays[i].defined())
      detail::refuse(where, "weights " + std::to_string(i) + " are no array of numbers; are its rows equally long?");
    return arrays[i];
  }
  void expect_weights(std::size_t n) const {
    if (weights != n)
      detail::refuse(where,
                     type + " needs " + std::to_string(n) + " arrays of weights, has " + std::to_string(weights));
  }
  Tensor matrix(std::size_t i) const {
    Tensor w = weight(i);
    if (w.rank() != 2 || w.numel() == 0)
      detail::refuse(where, "weights " + std::to_string(i) + " are no matrix: their shape is " + w.shape().str());
    return w;
  }
};

void add(nn::Sequential& net, LayerPtr layer) { net.add(std::to_string(net.size()), std::move(layer)); }

void add_activation(nn::Sequential& net, const Entry& e) {
  const std::string& name = e.activation;
  if (name.empty()) return;
  const nn::Activation::Function f = nn::activation(name);
  if (!f) detail::refuse(e.where, "the activation " + detail::quote(name) + " is not supported");
  add(net, std::make_unique<nn::Activation>(name, f));
}

void add_dense(nn::Sequential& net, const Entry& e) {
  e.expect_weights(2);
  const Tensor kernel = e.matrix(0);
  const Tensor bias = e.weight(1);
  if (bias.shape() != Shape{kernel.shape()[1]})
    detail::refuse(e.where, "the bias " + bias.shape().str() + " does not fit the weights " + kernel.shape().str());
  auto linear = std::make_unique<nn::Linear>(kernel.shape()[0], kernel.shape()[1]);
  linear->weight.assign(kernel);
  linear->bias.assign(bias);
  add(net, std::move(linear));
  add_activation(net, e);
}

template <class L>
void add_recurrent(nn::Sequential& net, const Entry& e, int gates) {
  e.expect_weights(3);
  if (const std::string& a = e.activation; !a.empty() && a != "tanh")
    detail::refuse(e.where, "a " + e.type + " with the activation " + detail::quote(a) + " is not supported");
  const Tensor kernel = e.matrix(0);
  const Tensor recurrent = e.matrix(1);
  if (recurrent.shape()[1] != gates * recurrent.shape()[0])
    detail::refuse(e.where, "a " + e.type + "'s recurrent weights have shape " + recurrent.shape().str());
  auto layer = std::make_unique<L>(kernel.shape()[0], recurrent.shape()[0]);
  detail::set_from_keras(layer->weights(), {kernel, recurrent, e.weight(2), e.where}, e.where);
  add(net, std::move(layer));
}

void add_entry(nn::Sequential& net, const Entry& e) {
  if (e.type == "dense" || e.type == "time-distributed-dense") return add_dense(net, e);
  if (e.type == "gru") return add_recurrent<nn::Gru>(net, e, 3);
  if (e.type == "lstm") return add_recurrent<nn::Lstm>(net, e, 4);
  if (e.type == "activation") return add_activation(net, e);
  detail::refuse(e.where, "the type " + detail::quote(e.type) +
                              " is not supported; supported are dense, time-distributed-dense, gru, lstm, activation");
}

/// Builds the net while the text is read: a layer at the end of its entry.
class NetReader final : public detail::JsonEvents {
 public:
  explicit NetReader(std::string_view where) : where_(where) {}

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
    value(Kind::number);
    end_array();
  }
  void text(std::string_view v) override {
    if (in_entry() && field_ == Field::type) entry_->type = v;
    if (in_entry() && field_ == Field::activation) entry_->activation = v;
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
                                    : Field::other;
  }
  void end_object() override {
    keys_.end_object(where_);
    --levels_;
    if (levels_ == kInLayers && entry_) {
      add_entry(*net_, *entry_);
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
  enum class Field : std::uint8_t { other, type, activation, weights };
  /// How many lists and objects are open in the list of layers, in one of them, and in its weights.
  static constexpr std::size_t kInLayers = 2, kInEntry = 3, kInWeights = 4;

  bool in_layers() const { return layers_open_ && levels_ == kInLayers; }
  bool in_entry() const { return entry_ && levels_ == kInEntry; }

  /// Something that is not expected everywhere.
  void value(Kind kind) {
    if (in_layers()) detail::refuse(std::string(where_) + ": layer " + std::to_string(entries_), "is no object");
    if (in_entry() && kind != Kind::text && field_ == Field::type) detail::refuse(entry_->where, "'type' is no text");
    if (in_entry() && kind != Kind::text && field_ == Field::activation)
      detail::refuse(entry_->where, "'activation' is no text");
    if (weights_open_ && kind != Kind::number && kind != Kind::list) whole_ = false;
  }

  /// At the end of a value: was it one of the arrays of weights?
  void end_array() {
    if (!weights_open_ || levels_ != kInWeights) return;
    if (entry_->weights++ < kMostWeights) entry_->arrays.push_back(whole_ ? array() : Tensor());
    shape_ = {};
    numbers_.clear();
    whole_ = true;
  }
  Tensor array() const {
    return Tensor::build<float>(shape_.shape(), [&](std::span<float> to) { numbers_.copy(0, to); });
  }

  std::string_view where_;
  std::unique_ptr<nn::Sequential> net_ = std::make_unique<nn::Sequential>();
  detail::KeyCheck keys_;
  std::size_t levels_ = 0;
  std::size_t entries_ = 0;
  bool is_object_ = false, has_layers_ = false;
  bool is_layers_ = false;  ///< the key of the root that was read last is "layers"
  bool layers_open_ = false, weights_open_ = false;
  std::optional<Entry> entry_;
  Field field_ = Field::other;
  detail::NumberShape shape_;  ///< of the array that is read
  detail::FloatStore numbers_;
  bool whole_ = true;  ///< so far it is an array of numbers
};

// ---- writing -------------------------------------------------------------------------------------------

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
    const nn::Layer& l = net_[i];
    for (const auto& p : l.named_parameters())
      if (p.variable.dtype() != Dtype::f32)
        detail::refuse(where_, "the weights are " + p.variable.peek().spec().str() + ", not f32");
    if (const auto* linear = dynamic_cast<const nn::Linear*>(&l)) {
      const bool follows = i + 1 < net_.size() && dynamic_cast<const nn::Activation*>(&net_[i + 1]);
      const Tensor w = linear->weight.peek();
      const Tensor bias = linear->bias.defined() ? linear->bias.peek() : zeros({w.shape()[1]});
      entry("dense", follows ? checked_activation(net_[i + 1].kind()) : "", w.shape(), {w, bias});
      return follows ? 1 : 0;
    }
    if (const auto* gru = dynamic_cast<const nn::Gru*>(&l)) {
      if (!gru->reset_after()) detail::refuse(where_, "the reset before the product cannot be written");
      recurrent(*gru);
    } else if (const auto* lstm = dynamic_cast<const nn::Lstm*>(&l)) {
      recurrent(*lstm);
    } else if (dynamic_cast<const nn::Activation*>(&l)) {
      if (!features_) detail::refuse(where_, "a net cannot begin with an activation");
      entry("activation", checked_activation(l.kind()), {features_, features_}, {});
    } else {
      detail::refuse(where_, "cannot be written: RTNeural's layers here are dense, gru, lstm and activations");
    }
    return 0;
  }

  void recurrent(const nn::GatedRecurrent& l) {
    const nn::RecurrentSizes& s = l.sizes();
    if (s.bidirectional) detail::refuse(where_, "two directions cannot be written");
    if (s.proj_size) detail::refuse(where_, "a projection cannot be written");
    if (!s.bias) detail::refuse(where_, "a layer without bias cannot be written");
    for (std::int64_t k = 0; k < s.layers; ++k) {
      const nn::RecurrentWeights& w = l.weights(k);
      const auto in_keras = [&](const Parameter& p) { return detail::keras_gates(p.peek(), s.hidden_size); };
      const Tensor bias =
          l.kind() == "gru" ? stack({in_keras(w.bias_ih), in_keras(w.bias_hh)}) : w.bias_ih.peek() + w.bias_hh.peek();
      entry(l.kind(), "tanh", {w.weight_ih.shape()[0], s.hidden_size},
            {in_keras(w.weight_ih), in_keras(w.weight_hh), bias});
    }
  }

  std::string checked_activation(const std::string& name) const {
    for (const char* known : {"tanh", "relu", "sigmoid", "softmax"})
      if (name == known) return name;
    detail::refuse(where_, "the activation " + detail::quote(name) + " cannot be written");
  }

  void entry(const std::string& type, const std::string& activation, const Shape& sizes, const Tensors& weights) {
    if (!features_) in_features_ = sizes[0];
    features_ = sizes[1];
    layers_ += std::string(layers_.empty() ? "" : ",\n") + "{\"type\": \"" + type + "\", \"activation\": \"" +
               activation + "\", \"shape\": " + extents(features_) + ", \"weights\": [";
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

std::unique_ptr<nn::Sequential> parse_rtneural(std::span<const std::byte> bytes, std::string_view where) {
  NetReader reader(where);
  detail::read_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, where, reader);
  return reader.finish();
}

std::unique_ptr<nn::Sequential> read_rtneural(const std::filesystem::path& path) {
  const detail::WholeFile file = detail::read_whole(path);
  return parse_rtneural(file.bytes.span(), file.where);
}

std::string serialize_rtneural(const nn::Sequential& net) { return Writer(net).text(); }

void save_rtneural(const nn::Sequential& net, const std::filesystem::path& path) {
  const std::string text = serialize_rtneural(net);
  write_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace ferrite::io
