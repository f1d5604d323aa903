/// A GRU's gates forward and backward, with the reset gate after and before the product.
#include "ferrite/nn/recurrent/detail/cell_kernel.h"
#include "ferrite/tensor/kernel/packet_exp.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {
namespace {

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

/// With the reset before the product: r and z, and r h for the second product.
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
/// Its candidate and the new state.
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
    each_unit<T, 3>(w.weight_hh.early, s.rows, s.h, s.P_, GruGates<T>(w, s));
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
  /// All but r, which waits for the product with W_hn.
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
  /// From the cotangent of r h to those of r and h.
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

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
