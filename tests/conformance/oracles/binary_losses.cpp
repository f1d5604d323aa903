// Oracles and samples of nn/losses/classification.cpp.
#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/oracles/element_loss.h"
#include "ferrite/tensor/ops.h"

namespace oracles::binary_losses {
namespace {

using Numbers = std::span<const double>;

double softplus_of(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

struct Bce {
  static constexpr auto name = "bce";
  static constexpr Range range{0.05, 0.95};
  static double scalar(Numbers x, const NoAttrs&) {
    return -(x[1] * std::max(std::log(x[0]), -100.0) + (1 - x[1]) * std::max(std::log1p(-x[0]), -100.0));
  }
};

struct BceWithLogits {
  static constexpr auto name = "bce_with_logits";
  static constexpr std::size_t least = 2, operands = 3;
  static double scalar(Numbers x, const NoAttrs&) {
    return (x.size() > 2 ? x[2] : 1) * x[1] * softplus_of(-x[0]) + (1 - x[1]) * softplus_of(x[0]);
  }
};

struct FocalAttrs {
  double alpha = 0.25, gamma = 2;
  static constexpr auto fields = attr_list(attr("alpha", &FocalAttrs::alpha), attr("gamma", &FocalAttrs::gamma));
};

struct FocalLoss {
  using Attributes = FocalAttrs;
  static constexpr auto name = "focal_loss";
  static double scalar(Numbers v, const Attributes& a) {
    const double x = v[0], t = v[1];
    const double wrong = t * sigmoid_of(-x) + (1 - t) * sigmoid_of(x);
    const double y = (t * softplus_of(-x) + (1 - t) * softplus_of(x)) * std::pow(wrong, a.gamma);
    return a.alpha < 0 ? y : (a.alpha * t + (1 - a.alpha) * (1 - t)) * y;
  }
  static constexpr Range range{0, 1};  // range of the targets; scores outside it are in the fixtures
  static std::vector<Attributes> tried() { return {{}, {-1, 1.5}, {0.5, 0}}; }
};

struct SoftMarginLoss {
  static constexpr auto name = "soft_margin_loss";
  static double scalar(Numbers x, const NoAttrs&) { return softplus_of(-x[0] * x[1]); }
};

struct MultilabelSoftMarginLoss {
  static constexpr auto name = "multilabel_soft_margin_loss";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    const auto C = static_cast<std::size_t>(in[0].shape[-1]);
    for (std::size_t b = 0; b < out[0].values.size(); ++b) {
      double total = 0;
      for (std::size_t c = 0; c < C; ++c) {
        const double x = in[0].values[b * C + c], t = in[1].values[b * C + c];
        total += (t * softplus_of(-x) + (1 - t) * softplus_of(x)) * (in.size() > 2 ? in[2].values[c] : 1);
      }
      out[0].values[b] = total / static_cast<double>(C);
    }
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}, {{3, 5}}}},
            {.inputs = {{{2, 3, 4}}, {{2, 3, 4}}, {{4}}}},
            {.inputs = {{{4}}, {{4}}}},
            {.inputs = {{{0, 3}}, {{0, 3}}}}};
  }
};

const Added added = add<ElementLoss<Bce>, ElementLoss<BceWithLogits>, ElementLoss<FocalLoss>,
                        ElementLoss<SoftMarginLoss>, MultilabelSoftMarginLoss>();

}  // namespace
}  // namespace oracles::binary_losses
