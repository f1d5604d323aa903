/// Operands of recurrent sequences by their meaning.
#include "ferrite/nn/recurrent/sequence_parts.h"

#include "ferrite/nn/recurrent/detail/cells.h"
#include "ferrite/nn/recurrent/detail/sequence_operands.h"

namespace ferrite::nn {

SequenceParts sequence_parts(std::string_view operation, std::span<const Spec> operands) {
  static constexpr std::pair<std::string_view, const detail::GatedCell*> cells[] = {
      {"gru_sequence", &detail::kGru},   {"gru_reset_before_sequence", &detail::kGruResetBefore},
      {"lstm_sequence", &detail::kLstm}, {"peephole_lstm_sequence", &detail::kPeepholeLstm},
      {"rnn_sequence", &detail::kRnn},   {"rnn_relu_sequence", &detail::kRnnRelu}};
  for (const auto& [name, cell] : cells)
    if (operation == name) return detail::parts_of(*cell, operands);
  throw ValueError("sequence_parts: no sequence of that name: '" + std::string(operation) + "'");
}

}  // namespace ferrite::nn
