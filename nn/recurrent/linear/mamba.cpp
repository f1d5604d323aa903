/// Mamba: a gated selective state-space layer behind a short convolution.
#include "ferrite/nn/recurrent/mamba.h"

#include <algorithm>
#include <cmath>

#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/selective_scan.h"

namespace ferrite::nn {
namespace {

const MambaOptions& checked_options(const MambaOptions& o) {
  if (o.features < 1 || o.state < 1 || o.expand < 1 || o.kernel_size < 1 || o.dt_rank < 0)
    throw ValueError("mamba: sizes must be positive, got " + std::to_string(o.features) + " features, a state of " +
                     std::to_string(o.state) + ", expand " + std::to_string(o.expand) + ", kernel_size " +
                     std::to_string(o.kernel_size) + " and dt_rank " + std::to_string(o.dt_rank));
  if (!(o.dt_min > 0 && o.dt_min <= o.dt_max && std::isfinite(o.dt_max)))
    throw ValueError("mamba: takes 0 < dt_min <= dt_max, got " + Scalar(o.dt_min).str() + " and " +
                     Scalar(o.dt_max).str());
  return o;
}

std::vector<RowState> states_of(const MambaOptions& o) {
  std::vector<RowState> all;
  if (o.kernel_size > 1) all.push_back({"taps", {o.kernel_size - 1, o.inner()}});
  all.push_back({"h", {o.inner(), o.state}});
  return all;
}

}  // namespace

Mamba::Mamba(const MambaOptions& o, const Init& init)
    : LayerOf(o, name, checked_options(o).features, states_of(o), init),
      in_proj_(o.features, 2 * o.inner(), init.child("in_proj"), o.bias),
      x_proj_(o.inner(), o.rank() + 2 * o.state, init.child("x_proj"), false),
      out_proj_(o.inner(), o.features, init.child("out_proj"), o.bias) {
  const std::int64_t E = o.inner(), K = o.kernel_size, R = o.rank(), N = o.state;
  adopt("in_proj", in_proj_);
  const Fill of_taps = init::uniform(-1 / std::sqrt(static_cast<double>(K)), 1 / std::sqrt(static_cast<double>(K)));
  conv_weight = parameter("conv1d.weight", {E, 1, K}, of_taps, init);
  if (o.conv_bias) conv_bias = parameter("conv1d.bias", {E}, of_taps, init);
  adopt("x_proj", x_proj_);
  const double bound = 1 / std::sqrt(static_cast<double>(R));
  dt_weight = parameter("dt_proj.weight", {R, E}, init::uniform(-bound, bound), init, FileLayout::transposed);
  const double low = std::log(o.dt_min), high = std::log(o.dt_max);
  const Fill steps([=](const Shape& s, const RandomKey& key, Dtype t) {
    const Tensor dt = maximum(exp(uniform(s, key, low, high, Dtype::f64)), full({}, 1e-4, Dtype::f64));
    return cast(dt + log(-expm1(-dt)), t);  // softplus of it is dt
  });
  dt_bias = parameter("dt_proj.bias", {E}, steps, init);
  const Fill ascending([](const Shape& s, const RandomKey&,
                          Dtype t) { return cast(contiguous(expand(log(arange(1, s[1] + 1, 1, Dtype::f64)), s)), t); },
                       false);
  A_log = parameter("A_log", {E, N}, ascending, init);
  D = parameter("D", {E}, init::constant(1), init);
  adopt("out_proj", out_proj_);
}

Tensor Mamba::convolved(const Tensor& u, const SequenceOptions& o, Tensor& taps) const {
  const std::int64_t B = u.shape()[0], T = u.shape()[1], E = u.shape()[2], past = options().kernel_size - 1;
  const Tensor all = past > 0 ? concat({taps, u}, 1) : u;
  // How many resets there were up to each step of `all`.
  Tensor resets;
  if (o.resets.defined()) resets = concat({zeros({B, past}, Dtype::i64), cumsum(o.resets, 1)}, 1);
  const auto hidden = [&](const Tensor& now, const Tensor& then) { return unsqueeze(gt(now, then), 2); };
  const Tensor w = reshape(conv_weight, {E, past + 1});
  Tensor y;
  for (std::int64_t k = 0; k <= past; ++k) {
    Tensor tap = slice(all, 1, k, k + T);
    if (resets.defined() && k < past)
      tap = where(hidden(slice(resets, 1, past, past + T), slice(resets, 1, k, k + T)), 0, tap);
    const Tensor term = tap * select(w, 1, k);
    y = y.defined() ? y + term : term;
  }
  if (past > 0) {
    const Tensor ends = o.lengths.defined() ? o.lengths : full({B}, T, Dtype::i64);
    const Tensor at = unsqueeze(ends, 1) + arange(past);  // steps of `all`
    Tensor next =
        o.lengths.defined() ? gather(all, 1, expand(unsqueeze(at, 2), {B, past, E})) : slice(all, 1, T, T + past);
    if (resets.defined())
      next = where(hidden(gather(resets, 1, unsqueeze(ends + (past - 1), 1)), gather(resets, 1, at)), 0, next);
    taps = next;
  }
  return conv_bias.defined() ? y + conv_bias : y;
}

Tensor Mamba::run_sequence(const Tensor& x, const SequenceOptions& o, Tensors& states) const {
  const MambaOptions& sizes = options();
  const Tensors parts = chunk(in_proj_(x), 2, -1);
  const Tensor u = silu(convolved(parts[0], o, states[0]));
  const std::int64_t widths[] = {sizes.rank(), sizes.state, sizes.state};
  const Tensors of_u = split(x_proj_(u), widths, -1);
  const Tensor delta = softplus(affine(of_u[0], dt_weight, dt_bias));
  Tensor& h = states[states.size() - 1];
  SelectiveScan r = selective_scan_with_state(u, delta, -exp(A_log), of_u[1], of_u[2], D,
                                              {.state = h, .lengths = o.lengths, .resets = o.resets});
  h = std::move(r.state);
  return out_proj_(r.y * silu(parts[1]));
}

template class LayerOf<Mamba, MambaOptions, SequenceLayer>;

}  // namespace ferrite::nn
