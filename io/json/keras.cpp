/// Weights in Keras's layout, to and from modules.
#include "ferrite/io/keras.h"

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/json/keras_layout.h"

namespace ferrite::io {
namespace {

/// What stands before "kernel" and the like; nothing where the name does not end so.
std::optional<std::string> prefix_of(std::string_view name, std::string_view last) {
  if (name == last) return std::string();
  if (!name.ends_with(last)) return std::nullopt;
  const char before = name[name.size() - last.size() - 1];
  if (before != '.' && before != '/') return std::nullopt;
  return std::string(name.substr(0, name.size() - last.size()));
}

/// A recurrent layer's names: of a pair forward_layer and backward_layer those of one layer of two directions.
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

/// Whether a GRU resets after the product, as 1 or 0: what the file says, else what the bias tells; undefined: neither
/// does.
Tensor reset_after(const TensorFile& file, const std::string& prefix, const detail::KerasLayer& layer) {
  const std::string name = prefix + "reset_after";
  if (file.contains(name)) return file.tensor(name);
  if (layer.kernel.shape()[1] != 3 * layer.H || !layer.bias.defined()) return {};
  return full({}, layer.bias.rank() == 2 ? 1 : 0, Dtype::f64);
}

/// The layer whose kernel is at `prefix`, under PyTorch's names.
void convert(const TensorFile& file, const std::string& prefix, std::vector<NamedTensor>& out) {
  const std::string where = file.where() + ": " + detail::quote(prefix + "kernel");
  const Tensor kernel = file.tensor(prefix + "kernel");
  const Tensor bias = file.contains(prefix + "bias") ? file.tensor(prefix + "bias") : Tensor();
  if (!file.contains(prefix + "recurrent_kernel")) {
    if (kernel.rank() != 2)
      detail::refuse(where, "is no matrix of a Dense layer: its shape is " + kernel.shape().str());
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
