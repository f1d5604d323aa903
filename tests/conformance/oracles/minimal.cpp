// Oracles and samples of nn/recurrent/min_gru.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/nn/recurrent/detail/linear_recurrence.h"
#include "ferrite/nn/recurrent/detail/minimal.h"
#include "ferrite/tensor/ops.h"

namespace oracles::minimal {
namespace {
using namespace ferrite::nn::detail;

/// The constants of a minimal cell: whether the optional operands are there, after the others and in this order.
struct MinimalAttrs {
  bool lengths = false, resets = false;
  static constexpr auto fields =
      attr_list(attr("lengths", &MinimalAttrs::lengths), attr("resets", &MinimalAttrs::resets));
};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// One unit of a step: the share of the previous h that stays, the input, and their derivatives by the gates.
struct Unit {
  double keeps, candidate, slope;
  double of_gates[2];  ///< d keeps / d z, or / d f and / d i
  Unit(MinimalCell cell, const double* g) {
    const double low = logistic(g[0]);
    candidate = g[0] >= 0 ? g[0] + 0.5 : low;
    slope = g[0] >= 0 ? 1 : low * (1 - low);
    if (cell == MinimalCell::gru) {
      keeps = logistic(-g[1]);
      of_gates[0] = -keeps * (1 - keeps);
    } else {
      keeps = 1 / (1 + (1 + std::exp(-g[1])) / (1 + std::exp(-g[2])));
      of_gates[0] = keeps * (1 - keeps) * logistic(-g[1]);
      of_gates[1] = -keeps * (1 - keeps) * logistic(-g[2]);
    }
  }
};

/// Calls f(unit, position of h, of its state, of its first gate, whether the previous h counts as 0, whether it is the
/// first step) for every valid step of every unit, forward or backward.
template <class F>
void each_unit(MinimalCell cell, std::span<const Dense> in, std::size_t h0, const MinimalAttrs& a, bool back, F&& f) {
  const Shape& s = in[0].shape;
  const std::int64_t B = s[0], T = s[1], G = gates_of(cell), H = s[2] / G;
  const Dense* lengths = a.lengths ? &in[h0 + 1] : nullptr;
  const Dense* resets = a.resets ? &in[h0 + (a.lengths ? 2U : 1U)] : nullptr;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t k = 0; k < H; ++k) {
      const std::int64_t n = lengths ? std::min(T, static_cast<std::int64_t>(lengths->values[at(b)])) : T;
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t t = back ? n - 1 - i : i, gate = (b * T + t) * G * H + k;
        double g[3] = {};
        for (std::int64_t j = 0; j < G; ++j) g[j] = in[0].values[at(gate + j * H)];
        f(Unit(cell, g), at((b * T + t) * H + k), at(b * H + k), at(gate), resets && resets->values[at(b * T + t)] != 0,
          t == 0);
      }
    }
}

std::vector<Sample> samples_of(MinimalCell cell, bool gradient) {
  std::vector<Sample> list;
  const auto add = [&](std::int64_t B, std::int64_t T, std::int64_t H, const MinimalAttrs& a) {
    Sample s{.inputs = {{{B, T, gates_of(cell) * H}}}, .attrs = a, .indices = {2, 1, 0}};
    if (gradient) s.inputs.insert(s.inputs.end(), 2, {{B, T, H}});
    s.inputs.push_back({{B, H}});
    if (a.lengths) s.inputs.push_back({{B}, Dtype::i64});
    if (a.resets) s.inputs.push_back({{B, T}, Dtype::boolean});
    s.smooth_at_ties = false;
    list.push_back(s);
  };
  add(2, 3, 2, {});
  add(3, 2, 1, {true, false});
  add(3, 2, 3, {true, true});
  add(2, 4, 2, {false, true});
  add(1, 1, 19, {});
  add(0, 2, 3, {});
  add(2, 0, 3, {});
  return list;
}

/// The gradient of the sequence: gates, h, cotangent of h, h0, perhaps lengths and resets -> cotangents of the gates,
/// of h0.
template <MinimalCell cell>
struct MinimalGrad {
  using Attributes = MinimalAttrs;
  static constexpr auto name = cell == MinimalCell::gru ? "min_gru_scan_grad" : "min_lstm_scan_grad";
  static constexpr std::size_t kState = 3;
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const std::size_t H = static_cast<std::size_t>(in[kState].shape[1]);
    Dense arriving(Spec{in[kState].shape, Dtype::f64});
    each_unit(cell, in, kState, a, true,
              [&](const Unit& u, std::size_t h, std::size_t state, std::size_t gate, bool fresh, bool first) {
                const double g = in[2].values[h] + arriving.values[state];
                const double before = fresh ? 0 : first ? in[kState].values[state] : in[1].values[h - H];
                out[0].values[gate] = g * (1 - u.keeps) * u.slope;
                for (std::size_t k = 1; k < static_cast<std::size_t>(gates_of(cell)); ++k)
                  out[0].values[gate + k * H] = g * (before - u.candidate) * u.of_gates[k - 1];
                arriving.values[state] = fresh ? 0 : g * u.keeps;
              });
    out[1].values = arriving.values;
  }
  static std::vector<Sample> samples() { return samples_of(cell, true); }
};

/// The sequence: gates, h0, perhaps lengths and resets -> h.
template <MinimalCell cell>
struct MinimalScan {
  using Attributes = MinimalAttrs;
  static constexpr auto name = cell == MinimalCell::gru ? "min_gru_scan" : "min_lstm_scan";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    std::vector<double> h = in[1].values;
    each_unit(cell, in, 1, a, false,
              [&](const Unit& u, std::size_t at, std::size_t state, std::size_t, bool fresh, bool) {
                const double before = fresh ? 0 : h[state];
                out[0].values[at] = h[state] = u.keeps * before + (1 - u.keeps) * u.candidate;
              });
  }
  static std::vector<Sample> samples() { return samples_of(cell, false); }
};

const Added added = add<MinimalScan<MinimalCell::gru>, MinimalGrad<MinimalCell::gru>, MinimalScan<MinimalCell::lstm>,
                        MinimalGrad<MinimalCell::lstm>>();

}  // namespace
}  // namespace oracles::minimal
