/// Sequences and their gradients as scans. The arithmetic of a step is that of nn/recurrent/cells_kernel.cpp, in the
/// same order; sums over steps are those of a scan, which adds rows in the order of nn/recurrent/recurrence.cpp.
#include "ferrite/exchange/freeze/plain_operations.h"

#include <functional>
#include <map>
#include <memory>

#include "ferrite/compile/passes.h"
#include "ferrite/compile/scan_body.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/nn/recurrent/detail/sequence_operation.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {
namespace {

using namespace ferrite::detail;
using nn::SequenceParts;
using nn::detail::SequenceOrder;
using nn::detail::SequenceSaves;
using nn::detail::SequenceWants;

// ---- cells ------------------------------------------------------------------------------------------------

/// The cotangents of one step, by gate: `input` of x W_ih + b_ih, `product` of h W_hh + b_hh. `back` lists the gates in
/// the order in which the product with the transposed W_hh adds them up.
struct GateCotangents {
  Tensors input, product;
  Tensor passed{};  ///< the part of h's cotangent that does not pass through the product; undefined: zeros
  Tensor memory{};  ///< the cotangent of the memory before the step
};

/// A cell's step and its gradient in operations, with the bits of its kernels.
struct Cell {
  std::string_view name;  ///< of its operation on sequences
  std::size_t gates = 1;
  bool has_memory = false;
  std::vector<std::size_t> back;  ///< the order of gates in the product with the transposed W_hh
  /// Computes the values after a step from the gates' sums x W_ih + b_ih and h W_hh + b_hh: h', (c',) then what is
  /// saved.
  Tensors (*step)(const Tensors& i, const Tensors& q, const Tensor& h, const Tensor& c) = nullptr;
  /// Computes the cotangents of a step from that of h' and c', what was saved, h before the step, y = h' and c before
  /// it.
  GateCotangents (*step_back)(const Tensor& dh, const Tensor& dc, std::span<const Tensor> saved, const Tensor& h,
                              const Tensor& y, const Tensor& c) = nullptr;
  std::size_t saved = 0;
};

Tensors gru_values(const Tensors& i, const Tensors& q, const Tensor& h, const Tensor&) {
  const Tensor r = sigmoid(i[0] + q[0]), z = sigmoid(i[1] + q[1]), n = tanh(i[2] + r * q[2]);
  return {n + z * (h - n), r, z, n, q[2]};
}
GateCotangents gru_back(const Tensor& dh, const Tensor&, std::span<const Tensor> s, const Tensor& h, const Tensor&,
                        const Tensor&) {
  const Tensor &r = s[0], &z = s[1], &n = s[2], &q = s[3];
  const Tensor dn = dh * (1 - z) * (1 - n * n);
  const Tensor dz = dh * (h - n) * z * (1 - z);
  const Tensor dr = dn * q * r * (1 - r);
  return {.input = {dr, dz, dn}, .product = {dr, dz, dn * r}, .passed = dh * z};
}

Tensors lstm_values(const Tensors& x, const Tensors& q, const Tensor&, const Tensor& before) {
  const Tensor i = sigmoid(x[0] + q[0]), f = sigmoid(x[1] + q[1]), g = tanh(x[2] + q[2]), o = sigmoid(x[3] + q[3]);
  const Tensor c = f * before + i * g;
  return {o * tanh(c), c, i, f, g, o, c};
}
GateCotangents lstm_back(const Tensor& dh, const Tensor& after, std::span<const Tensor> s, const Tensor&, const Tensor&,
                         const Tensor& before) {
  const Tensor &i = s[0], &f = s[1], &g = s[2], &o = s[3], tc = tanh(s[4]);
  const Tensor dc = after + dh * o * (1 - tc * tc);
  const Tensors d{dc * g * i * (1 - i), dc * before * f * (1 - f), dc * i * (1 - g * g), dh * tc * o * (1 - o)};
  return {.input = d, .product = d, .memory = dc * f};
}

Tensors rnn_values(const Tensors& i, const Tensors& q, const Tensor&, const Tensor&) { return {tanh(i[0] + q[0])}; }
GateCotangents rnn_back(const Tensor& dh, const Tensor&, std::span<const Tensor>, const Tensor&, const Tensor& y,
                        const Tensor&) {
  const Tensor d = dh * (1 - y * y);
  return {.input = {d}, .product = {d}};
}

Tensors rnn_relu_values(const Tensors& i, const Tensors& q, const Tensor&, const Tensor&) {
  return {relu(i[0] + q[0])};
}
GateCotangents rnn_relu_back(const Tensor& dh, const Tensor&, std::span<const Tensor>, const Tensor&, const Tensor& y,
                             const Tensor&) {
  const Tensor d = dh * where(y > 0, full({}, 1, y.dtype()), full({}, 0, y.dtype()));
  return {.input = {d}, .product = {d}};
}

/// Returns the cell of an operation on sequences or of its gradient, or null.
const Cell* cell_of(std::string_view operation) {
  static const Cell cells[] = {
      {"gru_sequence", 3, false, {2, 0, 1}, gru_values, gru_back, 4},
      {"lstm_sequence", 4, true, {0, 1, 2, 3}, lstm_values, lstm_back, 5},
      {"rnn_sequence", 1, false, {0}, rnn_values, rnn_back, 0},
      {"rnn_relu_sequence", 1, false, {0}, rnn_relu_values, rnn_relu_back, 0},
  };
  for (const Cell& c : cells)
    if (operation == c.name || operation == std::string(c.name) + "_grad") return &c;
  return nullptr;
}

// ---- scans ------------------------------------------------------------------------------------------------

/// The body of a scan: its outputs are the carries after the step, terms of the sums, and one step of the ys.
using Body = std::function<Tensors(const Tensors& carry, const Tensors& x, const Tensors& captures)>;

Tensors run_scan(const Body& body, const Tensors& carries, const Tensors& xs, const Tensors& captures, std::size_t sums,
                 std::int64_t steps, bool reverse) {
  std::vector<Spec> specs;
  for (const Tensor& t : carries) specs.push_back(t.spec());
  for (const Tensor& t : xs) specs.push_back({without_steps(t.shape()), t.dtype()});
  for (const Tensor& t : captures) specs.push_back(t.spec());
  const auto part = [](const Tensors& in, std::size_t begin, std::size_t n) {
    return Tensors(in.begin() + static_cast<std::ptrdiff_t>(begin),
                   in.begin() + static_cast<std::ptrdiff_t>(begin + n));
  };
  Graph g = trace(
      [&](const Tensors& in) {
        return body(part(in, 0, carries.size()), part(in, carries.size(), xs.size()),
                    part(in, carries.size() + xs.size(), captures.size()));
      },
      specs);
  const ScanSignature signature{carries.size(), xs.size(), sums};
  const Attrs attrs = ScanBody::attrs_of(std::make_shared<const ScanBody>(std::move(g), signature), steps, reverse);
  Tensors operands = carries;
  for (const Tensors* list : {&xs, &captures})
    for (const Tensor& t : *list) operands.push_back(t);
  return scan_primitive().apply(OperandList(operands), attrs);
}

/// The operands of a sequence and the order of its axes.
class Sequence {
 public:
  Sequence(const Cell& cell, std::span<const Tensor> in, const SequenceOrder& order, const std::string& where)
      : cell_(cell), in_(in), order_(order) {
    std::vector<Spec> specs;
    for (const Tensor& t : in) specs.push_back(t.spec());
    parts_ = nn::sequence_parts(cell.name, specs);
    const auto refuse = [&](const char* what) {
      throw ValueError(where + " has " + what + ", which has no plain form");
    };
    if (parts_.lengths >= 0) refuse("lengths");
    if (parts_.resets >= 0) refuse("resets");
    if (parts_.w.weight_hr >= 0) refuse("a projection");
    steps_ = x().shape()[0];
  }

