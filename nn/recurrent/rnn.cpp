/// The Elman network: its step in operations, its operation on sequences, and the layer.
#include "ferrite/nn/recurrent/rnn.h"

#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/nn/recurrent/detail/recurrent_layers.h"
#include "ferrite/nn/recurrent/detail/sequence_operation.h"
#include "ferrite/tensor/kernel/tables.h"

namespace ferrite::nn {
namespace detail {

FERRITE_FLOAT_TABLES(CellKernels, rnn_kernels, rnn_in_use)
FERRITE_FLOAT_TABLES(CellKernels, rnn_relu_kernels, rnn_relu_in_use)

namespace {

struct RnnStepAttrs {
  bool relu = false;
  static constexpr auto fields = attr_list(attr("relu", &RnnStepAttrs::relu));
};

struct RnnStep {
  using Attributes = RnnStepAttrs;
  static constexpr auto name = "rnn_step", onnx = "", summary = "tanh, or relu, of i + h . w_hh + b_hh";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor x = in[0] + affine(in[1], in[2], in.size() > 3 ? in[3] : Tensor());
    return a.relu ? relu(x) : tanh(x);
  }
};

struct RnnSequence {
  static constexpr auto name = "rnn_sequence", grad_name = "rnn_sequence_grad";
  static constexpr auto summary = "all steps of an Elman network: outputs, last h, and an empty tensor";
  static constexpr const GatedCell& cell = kRnn;
};
struct RnnReluSequence {
  static constexpr auto name = "rnn_relu_sequence", grad_name = "rnn_relu_sequence_grad";
  static constexpr auto summary = "the same with relu in place of tanh";
  static constexpr const GatedCell& cell = kRnnRelu;
};

template <bool kWithRelu>
RecurrentState step(const Tensor& i, const RecurrentState& before, const RecurrentWeights<Tensor>& w) {
  return {rnn_step(i, before.h, w.weight_hh, w.bias_hh, kWithRelu)};
}

constexpr const Primitive* kRnnSteps[] = {&composite<RnnStep>};

}  // namespace

constinit const CellFunctions rnn_functions = {step<false>, all_steps<RnnSequence>};
constinit const CellFunctions rnn_relu_functions = {step<true>, all_steps<RnnReluSequence>};
constinit const CellOperations rnn_operations = {&structured<Sequence<RnnSequence>>,
                                                 &structured<SequenceGrad<RnnSequence>>, kRnnSteps};
constinit const CellOperations rnn_relu_operations = {
    &structured<Sequence<RnnReluSequence>>, &structured<SequenceGrad<RnnReluSequence>>, {}};

}  // namespace detail

Tensor rnn_step(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh, bool with_relu) {
  return detail::composed_of<detail::RnnStep>({&i, &h, &w_hh, &b_hh}, {with_relu});
}
Tensors rnn_sequence(const Tensor& x, const RecurrentWeights<Tensor>& w, const Tensor& h0, bool with_relu,
                     const SequenceOptions& options) {
  const detail::GatedCell& cell = with_relu ? detail::kRnnRelu : detail::kRnn;
  return cell.functions->sequence(x, {h0, {}}, detail::borrowed(w), options);
}

namespace {

const detail::GatedCell& cell_of(Nonlinearity f) { return f == Nonlinearity::relu ? detail::kRnnRelu : detail::kRnn; }

}  // namespace

Rnn::Rnn(std::int64_t input_size, std::int64_t hidden_size, const RnnOptions& options, const Init& init)
    : LayerOf(options, cell_of(options.nonlinearity), detail::sizes_of(input_size, hidden_size, options), init) {}

RnnCell::RnnCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init, bool bias,
                 Nonlinearity nonlinearity)
    : RecurrentCell(cell_of(nonlinearity), input_size, hidden_size, init, bias) {}

template class LayerOf<Rnn, RnnOptions, GatedRecurrent>;

}  // namespace ferrite::nn
