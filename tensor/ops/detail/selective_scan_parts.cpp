/// The selective scan and its gradient step by step in operations, which define them, and in loops over doubles.
#include <cmath>

#include "ferrite/tensor/ops/detail/selective_scan.h"

namespace ferrite::detail {
namespace {

/// The operands of a scan in operations, padding replaced by zeros: there exp(0 A) = 1 times the state is the state.
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
  /// Zeros beyond the lengths, of [Bt, T, ...].
  Tensor within(const Tensor& v) const { return valid_.defined() ? where(valid_by_number_, v, 0) : v; }
  /// [Bt, T, ...] by step.
  static Tensors unbound(const Tensor& v) {
    Tensors list;
    for (std::int64_t t = 0; t < v.shape()[1]; ++t) list.push_back(select(v, 1, t));
    return list;
  }
  const Tensor& x(std::size_t t) const { return lists_[0][t]; }
  const Tensor& delta(std::size_t t) const { return lists_[1][t]; }
  /// [Bt, 1, N].
  Tensor B(std::size_t t) const { return unsqueeze(lists_[2][t], 1); }
  Tensor C(std::size_t t) const { return unsqueeze(lists_[3][t], 1); }
  Tensor decay(std::size_t t) const { return exp(unsqueeze(delta(t), 2) * at(o.A)); }
  Tensor begin() const { return o.state >= 0 ? at(o.state) : zeros(scan_state(in_, o).shape, at(o.x).dtype()); }
  /// What goes on at a step, or back from it: not across a reset.
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

// ---- oracles -------------------------------------------------------------------------------------------

namespace {

/// One channel of one row: the states after each step, computed when it is made.
class DenseScan {
 public:
  DenseScan(std::span<const Dense> in, std::size_t begin, std::int64_t b, std::int64_t d)
      : in_(in), o(ScanOperands::of(in, begin)), b_(b), d_(d) {
    states = at(o.A).shape[1];
    steps = o.lengths < 0 ? at(o.x).shape[1] : static_cast<std::int64_t>(at(o.lengths).at({b}));
    for (std::int64_t t = 0; t < steps; ++t)
      for (std::int64_t n = 0; n < states; ++n)
        h_.push_back(decay(t, n) * before(t, n) + delta(t) * x(t) * at(o.B).at({b, t, n}));
  }
  const Dense& at(int k) const { return in_[static_cast<std::size_t>(k)]; }
  double x(std::int64_t t) const { return at(o.x).at({b_, t, d_}); }
  double delta(std::int64_t t) const { return at(o.delta).at({b_, t, d_}); }
  double A(std::int64_t n) const { return at(o.A).at({d_, n}); }
  double D() const { return o.D < 0 ? 0 : at(o.D).at({d_}); }
  double decay(std::int64_t t, std::int64_t n) const { return std::exp(delta(t) * A(n)); }
  bool resets_at(std::int64_t t) const { return o.resets >= 0 && at(o.resets).at({b_, t}) != 0; }
  /// After step t, before the first one for -1.
  double after(std::int64_t t, std::int64_t n) const {
    if (t < 0) return o.state < 0 ? 0 : at(o.state).at({b_, d_, n});
    return h_[static_cast<std::size_t>(t * states + n)];
  }
  double before(std::int64_t t, std::int64_t n) const { return resets_at(t) ? 0 : after(t - 1, n); }

 private:
  std::span<const Dense> in_;

 public:
  ScanOperands o;
  std::int64_t states, steps;

 private:
  std::int64_t b_, d_;
  std::vector<double> h_;
};

/// f(row, channel) for all of x [Bt, T, Dm].
template <class F>
void each_channel(const Dense& x, F&& f) {
  for (std::int64_t b = 0; b < x.shape[0]; ++b)
    for (std::int64_t d = 0; d < x.shape[2]; ++d) f(b, d);
}

}  // namespace

void scan_oracle(std::span<const Dense> in, std::span<Dense> out) {
  each_channel(in[0], [&](std::int64_t b, std::int64_t d) {
    const DenseScan s(in, 0, b, d);
    for (std::int64_t t = 0; t < s.steps; ++t) {
      double& y = out[0].at({b, t, d}) = s.D() * s.x(t);
      for (std::int64_t n = 0; n < s.states; ++n) y += s.after(t, n) * s.at(s.o.C).at({b, t, n});
    }
    for (std::int64_t n = 0; n < s.states; ++n) out[1].at({b, d, n}) = s.after(s.steps - 1, n);
  });
}

void scan_grad_oracle(std::span<const Dense> in, std::span<Dense> out) {
  each_channel(in[kScanCotangents], [&](std::int64_t b, std::int64_t d) {
    const DenseScan s(in, kScanCotangents, b, d);
    const auto to = [&](int k) -> Dense& { return out[static_cast<std::size_t>(k - s.o.first)]; };
    for (std::int64_t n = 0; n < s.states; ++n) {
      double carry = in[1].values.empty() ? 0 : in[1].at({b, d, n});
      for (std::int64_t t = s.steps - 1; t >= 0; --t) {
        const double dy = in[0].values.empty() ? 0 : in[0].at({b, t, d}), B = s.at(s.o.B).at({b, t, n});
        const double arriving = carry + dy * s.at(s.o.C).at({b, t, n});
        const double back = arriving * s.decay(t, n), of_exponent = back * s.before(t, n);
        to(s.o.x).at({b, t, d}) += arriving * B * s.delta(t) + (n == 0 ? s.D() * dy : 0);
        to(s.o.delta).at({b, t, d}) += arriving * B * s.x(t) + of_exponent * s.A(n);
        to(s.o.A).at({d, n}) += of_exponent * s.delta(t);
        to(s.o.B).at({b, t, n}) += arriving * s.delta(t) * s.x(t);
        to(s.o.C).at({b, t, n}) += dy * s.after(t, n);
        if (s.o.D >= 0 && n == 0) to(s.o.D).at({d}) += s.x(t) * dy;
        carry = s.resets_at(t) ? 0 : back;
      }
      if (s.o.state >= 0) to(s.o.state).at({b, d, n}) = carry;
    }
  });
}

}  // namespace ferrite::detail
