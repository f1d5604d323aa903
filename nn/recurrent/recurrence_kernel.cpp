/// The kernels that all recurrent cells share: rows through all steps, and products with transposed weights.
#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/tensor/kernel/level.h"
#include "ferrite/tensor/kernel/tile.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {
namespace {

using namespace ferrite::detail::FERRITE_LEVEL;

/// Takes the rows [begin, end) of a batch through all steps.
template <class T>
class RowsThroughTime {
 public:
  RowsThroughTime(const Recurrence<T>& r, const RecurrenceOut<T>& out, std::int64_t begin, std::int64_t end)
      : r_(r),
        out_(out),
        begin_(begin),
        rows_(end - begin),
        P_(padded<T>(r.P)),
        H_(padded<T>(r.H)),
        i_row_(out.saved ? r.cell->saved * r.H : r.cell->gates * H_),
        i_gate_(out.saved ? r.H : H_),
        gates_take_x_(!out.saved && gates_take_x(*r.cell, r.D)),
        steps_(steps_at_once()) {}

  /// Returns the number of elements of memory that `run` needs.
  std::int64_t size() const {
    return rows_ * (2 * P_ + 3 * H_) + (out_.saved || gates_take_x_ ? 0 : steps_ * rows_ * i_row_);
  }

  void run(const CellKernels<T>& cell, T* memory) {
    h_ = memory;
    next_ = h_ + rows_ * P_;
    c_ = next_ + rows_ * P_;
    c_next_ = r_.lengths ? c_ + rows_ * H_ : c_;
    between_ = c_ + 2 * rows_ * H_;
    i_ = between_ + rows_ * H_;
    for (std::int64_t b = 0; b < rows_; ++b) {
      std::copy_n(r_.h0 + (begin_ + b) * r_.P, r_.P, h_ + b * P_);
      if (r_.c0) std::copy_n(r_.c0 + (begin_ + b) * r_.H, r_.H, c_ + b * H_);
    }
    for (std::int64_t n = 0; n < r_.T_; n += steps_) some_steps(cell, n, std::min(r_.T_, n + steps_));
    for (std::int64_t b = 0; b < rows_; ++b) {
      std::copy_n(h_ + b * P_, r_.P, out_.h + (begin_ + b) * r_.P);
      if (out_.c) std::copy_n(c_ + b * H_, r_.H, out_.c + (begin_ + b) * r_.H);
    }
  }

 private:
  /// Returns the number of steps whose projected inputs fit into the second cache.
  std::int64_t steps_at_once() const {
    constexpr std::int64_t kNear = 256 * 1024;
    const std::int64_t bytes = rows_ * i_row_ * static_cast<std::int64_t>(sizeof(T));
    return std::clamp<std::int64_t>(kNear / bytes, 1, r_.T_);
  }

  /// Returns where the projected inputs of a row are stored.
  T* i_at(std::int64_t t, std::int64_t b) const {
    return out_.saved ? out_.saved + (t * r_.B + begin_ + b) * i_row_ : i_ + ((t - low_) * rows_ + b) * i_row_;
  }

  void some_steps(const CellKernels<T>& cell, std::int64_t first, std::int64_t last) {
    low_ = r_.reverse ? r_.T_ - last : first;
    if (!gates_take_x_) input_products(cell, last - first);
    for (std::int64_t n = first; n < last; ++n) step(cell, n);
  }

  /// Computes the input products of the given number of steps, from time low_ on.
  void input_products(const CellKernels<T>& cell, std::int64_t steps) {
    const std::int64_t step_row = out_.saved ? r_.B * i_row_ : rows_ * i_row_;
    if (rows_ < std::min<std::int64_t>(steps, kMostRows<3>)) {  // too few rows for a tile: tiles run along the steps
      for (std::int64_t b = 0; b < rows_; ++b)
        cell.input_product(r_.w, steps, r_.x.at(low_, begin_ + b), r_.x.step, i_at(low_, b), i_gate_, step_row);
    } else {
      for (std::int64_t t = low_; t < low_ + steps; ++t)
        cell.input_product(r_.w, rows_, r_.x.at(t, begin_), r_.x.row, i_at(t, 0), i_gate_, i_row_);
    }
  }

  void step(const CellKernels<T>& cell, std::int64_t n) {
    const std::int64_t t = r_.time(n);
    if (r_.resets) reset_rows(n);
    cell.step(r_.w, RecurrenceStep<T>{.rows = rows_,
                                      .i = i_at(t, 0),
                                      .i_gate = i_gate_,
                                      .i_row = i_row_,
                                      .x = gates_take_x_ ? r_.x.at(t, begin_) : nullptr,
                                      .x_row = r_.x.row,
                                      .save = out_.saved != nullptr,
                                      .h = h_,
                                      .next = next_,
                                      .c = c_,
                                      .c_next = c_next_,
                                      .between = between_,
                                      .P_ = P_,
                                      .H_ = H_,
                                      .y = out_.y.at(t, begin_),
                                      .y_row = out_.y.row});
    if (r_.lengths) undo_padding(t);
    std::swap(h_, next_);
    std::swap(c_, c_next_);
  }

