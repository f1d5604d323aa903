/// Gradients of recurrent sequences, from the tape of the steps.
#include "ferrite/autograd/tape.h"
#include "ferrite/io/detail/stablehlo_lowering.h"

namespace ferrite::io::detail {
namespace {

/// Where the operands of a gradient stand: y, what was saved, the cotangents of y and of the states, then those of the
/// sequence.
struct GradLayout {
  explicit GradLayout(const Primitive& op)
      : sequence(find_primitive(op.name.substr(0, op.name.size() - std::string_view("_grad").size()))),
        cotangents(sequence->name == "lstm_sequence" ? 3 : 2) {}
  static constexpr std::size_t first_cotangent = 2;
  std::size_t first_operand() const { return first_cotangent + cotangents; }

  const Primitive* sequence;
  std::size_t cotangents;
};

/// The sum of results times their cotangents, of which those that nothing reached are empty; undefined where all are.
Tensor weighted(const Tensors& results, const Tensors& in, const GradLayout& at) {
  Tensor total;
  for (std::size_t k = 0; k < at.cotangents; ++k) {
    const Tensor& g = in[GradLayout::first_cotangent + k];
    if (g.numel() == 0) continue;
    const Tensor part = sum(results[k] * g);
    total = total.defined() ? total + part : part;
  }
  return total;
}

Tensors gradients(const HloCall& c, const Tensors& in) {
  const GradLayout at(c.op);
  const auto wanted = [&](std::size_t k) { return (c.number("wants") >> k & 1) != 0; };
  Tape tape;
  Tensors operands, variables;
  for (std::size_t k = 0; at.first_operand() + k < in.size(); ++k) {
    operands.push_back(in[at.first_operand() + k]);
    if (k >= c.out.size() || !wanted(k)) continue;
    operands.back() = tape.watch(operands.back());
    variables.push_back(operands.back());
  }
  const Tensor total = weighted(at.sequence->reference(OperandList(operands), c.attrs), in, at);
  Tensors found;
  if (total.defined() && !variables.empty())
    found = tape.grad(total, std::span<const Tensor>(variables.data(), variables.size()));
  Tensors out;
  std::size_t next = 0;
  for (std::size_t k = 0; k < c.out.size(); ++k)
    out.push_back(wanted(k) && total.defined() ? found[next++] : zeros(c.out[k].shape, c.out[k].dtype));
  return out;
}

HloValues sequence_grad(HloBuilder& b, const HloCall& c) {
  return lower_traced(
      b, [&](const Tensors& in) { return gradients(c, in); }, c.in);
}

}  // namespace

HloFamily hlo_recurrent() {
  static constexpr NamedHloLowering list[] = {{"gru_sequence_grad", sequence_grad},
                                              {"lstm_sequence_grad", sequence_grad},
                                              {"rnn_sequence_grad", sequence_grad}};
  return list;
}

}  // namespace ferrite::io::detail
