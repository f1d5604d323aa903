/// The gates of an LSTM that see its memory, forward and backward.
#include "ferrite/nn/recurrent/detail/cell_kernel.h"
#include "ferrite/tensor/kernel/packet_exp.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {
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
    each_unit<T, 4>(w.weight_hh.early, s.rows, s.h, s.P_, PeepholeGates<T>(w, s));
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

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
