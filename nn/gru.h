#pragma once
#include "ferrite/nn/module.h"

namespace ferrite::nn {

struct RecurrentResult {
  Tensor output;  ///< [B, T, H]
  Tensor state;   ///< [B, H], at the last (valid) step
};

/// Gated recurrent unit (arXiv 1406.1078), as torch.nn.GRU(input_size, hidden_size, batch_first=True).
///
///   r  = sigmoid(x W_ir + b_ir + h W_hr + b_hr)
///   z  = sigmoid(x W_iz + b_iz + h W_hz + b_hz)
///   n  = tanh   (x W_in + b_in + r * (h W_hn + b_hn))
///   h' = n + z * (h - n)                                   = (1 - z) * n + z * h
///
/// x [B, T, D] -> [B, T, H]. Parameters, the blocks of columns being r, z, n: weight_ih_l0 [D, 3H],
/// weight_hh_l0 [H, 3H] (in files [3H, D] and [3H, H], as PyTorch's), bias_ih_l0 [3H], bias_hh_l0 [3H]; all
/// start as U(-1/sqrt(H), 1/sqrt(H)). With `context.lengths`, outputs past the end of a sequence are 0, the state
/// is the one at its last valid step, and no gradient reaches the padding.
class Gru final : public Layer {
 public:
  /// Throws ValueError for sizes below 1.
  Gru(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {});

  std::int64_t input_size() const { return input_size_; }
  std::int64_t hidden_size() const { return hidden_size_; }

  std::string kind() const override { return "gru"; }
  /// The output alone.
  Tensor forward(const Tensor& x, const Context& context) const override { return run(x, context).output; }
  /// Output and last state, from `context.state` [B, H] or zeros. Throws ShapeError for another shape of x or
  /// state, for T = 0 and for lengths outside 1..T; DtypeError for another dtype than the weights'.
  RecurrentResult run(const Tensor& x, const Context& context = {}) const;
  std::unique_ptr<Layer> clone() const override;

  /// One step from the projected input i = x W_ih + b_ih [B, 3H] and the state h [B, H] to the next state.
  static Tensor step(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh);

  Parameter weight_ih, weight_hh, bias_ih, bias_hh;

 private:
  std::int64_t input_size_;
  std::int64_t hidden_size_;
};

}  // namespace ferrite::nn
