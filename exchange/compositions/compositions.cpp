/// Compositions of operations that other formats lack: activations, linear recurrences and selective scans.
#include <algorithm>

#include "ferrite/compile/scan.h"
#include "ferrite/exchange/compositions/compositions.h"
#include "ferrite/tensor/linear_scan.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::exchange::detail {
std::int64_t space_behind(std::int64_t extent, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                          std::int64_t before, std::int64_t size) {
  const std::int64_t exact = (size - 1) * stride + (kernel - 1) * dilation + 1 - before - extent;
  const std::int64_t least = std::max<std::int64_t>(exact, 0), most = exact + stride - 1;
  return before >= least && before <= most ? before : least;
}

Composition find_composition(const Primitive& op) {
  for (const Compositions family : {activation_compositions(), window_compositions(), pooling_compositions(),
                                    scan_compositions(), linear_scan_compositions(), selective_scan_compositions()})
    for (const NamedComposition& c : family)
      if (c.operation == op.name) return c.compose;
  return nullptr;
}

// ---- activations ---------------------------------------------------------------------------------------------------

namespace {

/// Composes silu without the branch that keeps digits far below 0.
Tensors silu(const Composed&, const Tensors& in) { return {in[0] * sigmoid(in[0])}; }

}  // namespace

Compositions activation_compositions() {
  static constexpr NamedComposition list[] = {{"silu", silu}};
  return list;
}

// ---- linear recurrences, as a scan of one multiply-add -------------------------------------------------------------

namespace {

using ferrite::detail::LinearScanAttrs;

Tensor times(const Tensor& x, const Tensor& y, bool complex) {
  if (!complex) return x * y;
  const Tensor a = select(x, -1, 0), b = select(x, -1, 1), c = select(y, -1, 0), d = select(y, -1, 1);
  return stack({a * c - b * d, a * d + b * c}, -1);
}

/// Writes a linear recurrence as a scan. `in` are a, b and, if present, h0, lengths and resets, distinguished by dtype.
Tensors as_scan(const Tensors& in, bool reverse) {
  const Tensor &a = in[0], &b = in[1];
  const bool same = a.shape() != b.shape(), complex = b.rank() == 4;
  const std::int64_t T = b.shape()[1];
  Tensor h0, lengths, resets;
  for (std::size_t k = 2; k < in.size(); ++k)
    (in[k].dtype() == Dtype::i64 ? lengths : in[k].dtype() == Dtype::boolean ? resets : h0) = in[k];
  Shape state = b.shape();
  state.erase(1);
  if (!h0.defined()) h0 = zeros(state, b.dtype());
  Tensors xs{transpose(b, 0, 1)};
  if (!same) xs.push_back(transpose(a, 0, 1));
  if (resets.defined()) {
    Tensor now = transpose(resets, 0, 1);
    if (reverse && T > 0) now = concat({slice(now, 0, 1, T), full({1, state[0]}, false, Dtype::boolean)}, 0);
    if (reverse && lengths.defined())  // steps after a row's end do not reset it
      now = now && unsqueeze(arange(T), 1) < unsqueeze(lengths - 1, 0);
    for (int k = 2; k < b.rank(); ++k) now = unsqueeze(now, -1);
    xs.push_back(now);
  }
  const auto step = [&](const Tensors& carry, const Tensors& x) -> ScanStep {
    const Tensor h = resets.defined() ? where(x[x.size() - 1], 0, carry[0]) : carry[0];
    const Tensor next = times(same ? a : x[1], h, complex) + x[0];
    return {{next}, {next}};
  };
  const ScanResult r = scan(step, {h0}, xs, {.reverse = reverse, .lengths = lengths, .by_steps = true});
  return {transpose(r.y[0], 0, 1)};
}

Tensors linear_scan(const Composed& c, const Tensors& in) {
  const bool reverse = c.attrs.as<LinearScanAttrs>().reverse;
  return as_scan(in, reverse);
}

}  // namespace

Compositions linear_scan_compositions() {
  static constexpr NamedComposition list[] = {{"linear_scan", linear_scan}};
  return list;
}

// ---- the selective scan and its gradient, as scans over the steps --------------------------------------------------

namespace {

/// The operands of a selective scan, distinguished by rank and dtype: D is a vector, the state has rank 3, lengths are
/// i64, resets bool.
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
  /// Returns x, delta, B, C and, if present, resets, each with the steps on its first axis.
  Tensors by_steps() const {
    Tensors all;
    for (const Tensor& t : {x, delta, B, C}) all.push_back(transpose(t, 0, 1));
    if (resets.defined()) all.push_back(unsqueeze(transpose(resets, 0, 1), 3));
    return all;
  }
};

/// The operands of one step.
struct Step {
  Tensor x, delta, B, C;  ///< [Bt, Dm, 1], [Bt, Dm, 1], [Bt, 1, N], [Bt, 1, N]
  Tensor decay;           ///< decay of the state [Bt, Dm, N]
  Tensor reset{};         ///< reset mask [Bt, 1, 1], may be undefined

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

/// Composes the gradient of a selective scan. `in` are the cotangents of y and of the last state, of shape [0] where
/// there is none, then the operands.
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
