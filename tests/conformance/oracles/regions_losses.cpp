// Oracles and samples of nn/losses/classification.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops.h"

namespace oracles::regions_losses {
namespace {

struct TverskyAttrs {
  double alpha = 0.5, beta = 0.5, smooth = 1;
  static constexpr auto fields = attr_list(attr("alpha", &TverskyAttrs::alpha), attr("beta", &TverskyAttrs::beta),
                                           attr("smooth", &TverskyAttrs::smooth));
};

struct TverskyLoss {
  using Attributes = TverskyAttrs;
  static constexpr auto name = "tversky_loss";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const std::size_t B = out[0].values.size(), n = B ? in[0].values.size() / B : 0;
    for (std::size_t b = 0; b < B; ++b) {
      double both = 0, wrong = 0, missed = 0;
      for (std::size_t i = b * n; i < (b + 1) * n; ++i) {
        const double p = in[0].values[i], t = in[1].values[i];
        both += p * t, wrong += p * (1 - t), missed += (1 - p) * t;
      }
      out[0].values[b] = 1 - (both + a.smooth) / (both + a.alpha * wrong + a.beta * missed + a.smooth);
    }
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    for (const TverskyAttrs& a : {TverskyAttrs{}, TverskyAttrs{0.3, 0.7, 0.5}})
      for (const Shape& shape : {Shape{3, 5}, Shape{2, 3, 4}, Shape{4}, Shape{0, 3}})
        list.push_back({.inputs = {{shape}, {shape}}, .attrs = a, .range = {0.05, 1}});
    return list;
  }
};

const Added added = add<TverskyLoss>();

}  // namespace
}  // namespace oracles::regions_losses
