/// The selective scan and its gradient, rows and groups of channels shared between threads.
#include <algorithm>
#include <optional>
#include <vector>

#include "ferrite/tensor/kernel/room.h"
#include "ferrite/tensor/kernel/selective_scan.h"
#include "ferrite/tensor/ops/detail/along_axis.h"
#include "ferrite/tensor/ops/detail/selective_scan.h"

namespace ferrite::detail {
namespace {

/// Channels of a row that one thread takes forward.
constexpr std::int64_t kForwardChannels = 64;

std::int64_t padded(std::int64_t channels) { return (channels + kScanPadding - 1) / kScanPadding * kScanPadding; }

/// Some channels, and how wide states of theirs are.
struct Channels {
  std::int64_t first, count, width;
};

/// Operands as the kernels read them.
template <class T>
class Scan {
 public:
  Scan(std::string_view where, Inputs in, std::size_t begin)
      : o_(ScanOperands::of(in, begin)),
        x_(at(in, o_.x)),
        delta_(at(in, o_.delta)),
        A_(at(in, o_.A)),
        B_(at(in, o_.B)),
        C_(at(in, o_.C)),
        D_(at(in, o_.D)),
        state_(at(in, o_.state)),
        lengths_(at(in, o_.lengths)),
        resets_(at(in, o_.resets)),
        rows(x_->shape()[0]),
        steps(x_->shape()[1]),
        channels(x_->shape()[2]),
        states(A_->shape()[1]),
        width(padded(channels)),
        by_state_(states * width),
        skip_(width) {
    for (std::int64_t b = 0; lengths_->defined() && b < rows; ++b)
      if (length(b) < 0 || length(b) > steps)
        throw_shape(where, "a length of " + std::to_string(length(b)) + " lies outside 0.." + std::to_string(steps));
    to_states(A_->template data<T>(), channels, by_state_.get(), width);
    if (!D_->defined()) return;
    std::fill_n(skip_.get(), width, T(0));
    std::copy_n(D_->template data<T>(), channels, skip_.get());
  }

  /// From [count, N] to [N, width], zeros behind the channels.
  void to_states(const T* from, std::int64_t count, T* to, std::int64_t to_width) const {
    for (std::int64_t n = 0; n < states; ++n) {
      for (std::int64_t d = 0; d < count; ++d) to[n * to_width + d] = from[d * states + n];
      std::fill(to + n * to_width + count, to + (n + 1) * to_width, T(0));
    }
  }
  /// From [N, width] to those of these channels in [Bt, Dm, N].
  void from_states(const T* from, std::int64_t b, const Channels& c, T* to) const {
    to += (b * channels + c.first) * states;
    for (std::int64_t n = 0; n < states; ++n)
      for (std::int64_t d = 0; d < c.count; ++d) to[d * states + n] = from[n * c.width + d];
  }
  /// The state before the first step of a row.
  void begin(std::int64_t b, const Channels& c, T* to) const { take(*state_, b, c, to); }
  /// Some channels of [Bt, Dm, N]; of a tensor without elements or an undefined one zeros.
  void take(const Tensor& from, std::int64_t b, const Channels& c, T* to) const {
    if (!from.defined() || from.numel() == 0) return clear(c, to);
    to_states(from.template data<T>() + (b * channels + c.first) * states, c.count, to, c.width);
  }
  void clear(const Channels& c, T* to) const { std::fill_n(to, states * c.width, T(0)); }

  std::int64_t length(std::int64_t b) const {
    return lengths_->defined() ? lengths_->template data<std::int64_t>()[b] : steps;
  }
  bool resets_at(std::int64_t b, std::int64_t t) const {
    return resets_->defined() && resets_->template data<bool>()[b * steps + t];
  }
  /// The first step from t on that begins anew, or `end`.
  std::int64_t next_reset(std::int64_t b, std::int64_t t, std::int64_t end) const {
    if (!resets_->defined()) return end;
    while (t < end && !resets_at(b, t)) ++t;
    return t;
  }
  /// Of the first element of a step, or of its numbers by state.
  std::int64_t channel_at(std::int64_t b, std::int64_t t) const { return (b * steps + t) * channels; }
  std::int64_t state_at(std::int64_t b, std::int64_t t) const { return (b * steps + t) * states; }

  /// `n` steps of a row from t on, for some channels whose states lie `state_width` apart.
  ScanSteps<T> part(std::int64_t b, std::int64_t t, std::int64_t n, const Channels& c) const {
    return {.steps = n,
            .channels = c.count,
            .states = states,
            .row = channels,
            .width = width,
            .state_width = c.width,
            .x = x_->template data<T>() + channel_at(b, t) + c.first,
            .delta = delta_->template data<T>() + channel_at(b, t) + c.first,
            .A = by_state_.get() + c.first,
            .B = B_->template data<T>() + state_at(b, t),
            .C = C_->template data<T>() + state_at(b, t),
            .D = D_->defined() ? skip_.get() + c.first : nullptr};
  }
  const ScanOperands& operands() const { return o_; }
  bool has_skip() const { return D_->defined(); }

