#pragma once
/// What the operations on sequences share: the order of their operands and constants.
#include <algorithm>

#include "ferrite/nn/recurrent/detail/gated_cell.h"
#include "ferrite/nn/recurrent/sequence_parts.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::nn::detail {

/// What tells operands that may be absent: biases are vectors of floats, weight_hr is a matrix, lengths are i64, resets
/// bool.
struct OperandType {
  Dtype dtype;
  int rank;
};
/// The parts of a cell's sequence among n operands of types type_at(k), from the `begin`-th on. A cell with a memory
/// has c0, one with vectors weight_ch.
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

/// Borrows the operands that are defined, in this order.
inline InlineVector<const Tensor*, 16> without_undefined(std::initializer_list<const Tensor*> operands) {
  InlineVector<const Tensor*, 16> list;
  for (const Tensor* t : operands)
    if (t->defined()) list.push_back(t);
  return list;
}

/// Rows of all steps, and elements of the matrices that each meets.
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

/// What the constants of all sequences and of their gradients begin with.
struct SequenceOrder {
  bool reverse = false, batch_first = false;
  static constexpr auto fields =
      attr_list(attr("reverse", &SequenceOrder::reverse), attr("batch_first", &SequenceOrder::batch_first));
};

/// Axes of time and batch in x and y.
struct SequenceAxes {
  explicit SequenceAxes(const SequenceOrder& order) : time(order.batch_first ? 1 : 0) {}
  int time;
  int batch() const { return 1 - time; }
};

/// The shapes and dtypes of a sequence's operands, checked. Throws ShapeError, DtypeError.
void check_sequence(std::string_view name, const GatedCell& cell, Inputs in, const SequenceParts& o,
                    const SequenceOrder& order);
/// The last result: what is saved for the gradient.
Spec saved_spec(const GatedCell& cell, Inputs in, const SequenceParts& o, const SequenceOrder& order);

/// The constants of a sequence of any cell: whether it saves what its gradient reads.
struct SequenceSaves : SequenceOrder {
  bool save = false;
  static constexpr auto fields = SequenceOrder::fields.with(attr("save", &SequenceSaves::save));
};
/// Those of the gradient: the operands of the sequence whose gradients are wanted, ascending.
struct SequenceWants : SequenceOrder {
  Shape wants{};
  static constexpr auto fields = SequenceOrder::fields.with(attr("wants", &SequenceWants::wants));
  bool has(std::int64_t operand) const { return std::find(wants.begin(), wants.end(), operand) != wants.end(); }
};

}  // namespace ferrite::nn::detail
