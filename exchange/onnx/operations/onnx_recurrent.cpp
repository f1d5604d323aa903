/// Lowers GRU, LSTM and RNN with all of their attributes and inputs.
#include <algorithm>
#include <functional>
#include <optional>

#include "ferrite/compile/scan.h"
#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/peephole_lstm.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::onnx::detail {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

/// An activation with its constants alpha and beta.
struct Activation {
  std::string name{};  ///< the name in lower case
  Function f{};
};

struct Numbers {
  int count = 0;  ///< number of constants, alpha and beta, that it takes
  double alpha = 0;
  double beta = 0;
  bool required = false;
};

std::optional<Numbers> numbers_of(const std::string& name) {
  if (name == "tanh" || name == "sigmoid" || name == "relu" || name == "softsign" || name == "softplus")
    return Numbers{};
  if (name == "leakyrelu") return Numbers{1, 0.01F};
  if (name == "thresholdedrelu" || name == "elu") return Numbers{1, 1.0};
  if (name == "hardsigmoid") return Numbers{2, 0.2F, 0.5};
  if (name == "affine") return Numbers{2, 1.0, 0.0};
  if (name == "scaledtanh") return Numbers{2, 0, 0, true};
  return {};
}

Function function_of(const std::string& name, double alpha, double beta) {
  if (name == "tanh") return [](const Tensor& x) { return tanh(x); };
  if (name == "sigmoid") return [](const Tensor& x) { return sigmoid(x); };
  if (name == "relu") return [](const Tensor& x) { return relu(x); };
  if (name == "softsign") return [](const Tensor& x) { return softsign(x); };
  if (name == "softplus") return [](const Tensor& x) { return softplus(x); };
  if (name == "leakyrelu") return [=](const Tensor& x) { return where(x >= 0, x, x * alpha); };
  if (name == "thresholdedrelu") return [=](const Tensor& x) { return where(x > alpha, x, zeros_like(x)); };
  if (name == "elu") return [=](const Tensor& x) { return where(x >= 0, x, expm1(minimum(x, 0.0)) * alpha); };
  if (name == "hardsigmoid") return [=](const Tensor& x) { return clamp(x * alpha + beta, 0.0, 1.0); };
  if (name == "affine") return [=](const Tensor& x) { return x * alpha + beta; };
  return [=](const Tensor& x) { return tanh(x * beta) * alpha; };  // scaledtanh
}

/// The properties of one of the operations, independent of a node's attributes.
struct Kind {
  std::int64_t gates = 1;
  std::vector<std::string> defaults{};  ///< default activations of one direction
  bool memory = false;                  ///< whether it has the memory c of an LSTM
};

/// The attributes and operands of a node.
struct Recurrence {
  Kind kind{};
  bool batch_first = false;
  std::vector<bool> reverse{};  ///< whether each direction runs backwards
  std::vector<std::vector<Activation>> activations{};
  std::optional<double> clip{};
  bool reset_after = false;  ///< linear_before_reset of a GRU
  bool coupled = false;      ///< input_forget of an LSTM
  bool constant = true;      ///< whether all weights are constants
  std::int64_t H = 0;
  Tensor x{};  ///< the input [T, B, D]
  Tensor w{}, r{}, b{}, h0{}, c0{}, p{}, lengths{};

  bool plain(std::size_t direction) const {
    for (std::size_t i = 0; i < kind.defaults.size(); ++i)
      if (activations[direction][i].name != kind.defaults[i]) return false;
    return true;
  }
};

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