  void reset_rows(std::int64_t n) {
    for (std::int64_t b = 0; b < rows_; ++b) {
      if (!r_.resets_at(n, begin_ + b)) continue;
      std::fill_n(h_ + b * P_, P_, T(0));
      if (r_.c0) std::fill_n(c_ + b * H_, H_, T(0));
    }
  }

  /// Restores the state of each row beyond its length, and sets its output to 0.
  void undo_padding(std::int64_t t) {
    for (std::int64_t b = 0; b < rows_; ++b) {
      if (r_.valid(t, begin_ + b)) continue;
      std::copy_n(h_ + b * P_, P_, next_ + b * P_);
      std::copy_n(c_ + b * H_, H_, c_next_ + b * H_);
      std::fill_n(out_.y.at(t, begin_ + b), r_.P, T(0));
      if (out_.saved) std::fill_n(i_at(t, b), i_row_, T(0));
    }
  }

  const Recurrence<T>& r_;
  const RecurrenceOut<T>& out_;
  std::int64_t begin_, rows_, P_, H_, i_row_, i_gate_;
  bool gates_take_x_;
  std::int64_t steps_;
  std::int64_t low_ = 0;  ///< the earliest time of the present steps
  T* h_ = nullptr;
  T* next_ = nullptr;
  T* c_ = nullptr;
  T* c_next_ = nullptr;
  T* between_ = nullptr;
  T* i_ = nullptr;
};

template <class T>
std::int64_t memory_of(const Recurrence<T>& r, const RecurrenceOut<T>& out, std::int64_t rows) {
  return RowsThroughTime<T>(r, out, 0, rows).size();
}
template <class T>
void run_rows(const CellKernels<T>& cell, const Recurrence<T>& r, const RecurrenceOut<T>& out, std::int64_t begin,
              std::int64_t end, T* memory) {
  RowsThroughTime<T>(r, out, begin, end).run(cell, memory);
}

/// Stores the sums of a row in whole packets, or adds them to what is there.
template <class T>
struct StoreBack {
  T* to;
  std::int64_t to_row;
  bool add;
  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t j, std::int64_t, const Packet<T>* sums) const {
    T* const at = to + row * to_row + j;
    (add ? Packet<T>::load(at) + sums[0] : sums[0]).store(at);
  }
};

template <class T>
void product_back(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, T* to, std::int64_t to_row,
                  bool add) {
  each_unit<T, 1>(w, rows, a, a_row, StoreBack<T>{to, to_row, add});
}

template <class T, int U, bool kSum>
[[gnu::always_inline]] inline T panel_sums(const T* w, std::int64_t K, const T* x, T* y, const T* column) {
  RawPacket<T> sums[static_cast<std::size_t>(U)];
#pragma GCC unroll 8
  for (int u = 0; u < U; ++u) sums[u] = RawPacket<T>{};
  T sum = 0;
#pragma GCC unroll 2
  for (std::int64_t k = 0; k < K; ++k, w += U * kLanes<T>) {
    const RawPacket<T> value = set_raw<T>(x[k]);
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u) sums[u] = fma_raw(value, load_raw(w + u * kLanes<T>), sums[u]);
    if constexpr (kSum) sum = scalar_fma(x[k], column[k], sum);
  }
#pragma GCC unroll 8
  for (int u = 0; u < U; ++u) store_raw(y + u * kLanes<T>, sums[u]);
  return sum;
}
template <class T, int U>
void panel(const T* w, std::int64_t K, const T* x, T* y, const T* column, T* sum) {
  if (column) {
    *sum = panel_sums<T, U, true>(w, K, x, y, column);
  } else {
    panel_sums<T, U, false>(w, K, x, y, column);
  }
}

template <class T>
void add(T* to, const T* more, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) to[k] += more[k];
}
template <class T>
void sum_rows(const T* rows, std::int64_t row_step, std::int64_t count, std::int64_t n, T* to) {
  std::copy_n(rows, n, to);
  for (std::int64_t i = 1; i < count; ++i) add(to, rows + i * row_step, n);
}

template <class T, int... U>
constexpr RecurrenceKernels<T> with_panels(RecurrenceKernels<T> k, std::integer_sequence<int, U...>) {
  ((k.panels[U] = panel<T, U + 1>), ...);
  return k;
}

template <class T>
constexpr RecurrenceKernels<T> shared_kernels() {
  RecurrenceKernels<T> k{.memory = memory_of<T>,
                         .rows = run_rows<T>,
                         .product_back = product_back<T>,
                         .panels = {},
                         .add = add<T>,
                         .sum_rows = sum_rows<T>};
  if constexpr (std::is_same_v<T, float>)
    k = with_panels(k, std::make_integer_sequence<int, static_cast<int>(std::size(k.panels))>());
  return k;
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(RecurrenceKernels, recurrence_kernels, shared_kernels)

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
