#pragma once
/// The meaning of a recurrent sequence's operands, for exporters that write its operation in another language.
#include <span>
#include <string_view>

#include "ferrite/nn/recurrent/weights.h"
#include "ferrite/tensor/shape.h"

namespace ferrite::nn {

/// The positions, in the list of its operands, of what an operation such as gru_sequence reads; -1 for absent ones: x
/// [T, B, D] (or batch first), states [B, H], the weights of a layer, lengths i64 [B], resets bool [B, T]. They come in
/// this order:
///
///   x, h0, (c0,) weight_ih, weight_hh, (weight_ch,) (bias_ih, bias_hh,) (weight_hr,) (lengths,) (resets)
struct SequenceParts {
  int x = -1, h0 = -1, c0 = -1;
  RecurrentWeights<int> w{-1, -1, -1, -1, -1, -1};
  int lengths = -1, resets = -1;

  int first = 0;          ///< the position of the first operand
  int floats = 0;         ///< the position after the last operand of floats; each of these has a gradient
  bool complete = false;  ///< whether the types of all operands are those of such an operation
};

/// Returns the positions of the operands of gru_sequence, gru_reset_before_sequence, lstm_sequence,
/// peephole_lstm_sequence, rnn_sequence or rnn_relu_sequence, by their types. Throws ValueError for another name.
SequenceParts sequence_parts(std::string_view operation, std::span<const Spec> operands);

}  // namespace ferrite::nn
