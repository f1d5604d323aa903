#include "ferrite/autograd/composed_gradient.h"

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::detail {
namespace {

/// Where the operands of a gradient stand: y, what was saved, the cotangents of y and of the states, then those of the
/// sequence.
struct GradLayout {
  explicit GradLayout(const Primitive& op) : cotangents(&op == ops::lstm_sequence_grad ? 3 : 2) {}
  static constexpr std::size_t first_cotangent = 2;
  std::size_t first_operand() const { return first_cotangent + cotangents; }

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

}  // namespace

bool is_sequence_grad(const Primitive& op) {
  return &op == ops::gru_sequence_grad || &op == ops::lstm_sequence_grad || &op == ops::rnn_sequence_grad;
}

Tensors composed_gradient(const Primitive& op, const Tensors& in, const Attrs& attrs) {
  const GradLayout at(op);
  const OperandList operands_of_op(in);
  const Specs specs = op.infer(op, operands_of_op, attrs);
  const SequenceOfGrad sequence = sequence_of(op, attrs);
  const auto wanted = [&](std::size_t k) { return (sequence.wants >> k & 1) != 0; };
  Tape tape;
  Tensors operands, variables;
  for (std::size_t k = 0; at.first_operand() + k < in.size(); ++k) {
    operands.push_back(in[at.first_operand() + k]);
    if (k >= specs.size() || !wanted(k)) continue;
    operands.back() = tape.watch(operands.back());
    variables.push_back(operands.back());
  }
  const Tensor total = weighted(sequence.op->reference(OperandList(operands), sequence.attrs), in, at);
  Tensors found;
  if (total.defined() && !variables.empty()) found = lenient_grad(tape, total, {variables.data(), variables.size()});
  Tensors out;
  std::size_t next = 0;
  for (std::size_t k = 0; k < specs.size(); ++k)
    out.push_back(wanted(k) && total.defined() ? found[next++] : zeros(specs[k].shape, specs[k].dtype));
  return out;
}

}  // namespace ferrite::detail
