/// The steps of recurrences: products whose sums are finished by the gates of a cell, and rows through time.
#include <algorithm>

#include "ferrite/nn/recurrent/detail/recurrence_parts.h"
#include "ferrite/tensor/kernel/tile.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {
namespace {

using namespace ferrite::detail::FERRITE_LEVEL;

/// What the gates of one packet of units of one row read and write. Each kind of cell finishes its sums in a function
/// object of its own, in line behind the product.
template <class T>
class Gates {
 public:
  using P = Packet<T>;
  Gates(const RecurrenceWeights<T>& w, const RecurrenceStep<T>& s)
      : H_(w.ih.units), b_ih_(w.b_ih), b_hh_(w.b_hh), s_(s) {}

 protected:
  /// x W_ih + b_ih.
  P input(std::int64_t row, std::int64_t gate, std::int64_t j) const {
    const P x = kept(row, gate, j);
    return b_ih_ ? x + P::load(b_ih_ + gate * H_ + j) : x;
  }
  /// h W_hh + b_hh from the product.
  P recurrent(P product, std::int64_t gate, std::int64_t j) const {
    return b_hh_ ? product + P::load(b_hh_ + gate * H_ + j) : product;
  }
  P sum(std::int64_t row, std::int64_t gate, std::int64_t j, P product) const {
    return input(row, gate, j) + recurrent(product, gate, j);
  }
  P before(std::int64_t row, std::int64_t j) const { return P::load(s_.h + row * s_.P_ + j); }
  P memory(std::int64_t row, std::int64_t j) const { return P::load(s_.c + row * s_.H_ + j); }
  void remember(std::int64_t row, std::int64_t j, P c) const { c.store(s_.c_next + row * s_.H_ + j); }
  T* between(std::int64_t row, std::int64_t j) const { return s_.between + row * s_.H_ + j; }
  /// A gate or another value of this step, for what comes later.
  void keep(std::int64_t row, std::int64_t place, std::int64_t j, P v, std::int64_t n) const {
    put(s_.i + row * s_.i_row + place * s_.i_gate + j, v, n);
  }
  P kept(std::int64_t row, std::int64_t place, std::int64_t j) const {
    return P::load(s_.i + row * s_.i_row + place * s_.i_gate + j);
  }
  void give(std::int64_t row, std::int64_t j, P next, std::int64_t n) const {
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
struct GruGates : Gates<T> {
  using typename Gates<T>::P;
  using Gates<T>::Gates;
  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) const {
    const P r = sigmoid(this->sum(row, 0, j, sums[0]));
    const P z = sigmoid(this->sum(row, 1, j, sums[1]));
    const P q = this->recurrent(sums[2], 2, j);
    const P candidate = tanh(this->input(row, 2, j) + r * q);
    const P next = candidate + z * (this->before(row, j) - candidate);
    if (this->saving()) {
      this->keep(row, 0, j, r, n);
      this->keep(row, 1, j, z, n);
      this->keep(row, 2, j, candidate, n);
      this->keep(row, 3, j, q, n);
    }
    this->give(row, j, next, n);
  }
};

/// With the reset before the product: r and z, and r h for the second product.
template <class T>
struct ResetBeforeGates : Gates<T> {
  using typename Gates<T>::P;
  using Gates<T>::Gates;
  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) const {
    const P r = sigmoid(this->sum(row, 0, j, sums[0]));
    const P z = sigmoid(this->sum(row, 1, j, sums[1]));
    (r * this->before(row, j)).store(this->between(row, j));
    this->keep(row, 0, j, r, n);
    this->keep(row, 1, j, z, n);
  }
};
/// Its candidate and the new state.
template <class T>
struct ResetBeforeCandidate : Gates<T> {
  using typename Gates<T>::P;
  using Gates<T>::Gates;
  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) const {
    const P z = this->kept(row, 1, j);
    const P candidate = tanh(this->sum(row, 2, j, sums[0]));
    if (this->saving()) this->keep(row, 2, j, candidate, n);
    this->give(row, j, candidate + z * (this->before(row, j) - candidate), n);
  }
};

template <class T, bool kProjects>
struct LstmGates : Gates<T> {
  using typename Gates<T>::P;
  using Gates<T>::Gates;
  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) const {
    const P i = sigmoid(this->sum(row, 0, j, sums[0]));
    const P f = sigmoid(this->sum(row, 1, j, sums[1]));
    const P g = tanh(this->sum(row, 2, j, sums[2]));
    const P o = sigmoid(this->sum(row, 3, j, sums[3]));
    const P c = f * this->memory(row, j) + i * g;
    if (this->saving()) {
      this->keep(row, 0, j, i, n);
      this->keep(row, 1, j, f, n);
      this->keep(row, 2, j, g, n);
      this->keep(row, 3, j, o, n);
      this->keep(row, 4, j, c, n);
    }
    this->remember(row, j, c);
    const P whole = o * tanh(c);
    if constexpr (kProjects) {
      whole.store(this->between(row, j));
    } else {
      this->give(row, j, whole, n);
    }
  }
};
/// The projection itself.
template <class T>
struct Projected : Gates<T> {
  using typename Gates<T>::P;
  using Gates<T>::Gates;
  void operator()(std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) const {
    this->give(row, j, sums[0], n);
  }
};

