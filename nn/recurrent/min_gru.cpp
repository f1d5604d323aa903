/// The minimal GRU and LSTM: their recurrences as operations, with gradients, and the layers.
#include "ferrite/nn/recurrent/min_gru.h"

#include <algorithm>
#include <cmath>

#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/recurrent/detail/linear_recurrence.h"
#include "ferrite/nn/recurrent/detail/minimal.h"
#include "ferrite/nn/step_graph.h"
#include "ferrite/tensor/define.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/kernel/tables.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/threads.h"

// ---- the recurrences -----------------------------------------------------------------------------------

namespace ferrite::nn {
namespace detail {

using namespace ferrite::detail;

FERRITE_FLOAT_TABLES(MinimalKernels, min_gru_kernels, min_gru_in_use)
FERRITE_FLOAT_TABLES(MinimalKernels, min_lstm_kernels, min_lstm_in_use)

namespace {

/// The optional operands that are given; they come last, in this order.
struct MinimalAttrs {
  bool lengths = false, resets = false;
  static constexpr auto fields =
      attr_list(attr("lengths", &MinimalAttrs::lengths), attr("resets", &MinimalAttrs::resets));
};

/// The operands from h0 on.
struct Behind {
  Behind(Inputs in, std::size_t h0, const MinimalAttrs& a) : state(in[h0]) {
    if (a.lengths) lengths = &in[++h0];
    if (a.resets) resets = &in[++h0];
  }
  const Tensor& state;
  const Tensor *lengths = nullptr, *resets = nullptr;
};

/// Returns the type of h, [B, T, H], after checking gates [B, T, G H], h0 [B, H], lengths and resets.
Spec check(std::string_view name, MinimalCell cell, Inputs in, std::size_t h0, const MinimalAttrs& a) {
  const Spec gates = in[0].spec();
  const std::int64_t G = gates_of(cell);
  if (in.size() != h0 + 1 + (a.lengths ? 1U : 0U) + (a.resets ? 1U : 0U))
    throw_shape(name, "takes other operands than " + std::to_string(in.size()));
  if (!is_float(gates.dtype) || is_storage_only(gates.dtype) || gates.shape.rank() != 3 || gates.shape[2] % G != 0)
    throw_shape(name, "expects gates [B, T, " + std::to_string(G) + " H] of floats, got " + gates.str());
  const std::int64_t B = gates.shape[0], T = gates.shape[1], H = gates.shape[2] / G;
  const Behind o(in, h0, a);
  const auto fits = [&](const Tensor* x, const Spec& wanted, const char* what) {
    if (x && x->spec() != wanted)
      throw_shape(name, std::string("expects ") + what + wanted.str() + ", got " + x->spec().str());
  };
  fits(&o.state, {{B, H}, gates.dtype}, "h0 ");
  fits(o.lengths, {{B}, Dtype::i64}, "lengths ");
  fits(o.resets, {{B, T}, Dtype::boolean}, "resets ");
  return {{B, T, H}, gates.dtype};
}

/// Calls f(row, offset of its h, offset of its state) for all rows, which threads share.
template <class T, class F>
void each_row(MinimalCell cell, const Tensor& gates, const Tensor& h0, const Behind& o, F&& f) {
  const std::int64_t B = gates.shape()[0], steps = gates.shape()[1], G = gates_of(cell), H = gates.shape()[2] / G;
  std::optional<RowMajor> lengths, resets;
  if (o.lengths) lengths.emplace(*o.lengths);
  if (o.resets) resets.emplace(*o.resets);
  const auto run = [&](std::int64_t b) {
    MinimalRow<T> row{steps, H, G * H, H, gates.data<T>() + b * steps * G * H, h0.data<T>() + b * H, nullptr};
    if (lengths) row.steps = std::clamp<std::int64_t>((*lengths)->template data<std::int64_t>()[b], 0, steps);
    if (resets) row.resets = reinterpret_cast<const std::uint8_t*>((*resets)->template data<bool>()) + b * steps;
    f(row, b * steps * H, b * H);
  };
  constexpr std::int64_t kWorth = 1 << 14;  // elements
  if (B * steps * H < kWorth) {
    for (std::int64_t b = 0; b < B; ++b) run(b);
  } else {
    parallel_for(B, run);
  }
}

template <class F>
void visit_float(Dtype t, F&& f) {
  t == Dtype::f32 ? f(float{}) : f(double{});
}

// ---- the definition, in plain loops and in operations -----------------------------------------------------

/// Computes the recurrence by linear_scan, for exporters and second derivatives.
Tensor composed(MinimalCell cell, Inputs in, const MinimalAttrs& a) {
  const Tensors g = chunk(in[0], gates_of(cell), -1);
  const Tensor candidate = where(ge(g[0], 0), g[0] + 0.5, sigmoid(g[0]));
  // sigmoid(f) / (sigmoid(f) + sigmoid(i)) from the difference of logarithms, because both may be 0.
  const Tensor d = cell == MinimalCell::gru ? -g[1] : log_sigmoid(g[1]) - log_sigmoid(g[2]);
  const Behind o(in, 1, a);
  return linear_scan(sigmoid(d), sigmoid(-d) * candidate, o.state,
                     {.lengths = o.lengths ? *o.lengths : Tensor(), .resets = o.resets ? *o.resets : Tensor()});
}

// ---- records -------------------------------------------------------------------------------------------------

/// The gradient of a minimal recurrence: gates, h, the cotangent of h, h0, perhaps lengths and resets -> the cotangents
/// of gates and h0.
template <MinimalCell cell>
struct MinimalGrad {
  using Attributes = MinimalAttrs;
  static constexpr auto name = cell == MinimalCell::gru ? "min_gru_scan_grad" : "min_lstm_scan_grad";
  static constexpr auto onnx = "", stablehlo = "";
  static constexpr auto summary = "the gradients of the recurrence of a minimal layer";
  static constexpr Reads reads = reads_inputs;
  static constexpr bool second_order_by_reference = true;
  static constexpr std::size_t kState = 3;

