/// The mLSTM layer: its products around the memory.
#include "ferrite/nn/recurrent/mlstm.h"

#include <cmath>

#include "ferrite/nn/detail/value_of.h"
#include "ferrite/nn/recurrent/detail/matrix_memory.h"
#include "ferrite/nn/recurrent/detail/xlstm.h"
#include "ferrite/nn/recurrent/mlstm/blemishes.h"

namespace ferrite::nn {
namespace {

void check(const MLstmOptions& o) {
  const auto least = [](const char* option, std::int64_t value) { detail::check_least("mlstm", option, value); };
  least("embedding_dim", o.embedding_dim), least("num_heads", o.num_heads), least("round_up_to", o.round_up_to);
  least("conv1d_kernel_size", o.conv1d_kernel_size), least("qkv_proj_blocksize", o.qkv_proj_blocksize);
  least("num_blocks", o.num_blocks), least("chunk", o.chunk);
  detail::check_probability("mlstm", "dropout", o.dropout);
  if (!(o.proj_factor > 0 && o.proj_factor * static_cast<double>(o.embedding_dim) < 1e9))
    throw ValueError("mlstm: proj_factor must be positive and give less than 1e9 features, got " +
                     Scalar(o.proj_factor).str());
  const std::int64_t I = o.inner();
  if (I % o.num_heads != 0 || I % o.qkv_proj_blocksize != 0)
    throw ValueError("mlstm: num_heads and qkv_proj_blocksize must divide the " + std::to_string(I) +
                     " inner features, got " + std::to_string(o.num_heads) + " and " +
                     std::to_string(o.qkv_proj_blocksize));
}

std::vector<RowState> states_of(const MLstmOptions& o) {
  check(o);
  const std::int64_t H = o.num_heads, d = o.inner() / H;
  std::vector<RowState> all = {{"c", {H, d, d + 1}}, {"m", {H}}, {"started", {1}}};
  if (o.conv1d_kernel_size > 1) all.insert(all.begin(), {"conv", {o.conv1d_kernel_size - 1, o.inner()}});
  return all;
}

/// From 3 to 6 in even steps.
Tensor forget_bias(const Shape& shape, const RandomKey&, Dtype dtype) { return linspace(3, 6, shape[0], dtype); }

}  // namespace

std::int64_t MLstmOptions::inner() const {
  const double multiple = static_cast<double>(round_up_to);
  return round_up_to *
         static_cast<std::int64_t>(std::ceil(proj_factor * static_cast<double>(embedding_dim) / multiple));
}

MLstm::MLstm(const MLstmOptions& o, const Init& init) : LayerOf(o, name, o.embedding_dim, states_of(o), init) {
  const std::int64_t D = o.embedding_dim, I = o.inner(), H = o.num_heads, P = o.qkv_proj_blocksize;
  const Fill zero = init::constant(0), small = detail::small_fill(D), conv = detail::conv_fill(o.conv1d_kernel_size);
  const auto headwise = [&](const std::string& at, Parameter& weight, Parameter& bias) {
    weight = parameter(at + ".weight", {I / P, P, P}, small, init);
    if (o.bias) bias = parameter(at + ".bias", {I}, zero, init);
  };
  learnable_skip = parameter("learnable_skip", {I}, init::constant(1), init);
  proj_up_weight = parameter("proj_up.weight", {D, 2 * I}, small, init, FileLayout::transposed);
  if (o.bias) proj_up_bias = parameter("proj_up.bias", {2 * I}, zero, init);
  headwise("q_proj", q_proj_weight, q_proj_bias);
  headwise("k_proj", k_proj_weight, k_proj_bias);
  headwise("v_proj", v_proj_weight, v_proj_bias);
  conv1d_weight = parameter("conv1d.conv.weight", {I, 1, o.conv1d_kernel_size}, conv, init);
  conv1d_bias = parameter("conv1d.conv.bias", {I}, conv, init);
  igate_weight = parameter("mlstm_cell.igate.weight", {3 * I, H}, zero, init, FileLayout::transposed);
  igate_bias = parameter("mlstm_cell.igate.bias", {H}, init::normal(0, 0.1), init);
  fgate_weight = parameter("mlstm_cell.fgate.weight", {3 * I, H}, zero, init, FileLayout::transposed);
  fgate_bias = parameter("mlstm_cell.fgate.bias", {H}, Fill(forget_bias, /*random=*/false), init);
  outnorm_weight = parameter("mlstm_cell.outnorm.weight", {I}, zero, init);
  const Fill down = init::normal(0, 2 / (static_cast<double>(o.num_blocks) * std::sqrt(static_cast<double>(D))));
  proj_down_weight = parameter("proj_down.weight", {I, D}, down, init, FileLayout::transposed);
  if (o.bias) proj_down_bias = parameter("proj_down.bias", {D}, zero, init);
  if (o.dropout > 0) {
    dropout_.emplace(o.dropout, init.child("dropout"));
    adopt("dropout", *dropout_);
  }
}

/// What goes into the memory, and past it; [..., I] but for the steps, [..., H, d] and [..., H].
struct MLstm::Inner {
  detail::MatrixSteps steps;
  Tensor skipped, gate;
};

/// From x proj_up [..., 2 I] and the convolution of its first half.
MLstm::Inner MLstm::inner_of(const Tensor& up, const Tensor& convolved) const {
  const std::int64_t I = options().inner(), H = options().num_heads;
  const Tensor u = silu(convolved);
  const Tensor q = detail::headwise(u, q_proj_weight, detail::value_of(q_proj_bias));
  const Tensor k = detail::headwise(u, k_proj_weight, detail::value_of(k_proj_bias));
  const Tensor v = detail::headwise(slice(up, -1, 0, I), v_proj_weight, detail::value_of(v_proj_bias));
  const Tensor qkv = concat({q, k, v}, -1);
  Shape by_head = q.shape();
  by_head[-1] = H;
  by_head.push_back(I / H);
  const Tensor scaled = k * (1 / std::sqrt(static_cast<double>(I / H)));
  return {{reshape(q, by_head), reshape(scaled, by_head), reshape(v, by_head), affine(qkv, igate_weight, igate_bias),
           log_sigmoid(affine(qkv, fgate_weight, fgate_bias))},
          learnable_skip * u,
          silu(slice(up, -1, I))};
}

/// h [..., H, d] -> [..., D].
Tensor MLstm::result_of(const Tensor& h, const Inner& inner) const {
  const Tensor flat = reshape(h, inner.gate.shape());
  const Tensor normed = detail::head_norm(flat, options().num_heads, outnorm_weight);
  const Tensor y = affine((normed + inner.skipped) * inner.gate, proj_down_weight, detail::value_of(proj_down_bias));
  return dropout_ ? (*dropout_)(y) : y;
}

Tensor MLstm::run_sequence(const Tensor& x, const SequenceOptions& o, Tensors& states) const {
  const Tensor resets = detail::last_resets(o);
  if (options().chunk == 1) return run_finite(x, o, resets, states);
  Tensor finite = x;
  const detail::Blemishes blemishes(finite, states, resets);
  const Tensor y = run_finite(finite, o, resets, states);
  for (std::size_t i = states.size() - 3; i < states.size() - 1; ++i) states[i] = blemishes.at_end(states[i]);
  return blemishes.in(y);
}

/// In chunks, x and states are finite.
Tensor MLstm::run_finite(const Tensor& x, const SequenceOptions& o, const Tensor& resets, Tensors& states) const {
  const std::size_t at = states.size() - 3;  // the convolution's memory is first, if there is one
  Tensor past = at > 0 ? states[0] : Tensor();
  const Tensor up = affine(x, proj_up_weight, detail::value_of(proj_up_bias));
  const Tensor convolved =
      detail::causal_conv(slice(up, 2, 0, options().inner()), conv1d_weight, conv1d_bias, o, resets, past);
  const Inner inner = inner_of(up, convolved);
  detail::MatrixMemory memory{states[at], states[at + 1], states[at + 2]};
  const std::int64_t chunk = options().chunk;
  const Tensor h = chunk == 1 ? detail::matrix_memory_by_steps(inner.steps, o, memory)
                              : detail::matrix_memory_by_chunks(inner.steps, o, resets, chunk, memory);
  if (at > 0) states[0] = past;
  states[at] = memory.c, states[at + 1] = memory.m, states[at + 2] = memory.started;
  return result_of(h, inner);
}

Tensor MLstm::run_step(const Tensor& x, Tensors& states) const {
  const std::size_t at = states.size() - 3;
  Tensor past = at > 0 ? states[0] : Tensor();
  const Tensor up = affine(x, proj_up_weight, detail::value_of(proj_up_bias));
  const Tensor convolved =
      detail::causal_conv_step(slice(up, 1, 0, options().inner()), conv1d_weight, conv1d_bias, past);
  const Inner inner = inner_of(up, convolved);
  detail::MatrixMemory memory{states[at], states[at + 1], states[at + 2]};
  const Tensor h = detail::matrix_memory_step(inner.steps, memory);
  if (at > 0) states[0] = past;
  states[at] = memory.c, states[at + 1] = memory.m, states[at + 2] = memory.started;
  return result_of(h, inner);
}

template class LayerOf<MLstm, MLstmOptions, SequenceLayer>;

}  // namespace ferrite::nn
