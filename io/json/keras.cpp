/// Converts weights between Keras's layout and modules: the order of gates, the forms of biases.
#include "ferrite/io/keras.h"

#include <utility>
#include <vector>

#include "ferrite/io/detail/file_dtype.h"
#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/json/keras_layout.h"

// ---- gates and biases ----------------------------------------------------------------------------------

namespace ferrite::io::detail {
namespace {

/// Returns a value converted for a parameter. Throws IoError that names both shapes where they differ.
Tensor value_of(const Parameter& to, const Tensor& value, std::string_view where) {
  if (to.shape() != value.shape())
    refuse(where, quote(to.name()) + " has shape " + value.shape().str() + ", the layer needs " + to.shape().str());
  return converted(contiguous(value), to.dtype(), to.name(), where);
}

}  // namespace

KerasLayer::KerasLayer(Tensor k, Tensor r, Tensor b, std::string_view where)
    : kernel(std::move(k)), recurrent(std::move(r)), bias(std::move(b)) {
  const auto refuse_shapes = [&](const char* what) {
    refuse(where, std::string(what) + ": kernel " + kernel.shape().str() + ", recurrent_kernel " +
                      recurrent.shape().str() + (bias.defined() ? ", bias " + bias.shape().str() : std::string()));
  };
  if (kernel.rank() != 2 || recurrent.rank() != 2 || kernel.shape()[1] != recurrent.shape()[1])
    refuse_shapes("the matrices of a recurrent layer do not fit each other");
  H = recurrent.shape()[0];
  const std::int64_t columns = recurrent.shape()[1];
  if (H == 0 || columns % H != 0 || (columns / H != 1 && columns / H != 3 && columns / H != 4))
    refuse_shapes("is no SimpleRNN, GRU or LSTM");
  if (bias.defined() && bias.shape() != Shape{columns} && bias.shape() != Shape{2, columns})
    refuse_shapes("the bias does not fit");
}

Tensor KerasLayer::bias_ih() const { return bias.rank() == 2 ? select(bias, 0, 0) : bias; }
Tensor KerasLayer::bias_hh() const { return bias.rank() == 2 ? select(bias, 0, 1) : zeros_like(bias); }

Tensor keras_gates(const Tensor& x, std::int64_t hidden_size) {
  if (x.shape()[-1] != 3 * hidden_size) return x;
  const Tensors gates = chunk(x, 3, -1);
  return concat({gates[1], gates[0], gates[2]}, -1);  // this order is its own inverse
}

void set_from_keras(const nn::RecurrentWeights<Parameter>& to, const KerasLayer& layer, std::string_view where) {
  std::vector<std::pair<Parameter, Tensor>> values;
  const auto put = [&](const Parameter& p, const Tensor& value) {
    values.emplace_back(p, value_of(p, keras_gates(value, layer.H), where));
  };
  put(to.weight_ih, layer.kernel);
  put(to.weight_hh, layer.recurrent);
  if (layer.bias.defined()) put(to.bias_ih, layer.bias_ih()), put(to.bias_hh, layer.bias_hh());
  for (const auto& [parameter, value] : values) parameter.assign(value);
}

}  // namespace ferrite::io::detail

// ---- files ---------------------------------------------------------------------------------------------

