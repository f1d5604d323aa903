/// The LSTM: its step in operations, its operation on sequences, and the layer.
#include "ferrite/nn/recurrent/lstm.h"

#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/nn/recurrent/detail/recurrent_layers.h"
#include "ferrite/nn/recurrent/detail/sequence_operation.h"
#include "ferrite/tensor/kernel/tables.h"

namespace ferrite::nn {
namespace detail {

FERRITE_FLOAT_TABLES(CellKernels, lstm_kernels, lstm_in_use)

namespace {

struct LstmStepAttrs {
  bool bias = true, projection = false;
  static constexpr auto fields =
      attr_list(attr("bias", &LstmStepAttrs::bias), attr("projection", &LstmStepAttrs::projection));
};

struct LstmStep {
  using Attributes = LstmStepAttrs;
  static constexpr auto name = "lstm_step", onnx = "";
  static constexpr auto summary = "an LSTM's next h and c from i = x . w_ih + b_ih, h, c and w_hh, h projected by w_hr";

  static Tensors parts(Inputs in, const Attributes& a) {
    const Tensor sums = in[0] + affine(in[1], in[3], a.bias ? in[4] : Tensor());
    const Tensors gates = split(sums, in[2].shape()[1], 1);  // i, f, g, o
    const Tensor c = sigmoid(gates[1]) * in[2] + sigmoid(gates[0]) * tanh(gates[2]);
    const Tensor h = sigmoid(gates[3]) * tanh(c);
    return {a.projection ? matmul(h, in[a.bias ? 5 : 4]) : h, c};
  }
};

struct LstmSequence {
  static constexpr auto name = "lstm_sequence", grad_name = "lstm_sequence_grad";
  static constexpr auto summary = "all steps of an LSTM: outputs, last h, last c, and what the gradient needs";
  static constexpr const GatedCell& cell = kLstm;
};

RecurrentState step_of_lstm(const Tensor& i, const RecurrentState& before, const RecurrentWeights<Tensor>& w) {
  return lstm_step(i, before, w.weight_hh, w.bias_hh, w.weight_hr);
}

constexpr const Primitive* kLstmSteps[] = {&composite<LstmStep>};

}  // namespace

constinit const CellFunctions lstm_functions = {step_of_lstm, all_steps<LstmSequence>};
constinit const CellOperations lstm_operations = {&structured<Sequence<LstmSequence>>,
                                                  &structured<SequenceGrad<LstmSequence>>, kLstmSteps};

}  // namespace detail

RecurrentState lstm_step(const Tensor& i, const RecurrentState& before, const Tensor& w_hh, const Tensor& b_hh,
                         const Tensor& w_hr) {
  const Tensors next = detail::composed_of<detail::LstmStep>({&i, &before.h, &before.c, &w_hh, &b_hh, &w_hr},
                                                             {b_hh.defined(), w_hr.defined()});
  return {next[0], next[1]};
}
Tensors lstm_sequence(const Tensor& x, const RecurrentWeights<Tensor>& w, const RecurrentState& before,
                      const SequenceOptions& options) {
  return detail::sequence<detail::LstmSequence>(x, detail::borrowed(w), before, options);
}

Lstm::Lstm(std::int64_t input_size, std::int64_t hidden_size, const LstmOptions& options, const Init& init)
    : LayerOf(options, detail::kLstm, detail::sizes_of(input_size, hidden_size, options), init) {}

LstmCell::LstmCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init, bool bias)
    : RecurrentCell(detail::kLstm, input_size, hidden_size, init, bias) {}

template class LayerOf<Lstm, LstmOptions, GatedRecurrent>;

}  // namespace ferrite::nn
