// Oracles and samples of gated cells: nn/recurrent/gru, lstm, rnn and peephole_lstm.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "conformance/oracles/recurrent.h"

namespace oracles {
namespace gated_cells {
namespace {
using namespace ferrite::nn::detail;

struct GruStep {
  static constexpr auto name = "gru_step";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    step_oracle(kGru, in, out, in.size() > 3, false);
  }
  static std::vector<Sample> samples() { return step_samples(kGru); }
};

struct GruStepResetBefore {
  static constexpr auto name = "gru_step_reset_before";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    step_oracle(kGruResetBefore, in, out, in.size() > 3, false);
  }
  static std::vector<Sample> samples() { return step_samples(kGruResetBefore); }
};

template <bool kResetAfter>
void gru_step(StepOracle& s) {
  Row r_h = s.h;
  for (std::int64_t j = 0; j < s.H; ++j) {
    s.save(0, j) = logistic(s.sum(0, j));
    s.save(1, j) = logistic(s.sum(1, j));
    r_h[static_cast<std::size_t>(j)] *= s.save(0, j);
  }
  for (std::int64_t j = 0; j < s.H; ++j) {
    const auto u = static_cast<std::size_t>(j);
    const double q = s.product(kResetAfter ? s.h : r_h, 2, j), z = s.save(1, j);
    const double n = std::tanh(s.input(2, j) + (kResetAfter ? s.save(0, j) * q : q));
    s.save(2, j) = n;
    if (kResetAfter) s.save(3, j) = q;
    s.next[u] = (1 - z) * n + z * s.h[u];
  }
}

template <bool kResetAfter>
void gru_back(BackOracle& s) {
  Row r_h = s.h, d_r_h(s.h.size());
  for (std::int64_t j = 0; j < s.H; ++j) {
    const auto u = static_cast<std::size_t>(j);
    const double r = s.saved(0, j), z = s.saved(1, j), n = s.saved(2, j);
    const double dn = s.d[u] * (1 - z) * (1 - n * n);
    s.dh[u] += s.d[u] * z;
    r_h[u] *= r;
    s.add_input(2, j, dn);
    s.add_sum(1, j, s.d[u] * (s.h[u] - n) * z * (1 - z));
    if (!kResetAfter) continue;
    s.add_sum(0, j, dn * s.saved(3, j) * r * (1 - r));
    s.add_product(s.h, 2, j, dn * r, s.dh);
  }
  for (std::int64_t j = 0; !kResetAfter && j < s.H; ++j) {
    const double z = s.saved(1, j), n = s.saved(2, j);
    s.add_product(r_h, 2, j, s.d[static_cast<std::size_t>(j)] * (1 - z) * (1 - n * n), d_r_h);
  }
  for (std::int64_t j = 0; !kResetAfter && j < s.H; ++j) {
    const auto u = static_cast<std::size_t>(j);
    const double r = s.saved(0, j);
    s.add_sum(0, j, d_r_h[u] * s.h[u] * r * (1 - r));
    s.dh[u] += d_r_h[u] * r;
  }
}

struct GruSequence {
  static constexpr auto name = "gru_sequence", grad_name = "gru_sequence_grad";
  static constexpr const GatedCell& cell = kGru;
};
struct GruResetBeforeSequence {
  static constexpr auto name = "gru_reset_before_sequence", grad_name = "gru_reset_before_sequence_grad";
  static constexpr const GatedCell& cell = kGruResetBefore;
};

struct LstmStepAttrs {
  bool bias = true, projection = false;
  static constexpr auto fields =
      attr_list(attr("bias", &LstmStepAttrs::bias), attr("projection", &LstmStepAttrs::projection));
};

struct LstmStep {
  using Attributes = LstmStepAttrs;
  static constexpr auto name = "lstm_step";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    step_oracle(kLstm, in, out, a.bias, a.projection);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = step_samples(kLstm);
    all[0].attrs = LstmStepAttrs{.bias = false};
    all[1].attrs = LstmStepAttrs{};
    all.push_back({.inputs = {{{2, 12}}, {{2, 2}}, {{2, 3}}, {{2, 12}}, {{12}}, {{3, 2}}},
                   .attrs = LstmStepAttrs{.projection = true}});
    return all;
  }
};

