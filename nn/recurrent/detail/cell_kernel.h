#pragma once
/// What a cell's kernels are made of, and how they become part of a level's table. A cell defines, in a source of its
/// own,
///
///   template <>
///   struct CellFunctors<kGru> {
///     template <class T> static void step(const RecurrenceWeights<T>&, const RecurrenceStep<T>&);
///     template <class T> static void row_back(const RowBack<T>&);
///   };
///   template struct KernelsOf<kGru, float>;
///   template struct KernelsOf<kGru, double>;
#include <concepts>

#include "ferrite/nn/recurrent/detail/kernels_of.h"
#include "ferrite/tensor/kernel/tile.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {

using namespace ferrite::detail::FERRITE_LEVEL;

/// The kernels of a cell; with late gates there is a `late_back`, too.
template <const GatedCell& kCell>
struct CellFunctors;

template <const GatedCell& kCell, class T>
constinit const CellKernels<T> KernelsOf<kCell, T>::value = [] {
  using Functors = CellFunctors<kCell>;
  CellKernels<T> k{.step = Functors::template step<T>, .row_back = Functors::template row_back<T>};
  if constexpr (kCell.late_gates > 0) k.late_back = Functors::template late_back<T>;
  return k;
}();

/// What the gates of one packet of units of one row read and write. Each cell finishes its sums in a function object
/// of its own, in line behind the product; a call among them would put all sums into memory.
template <class T>
class Gates {
 public:
  using P = Packet<T>;
  Gates(const RecurrenceWeights<T>& w, const RecurrenceStep<T>& s)
      : H_(w.ih.units), ih_(w.ih), b_ih_(w.b_ih), b_hh_(w.b_hh), vectors_(w.vectors), s_(s) {}

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