  const SequenceParts& parts() const { return parts_; }
  Tensor x() const { return by_time(at(parts_.x)); }

  /// Returns y, the last states, then stacks of the states before each step and of what the gradient reads.
  struct Forward {
    Tensors results, before, saved;
  };
  Forward forward(bool save) const {
    const std::size_t states = cell_.has_memory ? 2 : 1;
    Tensors carries{at(parts_.h0)};
    if (cell_.has_memory) carries.push_back(at(parts_.c0));
    const auto body = [&](const Tensors& carry, const Tensors& xs, const Tensors& captures) {
      const Tensors i = gates(matmul(xs[0], captures[0]), captures, 2),
                    q = gates(matmul(carry[0], captures[1]), captures, 3);
      const Tensors all = cell_.step(i, q, carry[0], states > 1 ? carry[1] : Tensor());
      Tensors out(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(states));
      out.push_back(all[0]);
      if (save) out.append(all.begin() + states, all.end());
      return out;
    };
    const Tensors found = run_scan(body, carries, {x()}, weights(), 0, steps_, order_.reverse);
    Forward f;
    // One stack of all states holds those before and those after each step.
    const Tensor h = all_states(carries[0], found[states]);
    f.results = {as_given(after(h))};
    f.results.append(found.begin(), found.begin() + states);
    f.before = {before(h)};
    f.saved.append(found.begin() + states + 1, found.end());
    if (states > 1 && save) f.before.push_back(before(all_states(carries[1], f.saved.back())));
    return f;
  }

