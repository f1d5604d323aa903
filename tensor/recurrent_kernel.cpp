#include <algorithm>
#include <functional>

#include "ferrite/tensor/detail/packet.h"
#include "ferrite/tensor/detail/recurrent.h"
#include "ferrite/tensor/detail/room.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::detail {
namespace {

/// What the gates of one packet of units of one row read and write.
template <class T>
class Gates {
 public:
  Gates(const RecurrenceWeights<T>& w, const RecurrenceStep<T>& s, std::int64_t H)
      : H_(H), b_ih_(w.b_ih), b_hh_(w.b_hh), s_(s) {}

  /// x W_ih + b_ih.
  Packet<T> input(std::int64_t row, std::int64_t gate, std::int64_t j) const {
    const Packet<T> x = Packet<T>::load(s_.i + row * s_.i_row + gate * s_.i_gate + j);
    return b_ih_ ? x + Packet<T>::load(b_ih_ + gate * H_ + j) : x;
  }
  /// h W_hh + b_hh from the product.
  Packet<T> recurrent(Packet<T> product, std::int64_t gate, std::int64_t j) const {
    return b_hh_ ? product + Packet<T>::load(b_hh_ + gate * H_ + j) : product;
  }
  Packet<T> before(std::int64_t row, std::int64_t j) const { return Packet<T>::load(s_.h + row * s_.P_ + j); }
  Packet<T> memory(std::int64_t row, std::int64_t j) const { return Packet<T>::load(s_.c + row * s_.H_ + j); }
  void remember(std::int64_t row, std::int64_t j, Packet<T> c) const { c.store(s_.c_next + row * s_.H_ + j); }
  T* between(std::int64_t row, std::int64_t j) const { return s_.between + row * s_.H_ + j; }
  /// A gate or another value of this step, for what comes later.
  void keep(std::int64_t row, std::int64_t place, std::int64_t j, Packet<T> v, std::int64_t n) const {
    put(s_.i + row * s_.i_row + place * s_.i_gate + j, v, n);
  }
  Packet<T> kept(std::int64_t row, std::int64_t place, std::int64_t j) const {
    return Packet<T>::load(s_.i + row * s_.i_row + place * s_.i_gate + j);
  }
  void give(std::int64_t row, std::int64_t j, Packet<T> next, std::int64_t n) const {
    next.store(s_.next + row * s_.P_ + j);
    put(s_.y + row * s_.y_row + j, next, n);
  }
  bool saving() const { return s_.save; }

