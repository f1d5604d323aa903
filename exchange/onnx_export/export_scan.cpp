/// Lowers scans to Scan, whose body may read values from outside of it.
#include "ferrite/compile/scan_body.h"
#include "ferrite/exchange/export_error.h"
#include "ferrite/exchange/onnx_export/export_lowering.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::ScanAttrs;
using ferrite::detail::ScanBody;
using ferrite::detail::ScanSignature;

/// The lowering of one scan. The residuals of a recurrent sequence in the body are not written, as in any graph; xs,
/// captures and ys may be residuals, carries and sums not.
class ScanLowering {
 public:
  ScanLowering(OnnxBuilder& b, const Application& c)
      : b_(b),
        c_(c),
        body_(ScanBody::of(c.attrs)),
        s_(body_.signature()),
        first_y_(s_.carries + s_.sums),
        given_(body_.graph().values.size()) {}

  Values written() {
    const auto [parts, steps, reverse] = c_.as<ScanAttrs>();
    if (steps == 0) return without_steps();
    std::vector<bool> asked = c_.read;
    for (std::size_t k = 0; k < s_.carries; ++k) asked[k] = true;
    Block block;
    take_states(block);
    const std::int64_t xs = take_xs(block, steps);
    take_captures();
    std::vector<std::size_t> ys;
    b_.within(block, [&] {
      for (const auto& [input, spec] : empty_xs_) given_[input] = b_.filled(0, spec);
      const Values out = lower_graph(b_, body_.graph(), given_, asked);
      Values results = next_states(out);
      for (std::size_t k = first_y_; k < out.size(); ++k)
        if (asked[k] && out[k].exists() && c_.out[k].shape.numel() > 0) ys.push_back(k), results.push_back(out[k]);
      return results;
    });
    return node(std::move(block), ys, xs, reverse);
  }

 private:
  Values without_steps() {
    Values out(c_.in.begin(), c_.in.begin() + static_cast<std::ptrdiff_t>(s_.carries));
    for (std::size_t k = s_.carries; k < first_y_; ++k) out.push_back(b_.filled(0, c_.out[k]));
    out.resize(c_.out.size());
    return out;
  }

  Value input(Block& block, const Spec& spec, const char* name) {
    block.arguments.push_back(b_.fresh(spec));
    block.names.emplace_back(name);
    return block.arguments.back();
  }

  /// Adds the carries, and the sums, which start as zeros. Those without elements stay outside.
  void take_states(Block& block) {
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
      states_.push_back(input(block, spec, "carry"));
      if (carries) given_[g.inputs[k]] = states_.back();
    }
  }

  /// Adds the xs and returns their number. If there are none, the number of the step is one, which no step reads.
  std::int64_t take_xs(Block& block, std::int64_t steps) {
    const Graph& g = body_.graph();
    std::int64_t count = 0;
    for (std::size_t i = s_.carries; i < s_.carries + s_.xs; ++i) {
      const Spec& spec = body_.input(i);
      if (!c_.in[i].exists()) continue;
      if (spec.shape.numel() == 0) {
        empty_xs_.emplace_back(g.inputs[i], spec);
        continue;
      }
      operands_.push_back(c_.in[i]);
      given_[g.inputs[i]] = input(block, spec, "x");
      ++count;
    }
    if (count > 0) return count;
    operands_.push_back(b_.counted(steps));
    input(block, {{}, Dtype::i64}, "step");
    return 1;
  }

  void take_captures() {
    const Graph& g = body_.graph();
    for (std::size_t i = s_.carries + s_.xs; i < g.inputs.size(); ++i) given_[g.inputs[i]] = c_.in[i];
  }

  Values next_states(const Values& out) {
    Values next;
    for (std::size_t k = 0; k < first_y_; ++k) {
      if (!states_[k].exists()) continue;
      if (!out[k].exists() && (k < s_.carries || c_.read[k]))
        throw ExportError(
            "to_onnx: no lowering of scan: it carries what a recurrent sequence keeps for its gradient; read the "
            "sequence's outputs");
      const bool sums = k >= s_.carries && out[k].exists();
      next.push_back(k < s_.carries ? out[k] : sums ? b_.add(states_[k], out[k]) : states_[k]);
    }
    return next;
  }

  Values node(Block block, const std::vector<std::size_t>& ys, std::int64_t xs, bool reverse) {
    Values results(c_.out.size());
    std::vector<std::size_t> made;
    for (std::size_t k = 0; k < first_y_; ++k)
      if (states_[k].exists()) made.push_back(k);
    made.insert(made.end(), ys.begin(), ys.end());
    Instruction scan{.op = "Scan", .operands = operands_, .attributes = {{"num_scan_inputs", xs}}, .blocks = {}};
    if (reverse) {
      scan.attributes.push_back({"scan_input_directions", Integers(static_cast<std::size_t>(xs), 1)});
      if (!ys.empty()) scan.attributes.push_back({"scan_output_directions", Integers(ys.size(), 1)});
    }
    for (const std::size_t k : made) scan.results.push_back(results[k] = b_.fresh(c_.out[k]));
    scan.blocks.push_back(std::move(block));
    scan.origin = b_.origin();
    b_.append(std::move(scan));
    return results;
  }

  OnnxBuilder& b_;
  const Application& c_;
  const ScanBody& body_;
  const ScanSignature& s_;
  const std::size_t first_y_;
  Values given_;     ///< values in the file by value of the body
  Values states_;    ///< carries and sums in the body; those without elements do not exist
  Values operands_;  ///< operands of the node
  std::vector<std::pair<ValueId, Spec>> empty_xs_;
};

Values scan_node(OnnxBuilder& b, const Application& c) { return ScanLowering(b, c).written(); }

}  // namespace

ExportFamily export_scan() {
  static constexpr NamedLowering<OnnxBuilder> list[] = {{"scan", scan_node}};
  return list;
}

}  // namespace ferrite::exchange::detail
