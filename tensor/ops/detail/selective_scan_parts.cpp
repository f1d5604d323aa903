/// The selective scan and its gradient step by step in operations, which define them.
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

}  // namespace ferrite::detail
