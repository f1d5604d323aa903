/// Reorders gates and splits biases between Keras's layout and ours.
#include "ferrite/io/json/keras_layout.h"

#include <utility>
#include <vector>

#include "ferrite/io/detail/file_dtype.h"
#include "ferrite/io/detail/io_text.h"

namespace ferrite::io::detail {
namespace {

/// A parameter's value. Throws with the shapes in the error.
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
  return concat({gates[1], gates[0], gates[2]}, -1);  // its own inverse
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
