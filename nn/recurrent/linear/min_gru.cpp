/// The minimal GRU and LSTM.
#include "ferrite/nn/recurrent/min_gru.h"

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/recurrent/detail/linear_recurrence.h"
#include "ferrite/nn/recurrent/detail/scan_steps.h"
#include "ferrite/nn/step_graph.h"

namespace ferrite::nn {
namespace {

void check(const char* name, std::int64_t D, std::int64_t H, std::int64_t P) {
  if (D < 1 || H < 1 || P < 0)
    throw ValueError(std::string(name) + ": sizes must be positive, and proj_size 0 or above, got " +
                     std::to_string(D) + ", " + std::to_string(H) + " and " + std::to_string(P));
}

/// The gates, the recurrence, the projection.
std::size_t add_steps_of(const Layer& layer, detail::MinimalCell cell, std::int64_t H, const Linear& gates,
                         const std::optional<Linear>& out, StepGraph& graph, std::size_t x) {
  const std::size_t z = graph.add(gates, x);
  const std::size_t h = graph.add(layer, detail::minimal_step(cell, H, graph.rows(z)), {z});
  return out ? graph.add(*out, h) : h;
}

MinimalOptions steps_of(const SequenceOptions& o) { return {o.lengths, o.resets}; }

}  // namespace

MinGru::MinGru(std::int64_t input_size, std::int64_t hidden_size, const MinGruOptions& o, const Init& init)
    : LayerOf(o, name, (check(name, input_size, hidden_size, o.proj_size), input_size), hidden_size,
              std::vector<RowState>{{"h", {hidden_size}}}, init),
      to_hidden_and_gate_(input_size, 2 * hidden_size, init.child("to_hidden_and_gate"), o.bias) {
  adopt("to_hidden_and_gate", to_hidden_and_gate_);
  if (o.proj_size > 0) adopt("to_out", to_out_.emplace(hidden_size, o.proj_size, init.child("to_out"), false));
}

Tensor MinGru::run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const {
  const Tensor h = min_gru_scan(to_hidden_and_gate_(x), states[0], steps_of(options));
  states[0] = detail::last_of(h, options);
  return to_out_ ? (*to_out_)(h) : h;
}

std::size_t MinGru::add_steps(StepGraph& graph, std::size_t x) const {
  return add_steps_of(*this, detail::MinimalCell::gru, hidden_size(), to_hidden_and_gate_, to_out_, graph, x);
}

MinLstm::MinLstm(std::int64_t input_size, std::int64_t hidden_size, const MinLstmOptions& o, const Init& init)
    : LayerOf(o, name, (check(name, input_size, hidden_size, o.proj_size), input_size), hidden_size,
              std::vector<RowState>{{"h", {hidden_size}}}, init),
      to_hidden_and_f_i_gate_(input_size, 3 * hidden_size, init.child("to_hidden_and_f_i_gate"), o.bias) {
  adopt("to_hidden_and_f_i_gate", to_hidden_and_f_i_gate_);
  if (o.proj_size > 0) adopt("to_out", to_out_.emplace(hidden_size, o.proj_size, init.child("to_out"), false));
}

Tensor MinLstm::run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const {
  const Tensor h = min_lstm_scan(to_hidden_and_f_i_gate_(x), states[0], steps_of(options));
  states[0] = detail::last_of(h, options);
  return to_out_ ? (*to_out_)(h) : h;
}

std::size_t MinLstm::add_steps(StepGraph& graph, std::size_t x) const {
  return add_steps_of(*this, detail::MinimalCell::lstm, hidden_size(), to_hidden_and_f_i_gate_, to_out_, graph, x);
}

template class LayerOf<MinGru, MinGruOptions, SizedSequenceLayer>;
template class LayerOf<MinLstm, MinLstmOptions, SizedSequenceLayer>;

}  // namespace ferrite::nn
