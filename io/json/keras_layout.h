#pragma once
/// Keras's layout of recurrent layers: order of gates, forms of biases.
#include <string_view>

#include "ferrite/nn/recurrent/gated.h"

namespace ferrite::io::detail {

/// A recurrent layer's arrays in Keras's layout, [D, G H], [H, G H] and a bias that is undefined, [G H] or [2, G H].
/// Throws IoError beginning with `where` when they do not fit each other.
struct KerasLayer {
  KerasLayer(Tensor k, Tensor r, Tensor b, std::string_view where);

  Tensor bias_ih() const;
  /// Zeros where the layer has one bias.
  Tensor bias_hh() const;

  Tensor kernel, recurrent, bias;
  std::int64_t H = 0;
};

/// The blocks of a GRU's gates z, r, h as r, z, n, and back; those of other layers stay.
Tensor keras_gates(const Tensor& x, std::int64_t hidden_size);

/// Puts the arrays into parameters. Throws IoError beginning with `where` for other shapes than the parameters have and
/// numbers that their dtype cannot hold; nothing has changed then.
void set_from_keras(const nn::RecurrentWeights<Parameter>& to, const KerasLayer& layer, std::string_view where);

}  // namespace ferrite::io::detail