/// Returns the activations of all directions. Those that take constants get the values of activation_alpha and _beta in
/// order.
std::vector<std::vector<Activation>> activations_of(const Call& call, const Kind& kind, std::size_t directions) {
  std::vector<std::string> names = call.texts("activations");
  const bool given = !names.empty();
  if (!given)
    for (std::size_t d = 0; d < directions; ++d) names.insert(names.end(), kind.defaults.begin(), kind.defaults.end());
  if (names.size() != directions * kind.defaults.size())
    call.refuse("activations must have " + std::to_string(directions * kind.defaults.size()) + " names, it has " +
                std::to_string(names.size()));
  const std::vector<double> alphas = call.numbers("activation_alpha");
  const std::vector<double> betas = call.numbers("activation_beta");
  std::size_t alpha = 0;
  std::size_t beta = 0;
  std::vector<std::vector<Activation>> all(directions);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = lower_case(names[i]);
    const auto numbers = numbers_of(name);
    if (!numbers) call.refuse("activation \"" + names[i] + "\" is not supported");
    Numbers n = *numbers;
    if (n.required && (alpha >= alphas.size() || beta >= betas.size()))
      call.refuse("activation \"" + names[i] + "\" needs values in activation_alpha and activation_beta");
    if (n.count >= 1 && alpha < alphas.size()) n.alpha = alphas[alpha++];
    if (n.count >= 2 && beta < betas.size()) n.beta = betas[beta++];
    all[i / kind.defaults.size()].push_back({name, function_of(name, n.alpha, n.beta)});
  }
  if (alpha != alphas.size() || beta != betas.size())
    call.refuse("activation_alpha or activation_beta has more values than there are activations that take one");
  return all;
}

void check_shape(const Call& call, const char* what, const Tensor& x, const Shape& wanted) {
  if (x.defined() && x.shape() != wanted)
    call.refuse(std::string(what) + " must be " + wanted.str() + ", it is " + x.shape().str());
}

Tensor optional_input(const Call& call, std::size_t i) { return call.has(i) ? call.tensor(i) : Tensor(); }

Recurrence read(const Call& call, Kind kind) {
  Recurrence n{.kind = std::move(kind)};
  const std::string direction = call.text("direction", "forward");
  if (direction == "forward")
    n.reverse = {false};
  else if (direction == "reverse")
    n.reverse = {true};
  else if (direction == "bidirectional")
    n.reverse = {false, true};
  else
    call.refuse("direction must be forward, reverse or bidirectional: \"" + direction + "\"");
  const std::int64_t layout = call.integer("layout", 0);
  if (layout != 0 && layout != 1) call.refuse("layout must be 0 or 1: " + std::to_string(layout));
  n.batch_first = layout == 1;
  n.activations = activations_of(call, n.kind, n.reverse.size());
  if (call.has_attribute("clip")) n.clip = call.number("clip");
  if (n.clip && !(*n.clip > 0)) call.refuse("clip must be positive");
  const auto D = static_cast<std::int64_t>(n.reverse.size());
  n.x = call.tensor(0);
  n.w = call.tensor(1);
  n.r = call.tensor(2);
  if (n.x.rank() != 3 || n.w.rank() != 3 || n.r.rank() != 3) call.refuse("X, W and R must have three axes");
  n.H = call.integer("hidden_size", n.r.size(2));
  const std::int64_t GH = n.kind.gates * n.H;
  if (n.batch_first) n.x = transpose(n.x, 0, 1);
  const std::int64_t B = n.x.size(1);
  check_shape(call, "W", n.w, {D, GH, n.x.size(2)});
  check_shape(call, "R", n.r, {D, GH, n.H});
  check_shape(call, "B", n.b = optional_input(call, 3), {D, 2 * GH});
  check_shape(call, "sequence_lens", n.lengths = optional_input(call, 4), {B});
  if (n.lengths.defined()) n.lengths = cast(n.lengths, Dtype::i64);
  const auto state = [&](const char* what, std::size_t i) {
    Tensor s = optional_input(call, i);
    if (s.defined() && n.batch_first && s.rank() == 3) s = transpose(s, 0, 1);
    check_shape(call, what, s, {D, B, n.H});
    return s;
  };
  for (const std::size_t i : {1U, 2U, 3U, 7U})
    if ((i < 7 || n.kind.memory) && call.has(i)) n.constant = n.constant && call.value(i).constant;
  n.h0 = state("initial_h", 5);
  if (n.kind.memory) {
    n.c0 = state("initial_c", 6);
    check_shape(call, "P", n.p = optional_input(call, 7), {D, 3 * n.H});
  }
  return n;
}

