/// GRU, LSTM and RNN: as the fused sequences of Ferrite where these compute the same, else as a scan of the cell that
/// the attributes describe.
#include <algorithm>
#include <array>
#include <cctype>
#include <functional>

#include "ferrite/compile/scan.h"
#include "ferrite/exchange/onnx/operations.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/peephole_lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

/// What differs between the three operations.
struct Kind {
  std::string_view name;
  std::int64_t gates;
  std::size_t functions;  ///< in `activations`, for each direction
  std::array<std::string_view, 3> defaults;
  bool has_memory = false;
};
constexpr Kind kGru{"GRU", 3, 2, {"sigmoid", "tanh"}};
constexpr Kind kLstm{"LSTM", 4, 3, {"sigmoid", "tanh", "tanh"}, true};
constexpr Kind kRnn{"RNN", 1, 1, {"tanh"}};

std::string lower_case(std::string s) {
  std::ranges::transform(s, s.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return s;
}

/// A function of `activations` with its alpha and beta.
struct Activation {
  std::string name;
  double alpha = 0, beta = 0;
};

/// Whether a function reads an alpha (and a beta), and what they are where the lists end before.
struct ActivationKind {
  std::string_view name;
  int constants;
  double alpha = 0, beta = 0;
};
constexpr std::array<ActivationKind, 11> kActivations{{{"relu", 0},
                                                       {"tanh", 0},
                                                       {"sigmoid", 0},
                                                       {"softsign", 0},
                                                       {"softplus", 0},
                                                       {"affine", 2, 1, 0},
                                                       {"leakyrelu", 1, 0.01},
                                                       {"thresholdedrelu", 1, 1},
                                                       {"scaledtanh", 2, 1, 1},
                                                       {"hardsigmoid", 2, 0.2, 0.5},
                                                       {"elu", 1, 1}}};

Tensor apply(const Activation& a, const Tensor& x) {
  if (a.name == "relu") return relu(x);
  if (a.name == "tanh") return tanh(x);
  if (a.name == "sigmoid") return sigmoid(x);
  if (a.name == "softsign") return softsign(x);
  if (a.name == "softplus") return softplus(x);
  if (a.name == "affine") return x * a.alpha + a.beta;
  if (a.name == "leakyrelu") return leaky_relu(x, a.alpha);
  if (a.name == "thresholdedrelu") return where(x > a.alpha, x, zeros_like(x));
  if (a.name == "scaledtanh") return tanh(x * a.beta) * a.alpha;
  if (a.name == "hardsigmoid") return clamp(x * a.alpha + a.beta, 0.0, 1.0);
  return elu(x, a.alpha);
}

/// Everything that a node says.
struct Recurrence {
  const Call& call;
  const Kind& kind;
  std::int64_t directions = 1, hidden = 0;
  bool backward_only = false, batch_first = false;
  double clip = 0;  ///< 0: none
  bool linear_before_reset = false, input_forget = false;
  std::vector<Activation> functions{};  ///< kind.functions for each direction

  Tensor x{}, lengths{}, h0{}, c0{};  ///< x [T, B, I], h0 and c0 [D, B, H]

  Recurrence(const Call& c, const Kind& k) : call(c), kind(k) {
    read_direction();
    read_functions();
    batch_first = call.integer("layout", 0) != 0;
    if (call.has_attribute("clip")) {
      clip = call.number("clip");
      if (!(clip > 0)) call.refuse("clip must be above 0, got " + std::to_string(clip));
    }
    if (kind.name == "GRU") linear_before_reset = call.integer("linear_before_reset", 0) != 0;
    if (kind.name == "LSTM") input_forget = call.integer("input_forget", 0) != 0;
    read_inputs();
  }

  void read_direction() {
    const std::string direction = call.text("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      call.refuse("direction is forward, reverse or bidirectional, got '" + direction + "'");
    backward_only = direction == "reverse";
    directions = direction == "bidirectional" ? 2 : 1;
  }

  void read_functions() {
    const auto all = static_cast<std::size_t>(directions) * kind.functions;
    std::vector<std::string> names = call.texts("activations");
    if (names.empty())
      for (std::size_t i = 0; i < all; ++i) names.emplace_back(kind.defaults[i % kind.functions]);
    if (names.size() != all)
      call.refuse("activations must name " + std::to_string(all) + " functions, got " + std::to_string(names.size()));
    const std::vector<double> alphas = call.numbers("activation_alpha"), betas = call.numbers("activation_beta");
    std::size_t next_alpha = 0, next_beta = 0;
    for (std::string& given : names) {
      const std::string name = lower_case(given);
      const auto* row = std::ranges::find(kActivations, std::string_view(name), &ActivationKind::name);
      if (row == kActivations.end()) call.refuse("there is no activation '" + given + "'");
      Activation a{name, row->alpha, row->beta};
      if (row->constants > 0 && next_alpha < alphas.size()) a.alpha = alphas[next_alpha++];
      if (row->constants > 1 && next_beta < betas.size()) a.beta = betas[next_beta++];
      functions.push_back(a);
    }
    if (next_alpha < alphas.size() || next_beta < betas.size())
      call.refuse("activation_alpha and activation_beta hold more numbers than the activations take");
  }

  [[noreturn]] void refuse_shape(const char* what, const Tensor& t, const std::string& wanted) const {
    call.refuse(std::string(what) + " must be " + wanted + ", got " + t.shape().str());
  }
  /// [D, B, H], or [B, D, H] where the batch stands first.
  Tensor state(std::size_t i, const char* what) const {
    if (!call.has(i)) return {};
    Tensor s = call.tensor(i);
    if (s.rank() == 3 && batch_first) s = permute(s, {1, 0, 2});
    const Shape wanted{directions, x.shape()[1], hidden};
    if (s.shape() != wanted) refuse_shape(what, s, wanted.str());
    return s;
  }

  void read_inputs() {
    x = call.tensor(0);
    if (x.rank() != 3) refuse_shape("X", x, "of rank 3");
    if (batch_first) x = permute(x, {1, 0, 2});
    const Tensor &w = call.tensor(1), &r = call.tensor(2);
    if (r.rank() != 3) refuse_shape("R", r, "of rank 3");
    hidden = r.shape()[2];
    if (call.integer("hidden_size", hidden) != hidden) refuse_shape("R", r, "of the extent hidden_size");
    const Shape w_shape{directions, kind.gates * hidden, x.shape()[2]},
        r_shape{directions, kind.gates * hidden, hidden};
    if (w.shape() != w_shape) refuse_shape("W", w, w_shape.str());
    if (r.shape() != r_shape) refuse_shape("R", r, r_shape.str());
    if (call.has(3) && call.tensor(3).shape() != Shape{directions, 2 * kind.gates * hidden})
      refuse_shape("B", call.tensor(3), Shape{directions, 2 * kind.gates * hidden}.str());
    if (call.has(4)) {
      lengths = cast(call.tensor(4), Dtype::i64);
      if (lengths.shape() != Shape{x.shape()[1]}) refuse_shape("sequence_lens", lengths, Shape{x.shape()[1]}.str());
    }
    h0 = state(5, "initial_h");
    if (kind.has_memory) {
      c0 = state(6, "initial_c");
      if (call.has(7) && call.tensor(7).shape() != Shape{directions, 3 * hidden})
        refuse_shape("P", call.tensor(7), Shape{directions, 3 * hidden}.str());
    }
  }

  bool has_peepholes() const { return kind.has_memory && call.has(7); }
  const Activation& function(std::int64_t d, std::size_t i) const {
    return functions[static_cast<std::size_t>(d) * kind.functions + i];
  }
  Tensor first(const Tensor& given, std::int64_t d) const {
    return given.defined() ? select(given, 0, d) : zeros({x.shape()[1], hidden}, x.dtype());
  }
  SequenceOptions options(std::int64_t d) const { return {.reverse = backward_only || d == 1, .lengths = lengths}; }
};

/// Blocks of H rows (or elements) of a tensor in another order.
Tensor in_order(const Tensor& t, std::int64_t hidden, std::initializer_list<std::int64_t> order) {
  Tensors blocks;
  for (const std::int64_t block : order) blocks.push_back(slice(t, 0, block * hidden, (block + 1) * hidden));
  return blocks.size() == 1 ? blocks[0] : concat(std::span<const Tensor>(blocks.data(), blocks.size()), 0);
}

/// The weights of a direction as the sequences of Ferrite take them: gates r, z, n and i, f, g, o, ready for products.
SequenceWeights weights_of(const Recurrence& r, std::int64_t d) {
  const auto ordered = [&](const Tensor& t) {
    if (r.kind.name == "GRU") return in_order(t, r.hidden, {1, 0, 2});
    if (r.kind.name == "LSTM") return in_order(t, r.hidden, {0, 2, 3, 1});
    return t;
  };
  const auto matrix = [&](std::size_t i) { return transpose(ordered(select(r.call.tensor(i), 0, d)), 0, 1); };
  SequenceWeights w{.w_ih = matrix(1), .w_hh = matrix(2)};
  if (r.call.has(3)) {
    const Tensor b = select(r.call.tensor(3), 0, d);
    const std::int64_t half = r.kind.gates * r.hidden;
    w.b_ih = ordered(slice(b, 0, 0, half));
    w.b_hh = ordered(slice(b, 0, half, 2 * half));
  }
  if (r.has_peepholes()) w.w_ch = in_order(select(r.call.tensor(7), 0, d), r.hidden, {0, 2, 1});
  return w;
}

/// Why a fused sequence does not compute what the node says; empty: it does.
std::string why_not_fused(const Recurrence& r) {
  if (r.clip > 0) return "clip is set";
  if (r.input_forget) return "input_forget is set";
  if (!is_float(r.x.dtype())) return "X holds integers";
  for (std::int64_t d = 0; d < r.directions; ++d)
    for (std::size_t i = 0; i < r.kind.functions; ++i) {
      const std::string& name = r.function(d, i).name;
      const bool relu = r.kind.name == "RNN" && name == "relu";
      if (name != r.kind.defaults[i] && !relu) return "an activation is " + name;
    }
  return {};
}

/// y [T, B, H], last h [B, H] and, with a memory, last c.
Tensors fused(const Recurrence& r, std::int64_t d) {
  const SequenceWeights w = weights_of(r, d);
  const Tensor h0 = r.first(r.h0, d);
  if (r.kind.name == "GRU") return gru_sequence(r.x, w, h0, r.options(d), r.linear_before_reset);
  if (r.kind.name == "RNN") return rnn_sequence(r.x, w, h0, r.function(d, 0).name == "relu", r.options(d));
  const RecurrentState before{h0, r.first(r.c0, d)};
  return r.has_peepholes() ? peephole_lstm_sequence(r.x, w, before, r.options(d))
                           : lstm_sequence(r.x, w, before, r.options(d));
}

/// One step of the cell that the attributes describe, in the words of the specification. Gates stand in the order of
/// Ferrite's weights.
class Cell {
 public:
  Cell(const Recurrence& r, std::int64_t d) : r_(r), d_(d), w_(weights_of(r, d)) {}

  Tensors operator()(const Tensors& carry, const Tensor& x) const {
    const Tensor i = biased(matmul(x, w_.w_ih), w_.b_ih);
    if (r_.kind.name == "GRU") return gru(i, carry[0]);
    if (r_.kind.name == "LSTM") return lstm(i, carry[0], carry[1]);
    return {activated(0, biased(i + matmul(carry[0], w_.w_hh), w_.b_hh))};
  }

 private:
  static Tensor biased(const Tensor& x, const Tensor& b) { return b.defined() ? x + b : x; }
  Tensor gate(const Tensor& x, std::int64_t k) const { return slice(x, 1, k * r_.hidden, (k + 1) * r_.hidden); }
  Tensor columns(std::int64_t k) const { return slice(w_.w_hh, 1, k * r_.hidden, (k + 1) * r_.hidden); }
  Tensor bias(std::int64_t k) const {
    return w_.b_hh.defined() ? slice(w_.b_hh, 0, k * r_.hidden, (k + 1) * r_.hidden) : Tensor();
  }
  Tensor peephole(std::int64_t k) const { return slice(w_.w_ch, 0, k * r_.hidden, (k + 1) * r_.hidden); }
  Tensor clipped(const Tensor& x) const { return r_.clip > 0 ? clamp(x, -r_.clip, r_.clip) : x; }
  Tensor activated(std::size_t i, const Tensor& x) const { return apply(r_.function(d_, i), clipped(x)); }
  /// The recurrent part of a gate.
  Tensor from(const Tensor& h, std::int64_t k) const { return biased(matmul(h, columns(k)), bias(k)); }

  Tensors gru(const Tensor& i, const Tensor& h) const {
    const Tensor r = activated(0, gate(i, 0) + from(h, 0)), z = activated(0, gate(i, 1) + from(h, 1));
    const Tensor n =
        r_.linear_before_reset ? activated(1, gate(i, 2) + r * from(h, 2)) : activated(1, gate(i, 2) + from(r * h, 2));
    return {(1 - z) * n + z * h};
  }

  Tensors lstm(const Tensor& x, const Tensor& h, const Tensor& c) const {
    const bool sees = r_.has_peepholes();
    const auto seen = [&](const Tensor& pre, std::int64_t k, const Tensor& memory) {
      return sees ? pre + peephole(k) * memory : pre;
    };
    const Tensor i = activated(0, seen(gate(x, 0) + from(h, 0), 0, c));
    const Tensor f = r_.input_forget ? 1 - i : activated(0, seen(gate(x, 1) + from(h, 1), 1, c));
    const Tensor g = activated(1, gate(x, 2) + from(h, 2));
    const Tensor next = f * c + i * g;
    const Tensor o = activated(0, seen(gate(x, 3) + from(h, 3), 2, next));
    return {o * activated(2, next), next};
  }

  const Recurrence& r_;
  std::int64_t d_;
  SequenceWeights w_;
};

Tensors scanned(const Recurrence& r, std::int64_t d) {
  const Cell cell(r, d);
  Tensors first = {r.first(r.h0, d)};
  if (r.kind.has_memory) first.push_back(r.first(r.c0, d));
  const SequenceOptions o = r.options(d);
  const ScanResult result = scan(
      [&](const Tensors& carry, const Tensors& x) {
        const Tensors next = cell(carry, x[0]);
        return ScanStep{next, {next[0]}};
      },
      first, {r.x}, {.reverse = o.reverse, .lengths = o.lengths});
  Tensors out = {result.y[0]};
  for (const Tensor& t : result.carry) out.push_back(t);
  return out;
}

Tensor stacked(const Tensors& parts, int axis) {
  return stack(std::span<const Tensor>(parts.data(), parts.size()), axis);
}

Values lowered(const Call& call, const Kind& kind) {
  const Recurrence r(call, kind);
  const std::string why = why_not_fused(r);
  call.lowered_as(why.empty() ? "a fused sequence" : "a scan: " + why);
  Tensors y, h, c;
  for (std::int64_t d = 0; d < r.directions; ++d) {
    const Tensors out = why.empty() ? fused(r, d) : scanned(r, d);
    y.push_back(out[0]), h.push_back(out[1]);
    if (kind.has_memory) c.push_back(out[2]);
  }
  const ElementType type = call.type(0);
  const auto states = [&](const Tensors& s) {
    const Tensor all = stacked(s, 0);  // [D, B, H]
    return narrowed(r.batch_first ? permute(all, {1, 0, 2}) : all, type);
  };
  const Tensor all = stacked(y, 1);  // [T, D, B, H]
  Values out = {narrowed(r.batch_first ? permute(all, {2, 0, 1, 3}) : all, type), states(h)};
  if (kind.has_memory) out.push_back(states(c));
  return out;
}

Values gru(const Call& call) { return lowered(call, kGru); }
Values lstm(const Call& call) { return lowered(call, kLstm); }
Values rnn(const Call& call) { return lowered(call, kRnn); }

constexpr std::uint32_t kLengths = 1U << 4;
constexpr std::array<Operation, 3> kRows{{{.name = "GRU", .lower = gru, .static_inputs = kLengths},
                                          {.name = "LSTM", .lower = lstm, .static_inputs = kLengths},
                                          {.name = "RNN", .lower = rnn, .static_inputs = kLengths}}};

}  // namespace

Operations recurrent_operations() { return kRows; }

}  // namespace ferrite::onnx::detail
