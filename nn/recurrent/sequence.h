#pragma once
/// All steps of a recurrent layer in one direction as one operation.
#include <span>

#include "ferrite/nn/recurrent/steps.h"

namespace ferrite::nn {

/// The weights of one layer in one direction. G gates side by side, D features, states of P (H, but for a projection).
struct SequenceWeights {
  Tensor w_ih;    ///< [D, G H]
  Tensor w_hh;    ///< [P, G H]
  Tensor b_ih{};  ///< [G H], or undefined; both or none
  Tensor b_hh{};
  Tensor w_hr{};  ///< an LSTM's projection [H, P], or undefined
};

/// All steps of a layer in one direction as one operation, from its input x [T, B, D] (or batch first) -> {y [T, B, H],
/// last h [B, H]}: the input product of all steps at once, one product a step whose gates are finished before the next
/// units begin. Values are those of the steps, to the bit; the gradient runs as one operation too, and a gradient of a
/// gradient is that of the steps. Throws ShapeError, also for a length outside 0..T, and DtypeError.
Tensors gru_sequence(const Tensor& x, const SequenceWeights& w, const Tensor& h0, const SequenceOptions& options = {},
                     bool reset_after = true);
/// -> {y, last h, last c}.
Tensors lstm_sequence(const Tensor& x, const SequenceWeights& w, const RecurrentState& before,
                      const SequenceOptions& options = {});
Tensors rnn_sequence(const Tensor& x, const SequenceWeights& w, const Tensor& h0, bool with_relu = false,
                     const SequenceOptions& options = {});

namespace detail {
/// The records of these operations, and of their gradients.
std::span<const Primitive* const> sequence_operations();
std::span<const Primitive* const> sequence_grad_operations();
}  // namespace detail

}  // namespace ferrite::nn

namespace ferrite {
using nn::gru_sequence, nn::lstm_sequence, nn::rnn_sequence, nn::SequenceWeights;
}  // namespace ferrite
