#pragma once
/// What the operands of a recurrent sequence are, for those who write its operation in another language.
#include <span>
#include <string_view>

#include "ferrite/nn/recurrent/weights.h"
#include "ferrite/tensor/shape.h"

namespace ferrite::nn {

/// Positions of a sequence's operands, -1 for what is absent: x [T, B, D] (or batch first), states [B, H], the weights
/// of a layer, lengths i64 [B], resets bool [B, T]. They come in this order:
///
///   x, h0, (c0,) weight_ih, weight_hh, (weight_ch,) (bias_ih, bias_hh,) (weight_hr,) (lengths,) (resets)
struct SequenceParts {
  int x = -1, h0 = -1, c0 = -1;
  RecurrentWeights<int> w{-1, -1, -1, -1, -1, -1};
  int lengths = -1, resets = -1;

  int first = 0;          ///< the position of the first operand
  int floats = 0;         ///< the position after the last operand of floats: each of them has a gradient
  bool complete = false;  ///< whether the operands make up a sequence at all
};

/// Those of the operations gru_sequence, gru_reset_before_sequence, lstm_sequence, peephole_lstm_sequence, rnn_sequence
/// and rnn_relu_sequence on operands of these types. Throws ValueError for another name.
SequenceParts sequence_parts(std::string_view operation, std::span<const Spec> operands);

}  // namespace ferrite::nn