  /// Returns the gradients of all operands of floats; undefined where they are not wanted.
  Tensors backward(const Tensor& y, const Forward& f, const Tensors& cotangents, const SequenceWants& wants) const {
    const std::size_t states = cell_.has_memory ? 2 : 1;
    Tensors carries;
    for (std::size_t k = 0; k < states; ++k)
      carries.push_back(cotangents[k + 1].numel() > 0 ? cotangents[k + 1]
                                                      : zeros(at(parts_.h0 + static_cast<int>(k)).shape(), y.dtype()));
    const bool has_dy = cotangents[0].numel() > 0, biased = parts_.w.bias_ih >= 0;
    const bool wants_x = wants.has(parts_.x);
    Tensors xs{x(), f.before[0]};
    if (states > 1) xs.push_back(f.before[1]);
    xs.append(f.saved.begin(), f.saved.end());
    if (cell_.saved == 0) xs.push_back(by_time(y));
    if (has_dy) xs.push_back(by_time(cotangents[0]));
    Tensors captures{transposed_product()};
    if (wants_x) captures.push_back(transpose(at(parts_.w.weight_ih)));
    const auto body = [&](const Tensors& carry, const Tensors& now, const Tensors& w) {
      const Tensor dh = has_dy ? carry[0] + now.back() : carry[0];
      const std::size_t first = states + 1;
      const GateCotangents d =
          cell_.step_back(dh, states > 1 ? carry[1] : Tensor(), {now.data() + first, cell_.saved}, now[1],
                          cell_.saved == 0 ? now[first] : Tensor(), states > 1 ? now[2] : Tensor());
      const Tensor input = joined(d.input), product = joined(d.product);
      Tensors back;
      for (const std::size_t g : cell_.back) back.push_back(d.product[g]);
      const Tensor through = matmul(joined(back), w[0]);
      Tensors out{d.passed.defined() ? d.passed + through : through};
      if (states > 1) out.push_back(d.memory);
      out.push_back(matmul(transpose(now[0]), input));
      out.push_back(matmul(transpose(now[1]), product));
      if (biased) out.push_back(sum(input, {0})), out.push_back(sum(product, {0}));
      if (wants_x) out.push_back(matmul(input, w[1]));
      return out;
    };
    const Tensors found = run_scan(body, carries, xs, captures, biased ? 4 : 2, steps_, !order_.reverse);
    return by_operand(found, states, biased, wants_x);
  }

