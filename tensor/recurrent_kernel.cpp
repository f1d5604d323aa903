#include <algorithm>
#include <vector>

#include "ferrite/tensor/detail/gemm.h"
#include "ferrite/tensor/detail/packet.h"
#include "ferrite/tensor/detail/recurrent.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {
namespace {

/// Calls f(first element, number of elements) for every packet of a row; the last one may be part of a packet.
template <class T, class F>
inline void each_packet(std::int64_t H, F&& f) {
  constexpr std::int64_t W = kLanes<T>;
  std::int64_t j = 0;
  for (; j + W <= H; j += W) f(j, W);
  if (j < H) f(j, H - j);
}

/// Stores the first n elements.
template <class T>
inline void put(T* to, Packet<T> v, std::int64_t n) {
  if (n == kLanes<T>) return v.store(to);
  alignas(64) T part[static_cast<std::size_t>(kLanes<T>)];
  v.store(part);
  std::copy_n(part, n, to);
}

/// One row of one step. Pointers stand at its first element; gates lie H apart.
template <class T>
struct RowStep {
  const T* i;
  const T* g;  ///< h W_hh
  const T* b;  ///< b_hh or null
  T* h;
  T* c;
  T* y;
  T* saved;  ///< or null
  std::int64_t H;

  /// h W_hh + b_hh of a gate.
  Packet<T> recurrent(std::int64_t gate, std::int64_t j) const {
    const Packet<T> x = Packet<T>::load(g + gate * H + j);
    return b ? x + Packet<T>::load(b + gate * H + j) : x;
  }
  Packet<T> input(std::int64_t gate, std::int64_t j) const { return Packet<T>::load(i + gate * H + j); }
  void save(std::int64_t k, std::int64_t j, Packet<T> v, std::int64_t n) const {
    if (saved) put(saved + k * H + j, v, n);
  }
};

template <class T>
void gru_row(const RowStep<T>& s) {
  using P = Packet<T>;
  each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
    const P r = sigmoid(s.input(0, j) + s.recurrent(0, j));
    const P z = sigmoid(s.input(1, j) + s.recurrent(1, j));
    const P q = s.recurrent(2, j);
    const P candidate = tanh(s.input(2, j) + r * q);
    const P h = P::load(s.h + j);
    const P next = candidate + z * (h - candidate);
    s.save(0, j, r, n), s.save(1, j, z, n), s.save(2, j, candidate, n), s.save(3, j, q, n);
    put(s.h + j, next, n);
    put(s.y + j, next, n);
  });
}

template <class T>
void lstm_row(const RowStep<T>& s) {
  using P = Packet<T>;
  each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
    const P i = sigmoid(s.input(0, j) + s.recurrent(0, j));
    const P f = sigmoid(s.input(1, j) + s.recurrent(1, j));
    const P g = tanh(s.input(2, j) + s.recurrent(2, j));
    const P o = sigmoid(s.input(3, j) + s.recurrent(3, j));
    const P c = f * P::load(s.c + j) + i * g;
    const P next = o * tanh(c);
    s.save(0, j, i, n), s.save(1, j, f, n), s.save(2, j, g, n), s.save(3, j, o, n), s.save(4, j, c, n);
    put(s.c + j, c, n);
    put(s.h + j, next, n);
    put(s.y + j, next, n);
  });
}

template <class T, bool kRelu>
void rnn_row(const RowStep<T>& s) {
  using P = Packet<T>;
  each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
    const P x = s.input(0, j) + s.recurrent(0, j);
    const P next = kRelu ? max(x, T(0)) : tanh(x);
    put(s.h + j, next, n);
    put(s.y + j, next, n);
  });
}

template <class T>
using RowFunction = void (*)(const RowStep<T>&);
template <class T>
RowFunction<T> row_of(CellType cell) {
  switch (cell) {
    case CellType::gru: return gru_row<T>;
    case CellType::lstm: return lstm_row<T>;
    case CellType::rnn_tanh: return rnn_row<T, false>;
    case CellType::rnn_relu: break;
  }
  return rnn_row<T, true>;
}

/// One row of one step on the way back. dh and dc come in whole and leave as what passes by the product.
template <class T>
struct RowBack {
  const T* saved;
  const T* y;         ///< of this step
  const T* before;    ///< h before this step
  const T* c_before;  ///< c before this step
  T* dh;
  T* dc;
  T* di;
  T* dg;  ///< cotangent of h W_hh
  std::int64_t H;

  Packet<T> value(std::int64_t k, std::int64_t j) const { return Packet<T>::load(saved + k * H + j); }
  void give(std::int64_t gate, std::int64_t j, Packet<T> v, std::int64_t n) const {
    put(di + gate * H + j, v, n);
    put(dg + gate * H + j, v, n);
  }
};

