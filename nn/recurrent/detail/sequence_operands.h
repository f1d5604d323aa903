#pragma once
/// What the operations on sequences share: the order of their operands, and how kernels read them.
#include <algorithm>
#include <optional>

#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/tensor/kernel/pack.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::nn::detail {

using ferrite::detail::Writer;

/// Positions of a sequence's operands, -1 for what is absent:
///
///   x, h0, (c0,) w_ih, w_hh, (w_ch,) (b_ih, b_hh,) (w_hr,) (lengths,) (resets)
///
/// A cell with a memory has c0, one with vectors w_ch. What else may be absent is told by rank and dtype: biases are
/// vectors of floats, w_hr is a matrix, lengths are i64, resets bool.
struct SequenceOperands {
  struct Item {
    Dtype dtype;
    int rank;
  };
  template <class ItemAt>
  SequenceOperands(const GatedCell& cell, std::size_t n, ItemAt item_at, std::size_t begin = 0)
      : first(static_cast<int>(begin)) {
    int k = first;
    x = k++, h0 = k++;
    if (cell.has_memory) c0 = k++;
    w_ih = k++, w_hh = k++;
    if (cell.vectors) w_ch = k++;
    count = static_cast<int>(n);
    if (k > count) return;
    floats = k;
    for (; k < count; ++k) place(k, item_at(static_cast<std::size_t>(k)));
  }
  /// Whether the operands make up a sequence at all.
  bool complete() const { return floats > 0 && rest_fits && (b_ih < 0) == (b_hh < 0); }
  /// Gradients of a sequence: one for each operand of floats.
  int gradients() const { return floats - first; }

  int first = 0, count = 0, floats = 0;
  int x = -1, h0 = -1, c0 = -1, w_ih = -1, w_hh = -1, w_ch = -1, b_ih = -1, b_hh = -1, w_hr = -1, lengths = -1,
      resets = -1;
  bool rest_fits = true;

 private:
  void place(int k, Item item) {
    int& at = item.dtype == Dtype::i64       ? lengths
              : item.dtype == Dtype::boolean ? resets
              : item.rank == 2               ? w_hr
              : b_ih < 0                     ? b_ih
                                             : b_hh;
    rest_fits &= at < 0;
    at = k;
    if (is_float(item.dtype)) floats = k + 1;
  }
};

/// Operands of an application, from the `begin`-th on.
SequenceOperands operands_of(const GatedCell& cell, Inputs in, std::size_t begin = 0);

/// Rows of all steps, and elements of the matrices that each meets.
struct SequenceCost {
  SequenceCost(const GatedCell& cell, std::span<const Spec> in, std::size_t begin = 0)
      : at(
            cell, in.size(),
            [&](std::size_t i) {
              return SequenceOperands::Item{in[i].dtype, in[i].shape.rank()};
            },
            begin) {
    const auto elements = [&](int k) { return k < 0 ? 0 : in[static_cast<std::size_t>(k)].shape.numel(); };
    const Shape& x = in[static_cast<std::size_t>(at.x)].shape;
    rows = x[0] * x[1];
    w_ih = elements(at.w_ih), w_hh = elements(at.w_hh), w_hr = elements(at.w_hr);
  }
  SequenceOperands at;
  std::int64_t rows = 0, w_ih = 0, w_hh = 0, w_hr = 0;
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
void check_sequence(std::string_view name, const GatedCell& cell, Inputs in, const SequenceOperands& o,
                    const SequenceOrder& order);
/// The last result: what is saved for the gradient.
Spec saved_spec(const GatedCell& cell, Inputs in, const SequenceOperands& o, const SequenceOrder& order);

template <class T>
Rows<const T*> rows_of(const Tensor& x, const SequenceAxes& axes) {
  return {x.data<T>(), x.strides()[axes.time], x.strides()[axes.batch()]};
}
template <class T>
Rows<T*> writable_rows(Tensor& x, const SequenceAxes& axes) {
  return {Writer::data<T>(x), x.strides()[axes.time], x.strides()[axes.batch()]};
}

/// Operands as a kernel reads them, but for the matrices, whose order is the matter of either pass. Lives as long as
/// the kernel runs.
template <class T>
class Prepared {
 public:
  Prepared(const GatedCell& cell, Inputs in, const SequenceOperands& o, const SequenceOrder& order);
  const Recurrence<T>& operator*() const { return r_; }
  const Recurrence<T>* operator->() const { return &r_; }
  const Tensor& w_ih() const { return *w_ih_; }
  const Tensor& w_hh() const { return *w_hh_; }
  const Tensor& w_hr() const { return *w_hr_; }

 private:
  using Operand = ferrite::detail::RowMajor;
  Operand h0_, c0_, w_ih_, w_hh_, w_ch_, b_ih_, b_hh_, w_hr_, lengths_, resets_;
  Tensor x_;  ///< a copy, where features do not lie side by side
  Recurrence<T> r_;
};
extern template class Prepared<float>;
extern template class Prepared<double>;

/// Computes y, the last states and, where `saved` is given, what the gradient reads.
template <class T>
void run_forward(const Prepared<T>& r, const SequenceOrder& order, Tensor& y, Tensor& h, Tensor* c, Tensor* saved);

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
