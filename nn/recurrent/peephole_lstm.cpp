/// The LSTM with peepholes: its step in operations, its operation on sequences, and the layer.
#include "ferrite/nn/recurrent/peephole_lstm.h"

#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/nn/recurrent/detail/recurrent_layers.h"
#include "ferrite/nn/recurrent/detail/sequence_operation.h"
#include "ferrite/tensor/kernel/tables.h"

namespace ferrite::nn {
namespace detail {

FERRITE_FLOAT_TABLES(CellKernels, peephole_lstm_kernels, peephole_lstm_in_use)

namespace {

struct PeepholeLstmStep {
  static constexpr auto name = "peephole_lstm_step", onnx = "";
  static constexpr auto summary = "an LSTM's next h and c, its gates seeing c by w_ch, from i, h, c, w_hh and w_ch";

  static Tensors parts(Inputs in, const NoAttrs&) {
    const Tensor& before = in[2];
    const std::int64_t H = before.shape()[1];
    const Tensors sums = split(in[0] + affine(in[1], in[3], in.size() > 5 ? in[5] : Tensor()), H, 1);  // i, f, g, o
    const Tensors w = split(in[4], H, 0);                                                              // i, f, o
    const Tensor i = sigmoid(sums[0] + w[0] * before);
    const Tensor f = sigmoid(sums[1] + w[1] * before);
    const Tensor c = f * before + i * tanh(sums[2]);
    return {sigmoid(sums[3] + w[2] * c) * tanh(c), c};
  }
};

struct PeepholeLstmSequence {
  static constexpr auto name = "peephole_lstm_sequence", grad_name = "peephole_lstm_sequence_grad";
  static constexpr auto summary =
      "all steps of an LSTM with peepholes: outputs, last h, last c, and what the gradient "
      "needs";
  static constexpr const GatedCell& cell = kPeepholeLstm;
};

RecurrentState step_of_peephole_lstm(const Tensor& i, const RecurrentState& before, const RecurrentWeights<Tensor>& w) {
  return peephole_lstm_step(i, before, w.weight_hh, w.weight_ch, w.bias_hh);
}

constexpr const Primitive* kPeepholeLstmSteps[] = {&composite<PeepholeLstmStep>};

}  // namespace

constinit const CellFunctions peephole_lstm_functions = {step_of_peephole_lstm, all_steps<PeepholeLstmSequence>};
constinit const CellOperations peephole_lstm_operations = {
    &structured<Sequence<PeepholeLstmSequence>>, &structured<SequenceGrad<PeepholeLstmSequence>>, kPeepholeLstmSteps};

}  // namespace detail

RecurrentState peephole_lstm_step(const Tensor& i, const RecurrentState& before, const Tensor& w_hh, const Tensor& w_ch,
                                  const Tensor& b_hh) {
  const Tensors next = detail::composed_of<detail::PeepholeLstmStep>({&i, &before.h, &before.c, &w_hh, &w_ch, &b_hh});
  return {next[0], next[1]};
}
Tensors peephole_lstm_sequence(const Tensor& x, const RecurrentWeights<Tensor>& w, const RecurrentState& before,
                               const SequenceOptions& options) {
  return detail::sequence<detail::PeepholeLstmSequence>(x, detail::borrowed(w), before, options);
}

PeepholeLstm::PeepholeLstm(std::int64_t input_size, std::int64_t hidden_size, const PeepholeLstmOptions& options,
                           const Init& init)
    : LayerOf(options, detail::kPeepholeLstm, detail::sizes_of(input_size, hidden_size, options), init) {}

template class LayerOf<PeepholeLstm, PeepholeLstmOptions, GatedRecurrent>;

}  // namespace ferrite::nn
