#pragma once
#include "ferrite/nn/recurrent/gated.h"

namespace ferrite::nn {

struct GruOptions {
  std::int64_t layers = 1;
  bool bidirectional = false;
  double dropout = 0;  ///< between layers, while training
  bool bias = true;
  bool batch_first = true;
  Form form = Form::fused;  ///< for tests and experts
  bool recompute = false;   ///< gates are computed again for the gradient instead of kept: less memory, more time
  /// False: n = tanh(x W_in + b_in + (r * h) W_hn + b_hn), the GRU of arXiv 1406.1078v1, of Keras with
  /// reset_after=False and of ONNX with linear_before_reset = 0.
  bool reset_after = true;
};

/// Gated recurrent unit (arXiv 1406.1078), as torch.nn.GRU(input_size, hidden_size, batch_first=True).
///
///   r  = sigmoid(x W_ir + b_ir + h W_hr + b_hr)
///   z  = sigmoid(x W_iz + b_iz + h W_hz + b_hz)
///   n  = tanh   (x W_in + b_in + r * (h W_hn + b_hn))
///   h' = n + z * (h - n)                                   = (1 - z) * n + z * h
///
/// Parameters, the blocks of columns being r, z, n: weight_ih_l0 [D, 3H], weight_hh_l0 [H, 3H] (in files [3H, D] and
/// [3H, H]), bias_ih_l0 [3H], bias_hh_l0 [3H], then _l0_reverse, _l1, ...; all start as U(-1/sqrt(H), 1/sqrt(H)).
/// Shapes, lengths, resets and states: see Recurrent.
class Gru final : public GatedRecurrent {
 public:
  Gru(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {})
      : Gru(input_size, hidden_size, GruOptions{}, init) {}
  Gru(std::int64_t input_size, std::int64_t hidden_size, const GruOptions& options, const Init& init = {});

  bool reset_after() const { return reset_after_; }
  std::unique_ptr<Layer> clone() const override;

 private:
  bool reset_after_;
};

/// torch.nn.GRUCell.
class GruCell final : public RecurrentCell {
 public:
  GruCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {}, bool bias = true);
  /// The next state, from zeros where h is undefined.
  Tensor operator()(const Tensor& x, const Tensor& h = {}) const { return step(x, {h}).h; }
};

}  // namespace ferrite::nn