template <class T>
void gru_row_back(const RowBack<T>& s) {
  using P = Packet<T>;
  const P one(T(1));
  each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
    const P r = s.value(0, j), z = s.value(1, j), candidate = s.value(2, j), q = s.value(3, j);
    const P dh = P::load(s.dh + j);
    const P dn = dh * (one - z) * (one - candidate * candidate);
    const P dz = dh * (P::load(s.before + j) - candidate) * z * (one - z);
    const P dr = dn * q * r * (one - r);
    s.give(0, j, dr, n);
    s.give(1, j, dz, n);
    put(s.di + 2 * s.H + j, dn, n);
    put(s.dg + 2 * s.H + j, dn * r, n);
    put(s.dh + j, dh * z, n);
  });
}

template <class T>
void lstm_row_back(const RowBack<T>& s) {
  using P = Packet<T>;
  const P one(T(1));
  each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
    const P i = s.value(0, j), f = s.value(1, j), g = s.value(2, j), o = s.value(3, j);
    const P tc = tanh(s.value(4, j));
    const P dh = P::load(s.dh + j);
    const P dc = P::load(s.dc + j) + dh * o * (one - tc * tc);
    s.give(0, j, dc * g * i * (one - i), n);
    s.give(1, j, dc * P::load(s.c_before + j) * f * (one - f), n);
    s.give(2, j, dc * i * (one - g * g), n);
    s.give(3, j, dh * tc * o * (one - o), n);
    put(s.dc + j, dc * f, n);
    put(s.dh + j, P(T(0)), n);
  });
}

template <class T, bool kRelu>
void rnn_row_back(const RowBack<T>& s) {
  using P = Packet<T>;
  each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
    const P y = P::load(s.y + j);
    const P dh = P::load(s.dh + j);
    const P slope = kRelu ? select(y > P(T(0)), P(T(1)), P(T(0))) : P(T(1)) - y * y;
    s.give(0, j, dh * slope, n);
    put(s.dh + j, P(T(0)), n);
  });
}

template <class T>
using BackFunction = void (*)(const RowBack<T>&);
template <class T>
BackFunction<T> back_of(CellType cell) {
  switch (cell) {
    case CellType::gru: return gru_row_back<T>;
    case CellType::lstm: return lstm_row_back<T>;
    case CellType::rnn_tanh: return rnn_row_back<T, false>;
    case CellType::rnn_relu: break;
  }
  return rnn_row_back<T, true>;
}

/// Memory for one call, from the pool of tensors.
template <class T>
class Room {
 public:
  explicit Room(std::int64_t n) : tensor_(Tensor::empty({{n}, dtype_of<T>})) {}
  T* get() { return Writer::data<T>(tensor_); }

 private:
  Tensor tensor_;
};

template <class T>
void add_to(T* total, const T* more, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) total[k] += more[k];
}

/// Sums h^T dg and dg over rows that come step by step, in blocks of 256.
template <class T>
class WeightGradient {
 public:
  WeightGradient(std::int64_t H, std::int64_t columns, std::int64_t batch, T* dw, T* db)
      : H_(H),
        columns_(columns),
        dw_(dw),
        db_(db),
        h_((kBlock + batch) * H),
        dg_((kBlock + batch) * columns),
        partial_(H * columns) {
    std::fill_n(dw_, H_ * columns_, T(0));
    if (db_) std::fill_n(db_, columns_, T(0));
  }
  /// Where the next row of h and the next row of dg go.
  T* h_row(std::int64_t b) { return h_.get() + (count_ + b) * H_; }
  T* dg_row(std::int64_t b) { return dg_.get() + (count_ + b) * columns_; }
  void added(std::int64_t rows) {
    count_ += rows;
    std::int64_t begin = 0;
    for (; count_ - begin >= kBlock; begin += kBlock) add(begin, kBlock);
    if (begin == 0) return;
    std::copy_n(h_.get() + begin * H_, (count_ - begin) * H_, h_.get());
    std::copy_n(dg_.get() + begin * columns_, (count_ - begin) * columns_, dg_.get());
    count_ -= begin;
  }
  void finish() {
    if (count_ > 0) add(0, count_);
  }

 private:
  static constexpr std::int64_t kBlock = 256;

  void add(std::int64_t begin, std::int64_t rows) {
    const T* h = h_.get() + begin * H_;
    const T* dg = dg_.get() + begin * columns_;
    gemm<T>(H_, columns_, rows, {h, 1, H_}, {dg, columns_, 1}, partial_.get(), columns_);
    add_to(dw_, partial_.get(), H_ * columns_);
    if (!db_) return;
    std::fill_n(partial_.get(), columns_, T(0));
    for (std::int64_t k = 0; k < rows; ++k) add_to(partial_.get(), dg + k * columns_, columns_);
    add_to(db_, partial_.get(), columns_);
  }
  std::int64_t H_, columns_;
  T* dw_;
  T* db_;
  Room<T> h_, dg_, partial_;
  std::int64_t count_ = 0;
};

/// The state before the n-th step of a row, as the forward pass had it.
template <class T>
struct Before {
  const Recurrence<T>& r;
  const RecurrenceGrad<T>& g;
  const T* zeros;

