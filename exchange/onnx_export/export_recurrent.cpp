/// How recurrent sequences are written: as GRU, LSTM and RNN, their weights re-ordered in the graph so that variables
/// keep their names and their values.
#include <algorithm>

#include "ferrite/exchange/onnx_export/export_lowering.h"
#include "ferrite/nn/recurrent/sequence_parts.h"

namespace ferrite::onnx::detail {
namespace {

using Gates = std::vector<int>;

/// Whether a sequence is a node of ONNX, which has no resets and no projections; runtimes take f32.
bool is_node(const nn::SequenceParts& at, Dtype dtype) {
  return dtype == Dtype::f32 && at.resets < 0 && at.w.weight_hr < 0;
}

/// ONNX's gates in our order of them: z, r, h of r, z, n; i, o, f, c of i, f, g, o; the peepholes i, o, f of i, f, o.
const Gates kGruGates{1, 0, 2}, kLstmGates{0, 3, 1, 2}, kPeepholes{0, 2, 1}, kOneGate{0};

class SequenceLowering {
 public:
  SequenceLowering(GraphBuilder& b, const ExportCall& c)
      : b_(b),
        c_(c),
        at_(nn::sequence_parts(c.op.name, specs_of(c.in))),
        reverse_(c.named("reverse", false)),
        batch_first_(c.named("batch_first", false)),
        units_(operand(at_.h0).shape()[1]) {}

  bool fits() const { return is_node(at_, c_.out[0].dtype); }

  ExportValues written(const std::string& op, const Gates& gates, Attributes attributes) {
    ExportValues in{time_first(operand(at_.x)),
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
    ExportValues results = b_.nodes(op, in, out, std::move(attributes));
    results[0] = time_first(b_.squeeze(results[0], 1));
    for (std::size_t k = 1; k < results.size(); ++k) results[k] = b_.squeeze(results[k], 0);
    return results;
  }

 private:
  static std::vector<Spec> specs_of(const ExportValues& values) {
    std::vector<Spec> specs;
    for (const ExportValue& v : values) specs.push_back(v.spec);
    return specs;
  }
  const ExportValue& operand(int k) const { return c_.in[static_cast<std::size_t>(k)]; }

  ExportValue time_first(const ExportValue& x) { return batch_first_ ? b_.transpose(x, {1, 0, 2}) : x; }

  ExportValue reordered(const ExportValue& x, int axis, const Gates& gates) {
    if (gates.size() == 1) return x;
    ExportValues parts;
    for (const int gate : gates) parts.push_back(b_.slice(x, axis, gate * units_, units_));
    return b_.concatenate(parts, axis);
  }
  /// [in, gates] as [1, gates, in].
  ExportValue matrix(int k, const Gates& gates) {
    return b_.unsqueeze(reordered(b_.transpose(operand(k), {1, 0}), 0, gates), 0);
  }
  ExportValue biases(const Gates& gates) {
    if (at_.w.bias_ih < 0) return {};
    const ExportValue first = reordered(operand(at_.w.bias_ih), 0, gates);
    return b_.unsqueeze(b_.concatenate({first, reordered(operand(at_.w.bias_hh), 0, gates)}, 0), 0);
  }
  ExportValue lengths() { return at_.lengths < 0 ? ExportValue() : b_.convert(operand(at_.lengths), Dtype::i32); }

  GraphBuilder& b_;
  const ExportCall& c_;
  const nn::SequenceParts at_;
  const bool reverse_, batch_first_;
  const std::int64_t units_;
};

ExportValues sequence(GraphBuilder& b, const ExportCall& c, const std::string& op, const Gates& gates,
                      Attributes attributes = {}) {
  SequenceLowering lowering(b, c);
  if (!lowering.fits()) return {};
  return lowering.written(op, gates, std::move(attributes));
}

template <bool reset_after>
ExportValues gru(GraphBuilder& b, const ExportCall& c) {
  return sequence(b, c, "GRU", kGruGates, {{"linear_before_reset", std::int64_t{reset_after}}});
}
ExportValues lstm(GraphBuilder& b, const ExportCall& c) { return sequence(b, c, "LSTM", kLstmGates); }
template <bool relu>
ExportValues rnn(GraphBuilder& b, const ExportCall& c) {
  const std::vector<std::string> activation{relu ? "Relu" : "Tanh"};
  return sequence(b, c, "RNN", kOneGate, {{"activations", activation}});
}

}  // namespace

ExportFamily export_recurrent() {
  static constexpr NamedExportLowering list[] = {
      {"gru_sequence", gru<true>},  {"gru_reset_before_sequence", gru<false>},
      {"lstm_sequence", lstm},      {"peephole_lstm_sequence", lstm},
      {"rnn_sequence", rnn<false>}, {"rnn_relu_sequence", rnn<true>}};
  return list;
}

}  // namespace ferrite::onnx::detail
