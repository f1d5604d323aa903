/// The LSTM: its step in operations and in plain numbers, its operation on sequences, and the layer.
#include "ferrite/nn/recurrent/lstm.h"

#include "ferrite/nn/recurrent/detail/recurrence_kernels.h"
#include "ferrite/nn/recurrent/detail/recurrent_options.h"
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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    step_oracle(kLstm, in, out, a.bias, a.projection);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = step_samples(kLstm);
    all[0].attrs = LstmStepAttrs{.bias = false};
    all[1].attrs = LstmStepAttrs{};
    all.push_back({.inputs = {{{2, 12}}, {{2, 2}}, {{2, 3}}, {{2, 12}}, {{12}}, {{3, 2}}},
                   .attrs = LstmStepAttrs{.projection = true}});
    return all;
  }
};

void one_step(StepOracle& s) {
  for (std::int64_t j = 0; j < s.H; ++j) {
    const auto u = static_cast<std::size_t>(j);
    for (const std::int64_t gate : {0, 1, 3}) s.save(gate, j) = logistic(s.sum(gate, j));
    s.save(2, j) = std::tanh(s.sum(2, j));
    s.c[u] = s.save(4, j) = s.save(1, j) * s.c[u] + s.save(0, j) * s.save(2, j);
    s.next[u] = s.save(3, j) * std::tanh(s.c[u]);
  }
}

void one_step_back(BackOracle& s) {
  for (std::int64_t j = 0; j < s.H; ++j) {
    const auto u = static_cast<std::size_t>(j);
    const double i = s.saved(0, j), f = s.saved(1, j), g = s.saved(2, j), o = s.saved(3, j);
    const double tc = std::tanh(s.saved(4, j)), dc = s.dc[u] + s.d[u] * o * (1 - tc * tc);
    s.add_sum(0, j, dc * g * i * (1 - i));
    s.add_sum(1, j, dc * s.c[u] * f * (1 - f));
    s.add_sum(2, j, dc * i * (1 - g * g));
    s.add_sum(3, j, s.d[u] * tc * o * (1 - o));
    s.dc[u] = dc * f;
  }
}

struct LstmSequence {
  static constexpr auto name = "lstm_sequence", grad_name = "lstm_sequence_grad";
  static constexpr auto summary = "all steps of an LSTM: outputs, last h, last c, and what the gradient needs";
  static constexpr const GatedCell& cell = kLstm;
};

RecurrentState step(const Tensor& i, const RecurrentState& before, const SequenceWeights& w) {
  return lstm_step(i, before, w.w_hh, w.b_hh, w.w_hr);
}
Tensors all_steps(const Tensor& x, const RecurrentState& before, const BorrowedWeights& w, const SequenceOptions& o) {
  return sequence<LstmSequence>(x, w, before, o);
}

constexpr const Primitive* kSteps[] = {&composite<LstmStep>};

}  // namespace

constinit const CellFunctions lstm_functions = {step, all_steps, one_step, one_step_back};
constinit const CellOperations lstm_operations = {&structured<Sequence<LstmSequence>>,
                                                  &structured<SequenceGrad<LstmSequence>>, kSteps};

}  // namespace detail

RecurrentState lstm_step(const Tensor& i, const RecurrentState& before, const Tensor& w_hh, const Tensor& b_hh,
                         const Tensor& w_hr) {
  const Tensors next = ferrite::detail::composed<detail::LstmStep>(
      detail::Defined{&i, &before.h, &before.c, &w_hh, &b_hh, &w_hr}, {b_hh.defined(), w_hr.defined()});
  return {next[0], next[1]};
}
Tensors lstm_sequence(const Tensor& x, const SequenceWeights& w, const RecurrentState& before,
                      const SequenceOptions& options) {
  return detail::sequence<detail::LstmSequence>(x, detail::BorrowedWeights::of(w), before, options);
}

Lstm::Lstm(std::int64_t input_size, std::int64_t hidden_size, const LstmOptions& options, const Init& init)
    : LayerOf(options, detail::kLstm, detail::sizes_of(input_size, hidden_size, options), init) {}

LstmCell::LstmCell(std::int64_t input_size, std::int64_t hidden_size, const Init& init, bool bias)
    : RecurrentCell(detail::kLstm, input_size, hidden_size, init, bias) {}

template class LayerOf<Lstm, LstmOptions, GatedRecurrent>;

}  // namespace ferrite::nn
