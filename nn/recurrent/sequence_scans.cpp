/// Recurrent layers in training as scans. The bits are those of nn/recurrent/cells_kernel.cpp and recurrence.cpp: the
/// formulas are theirs, and the sums over steps of a scan have the order of the gradients of weights.
#include "ferrite/nn/recurrent/sequence_scans.h"

#include <algorithm>
#include <array>

#include "ferrite/compile/scan_body.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/recurrent/detail/sequence_operation.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn::detail {
namespace {

using ferrite::detail::ScanBody;
using ferrite::detail::ScanSignature;
using nn::SequenceParts;

/// The gates of a step: what the next states are, and what is saved.
struct GatesOut {
  Tensors states, saved;
};
/// The cotangents of one step.
struct GatesBack {
  Tensors states;    ///< what passes to the states before without a product
  Tensors of_x;      ///< by gate, of x W_ih + b_ih
  Tensors of_h;      ///< by gate, of h W_hh + b_hh
  Shape order{};     ///< the order of gates in the chain of the product that gives the cotangent of h
  bool adds = true;  ///< whether that product is added to the first of `states`
};

struct Cell {
  std::string_view name;
  const GatedCell* cell;
  GatesOut (*forward)(const Tensors& x, const Tensors& h, const Tensors& before);
  /// Takes the cotangents of the states after the step, what was saved, the states before it and y.
  GatesBack (*back)(const Tensors& d, const Tensors& saved, const Tensors& before, const Tensor& y);
};

GatesOut gru(const Tensors& x, const Tensors& h, const Tensors& before) {
  const Tensor r = sigmoid(x[0] + h[0]), z = sigmoid(x[1] + h[1]), candidate = tanh(x[2] + r * h[2]);
  return {{candidate + z * (before[0] - candidate)}, {r, z, candidate, h[2]}};
}
GatesBack gru_back(const Tensors& d, const Tensors& saved, const Tensors& before, const Tensor&) {
  const Tensor &r = saved[0], &z = saved[1], &candidate = saved[2], &q = saved[3], &dh = d[0];
  const Tensor dn = dh * (1 - z) * (1 - candidate * candidate);
  const Tensor dz = dh * (before[0] - candidate) * z * (1 - z), dr = dn * q * r * (1 - r);
  return {{dh * z}, {dr, dz, dn}, {dr, dz, dn * r}, {2, 0, 1}};
}
GatesOut lstm(const Tensors& x, const Tensors& h, const Tensors& before) {
  const Tensor i = sigmoid(x[0] + h[0]), f = sigmoid(x[1] + h[1]), g = tanh(x[2] + h[2]), o = sigmoid(x[3] + h[3]);
  const Tensor c = f * before[1] + i * g;
  return {{o * tanh(c), c}, {i, f, g, o, c}};
}
GatesBack lstm_back(const Tensors& d, const Tensors& saved, const Tensors& before, const Tensor&) {
  const Tensor &i = saved[0], &f = saved[1], &g = saved[2], &o = saved[3], tc = tanh(saved[4]), &dh = d[0];
  const Tensor dc = d[1] + dh * o * (1 - tc * tc);
  const Tensors gates{dc * g * i * (1 - i), dc * before[1] * f * (1 - f), dc * i * (1 - g * g), dh * tc * o * (1 - o)};
  return {{Tensor(), dc * f}, gates, gates, {0, 1, 2, 3}, false};
}
GatesOut rnn(const Tensors& x, const Tensors& h, const Tensors&) { return {{tanh(x[0] + h[0])}, {}}; }
GatesBack rnn_back(const Tensors& d, const Tensors&, const Tensors&, const Tensor& y) {
  const Tensor gate = d[0] * (1 - y * y);
  return {{Tensor()}, {gate}, {gate}, {0}, false};
}
GatesOut rnn_relu(const Tensors& x, const Tensors& h, const Tensors&) { return {{relu(x[0] + h[0])}, {}}; }
GatesBack rnn_relu_back(const Tensors& d, const Tensors&, const Tensors&, const Tensor& y) {
  const Tensor gate = d[0] * where(gt(y, 0), 1, zeros(y.shape(), y.dtype()));
  return {{Tensor()}, {gate}, {gate}, {0}, false};
}

constexpr Cell kCells[] = {{"gru_sequence", &nn::detail::kGru, gru, gru_back},
                           {"lstm_sequence", &nn::detail::kLstm, lstm, lstm_back},
                           {"rnn_sequence", &nn::detail::kRnn, rnn, rnn_back},
                           {"rnn_relu_sequence", &nn::detail::kRnnRelu, rnn_relu, rnn_relu_back}};

const Cell* cell_of(std::string_view name) {
  const bool back = name.ends_with("_grad");
  if (back) name.remove_suffix(5);
  for (const Cell& c : kCells)
    if (c.name == name) return &c;
  return nullptr;
}

/// The operands of a sequence, as tensors with time on the first axis.
struct Operands {
  Operands(const GatedCell& cell, const Tensors& in, std::size_t begin, const nn::detail::SequenceOrder& order)
      : first(static_cast<int>(begin)) {
    const ferrite::OperandList list(in);
    const SequenceParts o = nn::detail::parts_of(cell, Inputs(list), begin);
    const auto at = [&](int k) { return k < 0 ? Tensor() : in[static_cast<std::size_t>(k)]; };
    x = by_time(at(o.x), order), w = o.w.map(at);
    before = {at(o.h0)};
    if (o.c0 >= 0) before.push_back(at(o.c0));
    parts = o;
    gates = cell.gates;
  }
  static Tensor by_time(const Tensor& v, const nn::detail::SequenceOrder& order) {
    return order.batch_first ? permute(v, {1, 0, 2}) : v;
  }
  std::int64_t steps() const { return x.shape()[0]; }

