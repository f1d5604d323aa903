#pragma once
/// Keras's layout of recurrent layers: the order of gates and the forms of biases.
#include <string_view>

#include "ferrite/nn/recurrent/gated.h"

namespace ferrite::io::detail {

/// The arrays of a recurrent layer in Keras's layout: [D, G H], [H, G H] and a bias that is undefined, [G H] or
/// [2, G H]. The constructor throws IoError beginning with `where` when they do not fit each other.
struct KerasLayer {
  KerasLayer(Tensor k, Tensor r, Tensor b, std::string_view where);

  Tensor bias_ih() const;
  /// Returns the recurrent bias, zeros where the layer has one bias.
  Tensor bias_hh() const;

  Tensor kernel, recurrent, bias;
  std::int64_t H = 0;
};

/// Converts the blocks of a GRU's gates between Keras's order z, r, h and PyTorch's r, z, n; other layers' stay.
Tensor keras_gates(const Tensor& x, std::int64_t hidden_size);

/// Sets parameters to the arrays of a layer. Throws IoError beginning with `where`, without changing any, for shapes
/// that are not the parameters' and numbers that their dtype cannot hold.
void set_from_keras(const nn::RecurrentWeights<Parameter>& to, const KerasLayer& layer, std::string_view where);

}  // namespace ferrite::io::detail