  static Specs infer(Inputs in, const Attributes& a) {
    const Spec h = check(name, cell, in, kState, a);
    for (const std::size_t k : {1U, 2U})
      if (in[k].spec() != h)
        throw_shape(name, "expects h and its cotangent " + h.str() + ", got " + in[k].spec().str());
    return {in[0].spec(), in[kState].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const RowMajor gates(in[0]), h(in[1]), dh(in[2]), h0(in[kState]);
    visit_float(gates->dtype(), [&](auto zero) {
      using T = decltype(zero);
      const std::int64_t H = h0->shape()[1];
      T *dgates = Writer::data<T>(out[0]), *dh0 = Writer::data<T>(out[1]);
      each_row<T>(cell, *gates, *h0, Behind(in, kState, a),
                  [&](const MinimalRow<T>& row, std::int64_t at, std::int64_t s) {
                    constexpr std::int64_t G = gates_of(cell);
                    Room<T> room(2 * H);
                    minimal_kernels<T>(cell).gradient(row, h->template data<T>() + at, dh->template data<T>() + at,
                                                      dgates + at * G, dh0 + s, room.get());
                    const std::int64_t T_ = gates->shape()[1];
                    std::fill_n(dgates + at * G + row.steps * G * H, (T_ - row.steps) * G * H, T(0));
                  });
    });
  }
  static Tensors reference(Inputs in, const Attributes& a) {
    const Tensors g = chunk(in[0], gates_of(cell), -1);
    const Tensor low = sigmoid(g[0]), positive = ge(g[0], 0);
    const Tensor candidate = where(positive, g[0] + 0.5, low), slope = where(positive, 1.0, low * (1 - low));
    const Tensor d = cell == MinimalCell::gru ? -g[1] : log_sigmoid(g[1]) - log_sigmoid(g[2]);
    const Tensor keeps = sigmoid(d), takes = sigmoid(-d);
    const Behind o(in, kState, a);
    const std::int64_t T = in[1].shape()[1];
    if (T == 0) return {in[0], zeros_like(o.state)};
    const auto none_at_resets = [&](const Tensor& x) { return o.resets ? where(unsqueeze(*o.resets, 2), 0, x) : x; };
    const Tensor later = concat({slice(keeps, 1, 1, T), zeros_like(slice(keeps, 1, 0, 1))}, 1);
    const Tensor arriving = linear_scan(
        later, in[2], {},
        {.reverse = true, .lengths = o.lengths ? *o.lengths : Tensor(), .resets = o.resets ? *o.resets : Tensor()});
    const Tensor before = none_at_resets(concat({unsqueeze(o.state, 1), slice(in[1], 1, 0, T - 1)}, 1));
    const Tensor of_state = select(none_at_resets(arriving * keeps), 1, 0);
    const Tensor of_d = arriving * (before - candidate) * (keeps * takes);
    Tensors parts{arriving * takes * slope};
    if (cell == MinimalCell::gru) {
      parts.push_back(-of_d);
    } else {
      parts.push_back(of_d * sigmoid(-g[1]));
      parts.push_back(-of_d * sigmoid(-g[2]));
    }
    return {concat(parts, -1), of_state};
  }
};

/// The recurrence of a minimal layer: gates, h0, perhaps lengths and resets -> h.
template <MinimalCell cell>
struct MinimalScan {
  using Attributes = MinimalAttrs;
  static constexpr auto name = cell == MinimalCell::gru ? "min_gru_scan" : "min_lstm_scan";
  static constexpr auto onnx = "", stablehlo = "";
  static constexpr TimeRule time = TimeRule::minimal_recurrence;
  static constexpr auto summary = cell == MinimalCell::gru ? "h[t] = h[t-1] + sigmoid(z[t]) (g(c[t]) - h[t-1])"
                                                           : "h[t] = f[t] h[t-1] + i[t] g(c[t]) of a minimal LSTM";
  static constexpr Reads reads = reads_all;