  SequenceParts parts;
  Tensor x;
  nn::RecurrentWeights<Tensor> w;
  Tensors before;
  int first, gates = 1;
};

/// Applies a scan whose body is a function of carries, xs and captures; it returns carries, terms of sums, and ys.
Tensors scan_with_sums(const std::function<Tensors(const Tensors&)>& body, const Tensors& operands, ScanSignature s,
                       std::int64_t steps, bool reverse) {
  std::vector<Spec> types;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Spec spec = operands[i].spec();
    if (i >= s.carries && i < s.carries + s.xs) spec.shape = ferrite::detail::without_steps(spec.shape);
    types.push_back(spec);
  }
  const auto traced = std::make_shared<const ScanBody>(trace(body, types), s);
  return ferrite::detail::scan_primitive().apply(ferrite::OperandList(operands),
                                                 ScanBody::attrs_of(traced, steps, reverse));
}

Tensors parts_of_last(const Tensor& x, std::int64_t parts) {
  Tensors list;
  const std::int64_t n = x.shape()[-1] / std::max<std::int64_t>(parts, 1);
  for (std::int64_t k = 0; k < parts; ++k) list.push_back(slice(x, -1, k * n, (k + 1) * n));
  return list;
}
Tensor join(const Tensors& list) { return list.size() == 1 ? list[0] : concat({list.data(), list.size()}, -1); }

/// Returns y, the last states and, if anything is saved, the stack of it.
Tensors run_forward(const Cell& cell, const Operands& o, bool reverse) {
  const bool biases = o.w.bias_ih.defined(), saves = cell.cell->saved > 0;
  Tensor i = matmul(o.x, o.w.weight_ih);
  if (biases) i = i + o.w.bias_ih;
  Tensors operands = o.before;
  operands.push_back(i);
  operands.push_back(o.w.weight_hh);
  if (biases) operands.push_back(o.w.bias_hh);
  const std::size_t states = o.before.size();
  const auto body = [&](const Tensors& in) {
    const Tensors before(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(states));
    Tensor h = matmul(in[0], in[states + 1]);
    if (biases) h = h + in[states + 2];
    const GatesOut gates = cell.forward(parts_of_last(in[states], o.gates), parts_of_last(h, o.gates), before);
    Tensors out = gates.states;
    out.push_back(gates.states[0]);
    if (saves) out.push_back(join(gates.saved));
    return out;
  };
  Tensors found = scan_with_sums(body, operands, {states, 1, 0}, o.steps(), reverse);
  Tensors out{found[states]};
  for (std::size_t k = 0; k < states; ++k) out.push_back(found[k]);
  if (saves) out.push_back(found[states + 1]);
  return out;
}

/// Returns a stack of states as each step finds them.
Tensor before_steps(const Tensor& stack, const Tensor& begin, bool reverse) {
  const std::int64_t T = stack.shape()[0];
  const Tensor first = unsqueeze(begin, 0);
  if (T == 1) return first;
  if (reverse) return concat({slice(stack, 0, 1, T), first}, 0);
  return concat({first, slice(stack, 0, 0, T - 1)}, 0);
}

