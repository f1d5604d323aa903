/// The selective scan and its gradient as scans over the steps.
#include "ferrite/compile/scan.h"
#include "ferrite/exchange/compositions/compositions.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::exchange::detail {
namespace {

/// The operands of a selective scan, told by rank and dtype: D is a vector, the state has rank 3, lengths are i64,
/// resets bool.
struct Operands {
  Tensor x, delta, A, B, C, D{}, state{}, begin{}, resets{}, lengths{};

  explicit Operands(std::span<const Tensor> in) : x(in[0]), delta(in[1]), A(in[2]), B(in[3]), C(in[4]) {
    for (const Tensor& t : in.subspan(5)) {
      if (t.dtype() == Dtype::i64)
        lengths = t;
      else if (t.dtype() == Dtype::boolean)
        resets = unsqueeze(t, 2);
      else
        (t.rank() == 1 ? D : state) = t;
    }
    begin = state.defined() ? state : zeros({x.shape()[0], A.shape()[0], A.shape()[1]}, x.dtype());
  }
  /// x, delta, B, C and, where there are any, resets by steps.
  Tensors by_steps() const {
    Tensors all;
    for (const Tensor& t : {x, delta, B, C}) all.push_back(transpose(t, 0, 1));
    if (resets.defined()) all.push_back(unsqueeze(transpose(resets, 0, 1), 3));
    return all;
  }
};

/// One step of them.
struct Step {
  Tensor x, delta, B, C;  ///< [Bt, Dm, 1], [Bt, Dm, 1], [Bt, 1, N], [Bt, 1, N]
  Tensor decay;           ///< [Bt, Dm, N]
  Tensor reset{};         ///< [Bt, 1, 1]

  Step(const Operands& o, const Tensors& at)
      : x(unsqueeze(at[0], 2)),
        delta(unsqueeze(at[1], 2)),
        B(unsqueeze(at[2], 1)),
        C(unsqueeze(at[3], 1)),
        decay(exp(delta * o.A)) {
    if (o.resets.defined()) reset = at[4];
  }
  Tensor unless_reset(const Tensor& v) const { return reset.defined() ? where(reset, 0, v) : v; }
  Tensor next(const Tensor& before) const { return decay * before + (delta * x) * B; }
};

Tensors selective_scan(const Composed&, const Tensors& in) {
  const Operands o({in.data(), in.size()});
  const auto step = [&](const Tensors& carry, const Tensors& at) -> ScanStep {
    const Step s(o, at);
    const Tensor h = s.next(s.unless_reset(carry[0]));
    const Tensor y = sum(h * s.C, {2});
    return {{h}, {o.D.defined() ? o.D * at[0] + y : y}};
  };
  const ScanResult r = scan(step, {o.begin}, o.by_steps(), {.lengths = o.lengths, .by_steps = true});
  return {transpose(r.y[0], 0, 1), r.carry[0]};
}

/// Of what arrives at y and at the last state, each of shape [0] where nothing does, then the operands.
Tensors selective_scan_grad(const Composed&, const Tensors& in) {
  const Operands o({in.data() + 2, in.size() - 2});
  Tensors xs = o.by_steps();
  const std::size_t resets = xs.size() - 4;
  const auto forward = [&](const Tensors& carry, const Tensors& at) -> ScanStep {
    const Step s(o, at);
    const Tensor before = s.unless_reset(carry[0]);
    return {{s.next(before)}, {before}};
  };
  xs.push_back(scan(forward, {o.begin}, xs, {.lengths = o.lengths, .by_steps = true}).y[0]);
  const bool arrives = in[0].rank() == 3;
  if (arrives) xs.push_back(transpose(in[0], 0, 1));
  const Tensor of_d = arrives && o.D.defined() ? zeros({o.x.shape()[0], o.x.shape()[2]}, o.x.dtype()) : Tensor();
  const auto backward = [&](const Tensors& carry, const Tensors& at) -> ScanStep {
    const Step s(o, at);
    const Tensor& before = at[4 + resets];
    const Tensor after = s.next(before);
    Tensor arriving = carry[0];
    if (arrives) arriving = arriving + unsqueeze(at[5 + resets], 2) * s.C;
    const Tensor of_u = sum(arriving * s.B, {2}), back = arriving * s.decay, of_exponent = back * before;
    Tensor dx = at[1] * of_u;
    if (of_d.defined()) dx = dx + o.D * at[5 + resets];
    const Tensor dC = arrives ? sum(unsqueeze(at[5 + resets], 2) * after, {1}) : zeros_like(at[3]);
    Tensors next = {s.unless_reset(back), carry[1] + of_exponent * s.delta};
    if (of_d.defined()) next.push_back(carry[2] + at[0] * at[5 + resets]);
    return {next, {dx, at[0] * of_u + sum(of_exponent * o.A, {2}), sum(arriving * (s.delta * s.x), {1}), dC}};
  };
  const Tensor nothing = zeros_like(o.begin);
  Tensors begin = {in[1].rank() == 3 ? in[1] : nothing, nothing};
  if (of_d.defined()) begin.push_back(of_d);
  const ScanResult r = scan(backward, begin, xs, {.reverse = true, .lengths = o.lengths, .by_steps = true});
  const auto whole = [&](std::size_t k) { return transpose(r.y[k], 0, 1); };
  Tensors out = {whole(0), whole(1), sum(r.carry[1], {0}), whole(2), whole(3)};
  if (o.D.defined()) out.push_back(of_d.defined() ? sum(r.carry[2], {0}) : zeros_like(o.D));
  if (o.state.defined()) out.push_back(r.carry[0]);
  return out;
}

}  // namespace

Compositions selective_scan_compositions() {
  static constexpr NamedComposition list[] = {{"selective_scan", selective_scan},
                                              {"selective_scan_grad", selective_scan_grad}};
  return list;
}

}  // namespace ferrite::exchange::detail
