/// The kernels of the recurrent cells: the gates of one step of each cell, forward and backward, and its table of
/// kernels for a level. A cell defines:
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
#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/level.h"
#include "ferrite/tensor/kernel/packet_exp.h"
#include "ferrite/tensor/kernel/tile.h"

// ---- what cells share ----------------------------------------------------------------------------------

namespace ferrite::nn::detail::FERRITE_LEVEL {
namespace {

using namespace ferrite::detail::FERRITE_LEVEL;

/// The trait of cells with four gates: their tiles hold six rows, and few batches are multiples of six.
struct FewRows {
  static constexpr bool kFewRows = true;
};
struct ManyRows {};

/// Stores the sums of all gates of an input product.
template <class T, int G>
struct StoreInput : std::conditional_t<G == 4, FewRows, ManyRows> {
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
  each_unit<T, G>(w.weight_ih, rows, x, x_row, StoreInput<T, G>{{}, i, i_gate, i_row});
}

/// Returns the kernels of a cell of G gates, with a `late_back` if it has late gates.
template <class Functors, class T, int G>
constexpr CellKernels<T> cell_kernels() {
  CellKernels<T> k{.input_product = input_sums<T, G>,
                   .step = Functors::template step<T>,
                   .row_back = Functors::template row_back<T>};
  if constexpr (requires { &Functors::template late_back<T>; }) k.late_back = Functors::template late_back<T>;
  return k;
}

/// The operands and results of the gates of one packet of units in one row. Each cell finishes its sums in its own
/// function object, inlined after the product; a call there would spill all sums to memory.
template <class T>
class Gates {
 public:
  using P = Packet<T>;
  Gates(const KernelWeights<T>& w, const RecurrenceStep<T>& s)
      : H_(w.weight_ih.units), ih_(w.weight_ih), b_ih_(w.bias_ih), b_hh_(w.bias_hh), vectors_(w.weight_ch), s_(s) {}
  /// Returns the sums of one row, gates `given_gate` apart, if they were computed before, else null.
  const T* given() const { return s_.product; }
  std::int64_t given_gate() const { return s_.product_gate; }

 protected:
  /// Returns a packet of x W_ih + b_ih.
  [[gnu::always_inline]] P input(std::int64_t row, std::int64_t gate, std::int64_t j) const {
    const P x =
        s_.x ? fma(P(s_.x[row * s_.x_row]), P::load(ih_.data + j / kLanes<T> * ih_.u_step + gate * ih_.g_step), T(0))
             : stored(row, gate, j);
    return b_ih_ ? x + P::load(b_ih_ + gate * H_ + j) : x;
  }
  /// Returns h W_hh + b_hh, given the product.
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
  /// Returns where the operand of a second product is stored.
  [[gnu::always_inline]] T* between(std::int64_t row, std::int64_t j) const { return s_.between + row * s_.H_ + j; }
  /// Stores a gate or another value of this step for a later kernel.
  [[gnu::always_inline]] void store(std::int64_t row, std::int64_t place, std::int64_t j, P v, std::int64_t n) const {
    put(s_.i + row * s_.i_row + place * s_.i_gate + j, v, n);
  }
  [[gnu::always_inline]] P stored(std::int64_t row, std::int64_t place, std::int64_t j) const {
    return P::load(s_.i + row * s_.i_row + place * s_.i_gate + j);
  }
  [[gnu::always_inline]] void set_state(std::int64_t row, std::int64_t j, P next, std::int64_t n) const {
    next.store(s_.next + row * s_.P_ + j);
    put(s_.y + row * s_.y_row + j, next, s_.whole_y ? kLanes<T> : n);
  }
  [[gnu::always_inline]] bool saving() const { return s_.save; }
  /// Stores what the gradient reads, place by place, if there will be one.
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

/// Computes a step of one row whose units fit one packet: in a small stream every instruction before its sums counts.
template <class T, int G, class F>
[[gnu::noinline]] void step_of_one_packet(const KernelWeights<T>& w, const RecurrenceStep<T>& s) {
  EachUnit<T, G, F>(w.weight_hh.early, s.h, s.P_, F(w, s)).run_alone();
}
/// Computes a step: the product with h, then the gates F.
template <class T, int G, class F>
[[gnu::always_inline]] inline void step_of(const KernelWeights<T>& w, const RecurrenceStep<T>& s) {
  if constexpr (sizeof(T) == 4) {
    if (s.rows == 1 && w.weight_hh.early.units <= kLanes<T>) return step_of_one_packet<T, G, F>(w, s);
  }
  each_unit<T, G>(w.weight_hh.early, s.rows, s.h, s.P_, F(w, s));
}

/// Finishes the projection of what the gates have stored.
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

/// Loads a packet that the step has saved.
template <class T>
[[gnu::always_inline]] inline Packet<T> saved(const RowBack<T>& s, std::int64_t place, std::int64_t j) {
  return Packet<T>::load(s.saved + place * s.H + j);
}

/// Stores a packet of a cotangent.
template <class T>
[[gnu::always_inline]] inline void set(const RowBack<T>& s, std::int64_t place, std::int64_t j, Packet<T> v,
                                       std::int64_t n) {
  put(s.d + place * s.H + j, v, n);
}

// ---- the GRU, with the reset gate after and before the product -----------------------------------------

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
    this->save(row, j, n, r, z, candidate, q);
    this->set_state(row, j, next, n);
  }
};

/// The gates r and z of a GRU with the reset before the product, and r h for the second product.
template <class T>
struct ResetBeforeGates : Gates<T> {
  using typename Gates<T>::P;
  using Gates<T>::Gates;
  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) const {
    const P r = sigmoid(this->sum(row, 0, j, sums[0]));
    const P z = sigmoid(this->sum(row, 1, j, sums[1]));
    (r * this->before(row, j)).store(this->between(row, j));
    this->store(row, 0, j, r, n);
    this->store(row, 1, j, z, n);
  }
};

