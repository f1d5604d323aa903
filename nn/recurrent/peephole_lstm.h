#pragma once
/// The LSTM layer with peepholes, whose gates see its memory.
#include "ferrite/nn/recurrent/gated.h"

namespace ferrite::nn {

/// Computes one step of an LSTM with peepholes from i = x W_ih + b_ih [B, 4H], columns i, f, g, o; h and c before
/// [B, H]; w_hh [H, 4H]; w_ch [3H], the weights of c in i, f and o; b_hh [4H] or undefined -> h and c after. Composed
/// of operations, it defines the LSTM with peepholes.
RecurrentState peephole_lstm_step(const Tensor& i, const RecurrentState& before, const Tensor& w_hh, const Tensor& w_ch,
                                  const Tensor& b_hh = {});
/// Runs all steps of an LSTM layer with peepholes in one direction as one operation and returns {y, last h, last c};
/// see gru_sequence. `weights.weight_ch` must be defined.
Tensors peephole_lstm_sequence(const Tensor& x, const RecurrentWeights<Tensor>& weights, const RecurrentState& before,
                               const SequenceOptions& options = {});

/// Options of a PeepholeLstm layer: its layers, directions, biases, dropout, zoneout, and how it runs.
struct PeepholeLstmOptions {
  std::int64_t layers = 1;  ///< number of layers, each of which reads the outputs of the one before
  bool bidirectional = false;
  double dropout = 0;  ///< probability of dropout between layers, while training
  bool bias = true;
  bool batch_first = true;  ///< whether x is [B, T, D] and y [B, T, H]; else both are [T, B, ...]
  Form form = Form::fused;  ///< how the layer runs; other forms are for tests and experts
  bool recompute = false;   ///< the gradient recomputes the gates instead of keeping them: less memory, more time
  Zoneout zoneout{};        ///< the probability with which a unit of h keeps its value: see Recurrent
  Zoneout zoneout_cell{};   ///< the probability with which a unit of c keeps its value
  static constexpr auto fields = attr_list(
      attr("layers", &PeepholeLstmOptions::layers), attr("bidirectional", &PeepholeLstmOptions::bidirectional),
      attr("dropout", &PeepholeLstmOptions::dropout), attr("bias", &PeepholeLstmOptions::bias),
      attr("batch_first", &PeepholeLstmOptions::batch_first), attr("recompute", &PeepholeLstmOptions::recompute),
      attr("zoneout", &PeepholeLstmOptions::zoneout), attr("zoneout_cell", &PeepholeLstmOptions::zoneout_cell));
};

/// An LSTM whose gates see its memory (Gers, Schraudolph and Schmidhuber 2002), like PeepholeLSTMCell of tf.keras and
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
/// returns h in `state` and c in `cell`. See Recurrent for shapes, lengths, resets and states.
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
