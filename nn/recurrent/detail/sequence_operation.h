#pragma once
/// The operation of a cell on sequences, and its gradient:
///
///   struct RnnSequence {
///     static constexpr auto name = "rnn_sequence", grad_name = "rnn_sequence_grad";
///     static constexpr auto summary = "all steps of an Elman network: outputs, last h, and an empty tensor";
///     static constexpr const GatedCell& cell = kRnn;
///   };
#include <algorithm>
#include <span>

#include "ferrite/nn/recurrent/detail/cells.h"
#include "ferrite/nn/recurrent/sequence_parts.h"
#include "ferrite/nn/recurrent/steps.h"
#include "ferrite/tensor/define.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/recorder.h"

// ---- operands and constants ----------------------------------------------------------------------------

namespace ferrite::nn::detail {

/// The type by which operands that may be absent are told apart: biases are vectors of floats, weight_hr is a matrix,
/// lengths are i64, resets bool.
struct OperandType {
  Dtype dtype;
  int rank;
};

/// Finds the parts of a cell's sequence among n operands of types type_at(k), from the `begin`-th on. A cell with a
/// memory has c0, one with vectors weight_ch.
template <class TypeAt>
SequenceParts parts_of(const GatedCell& cell, std::size_t n, const TypeAt& type_at, std::size_t begin = 0) {
  SequenceParts p;
  int k = p.first = static_cast<int>(begin);
  p.x = k++, p.h0 = k++;
  if (cell.has_memory) p.c0 = k++;
  p.w.weight_ih = k++, p.w.weight_hh = k++;
  if (cell.vectors) p.w.weight_ch = k++;
  const int count = static_cast<int>(n);
  if (k > count) return p;
  p.floats = k;
  p.complete = true;
  for (; k < count; ++k) {
    const OperandType type = type_at(static_cast<std::size_t>(k));
    int& at = type.dtype == Dtype::i64       ? p.lengths
              : type.dtype == Dtype::boolean ? p.resets
              : type.rank == 2               ? p.w.weight_hr
              : p.w.bias_ih < 0              ? p.w.bias_ih
                                             : p.w.bias_hh;
    p.complete &= at < 0;
    at = k;
    if (is_float(type.dtype)) p.floats = k + 1;
  }
  p.complete &= (p.w.bias_ih < 0) == (p.w.bias_hh < 0);
  return p;
}
SequenceParts parts_of(const GatedCell& cell, Inputs in, std::size_t begin = 0);
inline SequenceParts parts_of(const GatedCell& cell, std::span<const Spec> in, std::size_t begin = 0) {
  const auto type_at = [&](std::size_t k) -> OperandType { return {in[k].dtype, in[k].shape.rank()}; };
  return parts_of(cell, in.size(), type_at, begin);
}

/// Returns pointers to the operands that are defined, in order.
inline InlineVector<const Tensor*, 16> without_undefined(std::initializer_list<const Tensor*> operands) {
  InlineVector<const Tensor*, 16> list;
  for (const Tensor* t : operands)
    if (t->defined()) list.push_back(t);
  return list;
}

/// The number of rows of all steps, and of elements of each matrix that multiplies them.
struct SequenceCost {
  SequenceCost(const GatedCell& cell, std::span<const Spec> in, std::size_t begin = 0) : at(parts_of(cell, in, begin)) {
    const Shape& x = in[static_cast<std::size_t>(at.x)].shape;
    rows = x[0] * x[1];
    elements = at.w.map([&](int k) { return k < 0 ? std::int64_t{0} : in[static_cast<std::size_t>(k)].shape.numel(); });
  }
  SequenceParts at;
  std::int64_t rows = 0;
  RecurrentWeights<std::int64_t> elements{};
};

/// The attributes that all sequences and their gradients have first.
struct SequenceOrder {
  bool reverse = false, batch_first = false;
  static constexpr auto fields =
      attr_list(attr("reverse", &SequenceOrder::reverse), attr("batch_first", &SequenceOrder::batch_first));
};

/// The axes of time and batch in x and y.
struct SequenceAxes {
  explicit SequenceAxes(const SequenceOrder& order) : time(order.batch_first ? 1 : 0) {}
  int time;
  int batch() const { return 1 - time; }
};

/// Throws ShapeError or DtypeError unless the shapes and dtypes of a sequence's operands fit.
void check_sequence(std::string_view name, const GatedCell& cell, Inputs in, const SequenceParts& o,
                    const SequenceOrder& order);

/// Returns the type of a sequence's last result, which is saved for the gradient.
Spec saved_spec(const GatedCell& cell, Inputs in, const SequenceParts& o, const SequenceOrder& order);

/// The attributes of a sequence of any cell: its order, and whether it saves what its gradient reads.
struct SequenceSaves : SequenceOrder {
  bool save = false;
  static constexpr auto fields = SequenceOrder::fields.with(attr("save", &SequenceSaves::save));
};

/// The attributes of a sequence's gradient: its order, and the operands whose gradients are wanted, ascending.
struct SequenceWants : SequenceOrder {
  Shape wants{};
  static constexpr auto fields = SequenceOrder::fields.with(attr("wants", &SequenceWants::wants));
  bool has(std::int64_t operand) const { return std::find(wants.begin(), wants.end(), operand) != wants.end(); }
};

// ---- functions of a cell -------------------------------------------------------------------------------

/// Returns pointers to weights that the caller keeps: copying handles would cost as much as a small step.
inline RecurrentWeights<const Tensor*> borrowed(const RecurrentWeights<Tensor>& w) {
  return w.map([](const Tensor& t) { return &t; });
}

struct CellFunctions {
  /// Computes one step from i = x W_ih + b_ih [B, G H], which defines the cell.
  RecurrentState (*step)(const Tensor& i, const RecurrentState& before, const RecurrentWeights<Tensor>& w);
  /// Runs all steps as one operation. Weights that are left out are undefined tensors.
  Tensors (*sequence)(const Tensor& x, const RecurrentState& before, const RecurrentWeights<const Tensor*>& w,
                      const SequenceOptions& options);
};

/// The records that a cell adds to nn::operations() and nn::composites().
struct CellOperations {
  const Primitive* sequence;
  const Primitive* gradient;
  std::span<const Primitive* const> steps;
};

// ---- the operation of a cell, and its gradient ---------------------------------------------------------

using ferrite::detail::composite;
using ferrite::detail::Reads;
using ferrite::detail::structured;

Specs infer_sequence(std::string_view name, const GatedCell& cell, Inputs in, const SequenceSaves& attrs);
void run_sequence(std::string_view name, const GatedCell& cell, Inputs in, std::span<Tensor> out,
                  const SequenceSaves& attrs);

/// Runs a sequence step by step in operations. Its results do not include what is saved, which nothing would read.
Tensors compose_sequence(const GatedCell& cell, Inputs in, const SequenceOrder& order);

/// The operands of the gradient: y, what was saved, the cotangents of y, h and c (of shape [0] if absent), then the
/// operands of the sequence. Its results are a gradient for each operand of floats, of shape [0] if `wants` does not
/// name it.
struct SequenceGradOperands {
  SequenceGradOperands(const GatedCell& cell, const Vjp& v);
  /// Returns the gradients found, one for each operand of the sequence; undefined where none is wanted.
  Tensors gradients(const Vjp& v, Tensors found) const;

  Tensor nothing;
  InlineVector<const Tensor*, 16> in;
  Shape wants;
};
Specs infer_sequence_grad(std::string_view name, const GatedCell& cell, Inputs in, const SequenceWants& attrs);
void run_sequence_grad(const GatedCell& cell, Inputs in, std::span<Tensor> out, const SequenceOrder& order);

/// Computes the gradients with a tape over the steps in operations; what the sequence saved for the kernel is not read.
Tensors reference_sequence_grad(const GatedCell& cell, Inputs in, const SequenceWants& attrs, const Specs& specs);

/// Returns the multiply-adds of a gradient: one product per step for the step before, and one for each gradient that is
/// wanted.
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

/// Calls a sequence and returns its results without what is saved.
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

/// Calls a sequence with the signature of `CellFunctions::sequence`.
template <class Cell>
Tensors all_steps(const Tensor& x, const RecurrentState& before, const RecurrentWeights<const Tensor*>& w,
                  const SequenceOptions& o) {
  return sequence<Cell>(x, w, before, o);
}

}  // namespace ferrite::nn::detail
