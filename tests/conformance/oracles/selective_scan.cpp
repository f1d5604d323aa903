// Oracles and samples of tensor/ops/selective_scan.cpp.
#include <cmath>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/selective_scan.h"

namespace oracles::selective_scan {
namespace {

ScanOperands operands_of(std::span<const Dense> in, std::size_t begin) {
  return {in.size(), begin, [in](std::size_t k) { return ScanOperands::Item{in[k].dtype, in[k].shape.rank()}; }};
}

/// One channel of one row: the states after each step, computed in the constructor.
class DenseScan {
 public:
  DenseScan(std::span<const Dense> in, std::size_t begin, std::int64_t b, std::int64_t d)
      : in_(in), o(operands_of(in, begin)), b_(b), d_(d) {
    states = at(o.A).shape[1];
    steps = o.lengths < 0 ? at(o.x).shape[1] : static_cast<std::int64_t>(at(o.lengths).at({b}));
    for (std::int64_t t = 0; t < steps; ++t)
      for (std::int64_t n = 0; n < states; ++n)
        h_.push_back(decay(t, n) * before(t, n) + delta(t) * x(t) * at(o.B).at({b, t, n}));
  }
  const Dense& at(int k) const { return in_[static_cast<std::size_t>(k)]; }
  double x(std::int64_t t) const { return at(o.x).at({b_, t, d_}); }
  double delta(std::int64_t t) const { return at(o.delta).at({b_, t, d_}); }
  double A(std::int64_t n) const { return at(o.A).at({d_, n}); }
  double D() const { return o.D < 0 ? 0 : at(o.D).at({d_}); }
  double decay(std::int64_t t, std::int64_t n) const { return std::exp(delta(t) * A(n)); }
  bool resets_at(std::int64_t t) const { return o.resets >= 0 && at(o.resets).at({b_, t}) != 0; }
  /// Returns state n after step t; t = -1 is before the first step.
  double after(std::int64_t t, std::int64_t n) const {
    if (t < 0) return o.state < 0 ? 0 : at(o.state).at({b_, d_, n});
    return h_[static_cast<std::size_t>(t * states + n)];
  }
  double before(std::int64_t t, std::int64_t n) const { return resets_at(t) ? 0 : after(t - 1, n); }

 private:
  std::span<const Dense> in_;

 public:
  ScanOperands o;
  std::int64_t states, steps;

 private:
  std::int64_t b_, d_;
  std::vector<double> h_;
};

/// Calls f(row, channel) for all of x [Bt, T, Dm].
template <class F>
void each_channel(const Dense& x, F&& f) {
  for (std::int64_t b = 0; b < x.shape[0]; ++b)
    for (std::int64_t d = 0; d < x.shape[2]; ++d) f(b, d);
}

void scan_oracle(std::span<const Dense> in, std::span<Dense> out) {
  each_channel(in[0], [&](std::int64_t b, std::int64_t d) {
    const DenseScan s(in, 0, b, d);
    for (std::int64_t t = 0; t < s.steps; ++t) {
      double& y = out[0].at({b, t, d}) = s.D() * s.x(t);
      for (std::int64_t n = 0; n < s.states; ++n) y += s.after(t, n) * s.at(s.o.C).at({b, t, n});
    }
    for (std::int64_t n = 0; n < s.states; ++n) out[1].at({b, d, n}) = s.after(s.steps - 1, n);
  });
}

void scan_grad_oracle(std::span<const Dense> in, std::span<Dense> out) {
  each_channel(in[kScanCotangents], [&](std::int64_t b, std::int64_t d) {
    const DenseScan s(in, kScanCotangents, b, d);
    const auto to = [&](int k) -> Dense& { return out[static_cast<std::size_t>(k - s.o.first)]; };
    for (std::int64_t n = 0; n < s.states; ++n) {
      double carry = in[1].values.empty() ? 0 : in[1].at({b, d, n});
      for (std::int64_t t = s.steps - 1; t >= 0; --t) {
        const double dy = in[0].values.empty() ? 0 : in[0].at({b, t, d}), B = s.at(s.o.B).at({b, t, n});
        const double arriving = carry + dy * s.at(s.o.C).at({b, t, n});
        const double back = arriving * s.decay(t, n), of_exponent = back * s.before(t, n);
        to(s.o.x).at({b, t, d}) += arriving * B * s.delta(t) + (n == 0 ? s.D() * dy : 0);
        to(s.o.delta).at({b, t, d}) += arriving * B * s.x(t) + of_exponent * s.A(n);
        to(s.o.A).at({d, n}) += of_exponent * s.delta(t);
        to(s.o.B).at({b, t, n}) += arriving * s.delta(t) * s.x(t);
        to(s.o.C).at({b, t, n}) += dy * s.after(t, n);
        if (s.o.D >= 0 && n == 0) to(s.o.D).at({d}) += s.x(t) * dy;
        carry = s.resets_at(t) ? 0 : back;
      }
      if (s.o.state >= 0) to(s.o.state).at({b, d, n}) = carry;
    }
  });
}

/// One sample: its extents, and the optional operands that it has.
struct ScanSample {
  std::int64_t rows, T, channels, states;
  bool D = false, state = false, lengths = false, resets = false;
};

/// Samples with one step, one state, one channel; channels that do not fill a packet, and more; states that do not fill
/// a group; more steps than the gradient processes at once; and without each optional operand.
constexpr ScanSample kSamples[] = {{1, 1, 1, 1},
                                   {2, 3, 2, 2, true},
                                   {1, 2, 19, 1, true},
                                   {1, 3, 5, 6, false, true},
                                   {1, 19, 2, 1, true, true},
                                   {2, 4, 2, 2, true, false, true},
                                   {2, 4, 2, 2, false, true, false, true},
                                   {3, 4, 2, 3, true, true, true, true}};

std::vector<Sample> samples_with(bool gradient) {
  std::vector<Sample> list;
  for (const ScanSample& e : kSamples)
    for (const bool all : {true, false}) {
      if (!gradient && !all) continue;
      const Shape y{e.rows, e.T, e.channels}, state{e.rows, e.channels, e.states}, by_state{e.rows, e.T, e.states};
      Sample s{.range = {-1, 1}};
      if (gradient) s.inputs = {{y}, {all ? state : Shape{0}}};
      s.inputs.insert(s.inputs.end(), {{y}, {y}, {{e.channels, e.states}}, {by_state}, {by_state}});
      if (e.D) s.inputs.push_back({{e.channels}});
      if (e.state) s.inputs.push_back({state});
      if (e.lengths) s.inputs.push_back({{e.rows}, Dtype::i64});
      if (e.resets) s.inputs.push_back({{e.rows, e.T}, Dtype::boolean});
      if (e.lengths) s.indices = e.rows == 3 ? std::vector<std::int64_t>{3, 0, 4} : std::vector<std::int64_t>{2, 4};
      if (e.resets) s.indices.insert(s.indices.end(), {0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0});
      list.push_back(s);
    }
  return list;
}

struct SelectiveScanGrad {
  static constexpr auto name = "selective_scan_grad";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) { scan_grad_oracle(in, out); }
  static std::vector<Sample> samples() { return samples_with(true); }
};

struct SelectiveScanOp {
  static constexpr auto name = "selective_scan";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) { scan_oracle(in, out); }
  static std::vector<Sample> samples() { return samples_with(false); }
};

const Added added = add<SelectiveScanOp, SelectiveScanGrad>();

}  // namespace
}  // namespace oracles::selective_scan
