#pragma once
/// The LSTM layer and its cell.
#include "ferrite/nn/recurrent/gated.h"

namespace ferrite::nn {

/// Computes one step of an LSTM from i = x W_ih + b_ih [B, 4H], columns i, f, g, o; h and c before [B, H]; w_hh
/// [H, 4H]; b_hh [4H] or undefined -> h and c after. With w_hr [H, P] the new h is projected to [B, P] (arXiv
/// 1402.1128), and w_hh is [P, 4H].
RecurrentState lstm_step(const Tensor& i, const RecurrentState& before, const Tensor& w_hh, const Tensor& b_hh,
                         const Tensor& w_hr = {});
/// Runs all steps of an LSTM layer in one direction as one operation and returns {y, last h, last c}; see gru_sequence.
Tensors lstm_sequence(const Tensor& x, const RecurrentWeights<Tensor>& w, const RecurrentState& before,
                      const SequenceOptions& options = {});

/// Options of an Lstm layer: its layers, directions, biases, dropout, zoneout, projection, and how it runs.
struct LstmOptions {
  std::int64_t layers = 1;  ///< number of layers, each of which reads the outputs of the one before
  bool bidirectional = false;
  double dropout = 0;  ///< probability of dropout between layers, while training
  bool bias = true;
  bool batch_first = true;     ///< whether x is [B, T, D] and y [B, T, H]; else both are [T, B, ...]
  Form form = Form::fused;     ///< how the layer runs; other forms are for tests and experts
  bool recompute = false;      ///< the gradient recomputes the gates instead of keeping them: less memory, more time
  std::int64_t proj_size = 0;  ///< P < H: h' = (o * tanh(c')) W_hr (arXiv 1402.1128); 0: no projection
  Zoneout zoneout{};           ///< the probability with which a unit of h keeps its value: see Recurrent
  Zoneout zoneout_cell{};      ///< the probability with which a unit of c keeps its value
  static constexpr auto fields =
      attr_list(attr("layers", &LstmOptions::layers), attr("bidirectional", &LstmOptions::bidirectional),
                attr("dropout", &LstmOptions::dropout), attr("bias", &LstmOptions::bias),
                attr("batch_first", &LstmOptions::batch_first), attr("recompute", &LstmOptions::recompute),
                attr("proj_size", &LstmOptions::proj_size), attr("zoneout", &LstmOptions::zoneout),
                attr("zoneout_cell", &LstmOptions::zoneout_cell));
};

/// Long short-term memory (Hochreiter and Schmidhuber 1997, with forget gates), like torch.nn.LSTM(input_size,
/// hidden_size, batch_first=True).
///
///   i  = sigmoid(x W_ii + b_ii + h W_hi + b_hi)
///   f  = sigmoid(x W_if + b_if + h W_hf + b_hf)
///   g  = tanh   (x W_ig + b_ig + h W_hg + b_hg)
///   o  = sigmoid(x W_io + b_io + h W_ho + b_ho)
///   c' = f * c + i * g
///   h' = o * tanh(c')
///
/// Parameters, with blocks of columns i, f, g, o: weight_ih_l0 [D, 4H], weight_hh_l0 [H, 4H] (in files [4H, D] and
/// [4H, H]), bias_ih_l0 [4H], bias_hh_l0 [4H], with a projection weight_hr_l0 [H, P] (in files [P, H]), then
/// _l0_reverse, _l1, ...; all start as U(-1/sqrt(H), 1/sqrt(H)). With a projection h is P wide and weight_hh_l0
/// [P, 4H]. `run` returns h in `state` and c in `cell`. See Recurrent for shapes, lengths, resets and states.
class Lstm final : public LayerOf<Lstm, LstmOptions, GatedRecurrent> {
 public:
  Lstm(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {})
      : Lstm(input_size, hidden_size, LstmOptions{}, init) {}
  Lstm(std::int64_t input_size, std::int64_t hidden_size, const LstmOptions& options, const Init& init = {});
};

/// One step of an LSTM as a module, like torch.nn.LSTMCell.
class LstmCell final : public RecurrentCell {
 public:
  LstmCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init = {}, bool bias = true);
  /// Computes the next h and c from x [B, D] and those before, [B, H] each, zeros where undefined.
  RecurrentState operator()(const Tensor& x, const RecurrentState& before = {}) const { return step(x, before); }
};

extern template class LayerOf<Lstm, LstmOptions, GatedRecurrent>;

}  // namespace ferrite::nn

namespace ferrite {
using nn::lstm_sequence, nn::lstm_step;
}  // namespace ferrite
