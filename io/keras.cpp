#include "ferrite/io/keras.h"

#include "ferrite/io/detail/text.h"

namespace ferrite::io {
namespace detail {
namespace {

/// A recurrent layer in Keras's layout, checked.
struct KerasLayer {
  KerasLayer(Tensor k, Tensor r, Tensor b, std::string_view where)
      : kernel(std::move(k)), recurrent(std::move(r)), bias(std::move(b)) {
    const auto refuse_shapes = [&](const char* what) {
      refuse(where, std::string(what) + ": kernel " + kernel.shape().str() + ", recurrent_kernel " +
                        recurrent.shape().str() + (bias ? ", bias " + bias.shape().str() : std::string()));
    };
    if (kernel.rank() != 2 || recurrent.rank() != 2 || kernel.shape()[1] != recurrent.shape()[1])
      refuse_shapes("the matrices of a recurrent layer do not fit each other");
    H = recurrent.shape()[0];
    const std::int64_t columns = recurrent.shape()[1];
    if (H == 0 || columns % H != 0 || (columns / H != 1 && columns / H != 3 && columns / H != 4))
      refuse_shapes("is no SimpleRNN, GRU or LSTM");
    if (bias && bias.shape() != Shape{columns} && bias.shape() != Shape{2, columns})
      refuse_shapes("the bias does not fit");
  }

  Tensor bias_ih() const { return bias.rank() == 2 ? select(bias, 0, 0) : bias; }
  Tensor bias_hh() const { return bias.rank() == 2 ? select(bias, 0, 1) : zeros_like(bias); }

  Tensor kernel, recurrent, bias;
  std::int64_t H = 0;
};

/// Assigns with the shapes in the error.
void assign(const Parameter& to, const Tensor& value, std::string_view where) {
  if (to.shape() != value.shape())
    refuse(where, quote(to.name()) + " has shape " + value.shape().str() + ", the layer needs " + to.shape().str());
  to.assign(cast(contiguous(value), to.dtype()));
}

}  // namespace

Tensor keras_gates(const Tensor& x, std::int64_t hidden_size) {
  if (x.shape()[-1] != 3 * hidden_size) return x;
  const Tensors gates = chunk(x, 3, -1);
  return concat({gates[1], gates[0], gates[2]}, -1);  // its own inverse
}

void set_from_keras(const nn::RecurrentWeights& to, const Tensor& kernel, const Tensor& recurrent_kernel,
                    const Tensor& bias, std::string_view where) {
  const KerasLayer layer(kernel, recurrent_kernel, bias, where);
  assign(to.weight_ih, keras_gates(layer.kernel, layer.H), where);
  assign(to.weight_hh, keras_gates(layer.recurrent, layer.H), where);
  if (!bias) return;
  assign(to.bias_ih, keras_gates(layer.bias_ih(), layer.H), where);
  assign(to.bias_hh, keras_gates(layer.bias_hh(), layer.H), where);
}

}  // namespace detail

namespace {

/// What stands before "kernel" and the like; nothing where the name does not end so.
std::optional<std::string> prefix_of(std::string_view name, std::string_view last) {
  if (name == last) return std::string();
  if (!name.ends_with(last)) return std::nullopt;
  const char before = name[name.size() - last.size() - 1];
  if (before != '.' && before != '/') return std::nullopt;
  return std::string(name.substr(0, name.size() - last.size()));
}

Tensor in_files(const Tensor& matrix) { return contiguous(transpose(matrix)); }

/// The layer whose kernel is at `prefix`, under PyTorch's names.
void convert(const TensorFile& file, const std::string& prefix, std::vector<NamedTensor>& out) {
  const std::string where = file.where() + ": " + detail::quote(prefix + "kernel");
  const Tensor kernel = file.tensor(prefix + "kernel");
  const Tensor bias = file.contains(prefix + "bias") ? file.tensor(prefix + "bias") : Tensor();
  if (!file.contains(prefix + "recurrent_kernel")) {
    if (kernel.rank() != 2)
      detail::refuse(where, "is no matrix of a Dense layer: its shape is " + kernel.shape().str());
    out.push_back({prefix + "weight", in_files(kernel)});
    if (bias) out.push_back({prefix + "bias", bias});
    return;
  }
  const detail::KerasLayer layer(kernel, file.tensor(prefix + "recurrent_kernel"), bias, where);
  out.push_back({prefix + "weight_ih_l0", in_files(detail::keras_gates(layer.kernel, layer.H))});
  out.push_back({prefix + "weight_hh_l0", in_files(detail::keras_gates(layer.recurrent, layer.H))});
  if (!bias) return;
  out.push_back({prefix + "bias_ih_l0", detail::keras_gates(layer.bias_ih(), layer.H)});
  out.push_back({prefix + "bias_hh_l0", detail::keras_gates(layer.bias_hh(), layer.H)});
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
    const auto table = prefix_of(name, "embeddings");
    out.push_back({table ? *table + "weight" : std::string(name), file.tensor(name)});
  }
  return tensor_file_of(std::move(out), file.where(), file.metadata());
}

}  // namespace ferrite::io
