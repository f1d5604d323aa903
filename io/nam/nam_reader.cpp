/// Builds the layers of a `.nam` file.
#include <cmath>
#include <functional>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/nam.h"
#include "ferrite/io/nam/document.h"
#include "ferrite/io/nam/nam_config.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/scalar.h"

namespace ferrite::io {
namespace {

using detail::nam::Document;
using detail::nam::Node;
using detail::nam::Object;

/// The weights of a model, taken one array after another.
class Weights {
 public:
  Weights(const Document& d, const Node& n) : store_(d.weights), at_(n.weights_at) {}

  Tensor take(const Shape& shape) {
    return Tensor::build<float>(shape, [&](std::span<float> to) {
      store_.copy(at_, to);
      at_ += to.size();
    });
  }
  /// A matrix [out, in] as a layer has it.
  void matrix(const nn::Linear& layer) {
    const Shape& s = layer.weight.shape();
    layer.weight.assign(contiguous(transpose(take({s[1], s[0]}))));
    if (layer.bias.defined()) layer.bias.assign(take(layer.bias.shape()));
  }
  void convolution(const nn::CausalConv1d& layer) {
    layer.weight.assign(take(layer.weight.shape()));
    if (layer.bias.defined()) layer.bias.assign(take(layer.bias.shape()));
  }

