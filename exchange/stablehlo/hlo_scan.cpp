/// Lowers scans to one loop, or step by step.
#include "ferrite/compile/scan_body.h"
#include "ferrite/exchange/export_error.h"
#include "ferrite/exchange/stablehlo/hlo_lowering.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::ScanAttrs;
using ferrite::detail::ScanBody;
using ferrite::detail::ScanSignature;

/// Returns the type of one step of a stack, without the time axis.
Spec spec_of_step(const Value& stack) {
  Spec s = stack.spec;
  s.shape.erase(0);
  return s;
}

/// The lowering of one scan. The residuals of a recurrent sequence in the body are not written, as in any graph; xs,
/// captures and ys may be residuals, carries and sums not.
class ScanLowering {
 public:
  ScanLowering(HloBuilder& b, const Application& c)
      : b_(b),
        c_(c),
        body_(ScanBody::of(c.attrs)),
        s_(body_.signature()),
        first_y_(s_.carries + s_.sums),
        steps_(c.as<ScanAttrs>().steps),
        reverse_(c.as<ScanAttrs>().reverse),
        asked_(c.read),
        shared_(body_.graph().values.size()) {
    for (std::size_t k = 0; k < s_.carries; ++k) asked_[k] = true;
    const Graph& g = body_.graph();
    for (std::size_t i = s_.carries + s_.xs; i < g.inputs.size(); ++i) shared_[g.inputs[i]] = c.in[i];
    for (const Graph::Constant& k : g.constants) shared_[k.value] = b.constant(k.tensor);
  }

  Values unrolled() {
    Values now(c_.in.begin(), c_.in.begin() + static_cast<std::ptrdiff_t>(s_.carries));
    for (std::size_t k = s_.carries; k < first_y_; ++k) now.push_back(b_.filled(0, c_.out[k]));
    std::vector<Values> ys(body_.ys(), Values(static_cast<std::size_t>(steps_)));
    for (std::int64_t n = 0; n < steps_; ++n) {
      const std::int64_t t = reverse_ ? steps_ - 1 - n : n;
      const Values next =
          step(b_, now, [&](const Value& x) { return b_.reshape(b_.slice(x, 0, t, 1), spec_of_step(x).shape); });
      for (std::size_t k = 0; k < first_y_; ++k)
        if (asked_[k]) now[k] = k < s_.carries ? next[k] : b_.add(now[k], next[k]);
      for (std::size_t k = 0; k < ys.size(); ++k) ys[k][static_cast<std::size_t>(t)] = next[first_y_ + k];
    }
    for (const Values& y : ys) now.push_back(asked_[now.size()] ? stacked(y) : Value());
    return now;
  }

  Values loop() {
    Values first(c_.in.begin(), c_.in.begin() + static_cast<std::ptrdiff_t>(s_.carries));
    first.resize(c_.out.size());
    const std::vector<std::size_t> round = what_goes_round(first);
    Values begin;
    for (const std::size_t k : round) begin.push_back(k < s_.carries ? first[k] : b_.filled(0, c_.out[k]));
    const Values last = b_.loop(steps_, begin, [&](const Value& number, const Values& now) {
      Values before = first;
      for (std::size_t i = 0; i < round.size(); ++i) before[round[i]] = now[i];
      const Value t = reverse_ ? b_.subtract(b_.like(steps_ - 1, number), number) : number;
      const Values next = step(b_, before, [&](const Value& x) { return b_.element(x, t); });
      Values after;
      for (const std::size_t k : round)
        after.push_back(k < s_.carries ? next[k]
                        : k < first_y_ ? b_.add(before[k], next[k])
                                       : b_.with_element(before[k], t, next[k]));
      return after;
    });
    Values out(c_.out.size());
    for (std::size_t i = 0; i < round.size(); ++i) out[round[i]] = last[i];
    for (std::size_t k = first_y_; k < out.size(); ++k) out[k] = out[first_with_value_of(k)];
    return out;
  }

 private:
  using Pick = std::function<Value(const Value& stack)>;

  /// Writes one step; returns the next carries, the terms of the sums and the ys.
  Values step(HloBuilder& b, const Values& carries, const Pick& pick) {
    const Graph& g = body_.graph();
    Values given = shared_;
    for (std::size_t k = 0; k < s_.carries; ++k) given[g.inputs[k]] = carries[k];
    for (std::size_t i = s_.carries; i < s_.carries + s_.xs; ++i)
      if (c_.in[i].exists())
        given[g.inputs[i]] = body_.input(i).shape.numel() ? pick(c_.in[i]) : b.filled(0, body_.input(i));
    Values out = lower_graph(b, g, std::move(given), asked_);
    for (std::size_t k = 0; k < first_y_; ++k)
      if (asked_[k] && !out[k].exists())
        throw ExportError(
            "to_stablehlo: no lowering of scan: it carries what a recurrent sequence keeps for its "
            "gradient; read the sequence's outputs");
    return out;
  }

  /// Returns the first needed y that is the same value: a value that a gradient reads is often also a result.
  std::size_t first_with_value_of(std::size_t y) const {
    const std::vector<ValueId>& values = body_.graph().outputs;
    for (std::size_t k = first_y_; k < y; ++k)
      if (asked_[k] && values[k] == values[y]) return k;
    return y;
  }

  /// Returns the results that a loop has to compute: those that are needed, have elements and, as a trial shows, a
  /// value; equal ys once.
  std::vector<std::size_t> what_goes_round(const Values& carries) {
    HloBuilder trial(b_.style());
    const Values out = step(trial, carries, [](const Value& x) { return Value{x.id, spec_of_step(x)}; });
    std::vector<std::size_t> list;
    for (std::size_t k = 0; k < out.size(); ++k)
      if (asked_[k] && c_.out[k].shape.numel() && out[k].exists() && (k < first_y_ || first_with_value_of(k) == k))
        list.push_back(k);
    return list;
  }

  Value stacked(Values parts) {
    if (parts.empty() || !parts[0].exists()) return {};
    for (Value& p : parts) {
      Shape one = p.shape();
      one.insert(0, 1);
      p = b_.reshape(p, one);
    }
    return b_.concatenate(parts, 0);
  }

  HloBuilder& b_;
  const Application& c_;
  const ScanBody& body_;
  const ScanSignature& s_;
  const std::size_t first_y_;
  const std::int64_t steps_;
  const bool reverse_;
  std::vector<bool> asked_;  ///< whether each result of the body is needed: carries, and results with a user
  Values shared_;            ///< captures and constants, by value of the body: they are the same in all steps
};

Values scan(HloBuilder& b, const Application& c) {
  ScanLowering s(b, c);
  return b.style().unrolled || c.as<ScanAttrs>().steps == 0 ? s.unrolled() : s.loop();
}

}  // namespace

HloFamily hlo_scan() {
  static constexpr NamedLowering<HloBuilder> list[] = {{"scan", scan}};
  return list;
}

}  // namespace ferrite::exchange::detail
