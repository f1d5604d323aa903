/// The steps of recurrent layers in operations: their definition, and what the sequences of sequence.cpp are held to.
#include "ferrite/nn/recurrent/steps.h"

#include <algorithm>
#include <cmath>

#include "ferrite/tensor/define.h"

namespace ferrite::nn {
namespace detail {
using namespace ferrite::detail;

namespace {

/// An operand that may be left out, as the last one.
Tensor or_none(Inputs in, std::size_t i) { return i < in.size() ? in[i] : Tensor(); }

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

/// Row b of x times column j of w, and the bias, where there is one.
double product_of(const Dense& x, std::int64_t b, const Dense& w, std::int64_t j, std::span<const Dense> bias) {
  double total = bias.empty() ? 0 : bias[0].values[static_cast<std::size_t>(j)];
  for (std::int64_t k = 0; k < w.shape[0]; ++k) total += x.at({b, k}) * w.at({k, j});
  return total;
}

/// Operands from the i-th on.
std::span<const Dense> from(std::span<const Dense> in, std::size_t i) { return in.subspan(std::min(i, in.size())); }

/// Samples of a step: i [2, G H], h [2, H], for a memory c [2, H], then w_hh [H, G H], with and without its bias.
std::vector<Sample> steps(std::int64_t gates, bool memory) {
  const std::int64_t H = 3;
  std::vector<Spec> in = {{{2, gates * H}}, {{2, H}}};
  if (memory) in.push_back({{2, H}});
  in.push_back({{H, gates * H}});
  std::vector<Spec> with_bias = in;
  with_bias.push_back({{gates * H}});
  return {{.inputs = in}, {.inputs = with_bias}};
}

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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    const std::int64_t H = in[1].shape[1];
    for_each_index(out[0].shape, [&](const Shape& at) {
      const std::int64_t b = at[0], j = at[1];
      const auto sum = [&](std::int64_t gate) { return product_of(in[1], b, in[2], gate * H + j, from(in, 3)); };
      const double r = sigmoid_of(in[0].at({b, j}) + sum(0)), z = sigmoid_of(in[0].at({b, H + j}) + sum(1));
      const double n = std::tanh(in[0].at({b, 2 * H + j}) + r * sum(2));
      out[0].at(at) = (1 - z) * n + z * in[1].at(at);
    });
  }
  static std::vector<Sample> samples() { return steps(3, false); }
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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    const std::int64_t H = in[1].shape[1];
    Dense reset = in[1];
    const auto gate = [&](const Dense& h, std::int64_t b, std::int64_t column) {
      return in[0].at({b, column}) + product_of(h, b, in[2], column, from(in, 3));
    };
    for_each_index(out[0].shape, [&](const Shape& at) { reset.at(at) *= sigmoid_of(gate(in[1], at[0], at[1])); });
    for_each_index(out[0].shape, [&](const Shape& at) {
      const double z = sigmoid_of(gate(in[1], at[0], H + at[1])), n = std::tanh(gate(reset, at[0], 2 * H + at[1]));
      out[0].at(at) = (1 - z) * n + z * in[1].at(at);
    });
  }
  static std::vector<Sample> samples() { return steps(3, false); }
};

struct LstmStepAttrs {
  bool bias = true, projection = false;
  static constexpr auto fields =
      std::tuple(attr("bias", &LstmStepAttrs::bias), attr("projection", &LstmStepAttrs::projection));
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
    const std::int64_t H = in[2].shape[1];
    Dense h = in[2];
    for_each_index(in[2].shape, [&](const Shape& at) {
      const auto gate = [&](std::int64_t g) {
        const std::int64_t column = g * H + at[1];
        return in[0].at({at[0], column}) +
               product_of(in[1], at[0], in[3], column, a.bias ? from(in, 4) : std::span<const Dense>());
      };
      const double c = sigmoid_of(gate(1)) * in[2].at(at) + sigmoid_of(gate(0)) * std::tanh(gate(2));
      out[1].at(at) = c;
      h.at(at) = sigmoid_of(gate(3)) * std::tanh(c);
    });
    for_each_index(out[0].shape, [&](const Shape& at) {
      out[0].at(at) = a.projection ? product_of(h, at[0], in[a.bias ? 5 : 4], at[1], {}) : h.at(at);
    });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = steps(4, true);
    all[0].attrs = LstmStepAttrs{.bias = false};
    all[1].attrs = LstmStepAttrs{};
    all.push_back({.inputs = {{{2, 12}}, {{2, 2}}, {{2, 3}}, {{2, 12}}, {{12}}, {{3, 2}}},
                   .attrs = LstmStepAttrs{.projection = true}});
    return all;
  }
};

