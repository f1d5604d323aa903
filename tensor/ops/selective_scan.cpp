/// The selective scan and its gradient, each one operation that keeps no more than its operands.
#include "ferrite/tensor/selective_scan.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "ferrite/tensor/along_axis.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/kernel/selective_scan.h"
#include "ferrite/tensor/ops/detail/selective_scan.h"

namespace ferrite {

// ---- the definition, step by step in operations ------------------------------------------------------------

namespace detail {
namespace {

/// The operands of a scan in operations, with padding replaced by zeros: there the state is multiplied by exp(0 A) = 1.
class Steps {
 public:
  Steps(Inputs in, std::size_t begin) : in_(in), o(ScanOperands::of(in, begin)) {
    const Shape& x = at(o.x).shape();
    steps = x[1];
    if (o.lengths >= 0) {
      valid_ = lt(arange(x[1]), unsqueeze(at(o.lengths), 1));  // [Bt, T]
      valid_by_number_ = unsqueeze(valid_, 2);
    }
    if (o.resets >= 0) resets_ = valid_.defined() ? at(o.resets) && valid_ : at(o.resets);
    for (const int k : {o.x, o.delta, o.B, o.C}) lists_.push_back(unbound(within(at(k))));
    if (o.resets >= 0) resets_by_step_ = unbound(resets_);
  }

  const Tensor& at(int k) const { return in_[static_cast<std::size_t>(k)]; }
  /// Returns v [Bt, T, ...] with zeros beyond the lengths.
  Tensor within(const Tensor& v) const { return valid_.defined() ? where(valid_by_number_, v, 0) : v; }
  /// Splits [Bt, T, ...] into steps.
  static Tensors unbound(const Tensor& v) {
    Tensors list;
    for (std::int64_t t = 0; t < v.shape()[1]; ++t) list.push_back(select(v, 1, t));
    return list;
  }
  const Tensor& x(std::size_t t) const { return lists_[0][t]; }
  const Tensor& delta(std::size_t t) const { return lists_[1][t]; }
  /// Returns B of a step as [Bt, 1, N].
  Tensor B(std::size_t t) const { return unsqueeze(lists_[2][t], 1); }
  Tensor C(std::size_t t) const { return unsqueeze(lists_[3][t], 1); }
  Tensor decay(std::size_t t) const { return exp(unsqueeze(delta(t), 2) * at(o.A)); }
  Tensor begin() const { return o.state >= 0 ? at(o.state) : zeros(scan_state(in_, o).shape, at(o.x).dtype()); }
  /// Returns v, the state that enters a step or its cotangent, with 0 where the step begins with a reset.
  Tensor unless_reset(std::size_t t, const Tensor& v) const {
    return resets_by_step_.empty() ? v : where(unsqueeze(unsqueeze(resets_by_step_[t], 1), 2), 0, v);
  }
  Tensor next(std::size_t t, const Tensor& decay, const Tensor& before) const {
    return decay * before + unsqueeze(delta(t) * x(t), 2) * B(t);
  }
  static Tensor stacked(const Tensors& list) { return stack(std::span<const Tensor>(list.data(), list.size()), 1); }

 private:
  Inputs in_;

 public:
  ScanOperands o;
  std::int64_t steps = 0;

