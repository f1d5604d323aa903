// Oracles and samples of nn/losses/ranking.cpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "conformance/oracles/element_loss.h"
#include "ferrite/tensor/ops.h"

namespace oracles::ranking_losses {
namespace {

using Numbers = std::span<const double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct MarginAttrs {
  double margin = 0;
  static constexpr auto fields = attr_list(attr("margin", &MarginAttrs::margin));
};

struct MarginRankingLoss {
  using Attributes = MarginAttrs;
  static constexpr auto name = "margin_ranking_loss";
  static constexpr std::size_t operands = 3;
  static double scalar(Numbers x, const Attributes& a) { return std::max(0.0, a.margin - x[2] * (x[0] - x[1])); }
  static std::vector<Attributes> tried() { return {{0}, {0.5}}; }
};

struct HingeEmbeddingLoss {
  using Attributes = MarginAttrs;
  static constexpr auto name = "hinge_embedding_loss";
  static double scalar(Numbers x, const Attributes& a) {
    return (x[1] != 1 ? std::max(0.0, a.margin - x[0]) : 0) + (x[1] != -1 ? x[0] : 0);
  }
  static std::vector<Attributes> tried() { return {{1}, {0.5}}; }
};

/// Computes losses of vectors along the last axis one by one.
template <class F>
void each_vector(std::span<const Dense> in, Dense& out, F&& f) {
  const auto D = static_cast<std::size_t>(in[0].shape[-1]);
  for (std::size_t b = 0; b < out.values.size(); ++b) out.values[b] = f(b, b * D, D);
}

struct CosineEmbeddingLoss {
  using Attributes = MarginAttrs;
  static constexpr auto name = "cosine_embedding_loss";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_vector(in, out[0], [&](std::size_t b, std::size_t at, std::size_t D) {
      double xx = 1e-12, yy = 1e-12, xy = 0;
      for (std::size_t d = at; d < at + D; ++d) {
        const double x = in[0].values[d], y = in[1].values[d];
        xx += x * x, yy += y * y, xy += x * y;
      }
      const double cosine = xy / std::sqrt(xx * yy), t = in[2].values[b];
      return t == 1 ? 1 - cosine : t == -1 ? std::max(0.0, cosine - a.margin) : 0.0;
    });
  }
  static std::vector<Sample> samples() {
    const std::vector<double> values = {0.5, -1, 2, 0.25, 1.5, -0.75, 1, 0.4, -0.3, 1, -2, 0.7, 1, -1};
    return {{.inputs = {{{2, 3}}, {{2, 3}}, {{2}}}, .attrs = MarginAttrs{0.1}, .values = values, .smooth = false},
            {.inputs = {{{2, 2, 3}}, {{2, 2, 3}}, {{2, 2}}}, .attrs = MarginAttrs{}},
            {.inputs = {{{0, 3}}, {{0, 3}}, {{0}}}, .attrs = MarginAttrs{}}};
  }
};

struct TripletAttrs {
  double margin = 1, p = 2, epsilon = 1e-6;
  bool swap = false;
  static constexpr auto fields = attr_list(attr("margin", &TripletAttrs::margin), attr("p", &TripletAttrs::p),
                                           attr("epsilon", &TripletAttrs::epsilon), attr("swap", &TripletAttrs::swap));
};

struct TripletMarginLoss {
  using Attributes = TripletAttrs;
  static constexpr auto name = "triplet_margin_loss";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_vector(in, out[0], [&](std::size_t, std::size_t at, std::size_t D) {
      const auto distance_of = [&](std::size_t i, std::size_t j) {
        double total = 0, largest = 0;
        for (std::size_t d = at; d < at + D; ++d) {
          const double gap = std::fabs(in[i].values[d] - in[j].values[d] + a.epsilon);
          total += std::pow(gap, a.p), largest = std::max(largest, gap);
        }
        return a.p == kInfinity ? largest : std::pow(total, 1 / a.p);
      };
      double far = distance_of(0, 2);
      if (a.swap) far = std::min(far, distance_of(1, 2));
      return std::max(0.0, a.margin + distance_of(0, 1) - far);
    });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    for (const TripletAttrs& a :
         {TripletAttrs{}, TripletAttrs{2, 1}, TripletAttrs{2, 3, 1e-6, true}, TripletAttrs{3, kInfinity, 1e-6, true}})
      for (const Shape& shape : {Shape{3, 5}, Shape{4}, Shape{0, 3}})
        list.push_back({.inputs = {{shape}, {shape}, {shape}}, .attrs = a, .smooth_at_ties = false});
    return list;
  }
};

const Added added =
    add<ElementLoss<MarginRankingLoss>, ElementLoss<HingeEmbeddingLoss>, CosineEmbeddingLoss, TripletMarginLoss>();

}  // namespace
}  // namespace oracles::ranking_losses
