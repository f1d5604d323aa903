/// The kernels of connectionist temporal classification: the recursions over states in log space, forwards and
/// backwards, a packet of states at a time.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/nn/losses/detail/ctc_kernel.h"
#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/kernel/packet_exp.h"
#include "ferrite/tensor/kernel/packet_log.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {
namespace {

using namespace ferrite::detail::FERRITE_LEVEL;

template <class T>
constexpr T kImpossible = -std::numeric_limits<T>::infinity();

/// Returns ln(e^a + e^b + e^c), exact if two are -infinity; NaN if one is NaN.
template <class T>
[[gnu::always_inline]] inline Packet<T> log_add(Packet<T> a, Packet<T> b, Packet<T> c) {
  using P = Packet<T>;
  const P high = first_max(a, first_max(b, c));
  const P from = select(high == P(kImpossible<T>), P(T(0)), high);
  return from + log(exp(a - from) + exp(b - from) + exp(c - from));
}

/// Rows of states: ln of the probability of all paths to a state, or onwards from it. A step comes from the same state,
/// the one before, or the one before that if its label differs. States outside a row are impossible.
template <class T>
class Rows {
 public:
  Rows(const CtcSequence<T>& sequence, T* room) : seq_(sequence), n_(sequence.states()), width_(sequence.width()) {
    std::fill_n(room, 2 * width_, kImpossible<T>);
    skips_ = room + 2;
    scores_ = room + width_ + 2;
    rows_ = room + 2 * width_ + 2;
    for (std::int64_t s = 1; s < seq_.labels; ++s)
      if (seq_.targets[s] != seq_.targets[s - 1]) skips_[2 * s + 1] = 0;
  }

  /// Returns the k-th row of the workspace, at its first state.
  T* row(std::int64_t k) const { return rows_ + k * width_; }
  /// Sets a row before all frames, or after them: only one state is possible.
  void start(T* row, std::int64_t state) const {
    std::fill_n(row - 2, width_, kImpossible<T>);
    row[state] = 0;
  }

  /// Computes all paths to the states of frame t from those to the frame before.
  void into(std::int64_t t, const T* before, T* to) const {
    read_scores(t);
    to[-2] = to[-1] = kImpossible<T>;
    for (std::int64_t s = 0; s < n_; s += kLanes<T>) {
      const P two = P::load(before + s - 2) + P::load(skips_ + s);
      (log_add(P::load(before + s), P::load(before + s - 1), two) + P::load(scores_ + s)).store(to + s);
    }
  }

  /// Computes the paths onwards from frame t from those of the following frame, which include its scores; `ways` may be
  /// `after`. Also computes the probability of each state, e^(alpha + ways + loss).
  void out_of(const T* after, const T* alpha, T loss, T* ways, T* probability) const {
    for (std::int64_t s = 0; s < n_; s += kLanes<T>) {
      const P two = P::load(after + s + 2) + P::load(skips_ + s + 2);
      const P rest = log_add(P::load(after + s), P::load(after + s + 1), two);
      exp(P::load(alpha + s) + rest + P(loss)).store(probability + s);
      rest.store(ways + s);
    }
  }

  /// Adds the scores of frame t to the paths onwards from it.
  void add_scores(std::int64_t t, T* ways) const {
    read_scores(t);
    for (std::int64_t s = 0; s < n_; s += kLanes<T>) (P::load(ways + s) + P::load(scores_ + s)).store(ways + s);
  }

  /// Returns minus ln of the probability of all paths to the last label or the blank after it.
  T loss(const T* last) const {
    const P ends = log_add(P(last[n_ - 1]), P(last[n_ - 2]), P(kImpossible<T>));  // -infinity without labels
    alignas(64) T value[kLanes<T>];
    ends.store(value);
    return T(0) - value[0];
  }

 private:
  using P = Packet<T>;

  /// Reads the scores of each state in frame t; after the last state they remain impossible.
  void read_scores(std::int64_t t) const {
    const T* const x = seq_.scores + t * seq_.step;
    const T blank = x[seq_.blank];
    for (std::int64_t s = 0; s < seq_.labels; ++s) {
      scores_[2 * s] = blank;
      scores_[2 * s + 1] = x[seq_.targets[s]];
    }
    scores_[2 * seq_.labels] = blank;
  }

  const CtcSequence<T>& seq_;
  std::int64_t n_, width_;
  T *skips_, *scores_, *rows_;  ///< skips: 0 where a step may skip the state before, else impossible
};

template <class T>
T loss(const CtcSequence<T>& sequence, T* room) {
  const Rows<T> rows(sequence, room);
  T *before = rows.row(0), *to = rows.row(1);
  rows.start(before, 0);
  for (std::int64_t t = 0; t < sequence.frames; ++t) {
    rows.into(t, before, to);
    std::swap(before, to);
  }
  return rows.loss(before);
}

/// Row t + 1 holds the paths to frame t; row 0 those before frame 0, then the onward paths; the last row probabilities.
template <class T>
void gradient(const CtcSequence<T>& sequence, T g, bool zero_infinity, T* to, T* room) {
  const Rows<T> rows(sequence, room);
  rows.start(rows.row(0), 0);
  for (std::int64_t t = 0; t < sequence.frames; ++t) rows.into(t, rows.row(t), rows.row(t + 1));
  const T total = rows.loss(rows.row(sequence.frames));
  if (zero_infinity && std::isinf(total)) return;
  T *const ways = rows.row(0), *const probability = rows.row(sequence.frames + 1);
  rows.start(ways, sequence.states() - 1);
  for (std::int64_t t = sequence.frames; t-- > 0;) {
    if (t + 1 < sequence.frames) rows.add_scores(t + 1, ways);
    rows.out_of(ways, rows.row(t + 1), total, ways, probability);
    T* const x = to + t * sequence.step;
    T blank = x[sequence.blank];
    for (std::int64_t s = 0; s < sequence.labels; ++s) {
      blank -= g * probability[2 * s];
      x[sequence.targets[s]] -= g * probability[2 * s + 1];
    }
    x[sequence.blank] = blank - g * probability[2 * sequence.labels];
  }
}

template <class T>
constexpr CtcKernels<T> kernels_of() {
  return {loss<T>, gradient<T>};
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(CtcKernels, ctc_kernels, kernels_of)

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