 private:
  const detail::FloatStore& store_;
  std::size_t at_;
};

/// Sizes are below 2^31, so that a count in f64 is exact wherever it equals the number of weights in a file.
void expect_count(const Node& weights, double wanted, const std::string& where) {
  if (static_cast<double>(weights.weights) != wanted)
    detail::refuse(where, "has " + detail::counted(weights.weights, "weight") + ", its sizes need " +
                              std::to_string(static_cast<std::uint64_t>(std::min(wanted, 1e18))));
}

double product(std::initializer_list<std::int64_t> sizes) {
  double n = 1;
  for (const std::int64_t s : sizes) n *= static_cast<double>(s);
  return n;
}

double count_of(const nn::WavenetArray& a) {
  double n = product({a.input_size, a.channels});
  for (const nn::WavenetUnit& u : a.units) {
    const std::int64_t wide = u.gate ? 2 * a.bottleneck : a.bottleneck;
    n += product({wide, a.channels / a.groups, u.kernel_size}) + static_cast<double>(wide);
    n += product({wide, a.condition_size});
    if (a.has_layer1x1) n += product({a.channels, a.bottleneck + 1});
    n += product({a.head1x1_size, a.bottleneck + 1});
  }
  return n + product({a.skip_size(), a.head_size, a.head_kernel_size}) +
         (a.head_bias ? static_cast<double>(a.head_size) : 0);
}

std::unique_ptr<nn::Layer> wavenet(Object config, const Node& weights, const std::string& where) {
  const Document& d = config.document();
  nn::WavenetOptions options = detail::nam::wavenet_options(std::move(config));
  double wanted = 1;  // the scale
  for (const nn::WavenetArray& a : options.arrays) wanted += count_of(a);
  expect_count(weights, wanted, where);
  std::vector<float> scale(1);
  d.weights.copy(weights.weights_at + weights.weights - 1, scale);
  options.head_scale = scale[0];
  auto net = std::make_unique<nn::Wavenet>(options);
  Weights from(d, weights);
  for (const nn::Wavenet::Array& a : net->arrays()) {
    from.matrix(*a.rechannel);
    for (const nn::Wavenet::Unit& u : a.units) {
      from.convolution(*u.conv);
      from.matrix(*u.mix);
      if (u.layer1x1) from.matrix(*u.layer1x1);
      if (u.head1x1) from.matrix(*u.head1x1);
    }
    from.convolution(*a.head);
  }
  return net;
}

std::unique_ptr<nn::Layer> lstm(Object config, const Node& weights, const std::string& where) {
  NamLstmOptions o;
  o.layers = config.size("num_layers");
  o.input_size = config.size("input_size");
  o.hidden_size = config.size("hidden_size");
  o.out_channels = config.size("out_channels", 1);
  if (config.size("in_channels", 1) != o.input_size)
    detail::refuse(config.where(), "in_channels differ from input_size");
  config.finish();
  const std::int64_t H = o.hidden_size;
  expect_count(weights,
               product({4 * H, o.input_size + H}) + product({o.layers - 1, 4 * H, 2 * H}) + product({o.layers, 6 * H}) +
                   product({o.out_channels, H + 1}),
               where);
  auto net = std::make_unique<NamLstm>(o);
  Weights from(config.document(), weights);
  Tensors h, c;
  for (std::int64_t k = 0; k < o.layers; ++k) {
    const nn::RecurrentWeights<Parameter>& w = net->lstm.weights(k);
    const std::int64_t D = w.weight_ih.shape()[0];
    const Tensor both = from.take({4 * H, D + H});
    w.weight_ih.assign(contiguous(transpose(slice(both, 1, 0, D))));
    w.weight_hh.assign(contiguous(transpose(slice(both, 1, D, D + H))));
    w.bias_ih.assign(from.take({4 * H}));
    w.bias_hh.assign(full({4 * H}, -0.0));  // so that the sum has the bits of the file, -0 included
    h.push_back(from.take({H}));
    c.push_back(from.take({H}));
  }
  net->initial_h.assign(stack(h));
  net->initial_c.assign(stack(c));
  from.matrix(net->head);
  return net;
}

void check_version(const std::string& version, const std::string& where) {
  const bool known = version.starts_with("0.5.") || version.starts_with("0.6.") || version.starts_with("0.7.");
  if (!known || version.find_first_not_of("0123456789", 4) != std::string::npos || version.size() < 5)
    detail::refuse(where, "the version " + detail::quote(version) + " is not supported; supported are 0.5 to 0.7");
}

std::optional<double> rate_of(Object& model) {
  if (!model.find("sample_rate")) return std::nullopt;
  const double rate = model.number("sample_rate");
  if (!(rate > 0) || !std::isfinite(rate)) detail::refuse(model.where(), "the sample_rate is not positive");
  return rate;
}

NamModel model_of(Object model);

std::unique_ptr<nn::Layer> container(Object config, const std::optional<double>& rate) {
  const Document& d = config.document();
  const Node& list = config.at("submodels");
  const std::string where = config.where() + ".submodels";
  if (list.kind != Node::Kind::list || list.first == Node::kNone) detail::refuse(where, "is no list of models");
  config.finish();
  auto net = std::make_unique<NamContainer>();
  for (const Node* n = d.child(list.first); n; n = d.child(n->next)) {
    Object entry(d, *n, where + " " + std::to_string(net->size()));
    const double value = entry.number("max_value");
    if (net->size() > 0 && !(value > net->max_value(net->size() - 1)))
      detail::refuse(entry.where(), "max_value is not above the one before: " + Scalar(value).str());
    NamModel inner = model_of(entry.object("model"));
    entry.finish();
    if (rate && inner.sample_rate && *rate != *inner.sample_rate)
      detail::refuse(entry.where(), "the sample_rate differs from that of the container");
    net->add(value, std::move(inner.layer));
  }
  if (net->max_value(net->size() - 1) < 1) detail::refuse(where, "the last max_value is below 1");
  return net;
}

NamModel model_of(Object model) {
  NamModel result;
  result.version = model.text("version");
  check_version(result.version, model.where());
  result.sample_rate = rate_of(model);
  if (const Node* metadata = model.find("metadata")) {
    if (metadata->kind != Node::Kind::object) detail::refuse(model.where(), "'metadata' is no object");
    result.metadata = detail::nam::text_of(model.document(), *metadata);
  }
  const std::string architecture = model.text("architecture");
  Object config = model.object("config");
  if (architecture == "SlimmableContainer") {
    const Node* weights = model.find("weights");
    if (weights && weights->weights > 0) detail::refuse(model.where(), "a container has weights of its own");
    result.layer = container(std::move(config), result.sample_rate);
    return result;
  }
  const Node& weights = model.at("weights");
  if (weights.kind != Node::Kind::weights) detail::refuse(model.where(), "'weights' are no list of numbers");
  if (architecture == "WaveNet") {
    result.layer = wavenet(std::move(config), weights, model.where());
  } else if (architecture == "LSTM") {
    result.layer = lstm(std::move(config), weights, model.where());
  } else {
    detail::refuse(model.where(), "the architecture " + detail::quote(architecture) +
                                      " is not supported; supported are WaveNet, LSTM and SlimmableContainer");
  }
  return result;
}

}  // namespace

NamModel parse_nam(std::span<const std::byte> bytes, std::string_view where) {
  const Document document = detail::nam::read_document(bytes, where);
  return model_of(Object(document, document.root(), std::string(where)));
}

NamModel read_nam(const std::filesystem::path& path) {
  const detail::WholeFile file = detail::read_whole(path);
  return parse_nam(file.bytes.span(), file.where);
}

}  // namespace ferrite::io