 private:
  const Tensor& at(int k) const { return in_[static_cast<std::size_t>(k)]; }
  Tensor by_time(const Tensor& t) const { return order_.batch_first ? permute(t, {1, 0, 2}) : t; }
  Tensor as_given(const Tensor& t) const { return by_time(t); }

  static Tensor joined(const Tensors& parts) {
    return parts.size() == 1 ? parts[0] : concat(std::span<const Tensor>(parts.data(), parts.size()), 1);
  }

  Tensors weights() const {
    Tensors list{at(parts_.w.weight_ih), at(parts_.w.weight_hh)};
    if (parts_.w.bias_ih >= 0) list.push_back(at(parts_.w.bias_ih)), list.push_back(at(parts_.w.bias_hh));
    return list;
  }

  Tensors gates(const Tensor& product, const Tensors& captures, std::size_t bias) const {
    const Tensor all = captures.size() > bias ? product + captures[bias] : product;
    return cell_.gates == 1 ? Tensors{all} : split(all, all.shape()[1] / static_cast<std::int64_t>(cell_.gates), 1);
  }

  /// Returns W_hh transposed, with its rows in the order of the cell's product.
  Tensor transposed_product() const {
    const Tensor& w = at(parts_.w.weight_hh);
    if (cell_.gates == 1) return transpose(w);
    const Tensors gates = split(w, w.shape()[1] / static_cast<std::int64_t>(cell_.gates), 1);
    bool in_order = true;
    Tensors ordered;
    for (const std::size_t g : cell_.back) {
      in_order &= g == ordered.size();
      ordered.push_back(gates[g]);
    }
    return transpose(in_order ? w : joined(ordered));
  }

  Tensor all_states(const Tensor& first, const Tensor& stack) const {
    const Tensor one = unsqueeze(first, 0);
    return order_.reverse ? concat({stack, one}, 0) : concat({one, stack}, 0);
  }
  Tensor before(const Tensor& all) const {
    return slice(all, 0, order_.reverse ? 1 : 0, steps_ + (order_.reverse ? 1 : 0));
  }
  Tensor after(const Tensor& all) const {
    return slice(all, 0, order_.reverse ? 0 : 1, steps_ + (order_.reverse ? 0 : 1));
  }

  Tensors by_operand(const Tensors& found, std::size_t states, bool biased, bool wants_x) const {
    Tensors grads(static_cast<std::size_t>(parts_.floats));
    const auto set = [&](int k, const Tensor& g) { grads[static_cast<std::size_t>(k)] = g; };
    set(parts_.h0, found[0]);
    if (states > 1) set(parts_.c0, found[1]);
    set(parts_.w.weight_ih, found[states]);
    set(parts_.w.weight_hh, found[states + 1]);
    if (biased) set(parts_.w.bias_ih, found[states + 2]), set(parts_.w.bias_hh, found[states + 3]);
    if (wants_x) set(parts_.x, as_given(found.back()));
    return grads;
  }

  const Cell& cell_;
  std::span<const Tensor> in_;
  SequenceOrder order_;
  SequenceParts parts_;
  std::int64_t steps_ = 0;
};

// ---- programs ---------------------------------------------------------------------------------------------

/// Replays a program with plain forms in place of operations of layers and optimisers.
class Plain {
 public:
  explicit Plain(const Graph& g) : g_(g), values_(g.values.size()) {}

  Tensors run(const Tensors& in) {
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) values_[g_.inputs[i]] = in[i];
    for (std::size_t i = 0; i < g_.reads.size(); ++i) values_[g_.reads[i].value] = in[g_.inputs.size() + i];
    for (const Graph::Constant& c : g_.constants) values_[c.value] = c.tensor;
    Scoped scope(frame().scope);
    for (const Graph::Node& n : g_.nodes) {
      scope.enter(n.scope.or_else(scope.before()));
      in_layer(n.scope, [&] { node(n); });
    }
    Tensors results;
    for (const ValueId v : g_.outputs) results.push_back(values_[v]);
    for (const Graph::VariableValue& w : g_.writes) results.push_back(values_[w.value]);
    return results;
  }

