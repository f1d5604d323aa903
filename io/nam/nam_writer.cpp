/// Writes `.nam` files.
#include <cmath>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/nam.h"
#include "ferrite/io/nam/document.h"
#include "ferrite/io/nam/nam_config.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/scalar.h"

namespace ferrite::io {
namespace {

using detail::nam::append_number;

/// The list of a model's weights.
class WeightList {
 public:
  explicit WeightList(std::string where) : where_(std::move(where)) {}

  void add(const Tensor& x) {
    if (x.dtype() != Dtype::f32) detail::refuse(where_, "the weights are " + x.spec().str() + ", not f32");
    for (const float v : x.to_vector<float>()) add(v);
  }
  void add(double v) {
    if (!std::isfinite(v)) detail::refuse(where_, "a weight is " + Scalar(v).str() + ", which JSON cannot hold");
    text_ += text_.empty() ? "" : ", ";
    append_number(text_, v);
  }
  void matrix(const nn::Linear& l) {
    add(transpose(l.weight.peek()));
    if (l.bias.defined()) add(l.bias.peek());
  }
  void convolution(const nn::CausalConv1d& l) {
    add(l.weight.peek());
    if (l.bias.defined()) add(l.bias.peek());
  }
  std::string text() const { return "[" + text_ + "]"; }

 private:
  std::string where_, text_;
};

struct Parts {
  std::string architecture, config, weights;
  bool newer = false;  ///< keys that version 0.5 does not have
};

Parts parts_of(const nn::Wavenet& net, const std::string& where) {
  Parts p{"WaveNet", {}, {}};
  p.config = detail::nam::config_of(net.options(), where, p.newer);
  WeightList list(where);
  for (const nn::Wavenet::Array& a : net.arrays()) {
    list.matrix(*a.rechannel);
    for (const nn::Wavenet::Unit& u : a.units) {
      list.convolution(*u.conv);
      list.matrix(*u.mix);
      if (u.layer1x1) list.matrix(*u.layer1x1);
      if (u.head1x1) list.matrix(*u.head1x1);
    }
    list.convolution(*a.head);
  }
  list.add(static_cast<double>(static_cast<float>(net.head_scale())));
  p.weights = list.text();
  return p;
}

Parts parts_of(const NamLstm& net, const std::string& where) {
  const NamLstmOptions& o = net.options();
  Parts p{"LSTM", {}, {}};
  p.config = "{\"input_size\": " + std::to_string(o.input_size) +
             ", \"hidden_size\": " + std::to_string(o.hidden_size) + ", \"num_layers\": " + std::to_string(o.layers);
  if (o.input_size != 1) p.newer = true, p.config += ", \"in_channels\": " + std::to_string(o.input_size);
  if (o.out_channels != 1) p.newer = true, p.config += ", \"out_channels\": " + std::to_string(o.out_channels);
  p.config += "}";
  WeightList list(where);
  for (std::int64_t k = 0; k < o.layers; ++k) {
    const nn::RecurrentWeights<Parameter>& w = net.lstm.weights(k);
    list.add(transpose(concat({w.weight_ih.peek(), w.weight_hh.peek()}, 0)));
    list.add(w.bias_ih.peek() + w.bias_hh.peek());
    list.add(select(net.initial_h.peek(), 0, k));
    list.add(select(net.initial_c.peek(), 0, k));
  }
  list.matrix(net.head);
  p.weights = list.text();
  return p;
}

/// The later of a model's version and one that has its keys.
std::string version_for(const std::string& version, const std::string& least) {
  return version < least ? least : version;  // all are 0.5 to 0.7
}

std::string object_of(const std::string& version, const Parts& p, const std::string& metadata,
                      const std::optional<double>& rate) {
  std::string out = "{\"version\": ";
  detail::append_json_string(out, version);
  if (!metadata.empty()) out += ", \"metadata\": " + metadata;
  out += ", \"architecture\": \"" + p.architecture + "\", \"config\": " + p.config + ", \"weights\": " + p.weights;
  if (rate) {
    out += ", \"sample_rate\": ";
    append_number(out, *rate);
  }
  return out + "}";
}

std::string text_of(const nn::Layer& layer, const std::string& version, const std::string& metadata,
                    const std::optional<double>& rate, const std::string& where) {
  if (const auto* container = dynamic_cast<const NamContainer*>(&layer)) {
    if (container->size() == 0) detail::refuse(where, "the container has no models");
    Parts p{"SlimmableContainer", "{\"submodels\": [", "[]"};
    for (std::size_t i = 0; i < container->size(); ++i) {
      p.config += i ? ", {\"max_value\": " : "{\"max_value\": ";
      append_number(p.config, container->max_value(i));
      p.config +=
          ", \"model\": " + text_of((*container)[i], version, {}, rate, where + ": model " + std::to_string(i)) + "}";
    }
    p.config += "]}";
    return object_of(version_for(version, "0.7.0"), p, metadata, rate);
  }
  Parts p;
  if (const auto* net = dynamic_cast<const nn::Wavenet*>(&layer)) {
    p = parts_of(*net, where);
  } else if (const auto* net_lstm = dynamic_cast<const NamLstm*>(&layer)) {
    p = parts_of(*net_lstm, where);
  } else {
    detail::refuse(where, "a layer " + layer.kind() +
                              " cannot be written; the format has wavenet, nam_lstm and "
                              "nam_container");
  }
  return object_of(version_for(version, p.newer ? "0.6.0" : "0.5.0"), p, metadata, rate);
}

}  // namespace

std::string serialize_nam(const NamModel& model) {
  const std::string where = "serialize_nam";
  if (!model.layer) detail::refuse(where, "there is no layer");
  if (model.sample_rate && !(std::isfinite(*model.sample_rate) && *model.sample_rate > 0))
    detail::refuse(where, "the sample_rate is not positive");
  std::string metadata = model.metadata;
  if (!metadata.empty()) {
    const auto d = detail::nam::read_document(std::as_bytes(std::span(metadata)), where + ": metadata");
    metadata = detail::nam::text_of(d, d.root());
  }
  return text_of(*model.layer, model.version, metadata, model.sample_rate, where) + "\n";
}

void save_nam(const NamModel& model, const std::filesystem::path& path) {
  const std::string text = serialize_nam(model);
  write_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace ferrite::io
