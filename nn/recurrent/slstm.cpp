/// The sLSTM layer: its gates, the step of its cell, and the scan over the steps.
#include "ferrite/nn/recurrent/slstm.h"

#include <cmath>

#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/recurrent/detail/xlstm.h"

namespace ferrite::nn {
namespace {

/// The exponent of a state that holds nothing: minus infinity in effect, but finite, so that differences are no NaN.
constexpr double kNew = -1e30;

void check(const SLstmOptions& o) {
  const auto least = [](const char* option, std::int64_t value, std::int64_t n) {
    detail::check_least("slstm", option, value, n);
  };
  least("embedding_dim", o.embedding_dim, 1), least("num_heads", o.num_heads, 1);
  least("conv1d_kernel_size", o.conv1d_kernel_size, 0), least("num_blocks", o.num_blocks, 1);
  detail::check_probability("slstm", "dropout", o.dropout);
  if (o.embedding_dim % o.num_heads != 0)
    throw ValueError("slstm: num_heads must divide embedding_dim, got " + std::to_string(o.num_heads) + " and " +
                     std::to_string(o.embedding_dim));
  if (o.block_index < 0 || o.block_index >= o.num_blocks)
    throw ValueError("slstm: block_index must lie in 0..num_blocks - 1, got " + std::to_string(o.block_index) + " of " +
                     std::to_string(o.num_blocks));
}

std::vector<RowState> states_of(const SLstmOptions& o) {
  check(o);
  const std::int64_t D = o.embedding_dim;
  std::vector<RowState> all = {{"h", {D}}, {"c", {D}}, {"n", {D}}, {"m", {D}}};
  if (o.conv1d_kernel_size > 1) all.insert(all.begin(), {"conv", {o.conv1d_kernel_size - 1, D}});
  return all;
}

/// b [4 D]: of gate f 5 - 12 (j / (d - 1))^p for unit j of each head, else 0.
Fill bias_fill(const SLstmOptions& o) {
  const std::int64_t D = o.embedding_dim, d = D / o.num_heads;
  const double part = o.num_blocks > 1 ? static_cast<double>(o.block_index) / static_cast<double>(o.num_blocks - 1) : 0;
  std::vector<double> values(static_cast<std::size_t>(4 * D), 0.0);
  for (std::int64_t j = 0; j < D; ++j) {
    const double at = d > 1 ? static_cast<double>(j % d) / static_cast<double>(d - 1) : 0;
    values[static_cast<std::size_t>(D + j)] = 5 - 12 * std::pow(at, 0.3 + 1.3 * part);
  }
  return Fill(
      [values](const Shape& shape, const RandomKey&, Dtype dtype) { return cast(Tensor::from(values, shape), dtype); },
      /*random=*/false);
}

}  // namespace

SLstm::SLstm(const SLstmOptions& o, const Init& init) : LayerOf(o, name, o.embedding_dim, states_of(o), init) {
  const std::int64_t D = o.embedding_dim, H = o.num_heads, d = D / H, K = o.conv1d_kernel_size;
  const Fill zero = init::constant(0), small = detail::small_fill(D);
  if (K > 0) {
    conv1d_weight = parameter("conv1d.conv.weight", {D, 1, K}, detail::conv_fill(K), init);
    conv1d_bias = parameter("conv1d.conv.bias", {D}, detail::conv_fill(K), init);
  }
  fgate_weight = parameter("fgate.weight", {H, d, d}, small, init);
  igate_weight = parameter("igate.weight", {H, d, d}, small, init);
  zgate_weight = parameter("zgate.weight", {H, d, d}, small, init);
  ogate_weight = parameter("ogate.weight", {H, d, d}, small, init);
  recurrent_kernel = parameter("slstm_cell._recurrent_kernel_", {H, 4 * d, d}, zero, init);
  bias = parameter("slstm_cell._bias_", {4 * D}, bias_fill(o), init);
  if (o.group_norm_weight) group_norm_weight = parameter("group_norm.weight", {D}, zero, init);
  if (o.dropout > 0) {
    dropout_.emplace(o.dropout, init.child("dropout"));
    adopt("dropout", *dropout_);
  }
}

/// The gates' inputs [..., 4 D], of each head i, f, z, o: as the products with h give them. `convolved` undefined: x.
Tensor SLstm::gates_of(const Tensor& x, const Tensor& convolved) const {
  const std::int64_t D = options().embedding_dim, H = options().num_heads, d = D / H;
  const Tensor u = convolved.defined() ? silu(convolved) : x;
  const Tensors by_gate = {detail::headwise(u, fgate_weight), detail::headwise(u, igate_weight),
                           detail::headwise(x, zgate_weight), detail::headwise(x, ogate_weight)};
  Shape by_head = x.shape(), shape = x.shape();
  by_head[-1] = H;
  by_head.push_back(d);
  shape[-1] = 4 * D;
  Tensors heads;
  for (std::size_t g = 0; g < 4; ++g) {
    const auto from = static_cast<std::int64_t>(g) * D;
    heads.push_back(reshape(by_gate[g] + slice(bias, 0, from, from + D), by_head));
  }
  return reshape(stack(std::span<const Tensor>(heads.data(), heads.size()), -2), shape);
}

/// One step: gates [B, 4 D] without what they see of h, {h, c, n, m} [B, D] -> the states after it.
Tensors SLstm::cell(const Tensor& gates, const Tensors& before) const {
  const std::int64_t B = gates.shape()[0], D = options().embedding_dim, H = options().num_heads, d = D / H;
  const Tensor seen = transpose(matmul(transpose(reshape(before[0], {B, H, d}), 0, 1), transpose(recurrent_kernel)), 0,
                                1);  // [B, H, 4 d]
  const Tensor all = reshape(gates, {B, H, 4, d}) + reshape(seen, {B, H, 4, d});
  const auto gate = [&](std::int64_t g) { return reshape(select(all, 2, g), {B, D}); };
  const Tensor i = gate(0), &n = before[2];
  const Tensor decayed = log_sigmoid(gate(1)) + where(eq(n, 0), kNew, before[3]);
  const Tensor m_after = maximum(i, decayed);
  const Tensor in = exp(i - m_after), kept = exp(decayed - m_after);
  const Tensor c_after = kept * before[1] + in * tanh(gate(2)), n_after = kept * n + in;
  return {sigmoid(gate(3)) * c_after / n_after, c_after, n_after, m_after};
}

Tensor SLstm::result_of(const Tensor& h) const {
  return detail::head_norm(dropout_ ? (*dropout_)(h) : h, options().num_heads, detail::value_of(group_norm_weight));
}

Tensor SLstm::run_sequence(const Tensor& x, const SequenceOptions& o, Tensors& states) const {
  Tensor convolved;
  if (options().conv1d_kernel_size > 0) {
    Tensor past = states.size() > 4 ? states[0] : Tensor();
    convolved = detail::causal_conv(x, conv1d_weight, conv1d_bias, o, detail::last_resets(o), past);
    if (states.size() > 4) states[0] = past;
  }
  Tensors xs = {transpose(gates_of(x, convolved), 0, 1)};
  if (o.resets.defined()) xs.push_back(transpose(o.resets, 0, 1));
  const auto step = [this](const Tensors& carry, const Tensors& in) -> ScanStep {
    Tensors before = carry;
    if (in.size() > 1)
      for (Tensor& t : before) t = where(unsqueeze(in[1], 1), 0, t);
    Tensors after = cell(in[0], before);
    Tensor h = after[0];
    return {std::move(after), {std::move(h)}};
  };
  const ScanResult r = scan(step, Tensors(states.end() - 4, states.end()), xs, {.lengths = o.lengths});
  std::copy(r.carry.begin(), r.carry.end(), states.end() - 4);
  return result_of(transpose(r.y[0], 0, 1));
}

Tensor SLstm::run_step(const Tensor& x, Tensors& states) const {
  Tensor convolved;
  if (options().conv1d_kernel_size > 0) {
    Tensor past = states.size() > 4 ? states[0] : Tensor();
    convolved = detail::causal_conv_step(x, conv1d_weight, conv1d_bias, past);
    if (states.size() > 4) states[0] = past;
  }
  const Tensors after = cell(gates_of(x, convolved), Tensors(states.end() - 4, states.end()));
  std::copy(after.begin(), after.end(), states.end() - 4);
  return result_of(after[0]);
}

template class LayerOf<SLstm, SLstmOptions, SequenceLayer>;

}  // namespace ferrite::nn