/// Returns x with the blocks of H elements along an axis in another order.
Tensor reordered(const Tensor& x, int axis, std::initializer_list<std::int64_t> order, std::int64_t H) {
  std::vector<Tensor> blocks;
  for (const std::int64_t at : order) blocks.push_back(slice(x, axis, at * H, (at + 1) * H));
  return blocks.size() == 1 ? blocks[0] : concat(blocks, axis);
}

RecurrentWeights<Tensor> arranged(const Recurrence& n, std::int64_t d, std::initializer_list<std::int64_t> order) {
  RecurrentWeights<Tensor> w;
  const auto matrix = [&](const Tensor& all) {
    const Tensor one = select(all, 0, d);
    return n.constant ? contiguous(transpose(reordered(one, 0, order, n.H), 0, 1))
                      : transpose(reordered(one, 0, order, n.H), 0, 1);
  };
  w.weight_ih = matrix(n.w);
  w.weight_hh = matrix(n.r);
  const std::int64_t GH = n.kind.gates * n.H;
  if (n.b.defined()) {
    const Tensor b = select(n.b, 0, d);
    w.bias_ih = reordered(slice(b, 0, 0, GH), 0, order, n.H);
    w.bias_hh = reordered(slice(b, 0, GH, 2 * GH), 0, order, n.H);
  }
  if (n.p.defined()) w.weight_ch = reordered(select(n.p, 0, d), 0, {0, 2, 1}, n.H);  // from ONNX's i, o, f to i, f, o
  return w;
}

/// Returns the weights of one direction with their gates in the given order. Constant weights are reordered outside of
/// the trace, once for a plan or a stream, in the layout that products read.
RecurrentWeights<Tensor> weights_of(const Recurrence& n, std::int64_t d, std::initializer_list<std::int64_t> order) {
  if (!n.constant) return arranged(n, d, order);
  const NewFrame apart;
  return arranged(n, d, order);
}

/// Returns the state before the first step of one direction.
Tensor initial(const Recurrence& n, const Tensor& all, std::int64_t d) {
  return all.defined() ? select(all, 0, d) : zeros({n.x.size(1), n.H}, n.x.dtype());
}

Tensor clipped(const Recurrence& n, const Tensor& x) { return n.clip ? clamp(x, -*n.clip, *n.clip) : x; }

/// A function that computes one step of a cell from its projected input, with gates in the order of the file.
using Step = std::function<RecurrentState(const Tensor& i, const RecurrentState& before)>;

Step rnn_cell(const Recurrence& n, std::size_t d, const RecurrentWeights<Tensor>& w) {
  return [&n, d, &w](const Tensor& i, const RecurrentState& before) -> RecurrentState {
    return {n.activations[d][0].f(clipped(n, i + affine(before.h, w.weight_hh, w.bias_hh)))};
  };
}

/// Returns the step of a GRU, with gates z, r, h.
Step gru_cell(const Recurrence& n, std::size_t d, const RecurrentWeights<Tensor>& w) {
  return [&n, d, &w](const Tensor& i, const RecurrentState& before) -> RecurrentState {
    const std::int64_t H = n.H;
    const auto part = [&](const Tensor& x, std::int64_t from, std::int64_t to) {
      return slice(x, -1, from * H, to * H);
    };
    const auto bias = [&](std::int64_t from, std::int64_t to) {
      return w.bias_hh.defined() ? part(w.bias_hh, from, to) : Tensor();
    };
    const Function& f = n.activations[d][0].f;
    const Function& g = n.activations[d][1].f;
    const Tensor zr = f(clipped(n, part(i, 0, 2) + affine(before.h, part(w.weight_hh, 0, 2), bias(0, 2))));
    const Tensor z = part(zr, 0, 1);
    const Tensor r = part(zr, 1, 2);
    const Tensor w_h = part(w.weight_hh, 2, 3);
    const Tensor inner = n.reset_after ? r * affine(before.h, w_h, bias(2, 3)) : affine(r * before.h, w_h, bias(2, 3));
    const Tensor candidate = g(clipped(n, part(i, 2, 3) + inner));
    return {candidate + z * (before.h - candidate)};
  };
}

