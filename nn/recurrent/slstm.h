#pragma once
/// The sLSTM layer of an xLSTM, with scalar memory and memory mixing.
#include <optional>

#include "ferrite/compile/scan.h"
#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/recurrent/sequence_layer.h"

namespace ferrite::nn {

/// Options of an SLstm layer: its sizes, heads and dropout, and where its biases start.
struct SLstmOptions {
  std::int64_t embedding_dim = 0;       ///< number of features D, in and out; the builder infers it
  std::int64_t num_heads = 4;           ///< number of heads H; a unit sees only the units of its head
  std::int64_t conv1d_kernel_size = 4;  ///< K, the taps of the causal convolution before the gates i and f; 0: none
  bool group_norm_weight = true;        ///< whether the norm of the result has weights
  double dropout = 0;                   ///< probability of dropout before the norm, while training
  std::int64_t block_index = 0;         ///< position of the block in the whole net; first biases of f depend on it
  std::int64_t num_blocks = 1;          ///< number of blocks in the whole net; first biases of f depend on it
  static constexpr auto fields =
      attr_list(attr("embedding_dim", &SLstmOptions::embedding_dim), attr("num_heads", &SLstmOptions::num_heads),
                attr("conv1d_kernel_size", &SLstmOptions::conv1d_kernel_size),
                attr("group_norm_weight", &SLstmOptions::group_norm_weight), attr("dropout", &SLstmOptions::dropout),
                attr("block_index", &SLstmOptions::block_index), attr("num_blocks", &SLstmOptions::num_blocks));
};

/// The sLSTM layer of an xLSTM (arXiv 2405.04517), like sLSTMLayer of the Python package xlstm 2.0.6 with its backend
/// "vanilla", whose state_dict it loads: x [B, T, D] -> [B, T, D], f32 or f64.
///
///   u = silu(conv1d(x))                          a causal convolution of each channel by itself; without one u = x
///   i, f, z, o = u fgate, u igate, x zgate, x ogate, each + h R + b       within each head, d = D / H wide
///   m' = max(log sigmoid(f) + m, i);  i' = exp(i - m');  f' = exp(log sigmoid(f) + m - m')
///   c' = f' c + i' tanh(z);  n' = f' n + i';  h' = sigmoid(o) c' / n'
///   y = head_norm(h')
///
/// The parameter called fgate makes the gate i and the one called igate the gate f, as in the package. Where n is 0, as
/// in a new state, m' = i. head_norm is a layer norm over each head, epsilon 1e-5, times 1 + group_norm.weight.
///
/// The steps run in order, as a scan (compile/scan.h); streams have the bits of the whole sequence.
///
/// fgate.weight, igate.weight, zgate.weight and ogate.weight [H, d, d] are [head, out, in];
/// slstm_cell._recurrent_kernel_ [H, 4 d, d] has the gates i, f, z, o next to each other in each head,
/// slstm_cell._bias_ [4 D] the heads in each gate; conv1d.conv.weight is [D, 1, K]. They start as the package's
/// `reset_parameters` sets them: gates as normal numbers of deviation sqrt(2 / (5 D)), the convolution as in
/// CausalConv1d, the bias of f as 5 - 12 (j / (d - 1))^(0.3 + 1.3 block_index / (num_blocks - 1)) for unit j of a head,
/// everything else as 0.
///
/// The state of a row holds, in this order, the convolution's last inputs [K - 1, D] and h, c, n, m [D] each. See
/// SequenceLayer for lengths, resets and states.
class SLstm final : public LayerOf<SLstm, SLstmOptions, SequenceLayer> {
 public:
  static constexpr auto name = "slstm";
  /// Creates the layer. Throws ValueError for sizes below 1 (a kernel below 0), for heads that do not divide D, a
  /// block_index outside 0..num_blocks - 1, and a dropout outside [0, 1].
  explicit SLstm(const SLstmOptions& options, const Init& init = {});

  Parameter fgate_weight, igate_weight, zgate_weight, ogate_weight;
  Parameter recurrent_kernel, bias;
  Parameter conv1d_weight, conv1d_bias;  ///< empty without a convolution
  Parameter group_norm_weight;           ///< empty if the norm has no weights

 protected:
  Tensor run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const override;
  Tensor run_step(const Tensor& x, Tensors& states) const override;

 private:
  Tensor gates_of(const Tensor& x, const Tensor& convolved) const;
  Tensors cell(const Tensor& gates, const Tensors& before) const;
  Tensor result_of(const Tensor& h) const;

  std::optional<Dropout> dropout_;
};

extern template class LayerOf<SLstm, SLstmOptions, SequenceLayer>;

}  // namespace ferrite::nn