Tensors run_backward(const Cell& cell, const Tensors& in, const nn::detail::SequenceWants& a) {
  const std::size_t states = cell.cell->has_memory ? 2 : 1, begin = 3 + states;
  const Operands o(*cell.cell, in, begin, a);
  const Tensor y = Operands::by_time(in[0], a);
  Tensor saved = in[1];
  if (cell.cell->saved > 0 && saved.numel() == 0) saved = run_forward(cell, o, a.reverse).back();
  const bool has_dy = in[2].numel() > 0;
  // Carries: cotangents of the states. Xs: what was saved, y, the states before, x, cotangents of y.
  Tensors operands;
  for (std::size_t k = 0; k < states; ++k)
    operands.push_back(in[3 + k].numel() ? in[3 + k] : zeros(o.before[k].shape(), o.before[k].dtype()));
  operands.push_back(cell.cell->saved > 0 ? saved : y);
  operands.push_back(y);
  operands.push_back(before_steps(y, o.before[0], a.reverse));
  if (states > 1)
    operands.push_back(before_steps(
        parts_of_last(saved, cell.cell->saved)[static_cast<std::size_t>(cell.cell->saved_c)], o.before[1], a.reverse));
  operands.push_back(o.x);
  if (has_dy) operands.push_back(Operands::by_time(in[2], a));
  const std::size_t xs = operands.size() - states;
  operands.push_back(o.w.weight_ih);
  operands.push_back(o.w.weight_hh);
  const auto body = [&](const Tensors& v) {
    std::size_t at = states;
    const Tensors kept = parts_of_last(v[at], cell.cell->saved);
    const Tensor &out = v[at + 1], &h = v[at + 2];
    Tensors before{h};
    at += 3;
    if (states > 1) before.push_back(v[at++]);
    const Tensor& x = v[at++];
    Tensors d(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(states));
    if (has_dy) d[0] = d[0] + v[at++];
    const Tensor &w_ih = v[at], &w_hh = v[at + 1];
    const GatesBack gates = cell.back(d, kept, before, out);
    const Tensors columns = parts_of_last(w_hh, o.gates);
    Tensors chain, weights;
    for (const std::int64_t g : gates.order) {
      chain.push_back(gates.of_h[static_cast<std::size_t>(g)]);
      weights.push_back(columns[static_cast<std::size_t>(g)]);
    }
    const Tensor product = matmul(join(chain), transpose(join(weights))), of_x = join(gates.of_x),
                 of_h = join(gates.of_h);
    Tensors next = gates.states;
    next[0] = gates.adds ? next[0] + product : product + 0.0;
    next.push_back(matmul(transpose(x), of_x));
    next.push_back(matmul(transpose(h), of_h));
    next.push_back(sum(of_x, {0}));
    next.push_back(sum(of_h, {0}));
    next.push_back(matmul(of_x, transpose(w_ih)));
    return next;
  };
  const Tensors found = scan_with_sums(body, operands, {states, xs, 4}, o.steps(), !a.reverse);
  Tensors out(static_cast<std::size_t>(o.parts.floats - o.first));
  const auto give = [&](int place, const Tensor& v) {
    if (place < 0) return;
    const std::int64_t k = place - o.first;
    out[static_cast<std::size_t>(k)] = a.has(k) ? v : zeros({0}, y.dtype());
  };
  const Tensor dx = found[states + 4];
  give(o.parts.x, a.batch_first ? permute(dx, {1, 0, 2}) : dx);
  give(o.parts.h0, found[0]);
  if (states > 1) give(o.parts.c0, found[1]);
  give(o.parts.w.weight_ih, found[states]);
  give(o.parts.w.weight_hh, found[states + 1]);
  give(o.parts.w.bias_ih, found[states + 2]);
  give(o.parts.w.bias_hh, found[states + 3]);
  return out;
}

}  // namespace

bool has_scan(const Graph& g, const Graph::Node& n) {
  const Cell* cell = cell_of(n.op->name);
  if (!cell) return false;
  const bool back = n.op->name.ends_with("_grad");
  std::vector<Spec> types;
  for (const ValueId v : n.in) types.push_back(g.values[v]);
  const std::size_t begin = back ? (cell->cell->has_memory ? 5 : 4) : 0;
  const SequenceParts o = nn::detail::parts_of(*cell->cell, types, begin);
  if (o.lengths >= 0 || o.resets >= 0 || o.w.weight_hr >= 0) return false;
  return back || g.values[n.out.back()].shape.numel() > 0;
}

Tensors as_scan(const Graph::Node& n, const Tensors& in) {
  const Cell& cell = *cell_of(n.op->name);
  if (n.op->name.ends_with("_grad")) return run_backward(cell, in, n.attrs.as<nn::detail::SequenceWants>());
  const auto a = n.attrs.as<nn::detail::SequenceSaves>();
  Tensors out = run_forward(cell, Operands(*cell.cell, in, 0, a), a.reverse);
  if (a.batch_first) out[0] = permute(out[0], {1, 0, 2});
  return out;
}

}  // namespace ferrite::nn::detail