/// The candidate and the new state of a GRU with the reset before the product.
template <class T>
struct ResetBeforeCandidate : Gates<T> {
  using typename Gates<T>::P;
  using Gates<T>::Gates;
  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) const {
    const P z = this->stored(row, 1, j);
    const P candidate = tanh(this->sum(row, 2, j, sums[0]));
    if (this->saving()) this->store(row, 2, j, candidate, n);
    this->set_state(row, j, candidate + z * (this->before(row, j) - candidate), n);
  }
};

}  // namespace

struct GruFunctors {
  template <class T>
  static void step(const KernelWeights<T>& w, const RecurrenceStep<T>& s) {
    step_of<T, 3, GruGates<T>>(w, s);
  }
  template <class T>
  static void row_back(const RowBack<T>& s) {
    using P = Packet<T>;
    const P one(T(1));
    each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
      const P r = saved(s, 0, j), z = saved(s, 1, j), candidate = saved(s, 2, j), q = saved(s, 3, j);
      const P dh = P::load(s.dh + j);
      const P dn = dh * (one - z) * (one - candidate * candidate);
      const P dz = dh * (P::load(s.before + j) - candidate) * z * (one - z);
      const P dr = dn * q * r * (one - r);
      set(s, 0, j, dn * r, n);
      set(s, 1, j, dr, n);
      set(s, 2, j, dz, n);
      set(s, 3, j, dn, n);
      put(s.dh + j, dh * z, n);
    });
  }
};
template <class T>
constexpr CellKernels<T> of_gru() {
  return cell_kernels<GruFunctors, T, kGru.gates>();
}
FERRITE_DEFINE_FLOAT_TABLES(CellKernels, gru_kernels, of_gru)

