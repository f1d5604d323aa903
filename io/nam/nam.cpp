/// The layers of `.nam` files, the LSTM and the container, and the reading and writing of models.
#include "ferrite/io/nam.h"

#include <cmath>
#include <functional>

#include "ferrite/io/atomic_file.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/nam/nam_document.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/scalar.h"

// ---- layers --------------------------------------------------------------------------------------------

namespace ferrite::io {
namespace {

const NamLstmOptions& checked(const NamLstmOptions& o) {
  for (const std::int64_t n : {o.input_size, o.hidden_size, o.layers, o.out_channels})
    if (n < 1) throw ValueError("nam_lstm: sizes must be positive, got " + std::to_string(n));
  return o;
}

/// Returns an init without seed: the layer is drawn when it is adopted, by its full name.
nn::Init undrawn(const nn::Init& init) { return {.seed = {}, .prefix = {}, .dtype = init.dtype}; }

}  // namespace

NamLstm::NamLstm(const NamLstmOptions& o, const nn::Init& init)
    : LayerOf(checked(o), init, nn::detail::OwnSteps()),
      lstm(o.input_size, o.hidden_size, {.layers = o.layers}, undrawn(init)),
      head(o.hidden_size, o.out_channels, undrawn(init)) {
  adopt("lstm", lstm);
  adopt("head", head);
  initial_h = parameter("initial_h", {o.layers, o.hidden_size}, nn::init::constant(0), init);
  initial_c = parameter("initial_c", {o.layers, o.hidden_size}, nn::init::constant(0), init);
}

Tensor NamLstm::forward(const Tensor& x, const nn::Context& context) const {
  if (context.reset_mask.defined() || context.carry)
    throw ValueError("nam_lstm: begins from its own states, which resets and pieces that are carried on do not");
  if (x.rank() != 3) throw ShapeError("nam_lstm: expects [B, T, D], got " + x.shape().str());
  const Shape states{options().layers, x.shape()[0], options().hidden_size};
  nn::Context own{.lengths = context.lengths};
  own.state = expand(unsqueeze(initial_h, 1), states);
  own.cell = expand(unsqueeze(initial_c, 1), states);
  return head(lstm(x, own));
}

std::vector<nn::StepState> NamLstm::states(const nn::StepRows& in) const {
  std::vector<nn::StepState> all = lstm.states(in);
  all[0].initial = initial_h;
  all[1].initial = initial_c;
  return all;
}

nn::StepResult NamLstm::step(const Tensor& x, const Tensors& states) const {
  const nn::StepResult r = lstm.advance(x, states);
  return {head(r.y), r.states};
}

std::size_t NamLstm::add_steps(nn::StepGraph& graph, std::size_t x) const {
  const std::size_t h = graph.add(lstm, lstm.step_from({initial_h, initial_c}, graph.rows(x)), {x});
  return graph.add(head, h);
}

void NamContainer::add(double max_value, std::unique_ptr<nn::Layer> model) {
  (void)whole();
  if (!model) throw ValueError("nam_container: the model is null");
  if (!models_.empty() && !(max_value > models_.back().max_value))
    throw ValueError("nam_container: max_value must be above the one before, " +
                     Scalar(models_.back().max_value).str() + ", got " + Scalar(max_value).str());
  adopt(std::to_string(models_.size()), *model);
  models_.push_back({max_value, std::move(model)});
  selected_ = models_.size() - 1;
}

void NamContainer::select(double size) {
  (void)running();
  std::size_t i = 0;
  while (i + 1 < models_.size() && !(size < models_[i].max_value)) ++i;
  selected_ = i;
}

const nn::Layer& NamContainer::running() const {
  (void)whole();
  if (models_.empty()) throw ValueError("nam_container: has no models; add one");
  return *models_[selected_].layer;
}

bool NamContainer::causal() const { return running().causal(); }
Tensor NamContainer::forward(const Tensor& x, const nn::Context& context) const { return running()(x, context); }
nn::StepInput NamContainer::step_input() const { return running().step_input(); }
std::vector<nn::StepState> NamContainer::states(const nn::StepRows& in) const { return running().states(in); }
nn::StepResult NamContainer::step(const Tensor& x, const Tensors& states) const { return running().advance(x, states); }
std::size_t NamContainer::add_steps(nn::StepGraph& graph, std::size_t x) const { return graph.add(running(), x); }

std::unique_ptr<nn::Layer> NamContainer::clone() const {
  auto copy = std::make_unique<NamContainer>();
  for (const Model& m : models_) copy->add(m.max_value, m.layer->clone());
  copy->selected_ = selected_;
  copy->take_after(*this);
  return copy;
}

// ---- reading -------------------------------------------------------------------------------------------

namespace {

using detail::nam::Document;
using detail::nam::Node;
using detail::nam::Object;

/// The list of a model's weights, from which arrays are taken in order.
class Weights {
 public:
  Weights(const Document& d, const Node& n) : store_(d.weights), at_(n.weights_at) {}

