/// The GRU: its step in operations, its operation on sequences, and the layer.
#include "ferrite/nn/recurrent/gru.h"

#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/nn/recurrent/detail/recurrent_layers.h"
#include "ferrite/nn/recurrent/detail/sequence_operation.h"
#include "ferrite/tensor/kernel/tables.h"

namespace ferrite::nn {
namespace detail {

FERRITE_FLOAT_TABLES(CellKernels, gru_kernels, gru_in_use)
FERRITE_FLOAT_TABLES(CellKernels, gru_reset_before_kernels, gru_reset_before_in_use)

namespace {

/// Returns the i-th operand, undefined if there are fewer.
Tensor or_none(Inputs in, std::size_t i) { return i < in.size() ? in[i] : Tensor(); }

struct GruStep {
  static constexpr auto name = "gru_step", onnx = "";
  static constexpr auto summary = "a GRU's next h from i = x . w_ih + b_ih, h and w_hh; the reset after the product";

  static Tensor parts(Inputs in, const NoAttrs&) {
    const Tensor& h = in[1];
    const std::int64_t H = h.shape()[1];
    const Tensors from_x = split(in[0], H, 1);  // r, z, n
    const Tensors from_h = split(affine(h, in[2], or_none(in, 3)), H, 1);
    const Tensor r = sigmoid(from_x[0] + from_h[0]);
    const Tensor z = sigmoid(from_x[1] + from_h[1]);
    const Tensor n = tanh(from_x[2] + r * from_h[2]);
    return n + z * (h - n);  // = (1 - z) * n + z * h
  }
};

struct GruStepResetBefore {
  static constexpr auto name = "gru_step_reset_before", onnx = "";
  static constexpr auto summary = "the same with the reset before the product, as in arXiv 1406.1078";

  static Tensor parts(Inputs in, const NoAttrs&) {
    const Tensor &h = in[1], &w_hh = in[2], b_hh = or_none(in, 3);
    const std::int64_t H = h.shape()[1];
    const auto part = [&](const Tensor& t, std::int64_t begin, std::int64_t end) {
      return t.defined() ? slice(t, -1, begin * H, end * H) : t;
    };
    const Tensors from_x = split(in[0], H, 1);  // r, z, n
    const Tensors from_h = split(affine(h, part(w_hh, 0, 2), part(b_hh, 0, 2)), H, 1);
    const Tensor r = sigmoid(from_x[0] + from_h[0]);
    const Tensor z = sigmoid(from_x[1] + from_h[1]);
    const Tensor n = tanh(from_x[2] + affine(r * h, part(w_hh, 2, 3), part(b_hh, 2, 3)));
    return n + z * (h - n);
  }
};

struct GruSequence {
  static constexpr auto name = "gru_sequence", grad_name = "gru_sequence_grad";
  static constexpr auto summary = "all steps of a GRU: outputs, last h, and what the gradient needs";
  static constexpr const GatedCell& cell = kGru;
};
struct GruResetBeforeSequence {
  static constexpr auto name = "gru_reset_before_sequence", grad_name = "gru_reset_before_sequence_grad";
  static constexpr auto summary = "the same of a GRU with the reset before the product";
  static constexpr const GatedCell& cell = kGruResetBefore;
};

template <Tensor (*kStep)(const Tensor&, const Tensor&, const Tensor&, const Tensor&)>
RecurrentState step(const Tensor& i, const RecurrentState& before, const RecurrentWeights<Tensor>& w) {
  return {kStep(i, before.h, w.weight_hh, w.bias_hh)};
}

constexpr const Primitive* kGruSteps[] = {&composite<GruStep>};
constexpr const Primitive* kGruStepsResetBefore[] = {&composite<GruStepResetBefore>};

}  // namespace

constinit const CellFunctions gru_functions = {step<gru_step>, all_steps<GruSequence>};
constinit const CellFunctions gru_reset_before_functions = {step<gru_step_reset_before>,
                                                            all_steps<GruResetBeforeSequence>};
constinit const CellOperations gru_operations = {&structured<Sequence<GruSequence>>,
                                                 &structured<SequenceGrad<GruSequence>>, kGruSteps};
constinit const CellOperations gru_reset_before_operations = {&structured<Sequence<GruResetBeforeSequence>>,
                                                              &structured<SequenceGrad<GruResetBeforeSequence>>,
                                                              kGruStepsResetBefore};

const GatedCell& gru_cell() { return kGru; }
const GatedCell& gru_reset_before_cell() { return kGruResetBefore; }

}  // namespace detail

Tensor gru_step(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh) {
  return detail::composed_of<detail::GruStep>({&i, &h, &w_hh, &b_hh});
}
Tensor gru_step_reset_before(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh) {
  return detail::composed_of<detail::GruStepResetBefore>({&i, &h, &w_hh, &b_hh});
}
Tensors gru_sequence(const Tensor& x, const RecurrentWeights<Tensor>& w, const Tensor& h0,
                     const SequenceOptions& options, bool reset_after) {
  const detail::GatedCell& cell = reset_after ? detail::kGru : detail::kGruResetBefore;
  return cell.functions->sequence(x, {h0, {}}, detail::borrowed(w), options);
}

Gru::Gru(std::int64_t input_size, std::int64_t hidden_size, const GruOptions& options, const Init& init)
    : LayerOf(options, options.reset_after.cell(), detail::sizes_of(input_size, hidden_size, options), init) {
  setting("reset_after", options.reset_after ? 1 : 0);
}

GruCell::GruCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init, bool bias)
    : RecurrentCell(detail::kGru, input_size, hidden_size, init, bias) {}

template class LayerOf<Gru, GruOptions, GatedRecurrent>;

}  // namespace ferrite::nn
