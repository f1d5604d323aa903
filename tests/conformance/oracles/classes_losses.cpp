// Oracles and samples of nn/losses/classification.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops.h"

namespace oracles::classes_losses {
namespace {

struct ClassLossAttrs {
  int axis = 1;
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  static constexpr auto fields =
      attr_list(attr("axis", &ClassLossAttrs::axis), attr("ignore_index", &ClassLossAttrs::ignore_index),
                attr("label_smoothing", &ClassLossAttrs::label_smoothing));
};

/// Computes the loss in loops.
void nll_oracle(std::span<const Dense> in, Dense& out, const ClassLossAttrs& a, bool logits) {
  const Dense &x = in[0], &targets = in[1];
  const std::int64_t C = x.shape[a.axis];
  for_each_index(out.shape, [&](const Shape& i) {
    Shape at = i;
    at.insert(a.axis, 0);
    const auto element = [&](const Dense& d, std::int64_t c) {
      at[a.axis] = c;
      return d.at(at);
    };
    double largest = -INFINITY, total = 0, loss = 0;
    for (std::int64_t c = 0; c < C; ++c) largest = std::max(largest, element(x, c));
    for (std::int64_t c = 0; c < C; ++c) total += std::exp(element(x, c) - largest);
    const double all = logits ? largest + std::log(total) : 0;
    const bool shares = is_float(targets.dtype);
    const double target = shares ? 0 : targets.at(i);
    for (std::int64_t c = 0; c < C; ++c) {
      double share = shares ? element(targets, c) : (static_cast<double>(c) == target ? 1.0 : 0.0);
      share = share * (1 - a.label_smoothing) + a.label_smoothing / static_cast<double>(C);
      if (share != 0) loss -= share * (element(x, c) - all) * (in.size() > 2 ? in[2].at({c}) : 1);
    }
    out.at(i) = !shares && target == static_cast<double>(a.ignore_index) ? 0 : loss;
  });
}

std::vector<Sample> class_samples() {
  const std::vector<std::int64_t> classes = {1, 0, -100, 3, 2};
  return {{.inputs = {{{3, 4}}, {{3}, Dtype::i64}}, .attrs = ClassLossAttrs{1}, .indices = classes},
          {.inputs = {{{3, 4}}, {{3}, Dtype::i32}, {{4}}}, .attrs = ClassLossAttrs{1, 3, 0}, .indices = {3, 0, 1}},
          {.inputs = {{{2, 3, 4}}, {{2, 3}, Dtype::i64}}, .attrs = ClassLossAttrs{2}, .indices = classes},
          {.inputs = {{{2, 4, 3}}, {{2, 3}, Dtype::i64}}, .attrs = ClassLossAttrs{1}, .indices = classes},
          {.inputs = {{{4}}, {{}, Dtype::i64}}, .attrs = ClassLossAttrs{0}, .indices = {2}},
          {.inputs = {{{0, 4}}, {{0}, Dtype::i64}}, .attrs = ClassLossAttrs{1}, .indices = {0}}};
}

struct CrossEntropy {
  using Attributes = ClassLossAttrs;
  static constexpr auto name = "cross_entropy";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    nll_oracle(in, out[0], a, true);
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all = class_samples();
    const std::vector<Sample> more = {
        {.inputs = {{{3, 4}}, {{3}, Dtype::i64}, {{4}}},
         .attrs = ClassLossAttrs{1, -100, 0.1},
         .indices = {1, -100, 3}},
        {.inputs = {{{3, 4}}, {{3, 4}}}, .attrs = ClassLossAttrs{1, -100, 0}},
        {.inputs = {{{2, 4, 3}}, {{2, 4, 3}}, {{4}}}, .attrs = ClassLossAttrs{1, -100, 0.2}}};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

struct NllLoss {
  using Attributes = ClassLossAttrs;
  static constexpr auto name = "nll_loss";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    nll_oracle(in, out[0], a, false);
  }
  static std::vector<Sample> samples() { return class_samples(); }
};

const Added added = add<CrossEntropy, NllLoss>();

}  // namespace
}  // namespace oracles::classes_losses
