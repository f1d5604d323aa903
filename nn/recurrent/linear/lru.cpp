/// Linear recurrent units.
#include "ferrite/nn/recurrent/lru.h"

#include <algorithm>
#include <cmath>

#include "ferrite/nn/recurrent/detail/linear_recurrence.h"
#include "ferrite/nn/recurrent/detail/scan_steps.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/math.h"

namespace ferrite::nn {
namespace {

std::string text(double x) { return Scalar(x).str(); }

/// Moduli of points that lie uniformly in the ring between two radii.
Tensor moduli(const Shape& shape, const RandomKey& key, double low, double high) {
  return sqrt(uniform(shape, key, low * low, high * high, Dtype::f64));
}

std::int64_t checked_size(const char* name, std::int64_t n) {
  if (n < 1) throw ValueError(std::string(name) + ": sizes must be positive, got " + std::to_string(n));
  return n;
}

/// From the parameters in the order in which the layer registers them.
detail::Diagonal diagonal_of(const std::vector<Parameter>& p) {
  const Tensor nu = p[0], theta = p[1], gamma = unsqueeze(exp(p[2]), 1), C_re = p[5], C_im = p[6];
  const std::int64_t N = C_re.shape()[1], F = C_re.shape()[0];
  const Tensor r = exp(-exp(nu)), phase = exp(theta);
  return {.in = reshape(permute(stack({p[3] * gamma, p[4] * gamma}, 2), {1, 0, 2}), {F, 2 * N}),
          .decay = stack({r * cos(phase), r * sin(phase)}, -1),
          .out = reshape(permute(stack({C_re, -C_im}, 2), {1, 2, 0}), {2 * N, F}),
          .skip = p[7]};
}

}  // namespace

Lru::Lru(std::int64_t input_size, std::int64_t hidden_size, const LruOptions& o, const Init& init)
    : LayerOf(o, name, checked_size(name, input_size), hidden_size,
              std::vector<RowState>{{"h", {checked_size(name, hidden_size), 2}}}, init) {
  if (!(o.r_min >= 0 && o.r_min < o.r_max && o.r_max <= 1 && o.max_phase > 0))
    throw ValueError("lru: takes 0 <= r_min < r_max <= 1 and a max_phase above 0, got " + text(o.r_min) + ", " +
                     text(o.r_max) + " and " + text(o.max_phase));
  const std::int64_t N = hidden_size, F = input_size;
  // Below 1, where gamma would be 0, and above 0, where nu_log would be infinite.
  const double low = std::max(o.r_min, 1e-4), high = std::min(o.r_max, 1 - 1e-6);
  const Fill nu(
      [=](const Shape& s, const RandomKey& key, Dtype t) { return cast(log(-log(moduli(s, key, low, high))), t); });
  const double phase = o.max_phase;
  const Fill theta([=](const Shape& s, const RandomKey& key, Dtype t) {
    return cast(log(uniform(s, key, 0, phase, Dtype::f64) + 1e-12), t);
  });
  nu_log = parameter("nu_log", {N}, nu, init);
  theta_log = parameter("theta_log", {N}, theta, init);
  const Variable::Draw gamma = [nu_of = nu_log](std::string_view, std::uint64_t) {
    const Tensor decay = exp(cast(nu_of.peek(), Dtype::f64));  // -log |lambda|
    return cast(0.5 * log(-expm1(-2 * decay)), nu_of.dtype());
  };
  gamma_log = parameter("gamma_log", Spec{{N}, init.dtype}, gamma, init);
  const Fill of_b = init::normal(0, std::sqrt(0.5 / static_cast<double>(F)));
  const Fill of_c = init::normal(0, std::sqrt(1 / static_cast<double>(N)));
  B_re = parameter("B_re", {N, F}, of_b, init);
  B_im = parameter("B_im", {N, F}, of_b, init);
  C_re = parameter("C_re", {F, N}, of_c, init);
  C_im = parameter("C_im", {F, N}, of_c, init);
  D = parameter("D", {F}, init::normal(0, 1), init);
}

Tensor Lru::run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const {
  return detail::run_diagonal(diagonal_of(in_order()), x, options, states[0]);
}

std::size_t Lru::add_steps(StepGraph& graph, std::size_t x) const {
  const std::vector<Parameter> all = in_order();
  return graph.add(*this, detail::diagonal_step([all] { return diagonal_of(all); }, all, graph.rows(x)), {x});
}

std::vector<Parameter> Lru::in_order() const { return {nu_log, theta_log, gamma_log, B_re, B_im, C_re, C_im, D}; }

RgLru::RgLru(const RgLruOptions& o, const Init& init)
    : LayerOf(o, name, checked_size(name, o.features), std::vector<RowState>{{"h", {o.features}}}, init) {
  const std::int64_t D = o.features, K = checked_size(name, o.heads);
  if (D % K != 0)
    throw ValueError("rg_lru: heads must divide the features, got " + std::to_string(K) + " heads of " +
                     std::to_string(D));
  // softplus(a_param) = -log(a) / 8
  const Fill decays([](const Shape& s, const RandomKey& key, Dtype t) {
    return cast(log(expm1(log(moduli(s, key, 0.9, 0.999)) / -8)), t);
  });
  a_param = parameter("a_param", {D}, decays, init);
  const Fill gate = init::normal(0, std::sqrt(static_cast<double>(K) / static_cast<double>(D)));
  const Shape block{K, D / K, D / K}, rest{K, D / K};
  input_gate_w = parameter("input_gate.w", block, gate, init);
  input_gate_b = parameter("input_gate.b", rest, init::constant(0), init);
  a_gate_w = parameter("a_gate.w", block, gate, init);
  a_gate_b = parameter("a_gate.b", rest, init::constant(0), init);
}

Tensor RgLru::run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const {
  const auto gate = [&](const Parameter& w, const Parameter& b) {
    return sigmoid(detail::by_blocks(x, w) + reshape(b, {input_size()}));
  };
  const Tensor log_a = -8 * gate(a_gate_w, a_gate_b) * softplus(a_param);
  const Tensor b = sqrt(-expm1(2 * log_a)) * (gate(input_gate_w, input_gate_b) * x);
  return detail::run_linear(exp(log_a), b, options, states[0]);
}

template class LayerOf<Lru, LruOptions, SizedSequenceLayer>;
template class LayerOf<RgLru, RgLruOptions, SequenceLayer>;

}  // namespace ferrite::nn
