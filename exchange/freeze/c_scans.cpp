/// Writes scans: operations before, in and after the steps, as the library divides them, and sums over all steps.
#include <algorithm>
#include <map>
#include <memory>

#include "ferrite/compile/scan_stages.h"
#include "ferrite/exchange/freeze/c_calls.h"
#include "ferrite/exchange/freeze/c_nested.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::ScanAttrs;
using ferrite::detail::ScanBody;
using ferrite::detail::ScanParts;
using ferrite::detail::ScanPlace;
using ferrite::detail::ScanSignature;
using ferrite::detail::ScanStage;
using ferrite::detail::ScanTerm;
using Kind = ScanPlace::Kind;

/// Writes one scan. All steps are one chunk, so that stacks between the stages hold all of them.
class ScanWriter {
 public:
  ScanWriter(const CCall& c, const ScanBody& body)
      : c_(c),
        s_(body.signature()),
        steps_(c.node().attrs.as<ScanAttrs>("scan").steps),
        reverse_(c.node().attrs.as<ScanAttrs>("scan").reverse) {
    if (steps_ < 1) c.body.refuse(c.node(), "it has no steps");
    parts_ = ferrite::detail::take_apart(body, steps_);
  }

  void write() {
    place_operands();
    if (!parts_.once.empty()) write_stage(parts_.once, "");
    if (!parts_.before.empty()) write_stage(parts_.before, "");
    write_steps();
    if (!parts_.after.empty()) write_stage(parts_.after, "");
    write_sums();
  }

 private:
  // ---- places ---------------------------------------------------------------------------------------------------

  std::string type(Dtype t) const { return std::string(c_type(t)); }
  const LoweredWindow& sum(std::size_t k) const { return c_.out(s_.carries + k); }
  const LoweredWindow& y(std::size_t k) const { return c_.out(s_.carries + s_.sums + k); }

  void place_operands() {
    for (std::size_t i = 0; i < c_.step.in.size(); ++i) operands_.push_back(c_.dense(c_.in(i)));
    for (const Spec& s : parts_.chunks) chunks_.push_back(c_.body.scratch(s.dtype, s.shape.numel() * steps_));
    for (std::size_t o = 0; o < parts_.once.out.size(); ++o) {
      const Spec& s = parts_.once.graph.values[parts_.once.graph.outputs[o]];
      once_[parts_.once.out[o].index] = c_.body.scratch(s.dtype, s.shape.numel());
    }
    for (std::size_t k = 0; k < s_.carries; ++k) carries_.push_back(c_.body.fresh("carry"));
  }
  /// Returns the first address of a value.
  std::string first(const ScanPlace& p) const {
    switch (p.kind) {
      case Kind::carry: return carries_[p.index];
      case Kind::x: return operands_[s_.carries + p.index];
      case Kind::capture: return operands_[s_.carries + s_.xs + p.index];
      case Kind::once: return once_.at(p.index);
      case Kind::chunk: return chunks_[p.index];
      case Kind::y: break;
    }
    return c_.at(y(p.index));
  }
  /// Returns the elements of one step of a stack; 0 for a value that is the same in all steps.
  std::int64_t stride(const ScanPlace& p) const {
    switch (p.kind) {
      case Kind::x: return c_.in(s_.carries + p.index).spec.shape.numel() / steps_;
      case Kind::y: return y(p.index).spec.shape.numel() / steps_;
      case Kind::chunk: return parts_.chunks[p.index].shape.numel();
      default: return 0;
    }
  }
  /// Returns the address of a value at the step `index`, or of all steps for "".
  std::string address(const ScanPlace& p, const std::string& index) const {
    const std::int64_t n = stride(p);
    return first(p) + (index.empty() || n == 0 ? "" : " + " + index + " * " + text(n));
  }

  // ---- stages ---------------------------------------------------------------------------------------------------

  void write_stage(const ScanStage& stage, const std::string& index) {
    CNested program(c_.body, stage.graph);
    for (std::size_t i = 0; i < stage.in.size(); ++i) program.input(i, address(stage.in[i], index));
    for (std::size_t o = 0; o < stage.out.size(); ++o) program.output(o, address(stage.out[o], index));
    program.write(c_.to);
  }

