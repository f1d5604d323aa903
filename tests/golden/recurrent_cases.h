#pragma once
/// The cases of tests/data/recurrent.safetensors: torch's recurrent layers with all their options.
#include <memory>
#include <set>

#include "ferrite/autograd/tape.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "support/compare.h"
#include "support/fixtures.h"

namespace recurrent {

using namespace ferrite;

/// Takes tensors one by one from a flat list.
class Taker {
 public:
  Taker(Tensor flat, Dtype dtype) : flat_(cast(flat, dtype)) {}
  Tensor take(const Shape& shape) {
    const std::int64_t n = shape.numel();
    at_ += n;
    return reshape(slice(flat_, 0, at_ - n, at_), shape);
  }
  bool at_end() const { return at_ == flat_.numel(); }

 private:
  Tensor flat_;
  std::int64_t at_ = 0;
};

enum Layout : std::int64_t { batch_first, time_first, unbatched };
constexpr const char* kKinds[] = {"gru",      "lstm",      "rnn_tanh",      "rnn_relu",
                                  "gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell"};
constexpr std::size_t kFields = 14;

struct Config {
  explicit Config(const std::vector<std::int64_t>& v)
      : kind(kKinds[v[0]]),
        layers(v[1]),
        bidirectional(v[2] != 0),
        bias(v[3] != 0),
        layout(static_cast<Layout>(v[4])),
        states(v[5] != 0),
        ragged(v[6] != 0),
        dropout(v[7] != 0),
        proj(v[8]),
        D(v[9]),
        H(v[10]),
        B(v[11]),
        T(v[12]),
        twice(v[13] != 0),
        lengths(v.begin() + kFields, v.end()) {}

  std::string kind;
  std::int64_t layers;
  bool bidirectional, bias;
  Layout layout;
  bool states, ragged, dropout;
  std::int64_t proj, D, H, B, T;
  bool twice;
  std::vector<std::int64_t> lengths;

  bool is_cell() const { return kind.ends_with("cell"); }
  bool is_lstm() const { return kind.starts_with("lstm"); }
  nn::Nonlinearity nonlinearity() const {
    return kind.starts_with("rnn_relu") ? nn::Nonlinearity::relu : nn::Nonlinearity::tanh;
  }

  std::unique_ptr<nn::GatedRecurrent> layer(Dtype dtype, nn::Form form) const {
    const nn::Init init{0, {}, dtype};
    const double p = dropout ? 1 : 0;
    const bool first = layout != time_first;
    if (kind == "gru")
      return std::make_unique<nn::Gru>(D, H,
                                       nn::GruOptions{.layers = layers,
                                                      .bidirectional = bidirectional,
                                                      .dropout = p,
                                                      .bias = bias,
                                                      .batch_first = first,
                                                      .form = form},
                                       init);
    if (kind == "lstm")
      return std::make_unique<nn::Lstm>(D, H,
                                        nn::LstmOptions{.layers = layers,
                                                        .bidirectional = bidirectional,
                                                        .dropout = p,
                                                        .bias = bias,
                                                        .batch_first = first,
                                                        .form = form,
                                                        .proj_size = proj},
                                        init);
    return std::make_unique<nn::Rnn>(D, H,
                                     nn::RnnOptions{.layers = layers,
                                                    .bidirectional = bidirectional,
                                                    .dropout = p,
                                                    .bias = bias,
                                                    .batch_first = first,
                                                    .form = form,
                                                    .nonlinearity = nonlinearity()},
                                     init);
  }

