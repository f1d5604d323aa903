/// An LSTM's gates forward and backward, with and without a projection of h.
#include "ferrite/nn/recurrent/detail/cell_kernel.h"
#include "ferrite/tensor/kernel/packet_exp.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {
namespace {

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
    if (!w.weight_hr.data) return each_unit<T, 4>(w.weight_hh.early, s.rows, s.h, s.P_, LstmGates<T, false>(w, s));
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

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
