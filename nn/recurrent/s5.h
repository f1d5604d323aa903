#pragma once
/// The simplified state-space layer S5.
#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/recurrent/sequence_layer.h"

namespace ferrite::nn {

/// Options of an S5 layer: the blocks of its state, where its step sizes start, directions and discretisation.
struct S5Options {
  std::int64_t blocks = 1;  ///< number of blocks of the state, which start with the same eigenvalues
  double dt_min = 0.001;    ///< step sizes start log-uniform in dt_min..dt_max
  double dt_max = 0.1;
  bool bidirectional = false;  ///< whether a second state runs from the last step to the first
  bool bilinear = false;       ///< discretise by the trapezoidal rule, instead of holding the input during a step
  double step_scale = 1;       ///< factor of all step sizes: 2 for a sequence sampled half as often
  static constexpr auto fields =
      attr_list(attr("blocks", &S5Options::blocks), attr("dt_min", &S5Options::dt_min),
                attr("dt_max", &S5Options::dt_max), attr("bidirectional", &S5Options::bidirectional),
                attr("bilinear", &S5Options::bilinear), attr("step_scale", &S5Options::step_scale));
};

/// S5 (Smith et al. 2022, arXiv 2208.04933), like S5 of the package s5-pytorch, with D features and a state of P
/// complex numbers:
///
///   h_t = L h_(t-1) + G (B x_t),  y_t = Re(C h_t) + D x_t
///
/// with dt = step_scale exp(log_step), L = exp(Lambda dt) and G = (L - 1) / Lambda; if bilinear, G = dt / (1 - Lambda
/// dt / 2) and L = (1 + Lambda dt / 2) / (1 - Lambda dt / 2). In a bidirectional layer C reads both states, the forward
/// before the backward one; the directions share all else.
///
/// x [B, T, D] -> [B, T, D]; the state is [B, 2P], with real and imaginary parts alternating; a bidirectional layer has
/// none. Parameters, complex ones with a last axis of 2 (files may hold complex numbers): seq.Lambda [P, 2], seq.B
/// [P, D, 2], seq.C [D, P, 2] (bidirectional [D, 2P, 2]), seq.D [D], seq.log_step [P]. Lambda starts as the eigenvalues
/// of the normal part of HiPPO-LegS, B and C as normal matrices in its eigenvectors, D uniform in 0..1. See
/// SequenceLayer for shapes, lengths, resets and states; in the backward direction resets act after their steps.
class S5 final : public LayerOf<S5, S5Options, SizedSequenceLayer> {
 public:
  static constexpr auto name = "s5";
  /// Creates the layer. Throws ValueError for sizes below 1, blocks that do not divide the state, and unless
  /// 0 < dt_min <= dt_max and 0 < step_scale.
  S5(std::int64_t input_size, std::int64_t hidden_size, const S5Options& options, const Init& init = {});
  S5(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {})
      : S5(input_size, hidden_size, S5Options{}, init) {}

  bool causal() const override { return !options().bidirectional; }

  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

  Parameter Lambda, B, C, D, log_step;

 private:
  Tensor run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const override;
};

extern template class LayerOf<S5, S5Options, SizedSequenceLayer>;

}  // namespace ferrite::nn