 private:
  Tensor valid_, valid_by_number_, resets_;
  std::vector<Tensors> lists_;
  Tensors resets_by_step_;
};

Tensor added(const Tensor& sum, const Tensor& v) { return sum.defined() ? sum + v : v; }

}  // namespace

Tensors composed_scan(Inputs in) {
  const Steps s(in, 0);
  Tensor h = s.begin();
  Tensors y;
  for (std::size_t t = 0; t < static_cast<std::size_t>(s.steps); ++t) {
    h = s.next(t, s.decay(t), s.unless_reset(t, h));
    const Tensor out = sum(h * s.C(t), {2});
    y.push_back(s.o.D < 0 ? out : s.at(s.o.D) * s.x(t) + out);
  }
  return {s.within(Steps::stacked(y)), h};
}

Tensors composed_scan_grad(Inputs in) {
  const Steps s(in, kScanCotangents);
  const auto steps = static_cast<std::size_t>(s.steps);
  const Tensor& A = s.at(s.o.A);
  Tensors decays, before, after;
  for (std::size_t t = 0; t < steps; ++t) {
    before.push_back(s.unless_reset(t, t == 0 ? s.begin() : after[t - 1]));
    decays.push_back(s.decay(t));
    after.push_back(s.next(t, decays[t], before[t]));
  }
  const Tensors dy = in[0].numel() == 0 && s.at(s.o.x).numel() > 0 ? Tensors() : Steps::unbound(s.within(in[0]));
  Tensor carry = in[1].numel() == 0 ? zeros(before[0].shape(), before[0].dtype()) : in[1];
  Tensor dA, dD;
  Tensors dx(steps), ddelta(steps), dB(steps), dC(steps);
  for (std::size_t t = steps; t-- > 0;) {
    Tensor arriving = carry;
    if (!dy.empty()) {
      const Tensor of_y = unsqueeze(dy[t], 2);
      arriving = arriving + of_y * s.C(t);
      dC[t] = sum(of_y * after[t], {1});
    } else {
      dC[t] = sum(after[t] * 0, {1});
    }
    dB[t] = sum(arriving * unsqueeze(s.delta(t) * s.x(t), 2), {1});
    const Tensor of_u = sum(arriving * s.B(t), {2});
    const Tensor back = arriving * decays[t], of_exponent = back * before[t];
    dx[t] = s.delta(t) * of_u;
    ddelta[t] = s.x(t) * of_u + sum(of_exponent * A, {2});
    dA = added(dA, sum(of_exponent * unsqueeze(s.delta(t), 2), {0}));
    if (s.o.D >= 0 && !dy.empty()) {
      dx[t] = dx[t] + s.at(s.o.D) * dy[t];
      dD = added(dD, sum(s.x(t) * dy[t], {0}));
    }
    carry = s.unless_reset(t, back);
  }
  const auto whole = [&](const Tensors& list) { return s.within(Steps::stacked(list)); };
  Tensors out = {whole(dx), whole(ddelta), dA, whole(dB), whole(dC)};
  if (s.o.D >= 0) out.push_back(dD.defined() ? dD : zeros(s.at(s.o.D).shape(), A.dtype()));
  if (s.o.state >= 0) out.push_back(carry);
  return out;
}

// ---- rows and groups of channels shared between threads ---------------------------------------------------

namespace {

/// Number of channels of a row that one thread takes forward.
constexpr std::int64_t kForwardChannels = 64;

std::int64_t padded(std::int64_t channels) { return (channels + kScanPadding - 1) / kScanPadding * kScanPadding; }

/// Some channels, and the width of their states.
struct Channels {
  std::int64_t first, count, width;
};

/// The operands in the form that the kernels read.
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

  /// Transposes [count, N] to [N, width], with zeros after the channels.
  void to_states(const T* from, std::int64_t count, T* to, std::int64_t to_width) const {
    for (std::int64_t n = 0; n < states; ++n) {
      for (std::int64_t d = 0; d < count; ++d) to[n * to_width + d] = from[d * states + n];
      std::fill(to + n * to_width + count, to + (n + 1) * to_width, T(0));
    }
  }
  /// Transposes [N, width] into the part of these channels in [Bt, Dm, N].
  void from_states(const T* from, std::int64_t b, const Channels& c, T* to) const {
    to += (b * channels + c.first) * states;
    for (std::int64_t n = 0; n < states; ++n)
      for (std::int64_t d = 0; d < c.count; ++d) to[d * states + n] = from[n * c.width + d];
  }
  /// Copies the state before the first step of a row.
  void begin(std::int64_t b, const Channels& c, T* to) const { take(*state_, b, c, to); }
  /// Copies some channels of [Bt, Dm, N]; zeros where the tensor is undefined or has no elements.
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
  /// Returns the first step from t on that begins with a reset, or `end`.
  std::int64_t next_reset(std::int64_t b, std::int64_t t, std::int64_t end) const {
    if (!resets_->defined()) return end;
    while (t < end && !resets_at(b, t)) ++t;
    return t;
  }
  /// Returns the position of the first element of a step; state_at, that of its numbers by state.
  std::int64_t channel_at(std::int64_t b, std::int64_t t) const { return (b * steps + t) * channels; }
  std::int64_t state_at(std::int64_t b, std::int64_t t) const { return (b * steps + t) * states; }