  Shape x_shape() const {
    if (is_cell()) return layout == unbatched ? Shape{D} : Shape{B, D};
    if (layout == unbatched) return {T, D};
    return layout == batch_first ? Shape{B, T, D} : Shape{T, B, D};
  }
  Shape y_shape() const {
    Shape s = x_shape();
    s[-1] = (proj ? proj : H) * (bidirectional ? 2 : 1);
    return s;
  }
  /// Returns the shape of h (or of c) for all layers, in torch's form.
  Shape state_shape(bool memory) const {
    const std::int64_t width = memory || !proj ? H : proj;
    if (is_cell()) return layout == unbatched ? Shape{width} : Shape{B, width};
    const std::int64_t rows = layers * (bidirectional ? 2 : 1);
    return layout == unbatched ? Shape{rows, width} : Shape{rows, B, width};
  }
};

/// Returns a parameter's shape in torch's orientation: transposed if the parameter's layout says so.
inline Shape file_shape(const Parameter& p) {
  return p.layout() == FileLayout::transposed ? Shape{p.shape()[1], p.shape()[0]} : p.shape();
}
inline Tensor turned(const Parameter& p, const Tensor& t) {
  return p.layout() == FileLayout::transposed ? contiguous(transpose(t)) : t;
}

inline const char* form_name(nn::Form form) {
  return form == nn::Form::fused ? "fused" : form == nn::Form::scan ? "scan" : "unrolled";
}

/// The inputs and results of one case.
struct Case {
  explicit Case(int number, Dtype dtype, nn::Form form = nn::Form::fused) : config(read_config(number)) {
    const io::TensorFile file = opened();
    const std::string at = name(number);
    Taker in(file.tensor(at + "/in"), dtype);
    Taker out(file.tensor(at + "/out"), Dtype::f64);
    gaps = file.tensor(at + "/gap").to_vector<double>();
    if (config.is_cell()) {
      make_cell(dtype);
    } else {
      layer = config.layer(dtype, form);
      parameters = layer->parameters();
    }
    x = in.take(config.x_shape());
    if (config.states) h0 = in.take(config.state_shape(false));
    if (config.states && config.is_lstm()) c0 = in.take(config.state_shape(true));
    for (const Parameter& p : parameters) p.assign(turned(p, in.take(file_shape(p))));
    const std::vector<Shape> results = result_shapes();
    for (const Shape& s : results) cotangents.push_back(in.take(s));
    for (const Shape& s : results) wanted.push_back(out.take(s));
    for (const Shape& s : variable_shapes()) wanted.push_back(out.take(s));
    if (config.twice) {
      for (const Shape& s : variable_shapes()) directions.push_back(in.take(s));
      for (const Shape& s : variable_shapes()) wanted_twice.push_back(out.take(s));
    }
    BOOST_REQUIRE(in.at_end() && out.at_end());
    if (config.ragged) lengths = Tensor::from(config.lengths, {config.B});
  }

  static io::TensorFile opened() {
    static const io::TensorFile file = support::fixture("recurrent.safetensors");
    return file;
  }
  static std::string name(int number) {
    const std::string digits = std::to_string(number);
    return std::string(3 - digits.size(), '0') + digits;
  }
  static int count() { return static_cast<int>(opened().size() / 4); }
  static Config read_config(int number) {
    return Config(opened().tensor(name(number) + "/config").to_vector<std::int64_t>());
  }

  /// Returns y or h', then h_n and c_n, as torch returns them.
  Tensors run(const Tensor& input, const Tensor& h, const Tensor& c) const {
    if (gru_cell) return {(*gru_cell)(input, h)};
    if (rnn_cell) return {(*rnn_cell)(input, h)};
    if (lstm_cell) {
      const nn::RecurrentState s = (*lstm_cell)(input, {h, c});
      return {s.h, s.c};
    }
    return in_torch_form(layer->run(input, {.lengths = lengths, .state = h, .cell = c}));
  }
  Tensors in_torch_form(const nn::RecurrentResult& r) const {
    Tensors all = {r.output, reshape(r.state, config.state_shape(false))};
    if (config.is_lstm()) all.push_back(reshape(r.cell, config.state_shape(true)));
    return all;
  }

  Config config;
  std::unique_ptr<nn::GatedRecurrent> layer;
  std::unique_ptr<nn::GruCell> gru_cell;
  std::unique_ptr<nn::LstmCell> lstm_cell;
  std::unique_ptr<nn::RnnCell> rnn_cell;
  std::vector<Parameter> parameters;
  Tensor x, h0, c0, lengths;
  Tensors cotangents;
  Tensors wanted;  ///< results, then gradients of x, the states and the parameters
  Tensors directions, wanted_twice;
  std::vector<double> gaps;  ///< gaps of torch's own f32 results from `wanted`

 private:
  void make_cell(Dtype dtype) {
    const nn::Init init{0, {}, dtype};
    const std::int64_t D = config.D, H = config.H;
    if (config.kind == "gru_cell") {
      gru_cell = std::make_unique<nn::GruCell>(D, H, init, config.bias);
      parameters = gru_cell->parameters();
    } else if (config.is_lstm()) {
      lstm_cell = std::make_unique<nn::LstmCell>(D, H, init, config.bias);
      parameters = lstm_cell->parameters();
    } else {
      rnn_cell = std::make_unique<nn::RnnCell>(D, H, init, config.bias, config.nonlinearity());
      parameters = rnn_cell->parameters();
    }
  }
  std::vector<Shape> result_shapes() const {
    std::vector<Shape> all;
    if (!config.is_cell()) all.push_back(config.y_shape());
    all.push_back(config.state_shape(false));
    if (config.is_lstm()) all.push_back(config.state_shape(true));
    return all;
  }
  std::vector<Shape> variable_shapes() const {
    std::vector<Shape> all = {x.shape()};
    if (h0.defined()) all.push_back(h0.shape());
    if (c0.defined()) all.push_back(c0.shape());
    for (const Parameter& p : parameters) all.push_back(file_shape(p));
    return all;
  }
};

}  // namespace recurrent
