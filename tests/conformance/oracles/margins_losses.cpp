// Oracles and samples of nn/losses/classification.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops.h"

namespace oracles::margins_losses {
namespace {

struct MultiMarginAttrs {
  int p = 1;
  double margin = 1;
  static constexpr auto fields = attr_list(attr("p", &MultiMarginAttrs::p), attr("margin", &MultiMarginAttrs::margin));
};

struct MultiMarginLoss {
  using Attributes = MultiMarginAttrs;
  static constexpr auto name = "multi_margin_loss";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const std::int64_t C = in[0].shape[1];
    for_each_index(out[0].shape, [&](const Shape& b) {
      const auto y = static_cast<std::int64_t>(in[1].at(b));
      double total = 0;
      for (std::int64_t c = 0; c < C; ++c)
        if (c != y) total += std::pow(std::max(0.0, a.margin - in[0].at({b[0], y}) + in[0].at({b[0], c})), a.p);
      out[0].at(b) = total / static_cast<double>(C) * (in.size() > 2 ? in[2].at({y}) : 1);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 4}}, {{3}, Dtype::i64}},
             .attrs = MultiMarginAttrs{},
             .indices = {1, 0, 3},
             .smooth_at_ties = false},
            {.inputs = {{{3, 4}}, {{3}, Dtype::i32}, {{4}}},
             .attrs = MultiMarginAttrs{2, 0.3},
             .indices = {2, 2, 1},
             .smooth_at_ties = false},
            {.inputs = {{{0, 4}}, {{0}, Dtype::i64}}, .attrs = MultiMarginAttrs{}, .indices = {0}}};
  }
};

struct MultilabelMarginLoss {
  static constexpr auto name = "multilabel_margin_loss";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    const std::int64_t C = in[0].shape[1];
    for_each_index(out[0].shape, [&](const Shape& b) {
      std::vector<std::int64_t> targets;
      for (std::int64_t j = 0; j < C && in[1].at({b[0], j}) >= 0; ++j)
        targets.push_back(static_cast<std::int64_t>(in[1].at({b[0], j})));
      double total = 0;
      for (const std::int64_t y : targets)
        for (std::int64_t c = 0; c < C; ++c)
          if (std::find(targets.begin(), targets.end(), c) == targets.end())
            total += std::max(0.0, 1 - (in[0].at({b[0], y}) - in[0].at({b[0], c})));
      out[0].at(b) = total / static_cast<double>(C);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 4}}, {{3, 4}, Dtype::i64}},
             .indices = {3, 0, -1, 1, -1, 0, 0, 0, 2, 1, 3, 0},
             .smooth_at_ties = false},
            {.inputs = {{{1, 3}}, {{1, 3}, Dtype::i64}}, .indices = {2, 2, -1}, .smooth_at_ties = false},
            {.inputs = {{{0, 3}}, {{0, 3}, Dtype::i64}}, .indices = {0}}};
  }
};

const Added added = add<MultiMarginLoss, MultilabelMarginLoss>();

}  // namespace
}  // namespace oracles::margins_losses
