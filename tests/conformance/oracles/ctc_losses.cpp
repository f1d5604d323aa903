// Oracles and samples of nn/losses/sequence.cpp.
#include <cmath>
#include <functional>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/nn/losses/detail/alignments.h"
#include "ferrite/nn/losses/detail/ctc_kernel.h"
#include "ferrite/tensor/ops.h"

namespace oracles::ctc_losses {
namespace {

struct CtcAttrs {
  std::int64_t blank = 0;
  bool zero_infinity = false;
  static constexpr auto fields =
      attr_list(attr("blank", &CtcAttrs::blank), attr("zero_infinity", &CtcAttrs::zero_infinity));
};

std::vector<Sample> ctc_samples(bool gradient) {
  struct Case {
    std::int64_t T, S, C;
    std::vector<std::int64_t> targets, inputs, labels;
    CtcAttrs attrs;
  };
  const std::vector<Case> cases = {
      {4, 2, 3, {1, 2, 2, 2}, {4, 3}, {2, 2}, {}},        {5, 3, 4, {0, 1, 3, 1, 1, -7}, {5, 4}, {3, 2}, {2}},
      {3, 2, 3, {1, 1, 1, 9}, {2, 3}, {2, 1}, {0, true}},  // the first has no alignment
      {3, 2, 3, {9, 9, 1, 2}, {3, 2}, {0, 2}, {}},        {1, 0, 2, {}, {1, 0}, {0, 0}, {}},
  };
  std::vector<Sample> list;
  for (const Case& c : cases) {
    Sample s{.attrs = c.attrs, .range = {-3, 0}};
    if (gradient) s.inputs.push_back({{2}, Dtype::f32});
    s.inputs.insert(s.inputs.end(), {{{c.T, 2, c.C}}, {{2, c.S}, Dtype::i64}, {{2}, Dtype::i64}, {{2}, Dtype::i64}});
    for (const auto* part : {&c.targets, &c.inputs, &c.labels})
      s.indices.insert(s.indices.end(), part->begin(), part->end());
    list.push_back(s);
  }
  return list;
}

/// Enumerates all alignments: calls f(path, weight) for every path of T classes that collapses to the target.
void each_alignment(const Dense& scores, const Dense& targets, std::int64_t b, std::int64_t T, std::int64_t S,
                    std::int64_t blank, const std::function<void(const std::vector<std::int64_t>&, double)>& f) {
  const std::int64_t C = scores.shape[2];
  std::vector<std::int64_t> path(static_cast<std::size_t>(T), 0);
  for (bool more = true; more;) {
    std::vector<std::int64_t> collapsed;
    double weight = 0;
    for (std::int64_t t = 0; t < T; ++t) {
      const std::int64_t c = path[static_cast<std::size_t>(t)];
      if (c != blank && (t == 0 || path[static_cast<std::size_t>(t - 1)] != c)) collapsed.push_back(c);
      weight += scores.at({t, b, c});
    }
    bool same = std::ssize(collapsed) == S;
    for (std::int64_t s = 0; s < S && same; ++s)
      same = static_cast<double>(collapsed[static_cast<std::size_t>(s)]) == targets.at({b, s});
    if (same) f(path, std::exp(weight));
    more = false;
    for (std::size_t t = 0; t < path.size() && !more; ++t) more = ++path[t] < C || (path[t] = 0, false);
  }
}

struct CtcLoss {
  using Attributes = CtcAttrs;
  static constexpr auto name = "ctc_loss";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for (std::int64_t b = 0; b < out[0].shape[0]; ++b) {
      double total = 0;
      each_alignment(in[0], in[1], b, static_cast<std::int64_t>(in[2].at({b})),
                     static_cast<std::int64_t>(in[3].at({b})), a.blank,
                     [&](const auto&, double weight) { total += weight; });
      out[0].at({b}) = total == 0 && a.zero_infinity ? 0 : -std::log(total);
    }
  }
  static std::vector<Sample> samples() { return ctc_samples(false); }
};

/// The gradient of the loss: the contribution of each class of each frame to the loss of a sequence.
struct CtcLossGrad {
  using Attributes = CtcAttrs;
  static constexpr auto name = "ctc_loss_grad";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for (std::int64_t b = 0; b < in[0].shape[0]; ++b) {
      const auto T = static_cast<std::int64_t>(in[3].at({b})), S = static_cast<std::int64_t>(in[4].at({b}));
      double total = 0;
      each_alignment(in[1], in[2], b, T, S, a.blank, [&](const auto&, double weight) { total += weight; });
      each_alignment(in[1], in[2], b, T, S, a.blank, [&](const auto& path, double weight) {
        for (std::int64_t t = 0; t < T; ++t)
          out[0].at({t, b, path[static_cast<std::size_t>(t)]}) -= weight / total * in[0].at({b});
      });
    }
  }
  static std::vector<Sample> samples() { return ctc_samples(true); }
};

const Added added = add<CtcLoss, CtcLossGrad>();

}  // namespace
}  // namespace oracles::ctc_losses
