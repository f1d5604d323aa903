/// Operands of recurrent sequences by their meaning.
#include "ferrite/nn/recurrent/sequence_parts.h"

#include "ferrite/nn/recurrent/detail/cells.h"
#include "ferrite/nn/recurrent/detail/sequence_operands.h"

namespace ferrite::nn {

SequenceParts sequence_parts(std::string_view operation, std::span<const Spec> operands) {
  for (const detail::GatedCell* cell : {&detail::kGru, &detail::kLstm, &detail::kPeepholeLstm, &detail::kRnn}) {
    if (operation != std::string(cell->name) + "_sequence") continue;
    const auto item = [&](std::size_t i) {
      return detail::SequenceOperands::Item{operands[i].dtype, operands[i].shape.rank()};
    };
    const detail::SequenceOperands at(*cell, operands.size(), item);
    return {at.x, at.h0, at.c0, at.w_ih, at.w_hh, at.w_ch, at.b_ih, at.b_hh, at.w_hr, at.lengths, at.resets};
  }
  throw ValueError("sequence_parts: no sequence of that name: '" + std::string(operation) + "'");
}

}  // namespace ferrite::nn