  const T* h(std::int64_t n, std::int64_t b) const {
    if (r.anew(n, b)) return zeros;
    const std::int64_t t = n > 0 ? r.time(n - 1) : 0;
    return n > 0 && r.valid(t, b) ? g.y.at(t, b) : r.h0 + b * r.H;
  }
  const T* c(std::int64_t n, std::int64_t b) const {
    if (r.anew(n, b)) return zeros;
    const std::int64_t t = n > 0 ? r.time(n - 1) : 0;
    if (n == 0 || !r.valid(t, b)) return r.c0 + b * r.H;
    return g.saved + ((t * r.B + b) * saved_of(r.cell) + 4) * r.H;
  }
};

/// w [rows, columns] turned.
template <class T>
void turn(const T* w, std::int64_t rows, std::int64_t columns, T* to) {
  constexpr std::int64_t kTile = 16;
  for (std::int64_t i0 = 0; i0 < rows; i0 += kTile)
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = i0; i < std::min(rows, i0 + kTile); ++i) to[j * rows + i] = w[i * columns + j];
}

}  // namespace

template <class T>
void run_recurrence(const Recurrence<T>& r, const RecurrenceOut<T>& out) {
  const std::int64_t columns = r.columns();
  const std::int64_t saved = saved_of(r.cell) * r.H;
  const RowFunction<T> row = row_of<T>(r.cell);
  std::copy_n(r.h0, r.B * r.H, out.h);
  if (out.c) std::copy_n(r.c0, r.B * r.H, out.c);
  for (std::int64_t n = 0; n < r.T_; ++n) {
    const std::int64_t t = r.time(n);
    for (std::int64_t b = 0; r.resets && b < r.B; ++b) {
      if (!r.anew(n, b)) continue;
      std::fill_n(out.h + b * r.H, r.H, T(0));
      if (out.c) std::fill_n(out.c + b * r.H, r.H, T(0));
    }
    gemm<T>(r.B, columns, r.H, {out.h, r.H, 1}, {r.w_hh, columns, 1}, out.scratch, columns);
    for (std::int64_t b = 0; b < r.B; ++b) {
      T* const save = out.saved ? out.saved + (t * r.B + b) * saved : nullptr;
      if (!r.valid(t, b)) {
        std::fill_n(out.y.at(t, b), r.H, T(0));
        if (save) std::fill_n(save, saved, T(0));
        continue;
      }
      row({r.i.at(t, b), out.scratch + b * columns, r.b_hh, out.h + b * r.H, out.c ? out.c + b * r.H : nullptr,
           out.y.at(t, b), save, r.H});
    }
  }
}

template <class T>
void run_recurrence_back(const Recurrence<T>& r, const RecurrenceGrad<T>& g) {
  const std::int64_t columns = r.columns();
  const std::int64_t saved = saved_of(r.cell) * r.H;
  const BackFunction<T> row = back_of<T>(r.cell);
  Room<T> turned(columns * r.H), passed(r.B * r.H), zeros(r.H);
  turn(r.w_hh, r.H, columns, turned.get());
  std::fill_n(zeros.get(), r.H, T(0));
  const Before<T> before{r, g, zeros.get()};
  WeightGradient<T> weights(r.H, columns, r.B, g.dw, g.db);
  for (std::int64_t n = r.T_ - 1; n >= 0; --n) {
    const std::int64_t t = r.time(n);
    for (std::int64_t b = 0; b < r.B; ++b) {
      T* const di = g.di.at(t, b);
      T* const dg = weights.dg_row(b);
      const T* const h = before.h(n, b);
      std::copy_n(h, r.H, weights.h_row(b));
      if (!r.valid(t, b)) {
        std::fill_n(di, columns, T(0));
        std::fill_n(dg, columns, T(0));
        continue;
      }
      T* const dh = g.dh + b * r.H;
      if (g.dy) add_to(dh, g.dy.at(t, b), r.H);
      row({g.saved + (t * r.B + b) * saved, g.y.at(t, b), h, g.dc ? before.c(n, b) : nullptr, dh,
           g.dc ? g.dc + b * r.H : nullptr, di, dg, r.H});
    }
    gemm<T>(r.B, r.H, columns, {weights.dg_row(0), columns, 1}, {turned.get(), r.H, 1}, passed.get(), r.H);
    add_to(g.dh, passed.get(), r.B * r.H);
    for (std::int64_t b = 0; r.resets && b < r.B; ++b) {
      if (!r.anew(n, b)) continue;
      std::fill_n(g.dh + b * r.H, r.H, T(0));
      if (g.dc) std::fill_n(g.dc + b * r.H, r.H, T(0));
    }
    weights.added(r.B);
  }
  weights.finish();
}

template void run_recurrence<float>(const Recurrence<float>&, const RecurrenceOut<float>&);
template void run_recurrence<double>(const Recurrence<double>&, const RecurrenceOut<double>&);
template void run_recurrence_back<float>(const Recurrence<float>&, const RecurrenceGrad<float>&);
template void run_recurrence_back<double>(const Recurrence<double>&, const RecurrenceGrad<double>&);

}  // namespace ferrite::detail