  Tensor take(const Shape& shape) {
    return Tensor::build<float>(shape, [&](std::span<float> to) {
      store_.copy(at_, to);
      at_ += to.size();
    });
  }
  /// Takes the matrix of a layer, [out, in] in the file.
  void matrix(const nn::Linear& layer) {
    const Shape& s = layer.weight.shape();
    layer.weight.assign(contiguous(transpose(take({s[1], s[0]}))));
    if (layer.bias.defined()) layer.bias.assign(take(layer.bias.shape()));
  }
  void convolution(const nn::CausalConv1d& layer) {
    layer.weight.assign(take(layer.weight.shape()));
    if (layer.bias.defined()) layer.bias.assign(take(layer.bias.shape()));
  }
  /// Takes the weights of a product, which is a Linear or, if it has groups, a convolution of one tap.
  void product(const nn::Layer& layer) {
    if (const auto* linear = dynamic_cast<const nn::Linear*>(&layer)) return matrix(*linear);
    convolution(dynamic_cast<const nn::CausalConv1d&>(layer));
  }

 private:
  const detail::FloatStore& store_;
  std::size_t at_;
};

/// Throws IoError unless there are `wanted` weights. Sizes are below 2^31, so a count in f64 is exact wherever it
/// equals the number of weights in a file.
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

double count_of_film(const nn::WavenetArray& a, nn::FilmPlace place, std::int64_t width) {
  const std::optional<nn::WavenetFilm>& f = a.films[static_cast<std::size_t>(place)];
  return f ? product({f->shift ? 2 * width : width, a.condition_size / f->groups + 1}) : 0;
}

double count_of(const nn::WavenetArray& a) {
  using Place = nn::FilmPlace;
  double n = product({a.input_size, a.channels});
  for (const nn::WavenetUnit& u : a.units) {
    const std::int64_t wide = u.gate ? 2 * a.bottleneck : a.bottleneck;
    n += product({wide, a.channels / a.groups, u.kernel_size}) + static_cast<double>(wide);
    n += product({wide, a.condition_size / a.mix_groups});
    if (a.has_layer1x1) n += product({a.channels, a.bottleneck / a.layer1x1_groups + 1});
    n += product({a.head1x1_size, a.bottleneck / a.head1x1_groups + 1});
    for (const Place p : {Place::conv_post, Place::mix_post, Place::activation_pre}) n += count_of_film(a, p, wide);
    for (const Place p : {Place::conv_pre, Place::layer1x1_post}) n += count_of_film(a, p, a.channels);
    n += count_of_film(a, Place::mix_pre, a.condition_size) + count_of_film(a, Place::activation_post, a.bottleneck) +
         count_of_film(a, Place::head1x1_post, a.head1x1_size);
  }
  return n + product({a.skip_size(), a.head_size, a.head_kernel_size}) +
         (a.head_bias ? static_cast<double>(a.head_size) : 0);
}

double count_of(const nn::WavenetHead& head, std::int64_t in) {
  double n = 0;
  for (std::size_t i = 0; i < head.kernel_sizes.size(); ++i) {
    const std::int64_t out = i + 1 == head.kernel_sizes.size() ? head.out_channels : head.channels;
    n += product({out, in, head.kernel_sizes[i]}) + static_cast<double>(out);
    in = out;
  }
  return n;
}

/// Passes the weights of a net in the order of the format, except those of its condition and the scale, to `to`, which
/// reads or writes them.
template <class To>
void each_weight(const nn::Wavenet& net, To& to) {
  for (const nn::Wavenet::Array& a : net.arrays()) {
    to.matrix(*a.rechannel);
    for (const nn::Wavenet::Unit& u : a.units) {
      to.convolution(*u.conv);
      to.product(*u.mix);
      if (u.layer1x1) to.product(*u.layer1x1);
      if (u.head1x1) to.product(*u.head1x1);
      for (const nn::Wavenet::Film& f : u.films)
        if (f.product) to.product(*f.product);
    }
    to.convolution(*a.head);
  }
  for (const nn::Wavenet::HeadLayer& h : net.head()) to.convolution(*h.conv);
}

NamModel model_of(Object model);

/// Returns the net that computes the condition of another one from its input, or null.
std::unique_ptr<nn::Layer> condition_of(Object& config, const std::optional<double>& rate) {
  if (!config.find("condition_dsp")) return nullptr;
  Object model = config.object("condition_dsp");
  const std::string where = model.where();
  NamModel condition = model_of(std::move(model));
  if (!dynamic_cast<const nn::Wavenet*>(condition.layer.get()))
    detail::refuse(where, "a " + condition.layer->kind() + " is not supported; supported is WaveNet");
  if (rate && condition.sample_rate && *rate != *condition.sample_rate)
    detail::refuse(where, "the sample_rate differs from that of the model");
  return std::move(condition.layer);
}

std::unique_ptr<nn::Layer> wavenet(Object config, const Node& weights, const std::optional<double>& rate,
                                   const std::string& where) {
  const Document& d = config.document();
  const std::unique_ptr<nn::Layer> condition = condition_of(config, rate);
  const auto* inner = dynamic_cast<const nn::Wavenet*>(condition.get());
  nn::WavenetOptions options = detail::nam::wavenet_options(std::move(config), inner ? &inner->options() : nullptr);
  double wanted = 1;  // one weight is the scale
  for (const nn::WavenetArray& a : options.arrays) wanted += count_of(a);
  if (options.head) wanted += count_of(*options.head, options.arrays.back().head_size);
  expect_count(weights, wanted, where);
  std::vector<float> scale(1);
  d.weights.copy(weights.weights_at + weights.weights - 1, scale);
  options.head_scale = scale[0];
  auto net = std::make_unique<nn::Wavenet>(options);
  if (inner) nn::copy_values(*inner, *net->condition());
  Weights from(d, weights);
  each_weight(*net, from);
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
    w.bias_hh.assign(full({4 * H}, -0.0));  // so that the sum is bit for bit the file's, even for -0
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

std::unique_ptr<nn::Layer> container(Object config, const std::optional<double>& rate) {
  const Document& d = config.document();
  const Node& list = config.at("submodels");
  const std::string where = config.where() + ".submodels";
  if (list.kind != Node::Kind::list || list.first == Node::kNone) detail::refuse(where, "is not a list of models");
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
    if (weights && weights->weights > 0) detail::refuse(model.where(), "a container has its own weights");
    result.layer = container(std::move(config), result.sample_rate);
    return result;
  }
  const Node& weights = model.at("weights");
  if (weights.kind != Node::Kind::weights) detail::refuse(model.where(), "'weights' are no list of numbers");
  if (architecture == "WaveNet") {
    result.layer = wavenet(std::move(config), weights, result.sample_rate, model.where());
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

// ---- writing -------------------------------------------------------------------------------------------

namespace {

using detail::nam::append_number;

/// Collects a model's weights for writing.
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
  void product(const nn::Layer& l) {
    if (const auto* linear = dynamic_cast<const nn::Linear*>(&l)) return matrix(*linear);
    convolution(dynamic_cast<const nn::CausalConv1d&>(l));
  }
  std::string text() const { return "[" + text_ + "]"; }

 private:
  std::string where_, text_;
};

struct Parts {
  std::string architecture, config, weights;
  bool newer = false;  ///< whether there are keys that version 0.5 does not have
};

std::string object_of(const std::string& version, const Parts& p, const std::string& metadata,
                      const std::optional<double>& rate);
/// Returns the later of a model's version and the first one that has its keys.
std::string version_for(const std::string& version, const std::string& least) {
  return version < least ? least : version;  // texts compare like versions from 0.5 to 0.7
}

Parts parts_of(const nn::Wavenet& net, const std::string& version, const std::optional<double>& rate,
               const std::string& where) {
  Parts p{"WaveNet", {}, {}};
  std::string condition;
  if (net.condition()) {
    const Parts inner = parts_of(*net.condition(), version, rate, where + ": condition_dsp");
    condition = object_of(version_for(version, inner.newer ? "0.6.0" : "0.5.0"), inner, {}, rate);
  }
  p.config = detail::nam::config_of(net.options(), condition, where, p.newer);
  WeightList list(where);
  each_weight(net, list);
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
    p = parts_of(*net, version, rate, where);
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
