/// Lowers recurrent sequences to GRU, LSTM and RNN, with weights re-ordered in the graph so that variables keep their
/// names and values.
#include <algorithm>

#include "ferrite/exchange/onnx_export/export_lowering.h"
#include "ferrite/nn/recurrent/sequence_parts.h"

namespace ferrite::exchange::detail {
namespace {

using Gates = std::vector<int>;

/// Returns whether a sequence can be an ONNX node, which has no resets and no projections; runtimes take f32.
bool is_node(const nn::SequenceParts& at, Dtype dtype) {
  return dtype == Dtype::f32 && at.resets < 0 && at.w.weight_hr < 0;
}

/// Ferrite's gate for each of ONNX's: z, r, h from r, z, n; i, o, f, c from i, f, g, o; peepholes i, o, f from i, f, o.
const Gates kGruGates{1, 0, 2}, kLstmGates{0, 3, 1, 2}, kPeepholes{0, 2, 1}, kOneGate{0};

class SequenceLowering {
 public:
  SequenceLowering(OnnxBuilder& b, const Application& c)
      : b_(b),
        c_(c),
        at_(nn::sequence_parts(c.op.name, specs_of(c.in))),
        reverse_(c.named("reverse", false)),
        batch_first_(c.named("batch_first", false)),
        units_(operand(at_.h0).shape()[1]) {}

  bool fits() const { return is_node(at_, c_.out[0].dtype); }

  Values written(const std::string& op, const Gates& gates, Attributes attributes) {
    Values in{time_first(operand(at_.x)),
              matrix(at_.w.weight_ih, gates),
              matrix(at_.w.weight_hh, gates),
              biases(gates),
              lengths(),
              b_.unsqueeze(operand(at_.h0), 0)};
    if (at_.c0 >= 0) in.push_back(b_.unsqueeze(operand(at_.c0), 0));
    if (at_.w.weight_ch >= 0) in.push_back(b_.unsqueeze(reordered(operand(at_.w.weight_ch), 0, kPeepholes), 0));
    attributes.push_back({"direction", std::string(reverse_ ? "reverse" : "forward")});
    attributes.push_back({"hidden_size", units_});
    const Shape& x = in[0].shape();
    std::vector<Spec> out{{{x[0], 1, x[1], units_}, Dtype::f32}};
    for (int k = at_.c0 >= 0 ? 2 : 1; k > 0; --k) out.push_back({{1, x[1], units_}, Dtype::f32});
    Values results = b_.nodes(op, in, out, std::move(attributes));
    results[0] = time_first(b_.squeeze(results[0], 1));
    for (std::size_t k = 1; k < results.size(); ++k) results[k] = b_.squeeze(results[k], 0);
    return results;
  }

 private:
  static std::vector<Spec> specs_of(const Values& values) {
    std::vector<Spec> specs;
    for (const Value& v : values) specs.push_back(v.spec);
    return specs;
  }
  const Value& operand(int k) const { return c_.in[static_cast<std::size_t>(k)]; }

  Value time_first(const Value& x) { return batch_first_ ? b_.transpose(x, {1, 0, 2}) : x; }

  Value reordered(const Value& x, int axis, const Gates& gates) {
    if (gates.size() == 1) return x;
    Values parts;
    for (const int gate : gates) parts.push_back(b_.slice(x, axis, gate * units_, units_));
    return b_.concatenate(parts, axis);
  }
  /// Returns weights [in, gates] as [1, gates, in].
  Value matrix(int k, const Gates& gates) {
    return b_.unsqueeze(reordered(b_.transpose(operand(k), {1, 0}), 0, gates), 0);
  }
  Value biases(const Gates& gates) {
    if (at_.w.bias_ih < 0) return {};
    const Value first = reordered(operand(at_.w.bias_ih), 0, gates);
    return b_.unsqueeze(b_.concatenate({first, reordered(operand(at_.w.bias_hh), 0, gates)}, 0), 0);
  }
  Value lengths() { return at_.lengths < 0 ? Value() : b_.convert(operand(at_.lengths), Dtype::i32); }

  OnnxBuilder& b_;
  const Application& c_;
  const nn::SequenceParts at_;
  const bool reverse_, batch_first_;
  const std::int64_t units_;
};

Values sequence(OnnxBuilder& b, const Application& c, const std::string& op, const Gates& gates,
                Attributes attributes = {}) {
  SequenceLowering lowering(b, c);
  if (!lowering.fits()) return {};
  return lowering.written(op, gates, std::move(attributes));
}

template <bool reset_after>
Values gru(OnnxBuilder& b, const Application& c) {
  return sequence(b, c, "GRU", kGruGates, {{"linear_before_reset", std::int64_t{reset_after}}});
}
Values lstm(OnnxBuilder& b, const Application& c) { return sequence(b, c, "LSTM", kLstmGates); }
template <bool relu>
Values rnn(OnnxBuilder& b, const Application& c) {
  const std::vector<std::string> activation{relu ? "Relu" : "Tanh"};
  return sequence(b, c, "RNN", kOneGate, {{"activations", activation}});
}

}  // namespace

ExportFamily export_recurrent() {
  static constexpr NamedLowering<OnnxBuilder> list[] = {
      {"gru_sequence", gru<true>},  {"gru_reset_before_sequence", gru<false>},
      {"lstm_sequence", lstm},      {"peephole_lstm_sequence", lstm},
      {"rnn_sequence", rnn<false>}, {"rnn_relu_sequence", rnn<true>}};
  return list;
}

}  // namespace ferrite::exchange::detail
