#pragma once
/// The weights of one direction of a recurrent layer: parameters, their values, and what kernels make of them.
#include "ferrite/tensor/language.h"

namespace ferrite::nn {

/// Holds one thing for each weight of a layer in one direction: in `gru.weights()` its parameter, in the operands of
/// `gru_sequence` its value, a Tensor. The names are PyTorch's. G gates stand side by side; D features come in; states
/// have P units, H but for a projection.
template <class Matrix, class Vector = Matrix, class Recurrent = Matrix>
struct RecurrentWeights {
  Matrix weight_ih;     ///< [D, G H], in files [G H, D]
  Recurrent weight_hh;  ///< [P, G H], in files [G H, P]
  Vector bias_ih{};     ///< [G H], or none; both biases or none
  Vector bias_hh{};     ///< [G H], or none
  Matrix weight_hr{};   ///< an LSTM's projection [H, P], in files [P, H]; or none
  Vector weight_ch{};   ///< weights of single units [V H]: an LSTM's peepholes [3H]; or none

  /// f of each, in this order.
  template <class F>
  auto map(const F& f) const {
    using Mapped = RecurrentWeights<decltype(f(weight_ih)), decltype(f(bias_ih)), decltype(f(weight_hh))>;
    return Mapped{f(weight_ih), f(weight_hh), f(bias_ih), f(bias_hh), f(weight_hr), f(weight_ch)};
  }
};

}  // namespace ferrite::nn
