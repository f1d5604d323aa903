#include "ferrite/io/rtneural.h"

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/input_file.h"
#include "ferrite/io/detail/keras_layout.h"
#include "ferrite/io/detail/number_json.h"
#include "ferrite/io/detail/text.h"
#include "ferrite/nn/gru.h"
#include "ferrite/nn/lstm.h"

namespace ferrite::io {
namespace {

using detail::JsonValue;
using Kind = JsonValue::Kind;
using LayerPtr = std::unique_ptr<nn::Layer>;

/// One entry of "layers".
class Entry {
 public:
  Entry(const JsonValue& value, std::size_t position, std::string_view where)
      : value_(value), where_(std::string(where) + ": layer " + std::to_string(position)) {
    if (value.kind != Kind::object) detail::refuse(where_, "is no object");
    type_ = text("type");
  }

  const std::string& where() const { return where_; }
  const std::string& type() const { return type_; }

  /// Empty where there is none.
  std::string text(const char* name) const {
    const JsonValue* v = value_.find(name);
    if (!v) return {};
    if (v->kind != Kind::text) detail::refuse(where_, "'" + std::string(name) + "' is no text");
    return v->text;
  }

  std::size_t weights() const {
    const JsonValue* v = value_.find("weights");
    return v ? v->size() : 0;
  }
  Tensor weight(std::size_t i) const {
    const JsonValue v = value_.find("weights")->item(i);
    if (v.kind != Kind::numbers)
      detail::refuse(where_, "weights " + std::to_string(i) + " are no array of numbers; are its rows equally long?");
    return Tensor::from(v.numbers, v.shape);
  }
  void expect_weights(std::size_t n) const {
    if (weights() != n)
      detail::refuse(where_,
                     type_ + " needs " + std::to_string(n) + " arrays of weights, has " + std::to_string(weights()));
  }
  Tensor matrix(std::size_t i) const {
    Tensor w = weight(i);
    if (w.rank() != 2 || w.numel() == 0)
      detail::refuse(where_, "weights " + std::to_string(i) + " are no matrix: their shape is " + w.shape().str());
    return w;
  }

 private:
  const JsonValue& value_;
  std::string where_;
  std::string type_;
};

void add(nn::Sequential& net, LayerPtr layer) { net.add(std::to_string(net.size()), std::move(layer)); }

void add_activation(nn::Sequential& net, const Entry& e) {
  const std::string name = e.text("activation");
  if (name.empty()) return;
  const nn::Activation::Function f = nn::activation(name);
  if (!f) detail::refuse(e.where(), "the activation " + detail::quote(name) + " is not supported");
  add(net, std::make_unique<nn::Activation>(name, f));
}

void add_dense(nn::Sequential& net, const Entry& e) {
  e.expect_weights(2);
  const Tensor kernel = e.matrix(0);
  const Tensor bias = e.weight(1);
  if (bias.shape() != Shape{kernel.shape()[1]})
    detail::refuse(e.where(), "the bias " + bias.shape().str() + " does not fit the weights " + kernel.shape().str());
  auto linear = std::make_unique<nn::Linear>(kernel.shape()[0], kernel.shape()[1]);
  linear->weight.assign(kernel);
  linear->bias.assign(bias);
  add(net, std::move(linear));
  add_activation(net, e);
}

template <class L>
void add_recurrent(nn::Sequential& net, const Entry& e, int gates) {
  e.expect_weights(3);
  if (const std::string a = e.text("activation"); !a.empty() && a != "tanh")
    detail::refuse(e.where(), "a " + e.type() + " with the activation " + detail::quote(a) + " is not supported");
  const Tensor kernel = e.matrix(0);
  const Tensor recurrent = e.matrix(1);
  if (recurrent.shape()[1] != gates * recurrent.shape()[0])
    detail::refuse(e.where(), "a " + e.type() + "'s recurrent weights have shape " + recurrent.shape().str());
  auto layer = std::make_unique<L>(kernel.shape()[0], recurrent.shape()[0]);
  detail::set_from_keras(layer->weights(), {kernel, recurrent, e.weight(2), e.where()}, e.where());
  add(net, std::move(layer));
}

void add_entry(nn::Sequential& net, const Entry& e) {
  if (e.type() == "dense" || e.type() == "time-distributed-dense") return add_dense(net, e);
  if (e.type() == "gru") return add_recurrent<nn::Gru>(net, e, 3);
  if (e.type() == "lstm") return add_recurrent<nn::Lstm>(net, e, 4);
  if (e.type() == "activation") return add_activation(net, e);
  detail::refuse(e.where(),
                 "the type " + detail::quote(e.type()) +
                     " is not supported; supported are dense, time-distributed-dense, gru, lstm, activation");
}

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
      if (p.cell.dtype() != Dtype::f32)
        detail::refuse(where_, "the weights are " + p.cell.peek().spec().str() + ", not f32");
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
  const JsonValue root = detail::read_number_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, where);
  const JsonValue* layers = root.kind == Kind::object ? root.find("layers") : nullptr;
  if (!layers) detail::refuse(where, "has no 'layers'; names and weights are read with io::read_json_weights");
  if (layers->size() == 0) detail::refuse(where, "has no layers: 'layers' is empty or no list");
  auto net = std::make_unique<nn::Sequential>();
  for (std::size_t i = 0; i < layers->size(); ++i) {
    const JsonValue layer = layers->item(i);
    add_entry(*net, Entry(layer, i, where));
  }
  return net;
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