template <class T, bool kRelu>
struct RnnGates : Gates<T> {
  using typename Gates<T>::P;
  using Gates<T>::Gates;
  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) const {
    const P x = this->sum(row, 0, j, sums[0]);
    this->give(row, j, kRelu ? max(x, T(0)) : tanh(x), n);
  }
};

template <class T>
void lstm_rows(const RecurrenceWeights<T>& w, const RecurrenceStep<T>& s) {
  if (!w.hr.data) return each_unit<T, 4>(w.hh, s.rows, s.h, s.P_, LstmGates<T, false>(w, s));
  each_unit<T, 4>(w.hh, s.rows, s.h, s.P_, LstmGates<T, true>(w, s));
  each_unit<T, 1>(w.hr, s.rows, s.between, s.H_, Projected<T>(w, s));
}

template <class T>
void reset_before_rows(const RecurrenceWeights<T>& w, const RecurrenceStep<T>& s) {
  each_unit<T, 2>(w.hh, s.rows, s.h, s.P_, ResetBeforeGates<T>(w, s));
  each_unit<T, 1>(w.hh_n, s.rows, s.between, s.H_, ResetBeforeCandidate<T>(w, s));
}

/// Stores the sums of all gates of an input product.
template <class T, int G>
struct StoreInput {
  T* i;
  std::int64_t i_gate, i_row;
  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t j, std::int64_t n,
                                         const Packet<T>* sums) const {
    for (int g = 0; g < G; ++g) put(i + row * i_row + g * i_gate + j, sums[g], n);
  }
};

template <class T>
void input_sums(CellType cell, const RecurrenceWeights<T>& w, std::int64_t rows, const T* x, std::int64_t x_row, T* i,
                std::int64_t i_gate, std::int64_t i_row) {
  switch (gates_of(cell)) {
    case 1: return each_unit<T, 1>(w.ih, rows, x, x_row, StoreInput<T, 1>{i, i_gate, i_row});
    case 3: return each_unit<T, 3>(w.ih, rows, x, x_row, StoreInput<T, 3>{i, i_gate, i_row});
    default: return each_unit<T, 4>(w.ih, rows, x, x_row, StoreInput<T, 4>{i, i_gate, i_row});
  }
}

template <class T>
void step_rows(CellType cell, const RecurrenceWeights<T>& w, const RecurrenceStep<T>& s) {
  switch (cell) {
    case CellType::gru: return each_unit<T, 3>(w.hh, s.rows, s.h, s.P_, GruGates<T>(w, s));
    case CellType::gru_reset_before: return reset_before_rows(w, s);
    case CellType::lstm: return lstm_rows(w, s);
    case CellType::rnn_tanh: return each_unit<T, 1>(w.hh, s.rows, s.h, s.P_, RnnGates<T, false>(w, s));
    case CellType::rnn_relu: return each_unit<T, 1>(w.hh, s.rows, s.h, s.P_, RnnGates<T, true>(w, s));
  }
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
        steps_(steps_at_once()) {}

  /// Elements of the memory that `run` takes.
  std::int64_t size() const { return rows_ * (2 * P_ + 3 * H_) + (out_.saved ? 0 : steps_ * rows_ * i_row_); }

  void run(T* memory) {
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
        input_sums(r_.cell, r_.w, steps, r_.x.at(low_, begin_ + b), r_.x.step, i_at(low_, b), i_gate_, step_row);
    } else {
      for (std::int64_t t = low_; t < low_ + steps; ++t)
        input_sums(r_.cell, r_.w, rows_, r_.x.at(t, begin_), r_.x.row, i_at(t, 0), i_gate_, i_row_);
    }
    for (std::int64_t n = first; n < last; ++n) step(n);
  }

  void step(std::int64_t n) {
    const std::int64_t t = r_.time(n);
    if (r_.resets) begin_anew(n);
    step_rows(r_.cell, r_.w,
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
void run_rows(const Recurrence<T>& r, const RecurrenceOut<T>& out, std::int64_t begin, std::int64_t end, T* memory) {
  RowsThroughTime<T>(r, out, begin, end).run(memory);
}

template <class T>
constexpr RecurrenceKernels<T> kernels_of() {
  return {.memory = memory_of<T>,
          .rows = run_rows<T>,
          .input_product = input_sums<T>,
          .step = step_rows<T>,
          .row_back = row_back<T>,
          .product_back = product_back<T>,
          .reset_back = reset_back<T>};
}

}  // namespace

constinit const RecurrenceTable recurrence_table = {kernels_of<float>(), kernels_of<double>()};

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