 private:
  static const Tensor& at(Inputs in, int k) {
    static const Tensor none;
    return k < 0 ? none : in[static_cast<std::size_t>(k)];
  }

  ScanOperands o_;
  RowMajor x_, delta_, A_, B_, C_, D_, state_, lengths_, resets_;

 public:
  const std::int64_t rows, steps, channels, states, width;

 private:
  mutable Room<T> by_state_, skip_;
};

template <class T>
const SelectiveScanKernels<T>& kernels_of() {
  return selective_scan_in_use.of<T>();
}

/// Zeros for some channels of the steps of a row that its length leaves out.
template <class T>
void clear_padding(const Scan<T>& s, std::int64_t b, const Channels& c, T* to) {
  for (std::int64_t t = s.length(b); t < s.steps; ++t) std::fill_n(to + s.channel_at(b, t) + c.first, c.count, T(0));
}

/// f(row, channels) for all rows and groups of at most so many channels.
template <class T, class F>
void each_group(const Scan<T>& s, std::int64_t most, F&& f) {
  const std::int64_t groups = (s.channels + most - 1) / most, usual = std::min(most, s.channels);
  in_shares(s.rows * groups, s.steps * s.states * usual, [&](std::int64_t begin, std::int64_t count) {
    for (std::int64_t k = begin; k < begin + count; ++k) {
      const std::int64_t first = k % groups * most;
      f(k / groups, Channels{first, std::min(most, s.channels - first), padded(usual)});
    }
  });
}

template <class T>
void run(std::string_view where, Inputs in, std::span<Tensor> out) {
  const Scan<T> s(where, in, 0);
  T *const y = Writer::data<T>(out[0]), *const last = Writer::data<T>(out[1]);
  each_group(s, kForwardChannels, [&](std::int64_t b, const Channels& c) {
    Room<T> state(s.states * c.width);
    s.begin(b, c, state.get());
    const std::int64_t end = s.length(b);
    for (std::int64_t t = 0; t < end;) {
      if (s.resets_at(b, t)) s.clear(c, state.get());
      const std::int64_t next = s.next_reset(b, t + 1, end);
      kernels_of<T>().forward(s.part(b, t, next - t, c), state.get(), y + s.channel_at(b, t) + c.first);
      t = next;
    }
    clear_padding(s, b, c, y);
    s.from_states(state.get(), b, c, last);
  });
}

// ---- the gradient --------------------------------------------------------------------------------------

/// Steps that the gradient walks back over at once: where they begin, and where the state before them lies among those
/// that are stored, or -1 where they begin with zeros.
struct Piece {
  std::int64_t first, count, stored;
};

/// The steps of a row in pieces of at most kScanSteps, a new one at every reset; the first is never empty.
template <class T>
std::vector<Piece> pieces_of(const Scan<T>& s, std::int64_t b) {
  std::vector<Piece> list;
  const std::int64_t end = s.length(b);
  std::int64_t stored = 0;
  for (std::int64_t t = 0; t < end;) {
    const std::int64_t next = s.next_reset(b, t + 1, std::min(end, t + kScanSteps));
    list.push_back({t, next - t, s.resets_at(b, t) ? -1 : stored++});
    t = next;
  }
  return list;
}

/// Where gradients go: those of x and delta to the results, the others by row or by group of channels first.
template <class T>
struct Gradients {
  T *dx, *ddelta;
  T *dA, *dD;  ///< [Bt, Dm, N], [Bt, Dm]
  T *dB, *dC;  ///< [groups, Bt, T, N]
  T* dstate;   ///< [Bt, Dm, N], or null
};

template <class T>
void back(const Scan<T>& s, const Tensor& dy, const Tensor& dlast, const Gradients<T>& to, std::int64_t b,
          const Channels& c) {
  const SelectiveScanKernels<T>& kernels = kernels_of<T>();
  const std::vector<Piece> pieces = pieces_of(s, b);
  std::int64_t stored = 0;
  for (const Piece& p : pieces) stored += p.stored >= 0 ? 1 : 0;
  const std::int64_t size = s.states * c.width;
  Room<T> states(stored * size), state_room(size), dstate(size), dA(size), dD(c.width);
  T* const state = state_room.get();
  const auto stored_at = [&](const Piece& p) { return states.get() + p.stored * size; };
  s.begin(b, c, state);
  for (const Piece& p : pieces) {
    p.stored < 0 ? s.clear(c, state) : static_cast<void>(std::copy_n(state, size, stored_at(p)));
    if (&p != &pieces.back()) kernels.forward(s.part(b, p.first, p.count, c), state, nullptr);
  }
  s.take(dlast, b, c, dstate.get());
  s.clear(c, dA.get());
  std::fill_n(dD.get(), c.width, T(0));
  const std::int64_t group = c.first / kScanChannels * s.rows * s.steps * s.states;
  for (auto p = pieces.rbegin(); p != pieces.rend(); ++p) {
    if (p->stored < 0) s.clear(c, state);
    const std::int64_t channel = s.channel_at(b, p->first) + c.first, at = group + s.state_at(b, p->first);
    kernels.backward(s.part(b, p->first, p->count, c), {.dy = dy.template data<T>() + channel,
                                                        .before = p->stored < 0 ? state : stored_at(*p),
                                                        .dstate = dstate.get(),
                                                        .dx = to.dx + channel,
                                                        .ddelta = to.ddelta + channel,
                                                        .dA = dA.get(),
                                                        .dD = dD.get(),
                                                        .dB = to.dB + at,
                                                        .dC = to.dC + at});
    if (p->stored < 0) s.clear(c, dstate.get());
  }
  clear_padding(s, b, c, to.dx);
  clear_padding(s, b, c, to.ddelta);
  const std::int64_t missing = (s.steps - s.length(b)) * s.states, beyond = group + s.state_at(b, s.length(b));
  std::fill_n(to.dB + beyond, missing, T(0));
  std::fill_n(to.dC + beyond, missing, T(0));
  s.from_states(dA.get(), b, c, to.dA);
  if (to.dD) std::copy_n(dD.get(), c.count, to.dD + b * s.channels + c.first);
  if (to.dstate) s.from_states(dstate.get(), b, c, to.dstate);
}

/// The sum of `count` lists of n numbers, the first one first.
template <class T>
void add_up(const T* lists, std::int64_t count, std::int64_t n, T* to) {
  if (count == 0) return static_cast<void>(std::fill_n(to, n, T(0)));
  if (to != lists) std::copy_n(lists, n, to);
  for (std::int64_t k = 1; k < count; ++k)
    for (std::int64_t i = 0; i < n; ++i) to[i] += lists[k * n + i];
}

template <class T>
void run_back(std::string_view where, Inputs in, std::span<Tensor> out) {
  const Scan<T> s(where, in, kScanCotangents);
  const ScanOperands& o = s.operands();
  const auto result = [&](int k) {
    return k < 0 ? nullptr : Writer::data<T>(out[static_cast<std::size_t>(k - o.first)]);
  };
  const std::int64_t groups = (s.channels + kScanChannels - 1) / kScanChannels, by_state = s.rows * s.steps * s.states;
  const bool apart = groups > 1;
  Room<T> dA(s.rows * s.channels * s.states), dD(o.D < 0 ? 0 : s.rows * s.channels);
  Room<T> dB(apart ? groups * by_state : 0), dC(apart ? groups * by_state : 0);
  const RowMajor given(in[0]), dlast(in[1]);
  Tensor zeros;
  if (given->numel() == 0) {
    zeros = Tensor::empty(in[kScanCotangents].spec());
    std::fill_n(Writer::data<T>(zeros), zeros.numel(), T(0));
  }
  const Tensor& dy = zeros.defined() ? zeros : *given;
  const Gradients<T> to{.dx = result(o.x),
                        .ddelta = result(o.delta),
                        .dA = dA.get(),
                        .dD = o.D < 0 ? nullptr : dD.get(),
                        .dB = apart ? dB.get() : result(o.B),
                        .dC = apart ? dC.get() : result(o.C),
                        .dstate = result(o.state)};
  each_group(s, kScanChannels, [&](std::int64_t b, const Channels& c) { back(s, dy, *dlast, to, b, c); });
  add_up(dA.get(), s.rows, s.channels * s.states, result(o.A));
  if (to.dD) add_up(dD.get(), s.rows, s.channels, result(o.D));
  add_up(to.dB, groups, by_state, result(o.B));
  add_up(to.dC, groups, by_state, result(o.C));
}

}  // namespace

void run_scan(std::string_view where, Inputs in, std::span<Tensor> out) {
  out[0].dtype() == Dtype::f32 ? run<float>(where, in, out) : run<double>(where, in, out);
}
void run_scan_grad(std::string_view where, Inputs in, std::span<Tensor> out) {
  out[0].dtype() == Dtype::f32 ? run_back<float>(where, in, out) : run_back<double>(where, in, out);
}

}  // namespace ferrite::detail
