#pragma once
/// The LSTM layer whose gates see its memory.
#include "ferrite/nn/recurrent/gated.h"

namespace ferrite::nn {

/// One step of an LSTM with peepholes from i = x W_ih + b_ih [B, 4H], columns i, f, g, o: w_hh [H, 4H], w_ch [3H] (what
/// i, f and o see of c), b_hh [4H] or undefined. In operations: the definition.
RecurrentState peephole_lstm_step(const Tensor& i, const RecurrentState& before, const Tensor& w_hh, const Tensor& w_ch,
                                  const Tensor& b_hh = {});
/// All steps of a layer in one direction -> {y, last h, last c}; see gru_sequence. Needs `weights.weight_ch`.
Tensors peephole_lstm_sequence(const Tensor& x, const RecurrentWeights<Tensor>& weights, const RecurrentState& before,
                               const SequenceOptions& options = {});

struct PeepholeLstmOptions {
  std::int64_t layers = 1;
  bool bidirectional = false;
  double dropout = 0;  ///< between layers, while training
  bool bias = true;
  bool batch_first = true;
  Form form = Form::fused;  ///< for tests and experts
  bool recompute = false;   ///< gates are computed again for the gradient instead of kept: less memory, more time
  Zoneout zoneout{};        ///< with this probability a unit of h stays what it was: see Recurrent
  Zoneout zoneout_cell{};   ///< likewise a unit of c
  static constexpr auto fields = attr_list(
      attr("layers", &PeepholeLstmOptions::layers), attr("bidirectional", &PeepholeLstmOptions::bidirectional),
      attr("dropout", &PeepholeLstmOptions::dropout), attr("bias", &PeepholeLstmOptions::bias),
      attr("batch_first", &PeepholeLstmOptions::batch_first), attr("recompute", &PeepholeLstmOptions::recompute),
      attr("zoneout", &PeepholeLstmOptions::zoneout), attr("zoneout_cell", &PeepholeLstmOptions::zoneout_cell));
};

/// An LSTM whose gates see its memory (Gers, Schraudolph and Schmidhuber 2002), as tf.keras's PeepholeLSTMCell and
/// ONNX's LSTM with P.
///
///   i  = sigmoid(x W_ii + b_ii + h W_hi + b_hi + p_i * c)
///   f  = sigmoid(x W_if + b_if + h W_hf + b_hf + p_f * c)
///   g  = tanh   (x W_ig + b_ig + h W_hg + b_hg)
///   c' = f * c + i * g
///   o  = sigmoid(x W_io + b_io + h W_ho + b_ho + p_o * c')
///   h' = o * tanh(c')
///
/// Parameters are those of Lstm and weight_ch_l0 [3H]: p_i, p_f, p_o; all start as U(-1/sqrt(H), 1/sqrt(H)). `run`
/// gives h in `state` and c in `cell`. Shapes, lengths, resets and states: see Recurrent.
class PeepholeLstm final : public LayerOf<PeepholeLstm, PeepholeLstmOptions, GatedRecurrent> {
 public:
  PeepholeLstm(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {})
      : PeepholeLstm(input_size, hidden_size, PeepholeLstmOptions{}, init) {}
  PeepholeLstm(std::int64_t input_size, std::int64_t hidden_size, const PeepholeLstmOptions& options,
               const Init& init = {});
};

extern template class LayerOf<PeepholeLstm, PeepholeLstmOptions, GatedRecurrent>;

}  // namespace ferrite::nn

namespace ferrite {
using nn::peephole_lstm_step, nn::peephole_lstm_sequence;
}  // namespace ferrite
