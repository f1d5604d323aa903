#pragma once
/// The operation of a cell on sequences, and its gradient:
///
///   struct RnnSequence {
///     static constexpr auto name = "rnn_sequence", grad_name = "rnn_sequence_grad";
///     static constexpr auto summary = "all steps of an Elman network: outputs, last h, and an empty tensor";
///     static constexpr const GatedCell& cell = kRnn;
///   };
#include "ferrite/nn/recurrent/detail/cell_functions.h"
#include "ferrite/nn/recurrent/detail/cells.h"
#include "ferrite/nn/recurrent/detail/sequence_operands.h"
#include "ferrite/nn/recurrent/steps.h"
#include "ferrite/tensor/define.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn::detail {

using ferrite::detail::composite;
using ferrite::detail::Reads;
using ferrite::detail::structured;

Specs infer_sequence(std::string_view name, const GatedCell& cell, Inputs in, const SequenceSaves& attrs);
void run_sequence(std::string_view name, const GatedCell& cell, Inputs in, std::span<Tensor> out,
                  const SequenceSaves& attrs);
/// The same, step by step in operations. Without what is saved: nothing reads that.
Tensors compose_sequence(const GatedCell& cell, Inputs in, const SequenceOrder& order);

/// Operands of the gradient: y, what was saved, the cotangents of y, h and c (of shape [0] where nothing arrived), then
/// the operands of the sequence. Its results are a gradient for each operand of floats, of shape [0] where `wants` does
/// not name it.
struct SequenceGradOperands {
  SequenceGradOperands(const GatedCell& cell, const Vjp& v);
  /// What the gradient has found, by operand of the sequence.
  Tensors gradients(const Vjp& v, Tensors found) const;

  Tensor nothing;
  InlineVector<const Tensor*, 16> in;
  Shape wants;
};
Specs infer_sequence_grad(std::string_view name, const GatedCell& cell, Inputs in, const SequenceWants& attrs);
void run_sequence_grad(const GatedCell& cell, Inputs in, std::span<Tensor> out, const SequenceOrder& order);
/// From the tape of the steps. What the sequence saved for the kernel is not read.
Tensors reference_sequence_grad(const GatedCell& cell, Inputs in, const SequenceWants& attrs, const Specs& specs);
/// One product a step for what goes on to the step before, and one for each gradient that is wanted.
std::int64_t sequence_grad_multiply_adds(const GatedCell& cell, std::span<const Spec> in, const SequenceWants& attrs);

template <class Cell>
struct SequenceGrad {
  using Attributes = SequenceWants;
  static constexpr auto name = Cell::grad_name, onnx = "", stablehlo = "";
  static constexpr auto summary = "the gradient of the operation before: of every operand that `wants` names";
  static constexpr Reads reads = ferrite::detail::reads_inputs;
  static constexpr bool second_order_by_reference = true;

  static Specs infer(Inputs in, const Attributes& a) { return infer_sequence_grad(name, Cell::cell, in, a); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) { run_sequence_grad(Cell::cell, in, out, a); }
  static Tensors reference(Inputs in, const Attributes& a) {
    return reference_sequence_grad(Cell::cell, in, a, infer(in, a));
  }
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec>, const Attributes& a) {
    return sequence_grad_multiply_adds(Cell::cell, in, a);
  }
};

template <class Cell>
struct Sequence {
  using Attributes = SequenceSaves;
  static constexpr auto name = Cell::name, onnx = "", stablehlo = "", summary = Cell::summary;
  static constexpr TimeRule time = TimeRule::recurrence;
  static constexpr Reads reads = ferrite::detail::reads_all;
  static constexpr bool second_order_by_reference = true;

  static Specs infer(Inputs in, const Attributes& a) { return infer_sequence(name, Cell::cell, in, a); }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    run_sequence(name, Cell::cell, in, out, a);
  }
  static Effects effects(std::span<const Spec> in, const Attributes&) {
    const bool lengths = std::any_of(in.begin(), in.end(), [](const Spec& s) { return s.dtype == Dtype::i64; });
    return {.throws = lengths, .allocates = true};
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    const SequenceGradOperands of(Cell::cell, v);
    const SequenceWants attrs{a, of.wants};
    return of.gradients(v, structured<SequenceGrad<Cell>>.apply({of.in.data(), of.in.size()}, attrs));
  }
  static Tensors reference(Inputs in, const Attributes& a) { return compose_sequence(Cell::cell, in, a); }
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec>, const Attributes&) {
    const SequenceCost c(Cell::cell, in);
    return c.rows * (c.elements.weight_ih + c.elements.weight_hh + c.elements.weight_hr);
  }
};

/// Calls a composite whose last operands may be undefined.
template <class Step>
auto composed_of(std::initializer_list<const Tensor*> operands, const ferrite::detail::AttributesOf<Step>& attrs = {}) {
  const auto in = without_undefined(operands);
  return ferrite::detail::composed<Step>(Inputs(in.data(), in.size()), attrs);
}

/// Calls a sequence; what is saved stays inside.
template <class Cell>
Tensors sequence(const Tensor& x, const RecurrentWeights<const Tensor*>& w, const RecurrentState& before,
                 const SequenceOptions& o) {
  const auto in = without_undefined({&x, &before.h, &before.c, w.weight_ih, w.weight_hh, w.weight_ch, w.bias_ih,
                                     w.bias_hh, w.weight_hr, &o.lengths, &o.resets});
  const bool saves = !o.recompute && !ferrite::detail::frame().recorders.empty();
  Tensors out =
      structured<Sequence<Cell>>.apply(Inputs(in.data(), in.size()), SequenceSaves{{o.reverse, o.batch_first}, saves});
  out.pop_back();
  return out;
}

}  // namespace ferrite::nn::detail
