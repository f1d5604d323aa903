#include "ferrite/nn/gru.h"

#include <cmath>

namespace ferrite::nn {
namespace {

std::string text(std::int64_t n) { return std::to_string(n); }

void check_input(const Tensor& x, std::int64_t features, Dtype dtype) {
  if (x.rank() != 3 || x.shape()[2] != features)
    throw ShapeError("gru: expects input [B, T, " + text(features) + "], got " + x.shape().str());
  if (x.shape()[1] == 0) throw ShapeError("gru: the sequence has no steps: " + x.shape().str());
  if (x.dtype() != dtype)
    throw DtypeError("gru: the weights are " + std::string(name_of(dtype)) + ", got input " + x.spec().str() +
                     "; cast one of them");
}

void check_state(const Tensor& h, std::int64_t B, std::int64_t H) {
  if (h.shape() != Shape{B, H})
    throw ShapeError("gru: expects a state " + Shape{B, H}.str() + ", got " + h.shape().str());
}

/// Lengths as a column i64 [B, 1]. Values are checked unless they are being traced.
Tensor check_lengths(const Tensor& lengths, std::int64_t B, std::int64_t T) {
  if (lengths.dtype() != Dtype::i64 || lengths.shape() != Shape{B})
    throw ShapeError("gru: expects lengths i64[" + text(B) + "], got " + lengths.spec().str());
  if (!lengths.is_abstract())
    for (const std::int64_t n : lengths.to_vector<std::int64_t>())
      if (n < 1 || n > T) throw ShapeError("gru: a length of " + text(n) + " lies outside 1.." + text(T));
  return unsqueeze(lengths, 1);
}

}  // namespace

Gru::Gru(std::int64_t input_size, std::int64_t hidden_size, const Init& init)
    : input_size_(input_size), hidden_size_(hidden_size) {
  if (input_size < 1 || hidden_size < 1)
    throw ValueError("gru: sizes must be positive, got " + text(input_size) + " and " + text(hidden_size));
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  const Fill fill = init::uniform(-bound, bound);
  const std::int64_t gates = 3 * hidden_size;
  weight_ih = parameter("weight_ih_l0", {input_size, gates}, fill, init, FileLayout::transposed);
  weight_hh = parameter("weight_hh_l0", {hidden_size, gates}, fill, init, FileLayout::transposed);
  bias_ih = parameter("bias_ih_l0", {gates}, fill, init);
  bias_hh = parameter("bias_hh_l0", {gates}, fill, init);
}

Tensor Gru::step(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh) {
  const std::int64_t H = h.shape()[1];
  const Tensor g = matmul(h, w_hh) + b_hh;
  const Tensors from_x = split(i, H, 1);  // r, z, n
  const Tensors from_h = split(g, H, 1);
  const Tensor r = sigmoid(from_x[0] + from_h[0]);
  const Tensor z = sigmoid(from_x[1] + from_h[1]);
  const Tensor n = tanh(from_x[2] + r * from_h[2]);
  return n + z * (h - n);  // = (1 - z) * n + z * h
}

RecurrentResult Gru::run(const Tensor& x, const Context& context) const {
  check_input(x, input_size_, weight_ih.dtype());
  const std::int64_t B = x.shape()[0];
  const std::int64_t T = x.shape()[1];
  const Tensor w_hh = weight_hh;
  const Tensor b_hh = bias_hh;
  Tensor h = context.state ? context.state : zeros({B, hidden_size_}, x.dtype());
  check_state(h, B, hidden_size_);

  const bool ragged = context.lengths.defined();
  const Tensor lengths = ragged ? check_lengths(context.lengths, B, T) : Tensor();
  Tensor steps = transpose(x, 0, 1);  // [T, B, D]
  Tensor valid;                       // [T, B, 1]
  if (ragged) {
    valid = less(reshape(arange(T), {T, 1, 1}), unsqueeze(lengths, 0));
    steps = where(valid, steps, 0);  // what stands in the padding must not reach the product: 0 x NaN is NaN
  }
  // The input product does not depend on h: one product for all steps, the rows of one step adjacent.
  const Tensors inputs = unbind(matmul(steps, weight_ih) + bias_ih, 0);
  const Tensors valid_at = ragged ? unbind(valid, 0) : Tensors();

  Tensors outputs;
  outputs.reserve(static_cast<std::size_t>(T));
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    const Tensor next = step(inputs[t], h, w_hh, b_hh);
    outputs.push_back(ragged ? where(valid_at[t], next, 0) : next);
    h = ragged ? where(valid_at[t], next, h) : next;
  }
  return {stack(std::span<const Tensor>(outputs.data(), outputs.size()), 1), h};
}

std::unique_ptr<Layer> Gru::clone() const {
  auto copy = std::make_unique<Gru>(input_size_, hidden_size_, Init{0, {}, weight_ih.dtype()});
  copy_values(*this, *copy);
  copy->train(training());
  return copy;
}

}  // namespace ferrite::nn
