#pragma once
/// Linear recurrent units: a diagonal one of complex numbers, and a gated one of real numbers.
#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/recurrent/sequence_layer.h"

namespace ferrite::nn {

/// Options of an Lru layer: where the complex factors lambda of its state start.
struct LruOptions {
  double r_min = 0;  ///< lambda starts uniform by area in the ring r_min <= |lambda| <= r_max
  double r_max = 1;
  double max_phase = 6.283185307179586;  ///< the arguments of lambda start uniform in 0..max_phase, in radians
  static constexpr auto fields = attr_list(attr("r_min", &LruOptions::r_min), attr("r_max", &LruOptions::r_max),
                                           attr("max_phase", &LruOptions::max_phase));
};

/// The linear recurrent unit (Orvieto et al. 2023, arXiv 2303.06349) with D features and a state of N complex numbers:
///
///   h_t = lambda h_(t-1) + gamma (B x_t),  y_t = Re(C h_t) + D x_t
///   lambda = exp(-exp(nu_log) + i exp(theta_log)),  gamma = exp(gamma_log)
///
/// x [B, T, D] -> [B, T, D]; the state is [B, 2N], with real and imaginary parts alternating. Parameters are those of
/// the paper: nu_log, theta_log, gamma_log [N], B_re, B_im [N, D], C_re, C_im [D, N], D [D]. gamma starts as
/// sqrt(1 - |lambda|^2), B and C as normal numbers of variances 1 / (2D) and 1 / N, D as normal numbers of variance 1.
/// See SequenceLayer for shapes, lengths, resets and states.
class Lru final : public LayerOf<Lru, LruOptions, SizedSequenceLayer> {
 public:
  static constexpr auto name = "lru";
  /// Creates the layer. Throws ValueError for sizes below 1 and unless 0 <= r_min < r_max <= 1 and 0 < max_phase.
  Lru(std::int64_t input_size, std::int64_t hidden_size, const LruOptions& options, const Init& init = {});
  Lru(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {})
      : Lru(input_size, hidden_size, LruOptions{}, init) {}

  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

  Parameter nu_log, theta_log, gamma_log, B_re, B_im, C_re, C_im, D;

 private:
  Tensor run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const override;
  std::vector<Parameter> in_order() const;
};

/// Options of an RgLru layer: its width and how its gates are divided.
struct RgLruOptions {
  std::int64_t features = 0;  ///< D, in and out
  std::int64_t heads = 1;     ///< number of blocks of features; each has its own gate matrices
  static constexpr auto fields =
      attr_list(attr("features", &RgLruOptions::features), attr("heads", &RgLruOptions::heads));
};

/// The real-gated linear recurrent unit of Griffin (De et al. 2024, arXiv 2402.19427), like RGLRU of the package
/// recurrentgemma:
///
///   r_t = sigmoid(x_t W_a + b_a),  i_t = sigmoid(x_t W_x + b_x),  log a_t = -8 r_t softplus(a_param)
///   h_t = a_t h_(t-1) + sqrt(1 - a_t^2) (i_t x_t)
///
/// x [B, T, D] -> h [B, T, D]; the state is h [B, D]. Parameters: a_param [D], input_gate.w, a_gate.w [heads, D /
/// heads, D / heads], input_gate.b, a_gate.b [heads, D / heads]. exp(-8 softplus(a_param)) starts uniform by area
/// between 0.9 and 0.999, the matrices as normal numbers of variance heads / D, b as 0. The package leaves out the
/// factor sqrt(1 - a_t^2) at the first step of a sequence and bounds the gradient of the root by 1000; the paper and
/// this layer do neither. See SequenceLayer for shapes, lengths, resets and states.
class RgLru final : public LayerOf<RgLru, RgLruOptions, SequenceLayer> {
 public:
  static constexpr auto name = "rg_lru";
  /// Creates the layer. Throws ValueError for sizes below 1 and heads that do not divide the features.
  explicit RgLru(const RgLruOptions& options, const Init& init = {});

  Parameter a_param, input_gate_w, input_gate_b, a_gate_w, a_gate_b;

 private:
  Tensor run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const override;
};

extern template class LayerOf<Lru, LruOptions, SizedSequenceLayer>;
extern template class LayerOf<RgLru, RgLruOptions, SequenceLayer>;

}  // namespace ferrite::nn