struct RnnStepAttrs {
  bool relu = false;
  static constexpr auto fields = std::tuple(attr("relu", &RnnStepAttrs::relu));
};

struct RnnStep {
  using Attributes = RnnStepAttrs;
  static constexpr auto name = "rnn_step", onnx = "", summary = "tanh, or relu, of i + h . w_hh + b_hh";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor x = in[0] + affine(in[1], in[2], or_none(in, 3));
    return a.relu ? relu(x) : tanh(x);
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& at) {
      const double x = in[0].at(at) + product_of(in[1], at[0], in[2], at[1], from(in, 3));
      out[0].at(at) = a.relu ? std::max(0.0, x) : std::tanh(x);
    });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = steps(1, false);
    all[0].attrs = RnnStepAttrs{true};
    all[0].smooth_at_ties = false;
    all[1].attrs = RnnStepAttrs{};
    return all;
  }
};

}  // namespace

std::span<const Primitive* const> step_composites() {
  static constexpr const Primitive* list[] = {&composite<GruStep>, &composite<GruStepResetBefore>, &composite<LstmStep>,
                                              &composite<RnnStep>};
  return list;
}

}  // namespace detail

using ferrite::detail::composed;

namespace {

/// Operands without those that are undefined.
struct Given {
  Given(std::initializer_list<const Tensor*> operands) {
    for (const Tensor* t : operands)
      if (t->defined()) list.push_back(t);
  }
  operator Inputs() const { return {list.data(), list.size()}; }
  InlineVector<const Tensor*, 8> list;
};

}  // namespace

Tensor gru_step(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh) {
  return composed<detail::GruStep>(Given{&i, &h, &w_hh, &b_hh});
}

Tensor gru_step_reset_before(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh) {
  return composed<detail::GruStepResetBefore>(Given{&i, &h, &w_hh, &b_hh});
}

RecurrentState lstm_step(const Tensor& i, const RecurrentState& before, const Tensor& w_hh, const Tensor& b_hh,
                         const Tensor& w_hr) {
  const Tensors next = composed<detail::LstmStep>(Given{&i, &before.h, &before.c, &w_hh, &b_hh, &w_hr},
                                                  {b_hh.defined(), w_hr.defined()});
  return {next[0], next[1]};
}

Tensor rnn_step(const Tensor& i, const Tensor& h, const Tensor& w_hh, const Tensor& b_hh, bool with_relu) {
  return composed<detail::RnnStep>(Given{&i, &h, &w_hh, &b_hh}, {with_relu});
}

namespace {

/// The mask of every step, each [B, 1]; empty where there is none.
struct StepMasks {
  StepMasks(const SequenceOptions& o, std::int64_t steps) {
    Tensor inside;  // [T, B, 1]
    if (o.lengths.defined()) inside = lt(reshape(arange(steps), {steps, 1, 1}), reshape(o.lengths, {1, -1, 1}));
    if (o.lengths.defined()) valid = unbind(inside, 0);
    if (!o.resets.defined()) return;
    const Tensor borders = unsqueeze(transpose(o.resets), 2);
    anew = unbind(o.lengths.defined() ? borders && inside : borders, 0);
  }
  Tensors valid;  ///< within the length
  Tensors anew;   ///< begins anew
};

}  // namespace

Tensors unroll(const Tensor& i, const RecurrentState& before, const RecurrentStep& step, const SequenceOptions& o) {
  if (!step) throw ValueError("unroll: the step is null");
  const std::int64_t time = o.batch_first ? 1 : 0;
  const Tensors inputs = unbind(i, time);
  const std::size_t T = inputs.size();
  const StepMasks masks(o, static_cast<std::int64_t>(T));
  RecurrentState state = before;
  Tensors outputs(T);
  for (std::size_t n = 0; n < T; ++n) {
    const std::size_t t = o.reverse ? T - 1 - n : n;
    if (!masks.anew.empty() && !(o.reverse && n == 0)) {
      const Tensor& anew = masks.anew[o.reverse ? t + 1 : t];  // a border lies before the step that begins anew
      state.h = where(anew, 0, state.h);
      if (state.c.defined()) state.c = where(anew, 0, state.c);
    }
    RecurrentState next = step(inputs[t], state);
    if (masks.valid.empty()) {
      outputs[t] = next.h;
      state = std::move(next);
      continue;
    }
    outputs[t] = where(masks.valid[t], next.h, 0);
    state.h = where(masks.valid[t], next.h, state.h);
    if (state.c.defined()) state.c = where(masks.valid[t], next.c, state.c);
  }
  Tensors out = {stack(outputs, time), state.h};
  if (state.c.defined()) out.push_back(state.c);
  return out;
}

}  // namespace ferrite::nn
