#pragma once
/// Recurrent cells as a user writes them: parameters, and one step in operations.
#include <ferrite/ferrite.h>

#include <cmath>

namespace cells {

using ferrite::Parameter;
using ferrite::RecurrentState;
using ferrite::Shape;
using ferrite::Tensor;
using ferrite::Tensors;
namespace nn = ferrite::nn;

/// Draws from U(-1/sqrt(H), 1/sqrt(H)), as PyTorch does.
inline nn::Fill spread(std::int64_t H) {
  const double bound = 1 / std::sqrt(static_cast<double>(H));
  return nn::init::uniform(-bound, bound);
}

/// A GRU written by hand: the library does not know that it is one.
struct PlainGru final : nn::CustomCell {
  std::int64_t H;
  Parameter w_x, w_h, b_x, b_h;
  PlainGru(std::int64_t D, std::int64_t units, const nn::Init& init) : H(units) {
    w_x = parameter("w_x", {D, 3 * H}, spread(H), init);
    w_h = parameter("w_h", {H, 3 * H}, spread(H), init);
    b_x = parameter("b_x", {3 * H}, spread(H), init);
    b_h = parameter("b_h", {3 * H}, spread(H), init);
  }
  std::string kind() const override { return "plain_gru"; }
  RecurrentState step(const Tensor& x, const RecurrentState& s) const override {
    const Tensors i = split(matmul(x, w_x) + b_x, H, 1), g = split(matmul(s.h, w_h) + b_h, H, 1);
    const Tensor r = sigmoid(i[0] + g[0]), z = sigmoid(i[1] + g[1]);
    const Tensor n = tanh(i[2] + r * g[2]);
    return {n + z * (s.h - n)};
  }
};

/// Returns initial biases of an LSTM's gates (i, f, g, o): 1 for f, so that the memory reaches back before anything is
/// learnt (Jozefowicz et al. 2015), and 0 for the others.
inline Tensor remembers(const Shape& shape, const ferrite::RandomKey&, ferrite::Dtype dtype) {
  const std::int64_t H = shape[0] / 4;
  return ferrite::concat({ferrite::zeros({H}, dtype), ferrite::full({H}, 1, dtype), ferrite::zeros({2 * H}, dtype)}, 0);
}

/// An LSTM whose gates see the memory (Gers and Schmidhuber 2000).
struct PeepholeLstm final : nn::CustomCell {
  std::int64_t H;
  Parameter w_x, w_h, b, p_i, p_f, p_o;
  PeepholeLstm(std::int64_t D, std::int64_t units, const nn::Init& init) : H(units) {
    w_x = parameter("w_x", {D, 4 * H}, spread(H), init);
    w_h = parameter("w_h", {H, 4 * H}, spread(H), init);
    b = parameter("b", {4 * H}, remembers, init);
    p_i = parameter("p_i", {H}, spread(H), init);
    p_f = parameter("p_f", {H}, spread(H), init);
    p_o = parameter("p_o", {H}, spread(H), init);
  }
  std::string kind() const override { return "peephole_lstm"; }
  bool has_memory() const override { return true; }
  RecurrentState step(const Tensor& x, const RecurrentState& s) const override {
    const Tensors g = split(matmul(x, w_x) + b + matmul(s.h, w_h), H, 1);
    const Tensor i = sigmoid(g[0] + p_i * s.c), f = sigmoid(g[1] + p_f * s.c);
    const Tensor c = f * s.c + i * tanh(g[2]);
    return {sigmoid(g[3] + p_o * c) * tanh(c), c};
  }
};

/// The minimal gated unit (Zhou et al. 2016, arXiv 1603.09420): one gate forgets and resets.
struct MinimalGated final : nn::CustomCell {
  Parameter w_f, u_f, b_f, w_n, u_n, b_n;
  MinimalGated(std::int64_t D, std::int64_t H, const nn::Init& init) {
    w_f = parameter("w_f", {D, H}, spread(H), init);
    u_f = parameter("u_f", {H, H}, spread(H), init);
    b_f = parameter("b_f", {H}, spread(H), init);
    w_n = parameter("w_n", {D, H}, spread(H), init);
    u_n = parameter("u_n", {H, H}, spread(H), init);
    b_n = parameter("b_n", {H}, spread(H), init);
  }
  std::string kind() const override { return "minimal_gated"; }
  RecurrentState step(const Tensor& x, const RecurrentState& s) const override {
    const Tensor f = sigmoid(matmul(x, w_f) + b_f + matmul(s.h, u_f));
    const Tensor n = tanh(matmul(x, w_n) + b_n + matmul(f * s.h, u_n));
    return {s.h + f * (n - s.h)};
  }
};

}  // namespace cells