  /// Returns `n` steps of a row from t on, for some channels whose states lie `c.width` apart.
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

/// Writes zeros for some channels of the steps beyond the length of a row.
template <class T>
void clear_padding(const Scan<T>& s, std::int64_t b, const Channels& c, T* to) {
  for (std::int64_t t = s.length(b); t < s.steps; ++t) std::fill_n(to + s.channel_at(b, t) + c.first, c.count, T(0));
}

/// Calls f(row, channels) for all rows and groups of at most `most` channels.
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

/// A run of steps that the gradient walks back over at once: its first step, its length, and the index among the stored
/// states of the state before it, or -1 where it begins with zeros.
struct Piece {
  std::int64_t first, count, stored;
};

/// Returns the steps of a row in pieces of at most kScanSteps, a new one at every reset; the first is never empty.
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

/// The destinations of gradients: those of x and delta are the results, the others are first collected by row or by
/// group of channels.
template <class T>
struct ScanGradients {
  T *dx, *ddelta;
  T *dA, *dD;  ///< [Bt, Dm, N], [Bt, Dm]
  T *dB, *dC;  ///< [groups, Bt, T, N]
  T* dstate;   ///< [Bt, Dm, N], or null
};

template <class T>
void back(const Scan<T>& s, const Tensor& dy, const Tensor& dlast, const ScanGradients<T>& to, std::int64_t b,
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

/// Adds up `count` lists of n numbers, in order.
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
  const ScanGradients<T> to{.dx = result(o.x),
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

// ---- the operations ---------------------------------------------------------------------------------------

namespace {

/// Returns the effects: lengths are checked where their values are known.
Effects effects_with(std::span<const Spec> in) {
  const bool lengths = std::any_of(in.begin(), in.end(), [](const Spec& s) { return s.dtype == Dtype::i64; });
  return {.throws = lengths, .allocates = true};
}

/// Returns `each` multiply-adds for each number of every state at every step.
std::int64_t products(std::span<const Spec> in, std::size_t begin, std::int64_t each) {
  return each * in[begin].shape.numel() * in[begin + 2].shape[-1];
}

struct SelectiveScanGrad {
  static constexpr auto name = "selective_scan_grad", onnx = "", stablehlo = "";
  static constexpr auto summary = "the gradients of all floats of selective_scan, from the cotangents of its results";
  static constexpr Reads reads = reads_inputs;
  static constexpr bool second_order_by_reference = true;

  static Specs infer(Inputs in, const NoAttrs&) {
    const ScanOperands o = ScanOperands::of(in, kScanCotangents);
    check_scan(name, in, o);
    const Spec y = in[kScanCotangents].spec(), state = scan_state(in, o), none{{0}, y.dtype};
    if ((in[0].spec() != y && in[0].spec() != none) || (in[1].spec() != state && in[1].spec() != none))
      throw_shape(name, "the cotangents must be " + y.str() + " and " + state.str() + ", or empty, got " +
                            in[0].spec().str() + " and " + in[1].spec().str());
    Specs out;
    for (int k = o.first; k < o.floats; ++k) out.push_back(in[static_cast<std::size_t>(k)].spec());
    return out;
  }
  static void eval(Inputs in, std::span<Tensor> out, const NoAttrs&) { run_scan_grad(name, in, out); }
  static Effects effects(std::span<const Spec> in, const NoAttrs&) { return effects_with(in); }
  static Tensors reference(Inputs in, const NoAttrs&) { return composed_scan_grad(in); }
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec>, const NoAttrs&) {
    return products(in, kScanCotangents, 8);
  }
};

struct SelectiveScanOp {
  static constexpr auto name = "selective_scan", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "h = exp(delta A) h + (delta x) B step by step, y = D x + the sum of h C over states; y and the last h";
  static constexpr Reads reads = reads_inputs;
  static constexpr bool second_order_by_reference = true;

  static Specs infer(Inputs in, const NoAttrs&) {
    const ScanOperands o = ScanOperands::of(in, 0);
    check_scan(name, in, o);
    return {in[0].spec(), scan_state(in, o)};
  }
  static void eval(Inputs in, std::span<Tensor> out, const NoAttrs&) { run_scan(name, in, out); }
  static Effects effects(std::span<const Spec> in, const NoAttrs&) { return effects_with(in); }
  static Tensors vjp(const Vjp& v, const NoAttrs&) {
    const Tensor nothing = Tensor::empty({{0}, v.in_spec(0).dtype});
    InlineVector<const Tensor*, 16> in;
    for (std::size_t k = 0; k < kScanCotangents; ++k) in.push_back(v.grad(k).defined() ? &v.grad(k) : &nothing);
    for (std::size_t k = 0; k < v.inputs(); ++k) in.push_back(&v.in(k));
    Tensors g = structured<SelectiveScanGrad>.apply({in.data(), in.size()}, {});
    while (g.size() < v.inputs()) g.push_back(Tensor());  // lengths and resets have none
    for (std::size_t k = 0; k < g.size(); ++k)
      if (!v.wants(k)) g[k] = Tensor();
    return g;
  }
  static Tensors reference(Inputs in, const NoAttrs&) { return composed_scan(in); }
  static std::int64_t multiply_adds(std::span<const Spec> in, std::span<const Spec>, const NoAttrs&) {
    return products(in, 0, 3);
  }
};

}  // namespace

Family selective_scan_family() {
  static constexpr const Primitive* list[] = {&structured<SelectiveScanOp>, &structured<SelectiveScanGrad>};
  return list;
}

Spec scan_state(Inputs in, const ScanOperands& o) {
  const Shape &x = in[static_cast<std::size_t>(o.x)].shape(), &A = in[static_cast<std::size_t>(o.A)].shape();
  return {{x[0], A[0], A[1]}, in[static_cast<std::size_t>(o.x)].dtype()};
}

void check_scan(std::string_view where, Inputs in, const ScanOperands& o) {
  if (!o.complete)
    throw_shape(where,
                "expects x, delta, A, B, C and, where there are any, D [Dm], a state [Bt, Dm, N], lengths i64 [Bt], "
                "resets bool [Bt, T]");
  const auto at = [in](int k) -> const Tensor& { return in[static_cast<std::size_t>(k)]; };
  for (int k = o.x; k < o.floats; ++k)
    if (!is_float(at(k).dtype()) || is_storage_only(at(k).dtype()) || at(k).dtype() != at(o.x).dtype())
      throw_dtype(where,
                  "takes floats of one dtype, f32 or f64, got " + at(o.x).spec().str() + " and " + at(k).spec().str());
  const Shape &x = at(o.x).shape(), &A = at(o.A).shape();
  const auto refuse = [&](const std::string& what) {
    throw_shape(where, what + ": x " + x.str() + ", delta " + at(o.delta).shape().str() + ", A " + A.str() + ", B " +
                           at(o.B).shape().str() + ", C " + at(o.C).shape().str());
  };
  if (x.rank() != 3 || A.rank() != 2) refuse("expects x [Bt, T, Dm] and A [Dm, N]");
  const std::int64_t rows = x[0], T = x[1], states = A[1];
  if (T == 0 || x[2] == 0 || states == 0) refuse("there are no steps, channels or states");
  const Shape by_state{rows, T, states};
  if (at(o.delta).shape() != x || A[0] != x[2] || at(o.B).shape() != by_state || at(o.C).shape() != by_state)
    refuse("expects delta [Bt, T, Dm], A [Dm, N], B and C [Bt, T, N]");
  const auto expect = [&](int k, const Spec& wanted, const char* what) {
    if (k >= 0 && at(k).spec() != wanted)
      throw_shape(where, std::string("expects ") + what + " " + wanted.str() + ", got " + at(k).spec().str());
  };
  expect(o.D, {{x[2]}, at(o.x).dtype()}, "D");
  expect(o.state, scan_state(in, o), "a state");
  expect(o.lengths, {{rows}, Dtype::i64}, "lengths");
  expect(o.resets, {{rows, T}, Dtype::boolean}, "resets");
}

}  // namespace detail

SelectiveScan selective_scan_with_state(const Tensor& x, const Tensor& delta, const Tensor& A, const Tensor& B,
                                        const Tensor& C, const Tensor& D, const SelectiveScanOptions& options) {
  InlineVector<const Tensor*, 16> in = {&x, &delta, &A, &B, &C};
  const auto refuse = [](const char* what, const Tensor& t, bool dtype) {
    const std::string text = std::string("selective_scan: expects ") + what + ", got " + t.spec().str();
    if (dtype) throw DtypeError(text);
    throw ShapeError(text);
  };
  // The operation recognises optional operands by rank and dtype: those that fit neither are refused here.
  const auto add = [&](const Tensor& t, std::optional<Dtype> dtype, int rank, const char* what) {
    if (!t.defined()) return;
    const bool right = dtype ? t.dtype() == *dtype : is_float(t.dtype());
    if (!right || t.rank() != rank) refuse(what, t, !right);
    in.push_back(&t);
  };
  add(D, {}, 1, "D [Dm] of x's dtype");
  add(options.state, {}, 3, "a state [Bt, Dm, N] of x's dtype");
  add(options.lengths, Dtype::i64, 1, "lengths i64 [Bt]");
  add(options.resets, Dtype::boolean, 2, "resets bool [Bt, T]");
  Tensors out = detail::structured<detail::SelectiveScanOp>.apply({in.data(), in.size()}, {});
  return {std::move(out[0]), std::move(out[1])};
}

Tensor selective_scan(const Tensor& x, const Tensor& delta, const Tensor& A, const Tensor& B, const Tensor& C,
                      const Tensor& D, const SelectiveScanOptions& options) {
  return selective_scan_with_state(x, delta, A, B, C, D, options).y;
}

}  // namespace ferrite