struct GruResetBeforeFunctors {
  template <class T>
  static void step(const KernelWeights<T>& w, const RecurrenceStep<T>& s) {
    each_unit<T, 2>(w.weight_hh.early, s.rows, s.h, s.P_, ResetBeforeGates<T>(w, s));
    each_unit<T, 1>(w.weight_hh.late, s.rows, s.between, s.H_, ResetBeforeCandidate<T>(w, s));
  }
  /// Computes all cotangents but that of r, which needs the product with W_hn.
  template <class T>
  static void row_back(const RowBack<T>& s) {
    using P = Packet<T>;
    const P one(T(1));
    each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
      const P z = saved(s, 1, j), candidate = saved(s, 2, j);
      const P dh = P::load(s.dh + j);
      set(s, 1, j, dh * (P::load(s.before + j) - candidate) * z * (one - z), n);
      set(s, 2, j, dh * (one - z) * (one - candidate * candidate), n);
      put(s.dh + j, dh * z, n);
    });
  }
  /// Computes the cotangents of r and h from that of r h.
  template <class T>
  static void late_back(const LateBack<T>& s) {
    using P = Packet<T>;
    const P one(T(1));
    each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
      const P product = P::load(s.product + j), r = P::load(s.saved + j), h = P::load(s.before + j);
      put(s.d + j, product * h * r * (one - r), n);
      put(s.operand + j, r * h, n);
      (P::load(s.dh + j) + product * r).store(s.dh + j);
    });
  }
};
template <class T>
constexpr CellKernels<T> of_gru_reset_before() {
  return cell_kernels<GruResetBeforeFunctors, T, kGruResetBefore.gates>();
}
FERRITE_DEFINE_FLOAT_TABLES(CellKernels, gru_reset_before_kernels, of_gru_reset_before)

// ---- the LSTM, with and without a projection of h ------------------------------------------------------

namespace {

template <class T, bool kProjects>
struct LstmGates : Gates<T> {
  static constexpr bool kFewRows = true;
  using typename Gates<T>::P;
  using Gates<T>::Gates;
  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) const {
    const P i = sigmoid(this->sum(row, 0, j, sums[0]));
    const P f = sigmoid(this->sum(row, 1, j, sums[1]));
    const P g = tanh(this->sum(row, 2, j, sums[2]));
    const P o = sigmoid(this->sum(row, 3, j, sums[3]));
    const P c = f * this->memory(row, j) + i * g;
    this->save(row, j, n, i, f, g, o, c);
    this->set_memory(row, j, c);
    const P whole = o * tanh(c);
    if constexpr (kProjects) {
      whole.store(this->between(row, j));
    } else {
      this->set_state(row, j, whole, n);
    }
  }
};

}  // namespace

struct LstmFunctors {
  template <class T>
  static void step(const KernelWeights<T>& w, const RecurrenceStep<T>& s) {
    if (!w.weight_hr.data) return step_of<T, 4, LstmGates<T, false>>(w, s);
    each_unit<T, 4>(w.weight_hh.early, s.rows, s.h, s.P_, LstmGates<T, true>(w, s));
    each_unit<T, 1>(w.weight_hr, s.rows, s.between, s.H_, Projected<T>(w, s));
  }
  template <class T>
  static void row_back(const RowBack<T>& s) {
    using P = Packet<T>;
    const P one(T(1));
    each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
      const P i = saved(s, 0, j), f = saved(s, 1, j), g = saved(s, 2, j), o = saved(s, 3, j);
      const P tc = tanh(saved(s, 4, j));
      const P dh = P::load(s.dwhole + j);
      const P dc = P::load(s.dc + j) + dh * o * (one - tc * tc);
      set(s, 0, j, dc * g * i * (one - i), n);
      set(s, 1, j, dc * P::load(s.c_before + j) * f * (one - f), n);
      set(s, 2, j, dc * i * (one - g * g), n);
      set(s, 3, j, dh * tc * o * (one - o), n);
      put(s.dc + j, dc * f, n);
      if (s.whole) put(s.whole + j, o * tc, n);
    });
  }
};
template <class T>
constexpr CellKernels<T> of_lstm() {
  return cell_kernels<LstmFunctors, T, kLstm.gates>();
}
FERRITE_DEFINE_FLOAT_TABLES(CellKernels, lstm_kernels, of_lstm)

// ---- the LSTM whose gates see its memory ---------------------------------------------------------------

