#pragma once
/// The weights of one direction of a recurrent layer: parameters, values, or the packed forms that kernels read.
#include "ferrite/tensor/language.h"

namespace ferrite::nn {

/// Holds one object for each weight of a layer in one direction: its Parameter in `gru.weights()`, its value, a Tensor,
/// in the operands of `gru_sequence`. The names are PyTorch's. There are D input features, H units and G gates next to
/// each other; states have P units, which is H without a projection.
template <class Matrix, class Vector = Matrix, class Recurrent = Matrix>
struct RecurrentWeights {
  Matrix weight_ih;     ///< weights of the input, [D, G H], in files [G H, D]
  Recurrent weight_hh;  ///< weights of the state, [P, G H], in files [G H, P]
  Vector bias_ih{};     ///< bias of the input product [G H], or none; both biases or none
  Vector bias_hh{};     ///< bias of the state's product [G H], or none
  Matrix weight_hr{};   ///< an LSTM's projection [H, P], in files [P, H]; or none
  Vector weight_ch{};   ///< weights that multiply unit by unit [V H], an LSTM's peepholes [3H]; or none

  /// Returns f of each weight.
  template <class F>
  auto map(const F& f) const {
    using Mapped = RecurrentWeights<decltype(f(weight_ih)), decltype(f(bias_ih)), decltype(f(weight_hh))>;
    return Mapped{f(weight_ih), f(weight_hh), f(bias_ih), f(bias_hh), f(weight_hr), f(weight_ch)};
  }
};

}  // namespace ferrite::nn