/// Returns the step of an LSTM, with gates i, o, f, c and peepholes i, f, o in w.weight_ch.
Step lstm_cell(const Recurrence& n, std::size_t d, const RecurrentWeights<Tensor>& w) {
  return [&n, d, &w](const Tensor& x, const RecurrentState& before) -> RecurrentState {
    const std::int64_t H = n.H;
    const Tensor all = x + affine(before.h, w.weight_hh, w.bias_hh);
    const auto gate = [&](std::int64_t at) { return slice(all, -1, at * H, (at + 1) * H); };
    const auto seen = [&](const Tensor& pre, std::int64_t at, const Tensor& c) {
      return w.weight_ch.defined() ? pre + slice(w.weight_ch, 0, at * H, (at + 1) * H) * c : pre;
    };
    const Function& f = n.activations[d][0].f;
    const Function& g = n.activations[d][1].f;
    const Function& h = n.activations[d][2].f;
    const Tensor i = f(clipped(n, seen(gate(0), 0, before.c)));
    const Tensor forget = n.coupled ? 1.0 - i : f(clipped(n, seen(gate(2), 1, before.c)));
    const Tensor c = forget * before.c + i * g(clipped(n, gate(3)));
    const Tensor o = f(clipped(n, seen(gate(1), 2, c)));
    return {o * h(c), c};  // the memory is not clipped, as in ONNX Runtime
  };
}

/// Runs one direction as a scan; returns y [T, B, H], the last h and, for an LSTM, the last c.
Tensors scanned(const Recurrence& n, std::int64_t d, const Step& step, const RecurrentWeights<Tensor>& w) {
  Tensors init{initial(n, n.h0, d)};
  if (n.kind.memory) init.push_back(initial(n, n.c0, d));
  const auto body = [&](const Tensors& carry, const Tensors& x) -> ScanStep {
    RecurrentState before{carry[0]};
    if (n.kind.memory) before.c = carry[1];
    const RecurrentState after = step(x[0], before);
    Tensors out{after.h};
    if (n.kind.memory) out.push_back(after.c);
    return {out, {after.h}};
  };
  const Tensor i = affine(n.x, w.weight_ih, w.bias_ih);
  const ScanResult result =
      scan(body, init, {i}, {.reverse = n.reverse[static_cast<std::size_t>(d)], .lengths = n.lengths});
  Tensors out{result.y[0]};
  for (const Tensor& c : result.carry) out.push_back(c);
  return out;
}

/// Returns Y, Y_h and Y_c from the results of all directions.
Values assembled(const Call& call, const Recurrence& n, const std::vector<Tensors>& directions) {
  const auto joined = [&](std::size_t at, std::int64_t axis) {
    std::vector<Tensor> parts;
    for (const Tensors& d : directions) parts.push_back(d[at]);
    return stack(parts, axis);
  };
  const ElementType type = call.type(0);
  // y [T, D, B, H], or [B, T, D, H]
  Tensor y = joined(0, 1);
  if (n.batch_first) y = permute(y, {2, 0, 1, 3});
  Values out{narrowed(y, type)};
  for (std::size_t at = 1; at < directions[0].size(); ++at)
    out.push_back(narrowed(joined(at, n.batch_first ? 1 : 0), type));
  return out;
}