 private:
  std::int64_t H_;
  const T* b_ih_;
  const T* b_hh_;
  const RecurrenceStep<T>& s_;
};

template <class T>
void gru_rows(const RecurrenceWeights<T>& w, const RecurrenceStep<T>& s) {
  using P = Packet<T>;
  const Gates<T> at(w, s, w.ih.units);
  each_unit<T, 3>(w.hh, s.rows, s.h, s.P_, [&](std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) {
    const P r = sigmoid(at.input(row, 0, j) + at.recurrent(sums[0], 0, j));
    const P z = sigmoid(at.input(row, 1, j) + at.recurrent(sums[1], 1, j));
    const P q = at.recurrent(sums[2], 2, j);
    const P candidate = tanh(at.input(row, 2, j) + r * q);
    const P next = candidate + z * (at.before(row, j) - candidate);
    if (at.saving()) {
      at.keep(row, 0, j, r, n);
      at.keep(row, 1, j, z, n);
      at.keep(row, 2, j, candidate, n);
      at.keep(row, 3, j, q, n);
    }
    at.give(row, j, next, n);
  });
}

/// The reset gate before the product: two products.
template <class T>
void gru_reset_before_rows(const RecurrenceWeights<T>& w, const RecurrenceStep<T>& s) {
  using P = Packet<T>;
  const Gates<T> at(w, s, w.ih.units);
  each_unit<T, 2>(w.hh, s.rows, s.h, s.P_, [&](std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) {
    const P r = sigmoid(at.input(row, 0, j) + at.recurrent(sums[0], 0, j));
    const P z = sigmoid(at.input(row, 1, j) + at.recurrent(sums[1], 1, j));
    (r * at.before(row, j)).store(at.between(row, j));
    at.keep(row, 0, j, r, n);
    at.keep(row, 1, j, z, n);
  });
  each_unit<T, 1>(w.hh_n, s.rows, s.between, s.H_,
                  [&](std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) {
                    const P z = at.kept(row, 1, j);
                    const P candidate = tanh(at.input(row, 2, j) + at.recurrent(sums[0], 2, j));
                    if (at.saving()) at.keep(row, 2, j, candidate, n);
                    at.give(row, j, candidate + z * (at.before(row, j) - candidate), n);
                  });
}

template <class T>
void lstm_rows(const RecurrenceWeights<T>& w, const RecurrenceStep<T>& s) {
  using P = Packet<T>;
  const Gates<T> at(w, s, w.ih.units);
  const bool projects = w.hr.data != nullptr;
  each_unit<T, 4>(w.hh, s.rows, s.h, s.P_, [&](std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) {
    const P i = sigmoid(at.input(row, 0, j) + at.recurrent(sums[0], 0, j));
    const P f = sigmoid(at.input(row, 1, j) + at.recurrent(sums[1], 1, j));
    const P g = tanh(at.input(row, 2, j) + at.recurrent(sums[2], 2, j));
    const P o = sigmoid(at.input(row, 3, j) + at.recurrent(sums[3], 3, j));
    const P c = f * at.memory(row, j) + i * g;
    if (at.saving()) {
      at.keep(row, 0, j, i, n);
      at.keep(row, 1, j, f, n);
      at.keep(row, 2, j, g, n);
      at.keep(row, 3, j, o, n);
      at.keep(row, 4, j, c, n);
    }
    at.remember(row, j, c);
    const P whole = o * tanh(c);
    if (projects) {
      whole.store(at.between(row, j));
    } else {
      at.give(row, j, whole, n);
    }
  });
  if (!projects) return;
  each_unit<T, 1>(w.hr, s.rows, s.between, s.H_, [&](std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) {
    at.give(row, j, sums[0], n);
  });
}

template <class T, bool kRelu>
void rnn_rows(const RecurrenceWeights<T>& w, const RecurrenceStep<T>& s) {
  using P = Packet<T>;
  const Gates<T> at(w, s, w.ih.units);
  each_unit<T, 1>(w.hh, s.rows, s.h, s.P_, [&](std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) {
    const P x = at.input(row, 0, j) + at.recurrent(sums[0], 0, j);
    at.give(row, j, kRelu ? max(x, T(0)) : tanh(x), n);
  });
}

template <class T, int G>
void input_rows(const GateMatrix<T>& w, std::int64_t rows, const T* x, std::int64_t x_row, T* i, std::int64_t i_gate,
                std::int64_t i_row) {
  each_unit<T, G>(w, rows, x, x_row, [&](std::int64_t row, std::int64_t j, std::int64_t n, const Packet<T>* sums) {
    for (int g = 0; g < G; ++g) put(i + row * i_row + g * i_gate + j, sums[g], n);
  });
}

/// The rows [begin, end) of a batch through all steps.
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
        i_row_(out.saved ? saved_of(r.cell) * r.H : gates_of(r.cell) * H_),
        i_gate_(out.saved ? r.H : H_),
        steps_(steps_at_once()),
        room_(rows_ * (2 * P_ + 3 * H_) + (out.saved ? 0 : steps_ * rows_ * i_row_)),
        h_(room_.get()),
        next_(h_ + rows_ * P_),
        c_(next_ + rows_ * P_),
        c_next_(r.lengths ? c_ + rows_ * H_ : c_),
        between_(c_ + 2 * rows_ * H_),
        i_(between_ + rows_ * H_) {}

  void run() {
    for (std::int64_t b = 0; b < rows_; ++b) {
      std::copy_n(r_.h0 + (begin_ + b) * r_.P, r_.P, h_ + b * P_);
      if (r_.c0) std::copy_n(r_.c0 + (begin_ + b) * r_.H, r_.H, c_ + b * H_);
    }
    for (std::int64_t n = 0; n < r_.T_; n += steps_) some_steps(n, std::min(r_.T_, n + steps_));
    for (std::int64_t b = 0; b < rows_; ++b) {
      std::copy_n(h_ + b * P_, r_.P, out_.h + (begin_ + b) * r_.P);
      if (out_.c) std::copy_n(c_ + b * H_, r_.H, out_.c + (begin_ + b) * r_.H);
    }
  }

 private:
  /// As many as keep their projected inputs in the second cache.
  std::int64_t steps_at_once() const {
    constexpr std::int64_t kNear = 256 * 1024;
    const std::int64_t bytes = rows_ * i_row_ * static_cast<std::int64_t>(sizeof(T));
    return std::clamp<std::int64_t>(kNear / bytes, 1, r_.T_);
  }

  /// Where the projected inputs of a row stand.
  T* i_at(std::int64_t t, std::int64_t b) const {
    return out_.saved ? out_.saved + (t * r_.B + begin_ + b) * i_row_ : i_ + ((t - low_) * rows_ + b) * i_row_;
  }

