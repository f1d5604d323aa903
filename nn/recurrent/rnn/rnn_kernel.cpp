/// The step of an Elman network forward and backward.
#include "ferrite/nn/recurrent/detail/cell_kernel.h"
#include "ferrite/tensor/kernel/packet_exp.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {
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
    each_unit<T, 1>(w.weight_hh.early, s.rows, s.h, s.P_, RnnGates<T, kRelu>(w, s));
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