std::string reason(const Recurrence& n, std::size_t d) {
  if (n.clip) return "clip is given";
  if (n.coupled) return "input_forget is set";
  return n.plain(d) ? "" : "its activations are not the usual ones";
}

SequenceOptions options_of(const Recurrence& n, std::size_t d) {
  return {.reverse = n.reverse[d], .lengths = n.lengths};
}

Values run(const Call& call, const Recurrence& n, const std::function<std::string(std::size_t)>& why_not_fused,
           const std::function<Tensors(std::size_t)>& fused, const std::function<Tensors(std::size_t)>& by_scan) {
  std::vector<Tensors> directions;
  std::string how;
  for (std::size_t d = 0; d < n.reverse.size(); ++d) {
    const std::string why = why_not_fused(d);
    how = why.empty() ? "fused" : "scan: " + why;
    directions.push_back(why.empty() ? fused(d) : by_scan(d));
  }
  call.lowered_as(how);
  return assembled(call, n, directions);
}

Values gru(const Call& call) {
  Recurrence n = read(call, {.gates = 3, .defaults = {"sigmoid", "tanh"}});
  n.reset_after = call.integer("linear_before_reset", 0) != 0;
  return run(
      call, n, [&](std::size_t d) { return reason(n, d); },
      [&](std::size_t d) {
        const auto at = static_cast<std::int64_t>(d);
        return gru_sequence(n.x, weights_of(n, at, {1, 0, 2}), initial(n, n.h0, at), options_of(n, d), n.reset_after);
      },
      [&](std::size_t d) {
        const auto at = static_cast<std::int64_t>(d);
        const RecurrentWeights<Tensor> w = weights_of(n, at, {0, 1, 2});
        return scanned(n, at, gru_cell(n, d, w), w);
      });
}

Values lstm(const Call& call) {
  Recurrence n = read(call, {.gates = 4, .defaults = {"sigmoid", "tanh", "tanh"}, .memory = true});
  n.coupled = call.integer("input_forget", 0) != 0;
  return run(
      call, n, [&](std::size_t d) { return reason(n, d); },
      [&](std::size_t d) {
        const auto at = static_cast<std::int64_t>(d);
        const RecurrentWeights<Tensor> w = weights_of(n, at, {0, 2, 3, 1});
        const RecurrentState before{initial(n, n.h0, at), initial(n, n.c0, at)};
        return n.p.defined() ? peephole_lstm_sequence(n.x, w, before, options_of(n, d))
                             : lstm_sequence(n.x, w, before, options_of(n, d));
      },
      [&](std::size_t d) {
        const auto at = static_cast<std::int64_t>(d);
        const RecurrentWeights<Tensor> w = weights_of(n, at, {0, 1, 2, 3});
        return scanned(n, at, lstm_cell(n, d, w), w);
      });
}

Values rnn(const Call& call) {
  const Recurrence n = read(call, {.gates = 1, .defaults = {"tanh"}});
  const auto with_relu = [&](std::size_t d) { return n.activations[d][0].name == "relu"; };
  return run(
      call, n, [&](std::size_t d) { return with_relu(d) && !n.clip ? std::string() : reason(n, d); },
      [&](std::size_t d) {
        const auto at = static_cast<std::int64_t>(d);
        return rnn_sequence(n.x, weights_of(n, at, {0}), initial(n, n.h0, at), with_relu(d), options_of(n, d));
      },
      [&](std::size_t d) {
        const auto at = static_cast<std::int64_t>(d);
        const RecurrentWeights<Tensor> w = weights_of(n, at, {0});
        return scanned(n, at, rnn_cell(n, d, w), w);
      });
}

constexpr Operation kOperations[] = {
    {.name = "GRU", .lower = gru, .since = 7},
    {.name = "LSTM", .lower = lstm, .since = 7},
    {.name = "RNN", .lower = rnn, .since = 7},
};

}  // namespace

Operations recurrent_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
