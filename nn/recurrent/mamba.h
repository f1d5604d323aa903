#pragma once
/// Mamba: a short convolution followed by a gated selective state-space layer.
#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/recurrent/sequence_layer.h"

namespace ferrite::nn {

/// Options of a Mamba layer: its sizes, its biases, and where its step sizes start.
struct MambaOptions {
  std::int64_t features = 0;     ///< number of features D, in and out
  std::int64_t state = 16;       ///< N, the numbers that each inner channel carries
  std::int64_t expand = 2;       ///< there are E = expand D inner channels
  std::int64_t kernel_size = 4;  ///< number of taps of the convolution
  std::int64_t dt_rank = 0;      ///< rank R of the step sizes; 0: ceil(D / 16)
  bool bias = false;             ///< whether the projections in and out have biases
  bool conv_bias = true;         ///< whether the convolution has a bias
  double dt_min = 0.001;         ///< step sizes start log-uniform in dt_min..dt_max
  double dt_max = 0.1;
  static constexpr auto fields =
      attr_list(attr("features", &MambaOptions::features), attr("state", &MambaOptions::state),
                attr("expand", &MambaOptions::expand), attr("kernel_size", &MambaOptions::kernel_size),
                attr("dt_rank", &MambaOptions::dt_rank), attr("bias", &MambaOptions::bias),
                attr("conv_bias", &MambaOptions::conv_bias), attr("dt_min", &MambaOptions::dt_min),
                attr("dt_max", &MambaOptions::dt_max));

  /// Returns the number of inner channels E.
  std::int64_t inner() const { return expand * features; }
  /// Returns the rank R of the step sizes.
  std::int64_t rank() const { return dt_rank > 0 ? dt_rank : (features + 15) / 16; }
};

/// Mamba (Gu and Dao 2023, arXiv 2312.00752), like MambaBlock of the package mambapy and Mamba of mamba_ssm, with E =
/// expand D inner channels and N = state:
///
///   [u, z] = x W_in,  u = silu(conv(u)),  [d, B, C] = u W_x,  delta = softplus(d W_dt + b_dt)
///   y = selective_scan(u, delta, -exp(A_log), B, C, D) * silu(z) W_out
///
/// x [B, T, D] -> [B, T, D]. The state of a row holds the last inputs of the convolution [kernel_size - 1, E], then h
/// [E, N]. Parameters, with matrices transposed in files: in_proj.weight [D, 2E], conv1d.weight [E, 1,
/// kernel_size], conv1d.bias [E], x_proj.weight [E, R + 2N], dt_proj.weight [R, E], dt_proj.bias [E], A_log [E, N], D
/// [E], out_proj.weight [E, D], and in_proj.bias, out_proj.bias. A_log starts as log(1..N), D as 1,
/// softplus(dt_proj.bias) as the step sizes, the rest as in PyTorch. See SequenceLayer for shapes, lengths, resets and
/// states.
class Mamba final : public LayerOf<Mamba, MambaOptions, SequenceLayer> {
 public:
  static constexpr auto name = "mamba";
  /// Creates the layer. Throws ValueError for sizes below 1, a rank below 0, and unless 0 < dt_min <= dt_max.
  explicit Mamba(const MambaOptions& options, const Init& init = {});

  Parameter conv_weight, conv_bias, dt_weight, dt_bias, A_log, D;

 private:
  Tensor run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const override;
  /// Returns the convolution of u [B, T, E]. `taps` [B, kernel_size - 1, E], the inputs before the first step, become
  /// those up to the last (valid) step.
  Tensor convolved(const Tensor& u, const SequenceOptions& options, Tensor& taps) const;

  Linear in_proj_, x_proj_, out_proj_;
};

extern template class LayerOf<Mamba, MambaOptions, SequenceLayer>;

}  // namespace ferrite::nn