  void some_steps(std::int64_t first, std::int64_t last) {
    low_ = r_.reverse ? r_.T_ - last : first;
    const std::int64_t steps = last - first;
    const std::int64_t step_row = out_.saved ? r_.B * i_row_ : rows_ * i_row_;
    if (rows_ < std::min<std::int64_t>(steps, kMostRows<3>)) {  // too few to fill a tile: along the steps
      for (std::int64_t b = 0; b < rows_; ++b)
        input_product(r_.cell, r_.w, steps, r_.x.at(low_, begin_ + b), r_.x.step, i_at(low_, b), i_gate_, step_row);
    } else {
      for (std::int64_t t = low_; t < low_ + steps; ++t)
        input_product(r_.cell, r_.w, rows_, r_.x.at(t, begin_), r_.x.row, i_at(t, 0), i_gate_, i_row_);
    }
    for (std::int64_t n = first; n < last; ++n) step(n);
  }

  void step(std::int64_t n) {
    const std::int64_t t = r_.time(n);
    if (r_.resets) begin_anew(n);
    run_step(r_.cell, r_.w,
             RecurrenceStep<T>{.rows = rows_,
                               .i = i_at(t, 0),
                               .i_gate = i_gate_,
                               .i_row = i_row_,
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

  void begin_anew(std::int64_t n) {
    for (std::int64_t b = 0; b < rows_; ++b) {
      if (!r_.anew(n, begin_ + b)) continue;
      std::fill_n(h_ + b * P_, P_, T(0));
      if (r_.c0) std::fill_n(c_ + b * H_, H_, T(0));
    }
  }

  /// Beyond its length a row's state stays and its output is 0.
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
  std::int64_t begin_, rows_, P_, H_, i_row_, i_gate_, steps_;
  std::int64_t low_ = 0;  ///< first time of the steps at hand
  Room<T> room_;
  T* h_;
  T* next_;
  T* c_;
  T* c_next_;
  T* between_;
  T* i_;
};

}  // namespace

std::int64_t rows_of_a_chunk(std::int64_t batch, std::int64_t work_of_a_row) {
  constexpr std::int64_t kWorthSharing = 1 << 20;  // multiply-adds
  constexpr std::int64_t kRows = 8;                // of a tile
  const std::int64_t sharers = threads();
  if (sharers == 1 || batch <= kRows || batch * work_of_a_row < kWorthSharing) return batch;
  const std::int64_t each = (batch + sharers - 1) / sharers;
  return (each + kRows - 1) / kRows * kRows;
}

template <class T>
void input_product(CellType cell, const RecurrenceWeights<T>& w, std::int64_t rows, const T* x, std::int64_t x_row,
                   T* i, std::int64_t i_gate, std::int64_t i_row) {
  switch (gates_of(cell)) {
    case 1: return input_rows<T, 1>(w.ih, rows, x, x_row, i, i_gate, i_row);
    case 3: return input_rows<T, 3>(w.ih, rows, x, x_row, i, i_gate, i_row);
    default: return input_rows<T, 4>(w.ih, rows, x, x_row, i, i_gate, i_row);
  }
}

template <class T>
void run_step(CellType cell, const RecurrenceWeights<T>& w, const RecurrenceStep<T>& s) {
  switch (cell) {
    case CellType::gru: return gru_rows(w, s);
    case CellType::gru_reset_before: return gru_reset_before_rows(w, s);
    case CellType::lstm: return lstm_rows(w, s);
    case CellType::rnn_tanh: return rnn_rows<T, false>(w, s);
    case CellType::rnn_relu: return rnn_rows<T, true>(w, s);
  }
}

template <class T>
void run_recurrence(const Recurrence<T>& r, const RecurrenceOut<T>& out) {
  const std::int64_t rows = rows_of_a_chunk(r.B, r.T_ * r.columns() * (r.P + r.D));
  const auto chunk = [&](std::int64_t k) { RowsThroughTime<T>(r, out, k * rows, std::min(r.B, (k + 1) * rows)).run(); };
  if (r.B == 0) return;
  parallel_for((r.B + rows - 1) / rows, std::cref(chunk));
}

template void input_product(CellType, const RecurrenceWeights<float>&, std::int64_t, const float*, std::int64_t, float*,
                            std::int64_t, std::int64_t);
template void input_product(CellType, const RecurrenceWeights<double>&, std::int64_t, const double*, std::int64_t,
                            double*, std::int64_t, std::int64_t);
template void run_step(CellType, const RecurrenceWeights<float>&, const RecurrenceStep<float>&);
template void run_step(CellType, const RecurrenceWeights<double>&, const RecurrenceStep<double>&);
template void run_recurrence(const Recurrence<float>&, const RecurrenceOut<float>&);
template void run_recurrence(const Recurrence<double>&, const RecurrenceOut<double>&);

}  // namespace ferrite::detail
