/// GuitarML's recurrent models: the layer, and its files.
#include "ferrite/io/guitarml.h"

#include <charconv>
#include <set>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/json_weights.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"

namespace ferrite::io {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 20;

const GuitarmlOptions& checked(const GuitarmlOptions& o) {
  for (const std::int64_t n : {o.input_size, o.output_size, o.hidden_size, o.layers})
    if (n < 1) throw ValueError("guitarml: sizes must be positive, got " + std::to_string(n));
  if (o.skip != 0 && (o.skip != o.output_size || o.skip > o.input_size))
    throw ValueError("guitarml: skip must be 0 or the size of the output, and not above that of the input, got " +
                     std::to_string(o.skip) + " of " + std::to_string(o.input_size) + " and " +
                     std::to_string(o.output_size));
  return o;
}

std::unique_ptr<nn::GatedRecurrent> unit_of(const GuitarmlOptions& o, const nn::Init& init) {
  if (o.gru)
    return std::make_unique<nn::Gru>(o.input_size, o.hidden_size, nn::GruOptions{.layers = o.layers, .bias = o.bias},
                                     init);
  return std::make_unique<nn::Lstm>(o.input_size, o.hidden_size, nn::LstmOptions{.layers = o.layers, .bias = o.bias},
                                    init);
}

nn::Init without_seed(const nn::Init& init) { return {.seed = {}, .prefix = {}, .dtype = init.dtype}; }

/// The entries of `model_data`.
class ModelData {
 public:
  explicit ModelData(const TensorFile& file) : where_(file.where() + ": model_data"), words_(file.metadata()) {}

  std::string text(const std::string& key, const std::string& otherwise) const {
    const auto at = words_.find(key);
    return at == words_.end() ? otherwise : at->second;
  }
  std::int64_t size(const std::string& key, std::int64_t least, std::int64_t otherwise) const {
    const auto at = words_.find(key);
    if (at == words_.end()) return otherwise;
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(at->second.data(), at->second.data() + at->second.size(), n);
    if (error != std::errc() || end != at->second.data() + at->second.size() || n < least || n > kLargest)
      detail::refuse(where_, detail::quote(key) + " is no size: " + detail::quote(at->second));
    return n;
  }
  /// Throws IoError for an unknown key, which may change numbers.
  void check_keys() const {
    static const std::set<std::string> known = {"model",     "input_size", "skip",        "output_size",
                                                "unit_type", "num_layers", "hidden_size", "bias_fl"};
    for (const auto& [key, value] : words_)
      if (!known.contains(key)) detail::refuse(where_, "the key " + detail::quote(key) + " is not supported");
  }
  const std::string& where() const { return where_; }

 private:
  std::string where_;
  Metadata words_;
};

GuitarmlOptions options_of(const TensorFile& file) {
  const ModelData data(file);
  data.check_keys();
  if (const std::string model = data.text("model", ""); model != "SimpleRNN")
    detail::refuse(data.where(), "the model " + detail::quote(model) + " is not supported; supported is SimpleRNN");
  GuitarmlOptions o;
  const std::string unit = data.text("unit_type", "LSTM");
  o.gru = unit == "GRU";
  if (!o.gru && unit != "LSTM")
    detail::refuse(data.where(),
                   "the unit_type " + detail::quote(unit) + " is not supported; supported are LSTM and GRU");
  o.input_size = data.size("input_size", 1, 1);
  o.output_size = data.size("output_size", 1, 1);
  o.hidden_size = data.size("hidden_size", 1, 32);
  o.layers = data.size("num_layers", 1, 1);
  o.skip = data.size("skip", 0, 1);
  o.bias = file.contains("rec.bias_ih_l0");
  o.lin_bias = file.contains("lin.bias");
  if (o.skip != 0 && (o.skip != o.output_size || o.skip > o.input_size))
    detail::refuse(data.where(), "'skip' is neither 0 nor the size of the output: " + std::to_string(o.skip));
  return o;
}

/// Throws IoError unless a file has exactly the names and shapes of all parameters.
void check_weights(const TensorFile& file, const GuitarmlOptions& o) {
  const std::int64_t gates = o.gru ? 3 : 4, wide = gates * o.hidden_size;
  std::size_t known = 0;
  const auto expect = [&](const std::string& name, std::vector<std::int64_t> shape) {
    if (!file.contains(name)) detail::refuse(file.where(), "state_dict has no " + detail::quote(name));
    if (file.info(name).shape != shape)
      detail::refuse(file.where(), detail::quote(name) + " has shape " + detail::bracketed(file.info(name).shape) +
                                       ", the sizes of model_data need " + detail::bracketed(shape));
    ++known;
  };
  for (std::int64_t k = 0; k < o.layers; ++k) {
    const std::string at = "_l" + std::to_string(k);
    expect("rec.weight_ih" + at, {wide, k == 0 ? o.input_size : o.hidden_size});
    expect("rec.weight_hh" + at, {wide, o.hidden_size});
    if (o.bias) expect("rec.bias_ih" + at, {wide}), expect("rec.bias_hh" + at, {wide});
  }
  expect("lin.weight", {o.output_size, o.hidden_size});
  if (o.lin_bias) expect("lin.bias", {o.output_size});
  if (file.size() != known)
    detail::refuse(file.where(), "state_dict has " + detail::counted(file.size(), "tensor") + ", the sizes need " +
                                     std::to_string(known));
}

std::unique_ptr<GuitarmlNet> net_of(const TensorFile& file) {
  if (file.metadata().empty()) detail::refuse(file.where(), "has no 'model_data' and 'state_dict'");
  const GuitarmlOptions o = options_of(file);
  check_weights(file, o);
  auto net = std::make_unique<GuitarmlNet>(o);
  for (const auto& p : net->named_parameters()) {
    const Tensor value = file.tensor(p.name);
    p.variable.assign(value.rank() == 2 ? contiguous(transpose(value)) : value);  // matrices are [out, in] in files
  }
  return net;
}

}  // namespace

GuitarmlNet::GuitarmlNet(const GuitarmlOptions& o, const nn::Init& init)
    : LayerOf(checked(o), init),
      rec_(unit_of(o, without_seed(init))),
      lin_({o.hidden_size, o.output_size, o.lin_bias}, without_seed(init)) {
  adopt("rec", *rec_);
  adopt("lin", lin_);
}

Tensor GuitarmlNet::forward(const Tensor& x, const nn::Context& context) const {
  const Tensor y = lin_((*rec_)(x, context));
  return options().skip > 0 ? y + slice(x, -1, 0, options().skip) : y;
}

nn::StepResult GuitarmlNet::step(const Tensor& x, const Tensors& states) const {
  nn::StepResult r = rec_->advance(x, states);
  r.y = lin_(r.y);
  if (options().skip > 0) r.y = r.y + slice(x, -1, 0, options().skip);
  return r;
}

std::unique_ptr<GuitarmlNet> parse_guitarml(std::span<const std::byte> bytes, std::string_view where) {
  return net_of(parse_json_weights(bytes, where));
}

std::unique_ptr<GuitarmlNet> read_guitarml(const std::filesystem::path& path) {
  return net_of(read_json_weights(path));
}

}  // namespace ferrite::io