 private:
  void node(const Graph::Node& n) {
    if (n.op->name.ends_with("_sequence")) return sequence(n);
    if (n.op->name.ends_with("_sequence_grad")) return gradient(n);
    std::vector<Tensor> in = operands(n);
    std::vector<const Tensor*> list;
    for (const Tensor& t : in) list.push_back(&t);
    const Inputs all(list.data(), list.size());
    const Tensors out = n.op->name == "rule_update" ? n.op->reference(all, n.attrs) : n.op->apply(all, n.attrs);
    for (std::size_t i = 0; i < out.size(); ++i) values_[n.out[i]] = out[i];
  }

  std::vector<Tensor> operands(const Graph::Node& n) const {
    std::vector<Tensor> in;
    for (const ValueId v : n.in) in.push_back(values_[v]);
    return in;
  }

  static std::string where(const Graph::Node& n) {
    return "freeze: " + std::string(n.op->name) +
           (n.scope.empty() ? std::string() : " of the layer '" + std::string(n.scope.path()) + "'");
  }

  static const Cell& cell(const Graph::Node& n) {
    const Cell* c = cell_of(n.op->name);
    if (!c) throw ValueError(where(n) + " has no plain form");
    return *c;
  }

  void sequence(const Graph::Node& n) {
    const auto attrs = n.attrs.as<SequenceSaves>(n.op->name);
    const std::vector<Tensor> in = operands(n);
    const Cell& c = cell(n);
    Sequence::Forward f = Sequence(c, in, attrs, where(n)).forward(attrs.save && c.saved > 0);
    for (std::size_t i = 0; i + 1 < n.out.size(); ++i) values_[n.out[i]] = f.results[i];
    values_[n.out[n.out.size() - 1]] = zeros({0}, f.results[0].dtype());
    kept_.insert_or_assign(n.out[n.out.size() - 1], std::move(f));
  }

  void gradient(const Graph::Node& n) {
    const auto attrs = n.attrs.as<SequenceWants>(n.op->name);
    const Cell& c = cell(n);
    const std::vector<Tensor> in = operands(n);
    const std::size_t begin = c.has_memory ? 5 : 4;
    const auto kept = kept_.find(n.in[1]);
    if (kept == kept_.end() || kept->second.saved.size() != c.saved)
      throw ValueError(where(n) + " recomputes its gates, which has no plain form; make the layer without `recompute`");
    const Tensors cotangents(in.begin() + 2, in.begin() + static_cast<std::ptrdiff_t>(begin));
    const Tensors found = Sequence(c, {in.data() + begin, in.size() - begin}, attrs, where(n))
                              .backward(in[0], kept->second, cotangents, attrs);
    for (std::size_t i = 0; i < n.out.size(); ++i)
      values_[n.out[i]] = attrs.has(static_cast<std::int64_t>(i)) ? found[i] : zeros({0}, in[0].dtype());
  }

  const Graph& g_;
  std::vector<Tensor> values_;
  std::map<ValueId, Sequence::Forward> kept_;  ///< by the value that a sequence saves for its gradient
};

}  // namespace

Graph plain_operations(const Graph& graph) {
  std::vector<Spec> specs;
  for (const ValueId v : graph.inputs) specs.push_back(graph.values[v]);
  for (const Graph::VariableValue& r : graph.reads) specs.push_back(graph.values[r.value]);
  Graph g = trace([&](const Tensors& in) { return Plain(graph).run(in); }, specs);
  g.variables = graph.variables;
  for (std::size_t i = 0; i < graph.reads.size(); ++i)
    g.reads.push_back({graph.reads[i].variable, g.inputs[graph.inputs.size() + i]});
  g.inputs.resize(graph.inputs.size());
  for (std::size_t i = 0; i < graph.writes.size(); ++i)
    g.writes.push_back({graph.writes[i].variable, g.outputs[graph.outputs.size() + i]});
  g.outputs.resize(graph.outputs.size());
  passes::simplify(g);
  return g;
}

}  // namespace ferrite::exchange::detail