namespace {

template <class T>
struct PeepholeGates : Gates<T> {
  using typename Gates<T>::P;
  using Gates<T>::Gates;
  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) const {
    const P before = this->memory(row, j);
    const P i = sigmoid(this->sum(row, 0, j, sums[0]) + this->vector(0, j) * before);
    const P f = sigmoid(this->sum(row, 1, j, sums[1]) + this->vector(1, j) * before);
    const P g = tanh(this->sum(row, 2, j, sums[2]));
    const P c = f * before + i * g;
    const P o = sigmoid(this->sum(row, 3, j, sums[3]) + this->vector(2, j) * c);
    this->save(row, j, n, i, f, g, o, c);
    this->set_memory(row, j, c);
    this->set_state(row, j, o * tanh(c), n);
  }
};

}  // namespace

struct PeepholeLstmFunctors {
  template <class T>
  static void step(const KernelWeights<T>& w, const RecurrenceStep<T>& s) {
    step_of<T, 4, PeepholeGates<T>>(w, s);
  }
  template <class T>
  static void row_back(const RowBack<T>& s) {
    using P = Packet<T>;
    const P one(T(1));
    const auto vector = [&](std::int64_t k, std::int64_t j) { return P::load(s.vectors + k * s.H + j); };
    each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
      const P i = saved(s, 0, j), f = saved(s, 1, j), g = saved(s, 2, j), o = saved(s, 3, j), c = saved(s, 4, j);
      const P before = P::load(s.c_before + j), tc = tanh(c), dh = P::load(s.dwhole + j);
      const P d_o = dh * tc * o * (one - o);
      const P dc = P::load(s.dc + j) + dh * o * (one - tc * tc) + d_o * vector(2, j);
      const P d_i = dc * g * i * (one - i);
      const P d_f = dc * before * f * (one - f);
      set(s, 0, j, d_i, n);
      set(s, 1, j, d_f, n);
      set(s, 2, j, dc * i * (one - g * g), n);
      set(s, 3, j, d_o, n);
      set(s, 4, j, d_i * before, n);
      set(s, 5, j, d_f * before, n);
      set(s, 6, j, d_o * c, n);
      put(s.dc + j, dc * f + d_i * vector(0, j) + d_f * vector(1, j), n);
    });
  }
};
template <class T>
constexpr CellKernels<T> of_peephole_lstm() {
  return cell_kernels<PeepholeLstmFunctors, T, kPeepholeLstm.gates>();
}
FERRITE_DEFINE_FLOAT_TABLES(CellKernels, peephole_lstm_kernels, of_peephole_lstm)

// ---- the Elman network ---------------------------------------------------------------------------------

namespace {

template <class T, bool kRelu>
struct RnnGates : Gates<T> {
  using typename Gates<T>::P;
  using Gates<T>::Gates;
  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t j, std::int64_t n, const P* sums) const {
    const P x = this->sum(row, 0, j, sums[0]);
    this->set_state(row, j, kRelu ? max(x, T(0)) : tanh(x), n);
  }
};

template <bool kRelu>
struct RnnFunctors {
  template <class T>
  static void step(const KernelWeights<T>& w, const RecurrenceStep<T>& s) {
    step_of<T, 1, RnnGates<T, kRelu>>(w, s);
  }
  template <class T>
  static void row_back(const RowBack<T>& s) {
    using P = Packet<T>;
    each_packet<T>(s.H, [&](std::int64_t j, std::int64_t n) {
      const P y = P::load(s.y + j);
      const P dh = P::load(s.dh + j);
      const P slope = kRelu ? select(y > P(T(0)), P(T(1)), P(T(0))) : P(T(1)) - y * y;
      set(s, 0, j, dh * slope, n);
    });
  }
};

}  // namespace

template <class T>
constexpr CellKernels<T> of_rnn() {
  return cell_kernels<RnnFunctors<false>, T, kRnn.gates>();
}
template <class T>
constexpr CellKernels<T> of_rnn_relu() {
  return cell_kernels<RnnFunctors<true>, T, kRnnRelu.gates>();
}
FERRITE_DEFINE_FLOAT_TABLES(CellKernels, rnn_kernels, of_rnn)
FERRITE_DEFINE_FLOAT_TABLES(CellKernels, rnn_relu_kernels, of_rnn_relu)

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
