// Oracles and samples of tensor/ops/attention.cpp.
#include <cmath>
#include <vector>

#include "conformance/oracles/attention.h"

namespace oracles::composite_attention {
namespace {

/// Returns samples with three heads, with grouped heads, and of matrices; masks of both kinds, with rows that see
/// nothing.
std::vector<Sample> attention_samples(const std::vector<Spec>& values) {
  const auto with = [&](std::vector<Spec> in, std::vector<Spec> mask, const AttentionAttrs& a) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      Shape s = in[1].shape;
      s[-1] = values[i].shape[0];
      in.push_back({s, in[1].dtype});
    }
    in.insert(in.end(), mask.begin(), mask.end());
    return Sample{.inputs = in, .attrs = a, .indices = {1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0}};
  };
  const double scale = 0.5;
  return {with({{{2, 3, 4}}, {{2, 5, 4}}}, {}, {scale}),
          with({{{3, 2}}, {{3, 2}}}, {}, {scale, true}),
          with({{{2, 4, 3, 2}}, {{2, 2, 4, 2}}}, {}, {scale, true, true}),
          with({{{2, 3, 4}}, {{2, 4, 4}}}, {{{3, 4}, Dtype::boolean}}, {scale}),
          with({{{2, 3, 4}}, {{2, 4, 4}}}, {{{2, 1, 4}, Dtype::boolean}}, {scale, true}),
          with({{{2, 3, 4}}, {{2, 4, 4}}}, {{{3, 4}}}, {scale, true}),
          with({{{0, 3, 4}}, {{0, 4, 4}}}, {}, {scale})};
}

struct AttentionWeights {
  using Attributes = AttentionAttrs;
  static constexpr auto name = "attention_weights";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      const std::vector<double> w = query_weights(in[0], in[1], in.size() > 2 ? &in[2] : nullptr, a, lead_of(i), i[-2]);
      out[0].at(i) = w[static_cast<std::size_t>(i[-1])];
    });
  }
  static std::vector<Sample> samples() { return attention_samples({}); }
};

struct ScaledDotProductAttention {
  using Attributes = AttentionAttrs;
  static constexpr auto name = "scaled_dot_product_attention";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const std::int64_t heads = heads_of(in[0].shape);
    for_each_index(out[0].shape, [&](const Shape& i) {
      const Shape lead = lead_of(i);
      const std::vector<double> w = query_weights(in[0], in[1], in.size() > 3 ? &in[3] : nullptr, a, lead, i[-2]);
      double y = 0;
      for (std::size_t j = 0; j < w.size(); ++j)
        y += w[j] * element_of(in[2], lead, heads, static_cast<std::int64_t>(j), i[-1]);
      out[0].at(i) = y;
    });
  }
  static std::vector<Sample> samples() { return attention_samples({{{3}}}); }
};

struct RotaryAttrs {
  double base = 10000;
  bool interleaved = false;
  static constexpr auto fields =
      attr_list(attr("base", &RotaryAttrs::base), attr("interleaved", &RotaryAttrs::interleaved));
};

double frequency(double base, std::int64_t pair, std::int64_t D) {
  return std::pow(base, -2 * static_cast<double>(pair) / static_cast<double>(D));
}

struct RotaryEmbedding {
  using Attributes = RotaryAttrs;
  static constexpr auto name = "rotary_embedding";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const std::int64_t D = in[0].shape[-1];
    for_each_index(in[0].shape, [&](const Shape& i) {
      const std::int64_t pair = a.interleaved ? i[-1] / 2 : i[-1] % (D / 2);
      const bool first = a.interleaved ? i[-1] % 2 == 0 : i[-1] < D / 2;
      Shape other = i, row = i;
      other[-1] += (first ? 1 : -1) * (a.interleaved ? 1 : D / 2);
      row.erase(row.rank() - 1);
      const double angle = in[1].broadcast_at(row) * frequency(a.base, pair, D);
      out[0].at(i) = in[0].at(i) * std::cos(angle) + (first ? -1 : 1) * in[0].at(other) * std::sin(angle);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 4}}, {{3}, Dtype::i64}}, .attrs = RotaryAttrs{}, .indices = {0, 1, 70}},
            {.inputs = {{{2, 3, 6}}, {{2, 1}, Dtype::i32}}, .attrs = RotaryAttrs{100, true}, .indices = {5, 2}},
            {.inputs = {{{0, 2}}, {{0}, Dtype::i64}}, .attrs = RotaryAttrs{}}};
  }
};

const Added added = add<AttentionWeights, ScaledDotProductAttention, RotaryEmbedding>();

}  // namespace
}  // namespace oracles::composite_attention