  static Specs infer(Inputs in, const Attributes& a) { return {check(name, cell, in, 1, a)}; }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const RowMajor gates(in[0]), h0(in[1]);
    visit_float(gates->dtype(), [&](auto zero) {
      using T = decltype(zero);
      T* h = Writer::data<T>(out[0]);
      each_row<T>(cell, *gates, *h0, Behind(in, 1, a), [&](const MinimalRow<T>& row, std::int64_t at, std::int64_t) {
        minimal_kernels<T>(cell).scan(row, h + at);
        std::fill_n(h + at + row.steps * row.H, (gates->shape()[1] - row.steps) * row.H, T(0));
      });
    });
  }
  static Tensors reference(Inputs in, const Attributes& a) { return {composed(cell, in, a)}; }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    Tensors operands{v.in(0), v.out(), v.grad()};
    for (std::size_t k = 1; k < v.inputs(); ++k) operands.push_back(v.in(k));
    const Tensors all = structured<MinimalGrad<cell>>.apply(OperandList(operands), a);
    Tensors g(v.inputs());
    if (v.wants(0)) g[0] = all[0];
    if (v.wants(1)) g[1] = all[1];
    return g;
  }
};

template <MinimalCell cell>
Tensor run(const Tensor& gates, const Tensor& h0, const MinimalOptions& o) {
  Tensors in{gates, h0};
  if (!h0.defined()) {
    if (gates.rank() != 3)
      throw_shape(MinimalScan<cell>::name, "expects gates [B, T, .. H], got " + gates.shape().str());
    in[1] = zeros({gates.shape()[0], gates.shape()[2] / gates_of(cell)}, gates.dtype());
  }
  if (o.lengths.defined())
    in.push_back(
        gates.rank() == 3 && o.lengths.dtype() == Dtype::i64
            ? checked(o.lengths, 0, gates.shape()[1], Label::of(std::string(MinimalScan<cell>::name) + ": a length of"))
            : o.lengths);
  if (o.resets.defined()) in.push_back(o.resets);
  return structured<MinimalScan<cell>>.apply(OperandList(in), MinimalAttrs{o.lengths.defined(), o.resets.defined()})[0];
}

}  // namespace

std::span<const Primitive* const> minimal_operations() {
  static constexpr const Primitive* list[] = {
      &structured<MinimalScan<MinimalCell::gru>>, &structured<MinimalGrad<MinimalCell::gru>>,
      &structured<MinimalScan<MinimalCell::lstm>>, &structured<MinimalGrad<MinimalCell::lstm>>};
  return list;
}

}  // namespace detail

Tensor min_gru_scan(const Tensor& gates, const Tensor& h0, const MinimalOptions& options) {
  return detail::run<detail::MinimalCell::gru>(gates, h0, options);
}
Tensor min_lstm_scan(const Tensor& gates, const Tensor& h0, const MinimalOptions& options) {
  return detail::run<detail::MinimalCell::lstm>(gates, h0, options);
}

// ---- the layers ----------------------------------------------------------------------------------------

namespace {

void check(const char* name, std::int64_t D, std::int64_t H, std::int64_t P) {
  if (D < 1 || H < 1 || P < 0)
    throw ValueError(std::string(name) + ": sizes must be positive, and proj_size 0 or above, got " +
                     std::to_string(D) + ", " + std::to_string(H) + " and " + std::to_string(P));
}

/// Adds the steps of a minimal layer: the gates, the recurrence, the projection.
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