void lstm_step(StepOracle& s) {
  for (std::int64_t j = 0; j < s.H; ++j) {
    const auto u = static_cast<std::size_t>(j);
    for (const std::int64_t gate : {0, 1, 3}) s.save(gate, j) = logistic(s.sum(gate, j));
    s.save(2, j) = std::tanh(s.sum(2, j));
    s.c[u] = s.save(4, j) = s.save(1, j) * s.c[u] + s.save(0, j) * s.save(2, j);
    s.next[u] = s.save(3, j) * std::tanh(s.c[u]);
  }
}

void lstm_back(BackOracle& s) {
  for (std::int64_t j = 0; j < s.H; ++j) {
    const auto u = static_cast<std::size_t>(j);
    const double i = s.saved(0, j), f = s.saved(1, j), g = s.saved(2, j), o = s.saved(3, j);
    const double tc = std::tanh(s.saved(4, j)), dc = s.dc[u] + s.d[u] * o * (1 - tc * tc);
    s.add_sum(0, j, dc * g * i * (1 - i));
    s.add_sum(1, j, dc * s.c[u] * f * (1 - f));
    s.add_sum(2, j, dc * i * (1 - g * g));
    s.add_sum(3, j, s.d[u] * tc * o * (1 - o));
    s.dc[u] = dc * f;
  }
}

struct LstmSequence {
  static constexpr auto name = "lstm_sequence", grad_name = "lstm_sequence_grad";
  static constexpr const GatedCell& cell = kLstm;
};

struct RnnStepAttrs {
  bool relu = false;
  static constexpr auto fields = attr_list(attr("relu", &RnnStepAttrs::relu));
};

struct RnnStep {
  using Attributes = RnnStepAttrs;
  static constexpr auto name = "rnn_step";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    step_oracle(a.relu ? kRnnRelu : kRnn, in, out, in.size() > 3, false);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = step_samples(kRnn);
    all[0].attrs = RnnStepAttrs{true};
    all[0].smooth_at_ties = false;
    all[1].attrs = RnnStepAttrs{};
    return all;
  }
};

template <bool kWithRelu>
void rnn_step(StepOracle& s) {
  for (std::int64_t j = 0; j < s.H; ++j)
    s.next[static_cast<std::size_t>(j)] = kWithRelu ? std::max(0.0, s.sum(0, j)) : std::tanh(s.sum(0, j));
}
template <bool kWithRelu>
void rnn_back(BackOracle& s) {
  for (std::int64_t j = 0; j < s.H; ++j) {
    const double y = s.y[static_cast<std::size_t>(j)], d = s.d[static_cast<std::size_t>(j)];
    s.add_sum(0, j, kWithRelu ? (y > 0 ? d : 0) : d * (1 - y * y));
  }
}

struct RnnSequence {
  static constexpr auto name = "rnn_sequence", grad_name = "rnn_sequence_grad";
  static constexpr const GatedCell& cell = kRnn;
};
struct RnnReluSequence {
  static constexpr auto name = "rnn_relu_sequence", grad_name = "rnn_relu_sequence_grad";
  static constexpr const GatedCell& cell = kRnnRelu;
};

struct PeepholeLstmStep {
  static constexpr auto name = "peephole_lstm_step";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    step_oracle(kPeepholeLstm, in, out, in.size() > 5, false);
  }
  static std::vector<Sample> samples() { return step_samples(kPeepholeLstm); }
};

