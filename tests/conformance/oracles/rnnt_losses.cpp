// Oracles and samples of nn/losses/sequence.cpp.
#include <cmath>
#include <functional>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/nn/losses/detail/alignments.h"
#include "ferrite/tensor/ops.h"

namespace oracles::rnnt_losses {
namespace {

struct RnntAttrs {
  std::int64_t blank = 0;
  static constexpr auto fields = attr_list(attr("blank", &RnntAttrs::blank));
};

std::vector<Sample> rnnt_samples(bool gradient) {
  struct Case {
    std::int64_t T, U, C;
    std::vector<std::int64_t> targets, inputs, labels;
    RnntAttrs attrs;
  };
  const std::vector<Case> cases = {{3, 2, 3, {1, 2, 2, 2}, {3, 2}, {2, 2}, {0}},
                                   {4, 3, 4, {0, 1, 1, 2, 0, -7}, {4, 3}, {3, 2}, {3}},
                                   {1, 2, 2, {0, 0, 9, 9}, {1, 1}, {2, 0}, {1}},
                                   {3, 0, 2, {}, {1, 3}, {0, 0}, {0}}};
  std::vector<Sample> list;
  for (const Case& c : cases) {
    Sample s{.attrs = c.attrs, .range = {-3, 0}};
    if (gradient) s.inputs.push_back({{2}, Dtype::f32});
    s.inputs.insert(s.inputs.end(),
                    {{{2, c.T, c.U + 1, c.C}}, {{2, c.U}, Dtype::i64}, {{2}, Dtype::i64}, {{2}, Dtype::i64}});
    for (const auto* part : {&c.targets, &c.inputs, &c.labels})
      s.indices.insert(s.indices.end(), part->begin(), part->end());
    list.push_back(s);
  }
  return list;
}

/// One step of an alignment: an element of the scores.
using Steps = std::vector<Shape>;

/// Enumerates all alignments: calls f(steps, ln of the weight).
void each_alignment(const Dense& scores, const Dense& targets, std::int64_t b, std::int64_t T, std::int64_t U,
                    std::int64_t blank, Steps& steps, std::int64_t t, std::int64_t u, double weight,
                    const std::function<void(const Steps&, double)>& f) {
  if (t == T) {
    if (u == U) f(steps, weight);
    return;
  }
  const auto go = [&](std::int64_t c, std::int64_t next_t, std::int64_t next_u) {
    const Shape at{b, t, u, c};
    steps.push_back(at);
    each_alignment(scores, targets, b, T, U, blank, steps, next_t, next_u, weight + scores.at(at), f);
    steps.pop_back();
  };
  go(blank, t + 1, u);
  if (u < U) go(static_cast<std::int64_t>(targets.at({b, u})), t, u + 1);
}

void each_alignment(std::span<const Dense> in, std::size_t first, std::int64_t b, const RnntAttrs& a,
                    const std::function<void(const Steps&, double)>& f) {
  Steps steps;
  each_alignment(in[first], in[first + 1], b, static_cast<std::int64_t>(in[first + 2].at({b})),
                 static_cast<std::int64_t>(in[first + 3].at({b})), a.blank, steps, 0, 0, 0, f);
}

struct RnntLoss {
  using Attributes = RnntAttrs;
  static constexpr auto name = "rnnt_loss";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for (std::int64_t b = 0; b < out[0].shape[0]; ++b) {
      double total = 0;
      each_alignment(in, 0, b, a, [&](const Steps&, double weight) { total += std::exp(weight); });
      out[0].at({b}) = -std::log(total);
    }
  }
  static std::vector<Sample> samples() { return rnnt_samples(false); }
};

struct RnntLossGrad {
  using Attributes = RnntAttrs;
  static constexpr auto name = "rnnt_loss_grad";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for (std::int64_t b = 0; b < in[0].shape[0]; ++b) {
      double total = 0;
      each_alignment(in, 1, b, a, [&](const Steps&, double weight) { total += std::exp(weight); });
      each_alignment(in, 1, b, a, [&](const Steps& steps, double weight) {
        for (const Shape& at : steps) out[0].at(at) -= std::exp(weight) / total * in[0].at({b});
      });
    }
  }
  static std::vector<Sample> samples() { return rnnt_samples(true); }
};

const Added added = add<RnntLoss, RnntLossGrad>();

}  // namespace
}  // namespace oracles::rnnt_losses