namespace ferrite::io {
namespace {

/// Returns the prefix of a name that ends with `last` ("kernel" and the like), or nothing.
std::optional<std::string> prefix_of(std::string_view name, std::string_view last) {
  if (name == last) return std::string();
  if (!name.ends_with(last)) return std::nullopt;
  const char before = name[name.size() - last.size() - 1];
  if (before != '.' && before != '/') return std::nullopt;
  return std::string(name.substr(0, name.size() - last.size()));
}

/// The names of a recurrent layer; a pair forward_layer and backward_layer becomes one layer of two directions.
struct RecurrentNames {
  std::string prefix, suffix;
};
RecurrentNames names_in(const TensorFile& file, const std::string& prefix) {
  const auto at = [&](std::string_view own, std::string_view other) -> std::optional<std::string> {
    const auto whole = prefix.ends_with('.') || prefix.ends_with('/')
                           ? prefix_of(std::string_view(prefix).substr(0, prefix.size() - 1), own)
                           : std::nullopt;
    if (!whole || !file.contains(*whole + std::string(other) + prefix.back() + "recurrent_kernel")) return std::nullopt;
    return whole;
  };
  if (const auto whole = at("forward_layer", "backward_layer")) return {*whole, "_l0"};
  if (const auto whole = at("backward_layer", "forward_layer")) return {*whole, "_l0_reverse"};
  return {prefix, "_l0"};
}

Tensor in_files(const Tensor& matrix) { return contiguous(transpose(matrix)); }

/// Returns whether a GRU resets after the product, as 1 or 0, from the file or else from the shape of the bias;
/// undefined where neither determines it.
Tensor reset_after(const TensorFile& file, const std::string& prefix, const detail::KerasLayer& layer) {
  const std::string name = prefix + "reset_after";
  if (file.contains(name)) return file.tensor(name);
  if (layer.kernel.shape()[1] != 3 * layer.H || !layer.bias.defined()) return {};
  return full({}, layer.bias.rank() == 2 ? 1 : 0, Dtype::f64);
}

/// Appends the arrays of the layer whose kernel is at `prefix`, under PyTorch's names.
void convert(const TensorFile& file, const std::string& prefix, std::vector<NamedTensor>& out) {
  const std::string where = file.where() + ": " + detail::quote(prefix + "kernel");
  const Tensor kernel = file.tensor(prefix + "kernel");
  const Tensor bias = file.contains(prefix + "bias") ? file.tensor(prefix + "bias") : Tensor();
  if (!file.contains(prefix + "recurrent_kernel")) {
    if (kernel.rank() != 2)
      detail::refuse(where, "is not the matrix of a Dense layer: its shape is " + kernel.shape().str());
    out.push_back({prefix + "weight", in_files(kernel)});
    if (bias.defined()) out.push_back({prefix + "bias", bias});
    return;
  }
  const detail::KerasLayer layer(kernel, file.tensor(prefix + "recurrent_kernel"), bias, where);
  const auto [to, suffix] = names_in(file, prefix);
  if (const Tensor resets = reset_after(file, prefix, layer); resets.defined() && suffix == "_l0")
    out.push_back({to + "reset_after", resets});
  out.push_back({to + "weight_ih" + suffix, in_files(detail::keras_gates(layer.kernel, layer.H))});
  out.push_back({to + "weight_hh" + suffix, in_files(detail::keras_gates(layer.recurrent, layer.H))});
  if (!bias.defined()) return;
  out.push_back({to + "bias_ih" + suffix, detail::keras_gates(layer.bias_ih(), layer.H)});
  out.push_back({to + "bias_hh" + suffix, detail::keras_gates(layer.bias_hh(), layer.H)});
}

}  // namespace

TensorFile from_keras(const TensorFile& file) {
  std::vector<NamedTensor> out;
  for (const std::string_view name : file.names()) {
    if (const auto prefix = prefix_of(name, "kernel")) {
      convert(file, *prefix, out);
      continue;
    }
    const auto recurrent = prefix_of(name, "recurrent_kernel");
    const auto bias = prefix_of(name, "bias");
    if (recurrent && !file.contains(*recurrent + "kernel"))
      detail::refuse(file.where(), detail::quote(name) + " has no kernel beside it");
    if (recurrent || (bias && file.contains(*bias + "kernel"))) continue;
    if (const auto gates = prefix_of(name, "reset_after"); gates && file.contains(*gates + "recurrent_kernel"))
      continue;
    if (const auto norm = prefix_of(name, "running_var"); norm && !file.contains(*norm + "num_batches_tracked"))
      out.push_back({*norm + "num_batches_tracked", zeros({}, Dtype::i64)});
    const auto table = prefix_of(name, "embeddings");
    out.push_back({table ? *table + "weight" : std::string(name), file.tensor(name)});
  }
  return tensor_file_of(std::move(out), file.where(), file.metadata());
}

}  // namespace ferrite::io
