#pragma once
/// The constants and operands of linear recurrences, and how kernels read them.
#include <algorithm>
#include <optional>

#include "ferrite/tensor/kernel/linear_scan.h"
#include "ferrite/tensor/linear_scan.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::detail {

struct LinearScanGradAttrs {
  bool reverse = false;
  bool of_a = true;  ///< whether the gradient of a is wanted
  static constexpr auto fields =
      attr_list(attr("reverse", &LinearScanGradAttrs::reverse), attr("of_a", &LinearScanGradAttrs::of_a));
};

inline bool is_complex(const Shape& b) { return b.rank() == 4; }

/// The optional operands after those that are always present, distinguished by dtype.
template <class List>
struct OptionalOperands {
  using Item = std::remove_cvref_t<decltype(std::declval<const List&>()[0])>;
  OptionalOperands(const List& in, std::size_t begin, Dtype (*dtype)(const Item&)) {
    for (std::size_t k = begin; k < in.size(); ++k) {
      const Dtype t = dtype(in[k]);
      const Item*& at = t == Dtype::i64 ? lengths : t == Dtype::boolean ? resets : h0;
      fits = fits && at == nullptr && (at = &in[k], in_order(at));
    }
  }
  const Item *h0 = nullptr, *lengths = nullptr, *resets = nullptr;
  bool fits = true;

 private:
  bool in_order(const Item* last) const { return !(last == h0 && (lengths || resets)) && !(last == lengths && resets); }
};
inline OptionalOperands<Inputs> optional_of(Inputs in, std::size_t begin) {
  return {in, begin, [](const Tensor& x) { return x.dtype(); }};
}

/// Returns the shape of a step of one row: [D] of [B, T, D], [D, 2] of [B, T, D, 2].
inline Shape step_of(const Shape& b) {
  Shape s = b;
  s.erase(0), s.erase(0);
  return s;
}
/// Returns the shape of h0 for b's shape.
inline Shape state_of(const Shape& b) {
  Shape s = b;
  s.erase(1);
  return s;
}

/// The operands of a recurrence as its kernels read them.
template <class T>
class LinearScanRows {
 public:
  /// Reads the operands after `begin`; `shape` is that of b.
  LinearScanRows(const Tensor& a, const Shape& shape, Inputs in, std::size_t begin, bool reverse)
      : LinearScanRows(a, shape, optional_of(in, begin), reverse) {}

  /// Calls f(row, at, state) for pieces of rows of the batch: `at` is the first element of the row's first step in
  /// these channels, `state` that of its state and of its part of a sum over steps.
  template <class F>
  void each(F&& f) const {
    const std::int64_t pieces = (width_ + piece_ - 1) / piece_;
    const auto run = [&](std::int64_t k) {
      const std::int64_t b = k / pieces, first = k % pieces * piece_;
      LinearScanRow<T> row = common_;
      row.channels = std::min(piece_, width_ - first);
      if (lengths_) row.steps = std::clamp<std::int64_t>((*lengths_)->template data<std::int64_t>()[b], 0, T_);
      if (resets_) row.resets = reinterpret_cast<const std::uint8_t*>((*resets_)->template data<bool>()) + b * T_;
      row.a = a_->template data<T>() + (row.same_a ? 0 : b * T_ * width_) + first;
      if (h0_) row.h0 = (*h0_)->template data<T>() + b * width_ + first;
      f(row, b * T_ * width_ + first, b * width_ + first);
    };
    if (B_ * T_ * width_ < kWorth) {
      for (std::int64_t k = 0; k < B_ * pieces; ++k) run(k);
    } else {
      parallel_for(B_ * pieces, run);
    }
  }

  /// Writes zeros beyond the length of a row.
  void fill(const LinearScanRow<T>& row, T* x) const {
    for (std::int64_t t = row.steps; t < T_; ++t) std::fill_n(x + t * width_, row.channels, T(0));
  }

 private:
  static constexpr std::int64_t kWorth = 1 << 16;  // fewer elements are not shared among threads
  static constexpr std::int64_t kPiece = 1 << 10;  // elements of a step that one thread takes

  LinearScanRows(const Tensor& a, const Shape& shape, const OptionalOperands<Inputs>& o, bool reverse)
      : a_(a), B_(shape[0]), T_(shape[1]), width_(step_of(shape).numel()) {
    if (o.h0) h0_.emplace(*o.h0);
    if (o.lengths) lengths_.emplace(*o.lengths);
    if (o.resets) resets_.emplace(*o.resets);
    const bool complex = is_complex(shape), same = a.shape() != shape;
    common_ = {T_, width_, 0, reverse, complex, same, nullptr, nullptr, nullptr};
    piece_ = std::max<std::int64_t>(B_ >= 8 ? width_ : std::min(width_, kPiece), 1);
  }

  RowMajor a_;
  std::optional<RowMajor> h0_, lengths_, resets_;
  std::int64_t B_, T_, width_, piece_ = 1;
  LinearScanRow<T> common_{};
};

}  // namespace ferrite::detail
