#pragma once
/// The Elman layer (torch.nn.RNN) and its cell.
#include "ferrite/nn/recurrent/gated.h"

namespace ferrite::nn {

/// Computes one step of an Elman network from i = x W_ih + b_ih [B, H], h [B, H], w_hh [H, H] and b_hh [H], or
/// undefined -> h' = tanh (or relu) of i + h W_hh + b_hh, [B, H].
Tensor rnn_step(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh, bool with_relu = false);
/// Runs all steps of an Elman layer in one direction and returns {y, last h}; see gru_sequence.
Tensors rnn_sequence(const Tensor& x, const RecurrentWeights<Tensor>& w, const Tensor& h0, bool with_relu = false,
                     const SequenceOptions& options = {});

/// The function that makes the state of an Rnn layer from its sum.
enum class Nonlinearity : std::uint8_t { tanh, relu };

/// Options of an Rnn layer: its layers, directions, biases, dropout, zoneout, nonlinearity, and how it runs.
struct RnnOptions {
  std::int64_t layers = 1;  ///< number of layers, each of which reads the outputs of the one before
  bool bidirectional = false;
  double dropout = 0;  ///< probability of dropout between layers, while training
  bool bias = true;
  bool batch_first = true;  ///< whether x is [B, T, D] and y [B, T, H]; else both are [T, B, ...]
  Form form = Form::fused;  ///< how the layer runs; other forms are for tests and experts
  bool recompute = false;   ///< no effect: the gradient of this layer needs no saved gates
  Nonlinearity nonlinearity = Nonlinearity::tanh;  ///< the function of the state's sum
  Zoneout zoneout{};  ///< the probability with which a unit of h keeps its value: see Recurrent
  static constexpr auto fields =
      attr_list(attr("layers", &RnnOptions::layers), attr("bidirectional", &RnnOptions::bidirectional),
                attr("dropout", &RnnOptions::dropout), attr("bias", &RnnOptions::bias),
                attr("batch_first", &RnnOptions::batch_first), attr("recompute", &RnnOptions::recompute),
                attr("zoneout", &RnnOptions::zoneout));
};

/// Elman's recurrent network (1990), like torch.nn.RNN(input_size, hidden_size, batch_first=True).
///
///   h' = tanh(x W_ih + b_ih + h W_hh + b_hh)         or relu
///
/// Parameters: weight_ih_l0 [D, H], weight_hh_l0 [H, H] (transposed in files), bias_ih_l0 [H], bias_hh_l0 [H], then
/// _l0_reverse, _l1, ...; all start as U(-1/sqrt(H), 1/sqrt(H)). See Recurrent for shapes, lengths, resets and states.
class Rnn final : public LayerOf<Rnn, RnnOptions, GatedRecurrent> {
 public:
  Rnn(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {})
      : Rnn(input_size, hidden_size, RnnOptions{}, init) {}
  Rnn(std::int64_t input_size, std::int64_t hidden_size, const RnnOptions& options, const Init& init = {});

  Nonlinearity nonlinearity() const { return options().nonlinearity; }
};

/// One step of an Elman network as a module, like torch.nn.RNNCell.
class RnnCell final : public RecurrentCell {
 public:
  RnnCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {}, bool bias = true,
          Nonlinearity nonlinearity = Nonlinearity::tanh);
  /// Computes the next state from x [B, D] and h [B, H], zeros if undefined.
  Tensor operator()(const Tensor& x, const Tensor& h = {}) const { return step(x, {h}).h; }
};

extern template class LayerOf<Rnn, RnnOptions, GatedRecurrent>;

}  // namespace ferrite::nn

namespace ferrite {
using nn::rnn_sequence, nn::rnn_step;
}  // namespace ferrite
