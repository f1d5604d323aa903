#pragma once
/// What a cell's kernels are made of, and how they become its table of a level. A cell defines, in a source of its own,
///
///   struct GruFunctors {
///     template <class T> static void step(const KernelWeights<T>&, const RecurrenceStep<T>&);
///     template <class T> static void row_back(const RowBack<T>&);
///   };
///   template <class T>
///   constexpr CellKernels<T> of_gru() {
///     return cell_kernels<GruFunctors, T, kGru.gates>();
///   }
///   FERRITE_DEFINE_FLOAT_TABLES(CellKernels, gru_kernels, of_gru)
#include <concepts>

#include "ferrite/nn/recurrent/detail/cells.h"
#include "ferrite/nn/recurrent/detail/recurrence_kernels.h"
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/level.h"
#include "ferrite/tensor/kernel/tile.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {

using namespace ferrite::detail::FERRITE_LEVEL;

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
template <class T, int G>
void input_sums(const KernelWeights<T>& w, std::int64_t rows, const T* x, std::int64_t x_row, T* i, std::int64_t i_gate,
                std::int64_t i_row) {
  constexpr std::int64_t kFirstCache = 48 * 1024;  // bytes
  const std::int64_t columns = G * w.weight_ih.units;
  const bool row_major = w.weight_ih.k_step == columns && w.weight_ih.g_step == i_gate;
  if (row_major && w.weight_ih.K * columns * static_cast<std::int64_t>(sizeof(T)) > kFirstCache)
    return product<T>(rows, columns, w.weight_ih.K, {x, x_row, 1}, {w.weight_ih.data, columns, 1}, i, i_row, false);
  each_unit<T, G>(w.weight_ih, rows, x, x_row, StoreInput<T, G>{i, i_gate, i_row});
}

/// The kernels of a cell of G gates; with late ones there is a `late_back`, too.
template <class Functors, class T, int G>
constexpr CellKernels<T> cell_kernels() {
  CellKernels<T> k{.input_product = input_sums<T, G>,
                   .step = Functors::template step<T>,
                   .row_back = Functors::template row_back<T>};
  if constexpr (requires { &Functors::template late_back<T>; }) k.late_back = Functors::template late_back<T>;
  return k;
}
/// What the gates of one packet of units of one row read and write. Each cell finishes its sums in a function object
/// of its own, in line behind the product; a call among them would put all sums into memory.
template <class T>
class Gates {
 public:
  using P = Packet<T>;
  Gates(const KernelWeights<T>& w, const RecurrenceStep<T>& s)
      : H_(w.weight_ih.units), ih_(w.weight_ih), b_ih_(w.bias_ih), b_hh_(w.bias_hh), vectors_(w.weight_ch), s_(s) {}

 protected:
  /// x W_ih + b_ih.
  [[gnu::always_inline]] P input(std::int64_t row, std::int64_t gate, std::int64_t j) const {
    const P x =
        s_.x ? fma(P(s_.x[row * s_.x_row]), P::load(ih_.data + j / kLanes<T> * ih_.u_step + gate * ih_.g_step), T(0))
             : stored(row, gate, j);
    return b_ih_ ? x + P::load(b_ih_ + gate * H_ + j) : x;
  }
  /// h W_hh + b_hh from the product.
  [[gnu::always_inline]] P recurrent(P product, std::int64_t gate, std::int64_t j) const {
    return b_hh_ ? product + P::load(b_hh_ + gate * H_ + j) : product;
  }
  [[gnu::always_inline]] P sum(std::int64_t row, std::int64_t gate, std::int64_t j, P product) const {
    return input(row, gate, j) + recurrent(product, gate, j);
  }
  [[gnu::always_inline]] P vector(std::int64_t k, std::int64_t j) const { return P::load(vectors_ + k * H_ + j); }
  [[gnu::always_inline]] P before(std::int64_t row, std::int64_t j) const { return P::load(s_.h + row * s_.P_ + j); }
  [[gnu::always_inline]] P memory(std::int64_t row, std::int64_t j) const { return P::load(s_.c + row * s_.H_ + j); }
  [[gnu::always_inline]] void set_memory(std::int64_t row, std::int64_t j, P c) const {
    c.store(s_.c_next + row * s_.H_ + j);
  }
  /// The operand of a second product.
  [[gnu::always_inline]] T* between(std::int64_t row, std::int64_t j) const { return s_.between + row * s_.H_ + j; }
  /// A gate or another value of this step, for what comes later.
  [[gnu::always_inline]] void store(std::int64_t row, std::int64_t place, std::int64_t j, P v, std::int64_t n) const {
    put(s_.i + row * s_.i_row + place * s_.i_gate + j, v, n);
  }
  [[gnu::always_inline]] P stored(std::int64_t row, std::int64_t place, std::int64_t j) const {
    return P::load(s_.i + row * s_.i_row + place * s_.i_gate + j);
  }
  [[gnu::always_inline]] void set_state(std::int64_t row, std::int64_t j, P next, std::int64_t n) const {
    next.store(s_.next + row * s_.P_ + j);
    put(s_.y + row * s_.y_row + j, next, n);
  }
  [[gnu::always_inline]] bool saving() const { return s_.save; }
  /// What a gradient reads, place by place, where one will.
  template <std::same_as<P>... V>
  [[gnu::always_inline]] void save(std::int64_t row, std::int64_t j, std::int64_t n, V... values) const {
    if (!saving()) return;
    std::int64_t place = 0;
    (store(row, place++, j, values, n), ...);
  }

 private:
  std::int64_t H_;
  const GateMatrix<T>& ih_;
  const T* b_ih_;
  const T* b_hh_;
  const T* vectors_;
  const RecurrenceStep<T>& s_;
};

/// The projection of what the gates have stored.
template <class T>
struct Projected : Gates<T> {
  using typename Gates<T>::P;
  using Gates<T>::Gates;
  void operator()(std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) const {
    this->set_state(row, j, sums[0], n);
  }
};

/// Calls f(first element, number of elements) for every packet of a row; the last one may be part of a packet.
template <class T, class F>
inline void each_packet(std::int64_t H, F&& f) {
  constexpr std::int64_t W = kLanes<T>;
  std::int64_t j = 0;
  for (; j + W <= H; j += W) f(j, W);
  if (j < H) f(j, H - j);
}
/// What the step has saved.
template <class T>
[[gnu::always_inline]] inline Packet<T> saved(const RowBack<T>& s, std::int64_t place, std::int64_t j) {
  return Packet<T>::load(s.saved + place * s.H + j);
}
/// A cotangent.
template <class T>
[[gnu::always_inline]] inline void set(const RowBack<T>& s, std::int64_t place, std::int64_t j, Packet<T> v,
                                       std::int64_t n) {
  put(s.d + place * s.H + j, v, n);
}

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