void peephole_lstm_step(StepOracle& s) {
  for (std::int64_t j = 0; j < s.H; ++j) {
    const auto u = static_cast<std::size_t>(j);
    const double i = logistic(s.sum(0, j) + s.vector(0, j) * s.c[u]);
    const double f = logistic(s.sum(1, j) + s.vector(1, j) * s.c[u]);
    const double g = std::tanh(s.sum(2, j));
    s.c[u] = f * s.c[u] + i * g;
    const double o = logistic(s.sum(3, j) + s.vector(2, j) * s.c[u]);
    s.next[u] = o * std::tanh(s.c[u]);
    for (const auto& [place, v] : {std::pair{0, i}, {1, f}, {2, g}, {3, o}, {4, s.c[u]}}) s.save(place, j) = v;
  }
}

void peephole_lstm_back(BackOracle& s) {
  for (std::int64_t j = 0; j < s.H; ++j) {
    const auto u = static_cast<std::size_t>(j);
    const double i = s.saved(0, j), f = s.saved(1, j), g = s.saved(2, j), o = s.saved(3, j), c = s.saved(4, j);
    const double tc = std::tanh(c), d_o = s.d[u] * tc * o * (1 - o);
    const double dc = s.dc[u] + s.d[u] * o * (1 - tc * tc) + d_o * s.vector(2, j);
    const double d_i = dc * g * i * (1 - i), d_f = dc * s.c[u] * f * (1 - f);
    s.add_sum(0, j, d_i), s.add_vector(0, j, d_i * s.c[u]);
    s.add_sum(1, j, d_f), s.add_vector(1, j, d_f * s.c[u]);
    s.add_sum(2, j, dc * i * (1 - g * g));
    s.add_sum(3, j, d_o), s.add_vector(2, j, d_o * c);
    s.dc[u] = dc * f + d_i * s.vector(0, j) + d_f * s.vector(1, j);
  }
}

struct PeepholeLstmSequence {
  static constexpr auto name = "peephole_lstm_sequence", grad_name = "peephole_lstm_sequence_grad";
  static constexpr const GatedCell& cell = kPeepholeLstm;
};

template <class Cell>
struct SequenceGrad {
  using Attributes = SequenceWants;
  static constexpr auto name = Cell::grad_name;
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    sequence_grad_oracle(Cell::cell, in, out, a);
  }
  static std::vector<Sample> samples() { return sequence_grad_samples(Cell::cell); }
};

template <class Cell>
struct Sequence {
  using Attributes = SequenceSaves;
  static constexpr auto name = Cell::name;
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    sequence_oracle(Cell::cell, in, out, a);
  }
  static std::vector<Sample> samples() { return sequence_samples(Cell::cell); }
};

constexpr CellOracle kOracles[] = {{&kGru, gru_step<true>, gru_back<true>},
                                   {&kGruResetBefore, gru_step<false>, gru_back<false>},
                                   {&kLstm, lstm_step, lstm_back},
                                   {&kRnn, rnn_step<false>, rnn_back<false>},
                                   {&kRnnRelu, rnn_step<true>, rnn_back<true>},
                                   {&kPeepholeLstm, peephole_lstm_step, peephole_lstm_back}};

const Added added =
    add<GruStep, GruStepResetBefore, LstmStep, RnnStep, PeepholeLstmStep, Sequence<GruSequence>,
        SequenceGrad<GruSequence>, Sequence<GruResetBeforeSequence>, SequenceGrad<GruResetBeforeSequence>,
        Sequence<LstmSequence>, SequenceGrad<LstmSequence>, Sequence<RnnSequence>, SequenceGrad<RnnSequence>,
        Sequence<RnnReluSequence>, SequenceGrad<RnnReluSequence>, Sequence<PeepholeLstmSequence>,
        SequenceGrad<PeepholeLstmSequence>>();

}  // namespace
}  // namespace gated_cells

const CellOracle& oracle_of(const GatedCell& cell) {
  return *std::ranges::find(gated_cells::kOracles, &cell, &CellOracle::cell);
}

}  // namespace oracles
