/// How scans are written: as Scan, whose body reads what is outside of it by name.
#include <set>

#include "ferrite/compile/scan_body.h"
#include "ferrite/exchange/export_error.h"
#include "ferrite/exchange/onnx_export/export_lowering.h"

namespace ferrite::onnx::detail {
namespace {

using ferrite::detail::ScanAttrs;
using ferrite::detail::ScanBody;
using ferrite::detail::ScanSignature;

/// One application. What a sequence in the body keeps for its gradient has no name, here as in any graph; xs, captures
/// and ys may be such values, carries and sums not.
class ScanLowering {
 public:
  ScanLowering(GraphBuilder& b, const ExportCall& c)
      : b_(b),
        c_(c),
        body_(ScanBody::of(c.attrs)),
        s_(body_.signature()),
        first_y_(s_.carries + s_.sums),
        inner_(b.names()),
        given_(body_.graph().values.size()) {}

  ExportValues written() {
    const auto [parts, steps, reverse] = c_.as<ScanAttrs>();
    if (steps == 0) return without_steps();
    std::vector<bool> asked = c_.read;
    for (std::size_t k = 0; k < s_.carries; ++k) asked[k] = true;
    take_states();
    const std::int64_t xs = take_xs(steps);
    take_captures();
    const ExportValues out = lower_graph(inner_, body_.graph(), given_, asked);
    give_states(out);
    std::vector<std::size_t> ys;
    for (std::size_t k = first_y_; k < out.size(); ++k)
      if (asked[k] && out[k].exists() && c_.out[k].shape.numel() > 0) ys.push_back(k);
    for (const std::size_t k : ys) give(out[k]);
    return node(ys, xs, reverse);
  }

 private:
  ExportValues without_steps() {
    ExportValues out(c_.in.begin(), c_.in.begin() + static_cast<std::ptrdiff_t>(s_.carries));
    for (std::size_t k = s_.carries; k < first_y_; ++k) out.push_back(b_.filled(0, c_.out[k]));
    out.resize(c_.out.size());
    return out;
  }

  ExportValue input(const Spec& spec, const char* name) {
    inner_.parts().inputs.push_back({b_.names().claim(name), spec});
    return {inner_.parts().inputs.back().name, spec};
  }

  /// Carries, and sums, which begin with zeros. One without elements stays outside.
  void take_states() {
    const Graph& g = body_.graph();
    for (std::size_t k = 0; k < first_y_; ++k) {
      const Spec& spec = c_.out[k];
      const bool carries = k < s_.carries;
      if (spec.shape.numel() == 0) {
        if (carries) given_[g.inputs[k]] = c_.in[k];
        states_.push_back({});
        continue;
      }
      operands_.push_back(carries ? c_.in[k] : b_.filled(0, spec));
      states_.push_back(input(spec, "carry"));
      if (carries) given_[g.inputs[k]] = states_.back();
    }
  }

  /// Gives how many there are; without any, the number of the step is one, which no step reads.
  std::int64_t take_xs(std::int64_t steps) {
    const Graph& g = body_.graph();
    std::int64_t count = 0;
    for (std::size_t i = s_.carries; i < s_.carries + s_.xs; ++i) {
      const Spec& spec = body_.input(i);
      if (!c_.in[i].exists()) continue;
      if (spec.shape.numel() == 0) {
        given_[g.inputs[i]] = inner_.filled(0, spec);
        continue;
      }
      operands_.push_back(c_.in[i]);
      given_[g.inputs[i]] = input(spec, "x");
      ++count;
    }
    if (count > 0) return count;
    const ExportValue zero = b_.scalar(0, Dtype::i64), one = b_.scalar(1, Dtype::i64);
    operands_.push_back(b_.node("Range", {zero, b_.scalar(steps, Dtype::i64), one}, {{steps}, Dtype::i64}));
    input({{}, Dtype::i64}, "step");
    return 1;
  }

  void take_captures() {
    const Graph& g = body_.graph();
    for (std::size_t i = s_.carries + s_.xs; i < g.inputs.size(); ++i) given_[g.inputs[i]] = c_.in[i];
  }

  /// A result of the body: one of its nodes, each value once.
  void give(const ExportValue& value) {
    const ExportValue own = inner_.makes(value) && given_names_.insert(value.name).second
                                ? value
                                : inner_.node("Identity", {value}, value.spec);
    inner_.parts().outputs.push_back({own.name, own.spec});
  }

  void give_states(const ExportValues& out) {
    for (std::size_t k = 0; k < first_y_; ++k) {
      if (!states_[k].exists()) continue;
      if (!out[k].exists() && (k < s_.carries || c_.read[k]))
        throw exchange::ExportError(
            "to_onnx: no lowering of scan: it carries what a recurrent sequence keeps for its gradient; read the "
            "sequence's outputs");
      const bool sums = k >= s_.carries && out[k].exists();
      give(k < s_.carries ? out[k] : sums ? inner_.add(states_[k], out[k]) : states_[k]);
    }
  }

  ExportValues node(const std::vector<std::size_t>& ys, std::int64_t xs, bool reverse) {
    ExportValues results(c_.out.size());
    std::vector<std::size_t> made;
    for (std::size_t k = 0; k < first_y_; ++k)
      if (states_[k].exists()) made.push_back(k);
    made.insert(made.end(), ys.begin(), ys.end());
    std::vector<Spec> specs;
    for (const std::size_t k : made) specs.push_back(c_.out[k]);
    auto body = std::make_shared<GraphParts>(std::move(inner_.parts()));
    body->name = "body";
    Attributes attributes{{"body", std::move(body)}, {"num_scan_inputs", xs}};
    if (reverse) {
      attributes.push_back({"scan_input_directions", Integers(static_cast<std::size_t>(xs), 1)});
      if (!ys.empty()) attributes.push_back({"scan_output_directions", Integers(ys.size(), 1)});
    }
    const ExportValues all = b_.nodes("Scan", operands_, specs, std::move(attributes));
    for (std::size_t i = 0; i < made.size(); ++i) results[made[i]] = all[i];
    return results;
  }

  GraphBuilder& b_;
  const ExportCall& c_;
  const ScanBody& body_;
  const ScanSignature& s_;
  const std::size_t first_y_;
  GraphBuilder inner_;
  ExportValues given_;     ///< by value of the body
  ExportValues states_;    ///< in the body: carries and sums; without a name, one without elements
  ExportValues operands_;  ///< of the node
  std::set<std::string> given_names_;
};

ExportValues scan_node(GraphBuilder& b, const ExportCall& c) { return ScanLowering(b, c).written(); }

}  // namespace

ExportFamily export_scan() {
  static constexpr NamedExportLowering list[] = {{"scan", scan_node}};
  return list;
}

}  // namespace ferrite::onnx::detail
