/// Gradients of recurrent sequences, from the tape of the steps.
#include "ferrite/autograd/composed_gradient.h"
#include "ferrite/exchange/stablehlo/lowering.h"

namespace ferrite::exchange::detail {
namespace {

HloValues sequence_grad(HloBuilder& b, const HloCall& c) {
  return lower_traced(
      b, [&](const Tensors& in) { return ferrite::detail::composed_gradient(c.op, in, c.attrs); }, c.in);
}

}  // namespace

HloFamily hlo_recurrent() {
  static constexpr NamedHloLowering list[] = {{"gru_sequence_grad", sequence_grad},
                                              {"lstm_sequence_grad", sequence_grad},
                                              {"rnn_sequence_grad", sequence_grad}};
  return list;
}

}  // namespace ferrite::exchange::detail