  void write_steps() {
    const std::string step = c_.body.fresh("step"), index = reverse_ ? c_.body.fresh("at") : step;
    CText& to = c_.to;
    for (std::size_t k = 0; k < s_.carries; ++k)
      to.line("const " + type(c_.in(k).spec.dtype) + " *" + carries_[k] + " = " + operands_[k] + ";");
    to.open(loop_over(step, steps_));
    if (reverse_) to.line("const ptrdiff_t " + index + " = " + text(steps_ - 1) + " - " + step + ";");
    for (const auto& [k, p] : parts_.carried)
      write_copy(c_.to, address(p, index), carries_[k], c_.in(k).spec.shape.numel());
    const ScanStage& stage = parts_.step;
    CNested program(c_.body, stage.graph);
    for (std::size_t i = 0; i < stage.in.size(); ++i) program.input(i, address(stage.in[i], index));
    for (std::size_t o = 0; o < stage.out.size(); ++o)
      if (stage.out[o].kind != Kind::carry) program.output(o, address(stage.out[o], index));
    // A carry that has no stack of its own gets one of two buffers in turn: one is read while the other is written.
    for (std::size_t o = 0; o < stage.out.size(); ++o)
      if (stage.out[o].kind == Kind::carry && !program.has_place(o) && !program.is_input(o)) {
        const LoweredWindow& carry = c_.in(stage.out[o].index);
        const std::int64_t n = whole_vectors(carry.spec.shape.numel());
        const std::string next = c_.body.fresh("next"), t = type(carry.spec.dtype);
        to.line(t + " *const " + next + " = " + c_.body.scratch(carry.spec.dtype, 2 * n) + " + " + step + " % 2 * " +
                text(n) + ";");
        program.output(o, next);
      }
    program.write(to);
    write_carries(stage, program);
    to.close();
    for (std::size_t k = 0; k < s_.carries; ++k)
      write_copy(c_.to, c_.at(c_.out(k)), carries_[k], c_.in(k).spec.shape.numel());
  }
  /// Points the carries to their next values; some may be carries before the step, so all are read first.
  void write_carries(const ScanStage& stage, const CNested& program) {
    std::vector<std::pair<std::string, std::string>> moves;
    for (std::size_t o = 0; o < stage.out.size(); ++o) {
      if (stage.out[o].kind != Kind::carry) continue;
      const std::string &carry = carries_[stage.out[o].index], from = program.result(o);
      if (from == carry) continue;
      std::string now = from;
      if (std::ranges::find(carries_, from) != carries_.end()) {
        now = c_.body.fresh("before");
        c_.to.line("const " + type(c_.in(stage.out[o].index).spec.dtype) + " *const " + now + " = " + from + ";");
      }
      moves.emplace_back(carry, now);
    }
    for (const auto& [carry, now] : moves) c_.to.line(carry + " = " + now + ";");
  }

  // ---- sums -----------------------------------------------------------------------------------------------------

  void write_sums() {
    for (std::size_t k = 0; k < s_.sums; ++k)
      c_.to.line(loop_over("i", sum(k).spec.shape.numel()) + " (" + c_.at(sum(k)) + ")[i] = 0;");
    for (const ScanTerm& t : parts_.terms) write_term(t);
  }
  /// Rows in the order of the steps: an address and the distance between rows.
  struct Rows {
    std::string at;
    std::int64_t step;
  };
  Rows rows_of(const ScanPlace& p, const ScanTerm& t, std::int64_t width) {
    const std::string at = first(p);
    const std::int64_t all = steps_ * t.rows;
    if (!reverse_) return {at, width};
    if (t.rows == 1) return {at + " + " + text((all - 1) * width), -width};
    const std::string turned = c_.body.scratch(t.dtype, all * width);
    const std::int64_t n = t.rows * width;
    c_.to.line(loop_over("s", steps_));
    c_.to.line("  for (ptrdiff_t i = 0; i < " + text(n) + "; ++i)");
    c_.to.line("    (" + turned + ")[s * " + text(n) + " + i] = (" + at + ")[(" + text(steps_ - 1) + " - s) * " +
               text(n) + " + i];");
    return {turned, width};
  }
  /// Adds a product of all rows, or their sum.
  void write_term(const ScanTerm& t) {
    const std::int64_t n = std::max<std::int64_t>(t.a_width, 1) * t.b_width, all = steps_ * t.rows;
    const std::string total = c_.body.scratch(t.dtype, n);
    const Rows b = rows_of(t.b, t, t.b_width);
    CModule& module = c_.body.module();
    if (t.a_width) {
      const Rows a = rows_of(t.a, t, t.a_width);
      c_.to.line(module.kernel("rows", t.dtype) + "(" + a.at + ", 1, " + text(a.step) + ", " + b.at + ", " +
                 text(b.step) + ", " + total + ", " + text(t.b_width) + ", " + text(t.a_width) + ", " + text(all) +
                 ", " + text(t.b_width) + ");");
    } else {
      c_.to.line(module.kernel("row_sums", t.dtype) + "(" + b.at + ", " + text(b.step) + ", " + text(all) + ", " +
                 text(t.b_width) + ", " + total + ");");
    }
    c_.to.line(loop_over("i", n) + " (" + c_.at(sum(t.sum)) + ")[i] += (" + total + ")[i];");
  }

  const CCall& c_;
  const ScanSignature& s_;
  std::int64_t steps_;
  bool reverse_;
  ScanParts parts_;
  std::vector<std::string> operands_, chunks_, carries_;
  std::map<std::size_t, std::string> once_;
};

void write_scan(const CCall& c) {
  c.to.line("/* " + text(c.node().attrs.as<ScanAttrs>("scan").steps) + " steps */");
  ScanWriter(c, ScanBody::of(c.node().attrs)).write();
}

constexpr CWriter kWriters[] = {{"scan", write_scan}};

}  // namespace

std::span<const CWriter> scan_writers() { return kWriters; }

}  // namespace ferrite::exchange::detail
