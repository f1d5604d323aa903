#pragma once
/// The minimal recurrent layers: a GRU and an LSTM whose gates see only the input, so that their loops are reduced to
/// one multiply-add per unit.
#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/recurrent/sequence_layer.h"

namespace ferrite::nn {

/// Options of min_gru_scan and min_lstm_scan: the lengths of sequences, and the steps before which h starts over.
struct MinimalOptions {
  Tensor lengths{};  ///< valid steps of each row, i64 [B], each in 0..T: h is 0 beyond; undefined: all T
  Tensor resets{};   ///< steps before which h is set to 0, bool [B, T]; undefined: none
};

/// Computes the recurrence of a minimal GRU whose gates are known, as one operation with its gradient:
///
///   h_t = h_(t-1) + sigmoid(z_t) (g(c_t) - h_(t-1)),  g(c) = c + 0.5 where c >= 0, else sigmoid(c)
///
/// gates [B, T, 2H], c then z; h0 [B, H], zeros if undefined -> h [B, T, H]. It gives the same bits for sequences in
/// pieces, other batches and any number of threads, as `linear_scan` does, which it equals within rounding. Throws
/// ShapeError for operands that do not fit and for lengths outside 0..T.
Tensor min_gru_scan(const Tensor& gates, const Tensor& h0 = {}, const MinimalOptions& options = {});
/// Computes the recurrence of a minimal LSTM whose gates [B, T, 3H], c, f and i, are known; see min_gru_scan:
///
///   h_t = s_t h_(t-1) + (1 - s_t) g(c_t),  s_t = sigmoid(f_t) / (sigmoid(f_t) + sigmoid(i_t))
Tensor min_lstm_scan(const Tensor& gates, const Tensor& h0 = {}, const MinimalOptions& options = {});

namespace detail {
std::span<const Primitive* const> minimal_operations();
}

/// Options of a MinGru layer: the width of its output and whether the product x W has a bias.
struct MinGruOptions {
  std::int64_t proj_size = 0;  ///< width of the output h W_out; 0: the output is h
  bool bias = false;
  static constexpr auto fields =
      attr_list(attr("proj_size", &MinGruOptions::proj_size), attr("bias", &MinGruOptions::bias));
};

/// The minimal GRU (Feng et al. 2024, arXiv 2410.01201), like minGRU of the package minGRU-pytorch:
///
///   [c, z] = x W (+ b),  z_t = sigmoid(z),  h~_t = g(c),  g(c) = c + 0.5 where c >= 0, else sigmoid(c)
///   h_t = (1 - z_t) h_(t-1) + z_t h~_t
///
/// x [B, T, D] -> h [B, T, H], or [B, T, proj_size]; the state is h [B, H]. Parameters, which start as those of Linear:
/// to_hidden_and_gate.weight [D, 2H] (in files [2H, D]), to_hidden_and_gate.bias [2H], to_out.weight [H, proj_size] (in
/// files [proj_size, H]). An initial state is h itself, as in the package. See SequenceLayer for shapes, lengths,
/// resets and states.
class MinGru final : public LayerOf<MinGru, MinGruOptions, SizedSequenceLayer> {
 public:
  static constexpr auto name = "min_gru";
  /// Creates the layer. Throws ValueError for sizes below 1 and a projection below 0.
  MinGru(std::int64_t input_size, std::int64_t hidden_size, const MinGruOptions& options, const Init& init = {});
  MinGru(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {})
      : MinGru(input_size, hidden_size, MinGruOptions{}, init) {}
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

 private:
  Tensor run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const override;

  Linear to_hidden_and_gate_;
  std::optional<Linear> to_out_;
};

/// Options of a MinLstm layer: the width of its output and whether the product x W has a bias.
struct MinLstmOptions {
  std::int64_t proj_size = 0;  ///< width of the output h W_out; 0: the output is h
  bool bias = false;
  static constexpr auto fields =
      attr_list(attr("proj_size", &MinLstmOptions::proj_size), attr("bias", &MinLstmOptions::bias));
};

/// The minimal LSTM (Feng et al. 2024, arXiv 2410.01201), like minLSTM of the package minGRU-pytorch:
///
///   [c, f, i] = x W (+ b),  f_t = sigmoid(f) / (sigmoid(f) + sigmoid(i)),  i_t = 1 - f_t,  h~_t = g(c) as of MinGru
///   h_t = f_t h_(t-1) + i_t h~_t
///
/// Parameters: to_hidden_and_f_i_gate.weight [D, 3H] (in files [3H, D]), to_hidden_and_f_i_gate.bias [3H],
/// to_out.weight. An initial state is h itself, whereas the package applies g to it if there are several steps. In all
/// else it is like MinGru.
class MinLstm final : public LayerOf<MinLstm, MinLstmOptions, SizedSequenceLayer> {
 public:
  static constexpr auto name = "min_lstm";
  /// Creates the layer. Throws ValueError for sizes below 1 and a projection below 0.
  MinLstm(std::int64_t input_size, std::int64_t hidden_size, const MinLstmOptions& options, const Init& init = {});
  MinLstm(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {})
      : MinLstm(input_size, hidden_size, MinLstmOptions{}, init) {}
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

 private:
  Tensor run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const override;

  Linear to_hidden_and_f_i_gate_;
  std::optional<Linear> to_out_;
};

extern template class LayerOf<MinGru, MinGruOptions, SizedSequenceLayer>;
extern template class LayerOf<MinLstm, MinLstmOptions, SizedSequenceLayer>;

}  // namespace ferrite::nn

namespace ferrite {
using nn::min_gru_scan, nn::min_lstm_scan;
}  // namespace ferrite
