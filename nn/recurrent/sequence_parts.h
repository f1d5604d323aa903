#pragma once
/// What the operands of a recurrent sequence are, for those who write its operation in another language.
#include <span>
#include <string_view>

#include "ferrite/tensor/shape.h"

namespace ferrite::nn {

/// Positions of operands, -1 for what is absent: x [T, B, D] (or batch first), states [B, H], the parameters of a layer
/// (w_ch: peepholes; w_hr: a projection), lengths i64 [B], resets bool [B, T].
struct SequenceParts {
  int x = -1, h0 = -1, c0 = -1;
  int w_ih = -1, w_hh = -1, w_ch = -1, b_ih = -1, b_hh = -1, w_hr = -1;
  int lengths = -1, resets = -1;
};

/// Those of the operations gru_sequence, gru_reset_before_sequence, lstm_sequence, peephole_lstm_sequence, rnn_sequence
/// and rnn_relu_sequence on operands of these types. Throws ValueError for another name.
SequenceParts sequence_parts(std::string_view operation, std::span<const Spec> operands);

}  // namespace ferrite::nn
