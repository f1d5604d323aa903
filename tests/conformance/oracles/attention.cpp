// Oracles and samples of tensor/ops/attention.cpp.
#include <vector>

#include "conformance/oracles/attention.h"

namespace oracles::attention {
namespace {

/// Returns the mask, which follows the first `operands` operands; null if there is none.
template <class List>
auto mask_of(const List& in, std::size_t operands) {
  using Item = std::remove_cvref_t<decltype(in[0])>;
  return in.size() > operands ? &in[operands] : static_cast<const Item*>(nullptr);
}

Shape result_of(const Shape& q, const Shape& v) {
  Shape y = q;
  y[-1] = v[-1];
  return y;
}

/// Returns samples with several heads, shared heads, and more queries than keys; masks of both kinds, with rows that
/// see nothing.
std::vector<Sample> samples_with(bool gradient) {
  std::vector<Sample> list;
  const auto add = [&](const Shape& q, const Shape& k, std::int64_t N, const AttentionAttrs& a,
                       const std::vector<Spec>& mask = {}) {
    Shape v = k;
    v[-1] = N;
    Sample s{.inputs = {{q}, {k}, {v}}, .attrs = a, .indices = {1, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0}};
    if (gradient) s.inputs.insert(s.inputs.begin(), 2, {result_of(q, v)});
    s.inputs.insert(s.inputs.end(), mask.begin(), mask.end());
    list.push_back(s);
  };
  add({2, 3, 4}, {2, 5, 4}, 3, {0.5});
  add({3, 2}, {3, 2}, 2, {0.5, true});
  add({2, 5, 3}, {2, 2, 3}, 1, {-0.5, true});
  add({2, 4, 3, 2}, {2, 2, 4, 2}, 3, {0.5, true, true});
  add({2, 3, 4}, {2, 4, 4}, 3, {0.5}, {{{3, 4}, Dtype::boolean}});
  add({2, 3, 4}, {2, 4, 4}, 3, {0.5, true}, {{{2, 1, 4}, Dtype::boolean}});
  add({2, 4, 3, 2}, {2, 2, 3, 2}, 1, {0.5, false, true}, {{{4, 3, 3}}});
  add({2, 3, 4}, {2, 4, 4}, 3, {0.5, true}, {{{3, 1}}});
  return list;
}

struct AttentionGrad {
  using Attributes = AttentionAttrs;
  static constexpr auto name = "attention_grad";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const std::int64_t E = in[2].shape[-1], N = in[4].shape[-1], heads = heads_of(in[2].shape);
    const auto add = [&](Dense& to, const Shape& lead, std::int64_t row, std::int64_t column, double x) {
      Shape at = lead;
      if (at.rank() > 0) at[-1] /= heads / heads_of(to.shape);
      at.push_back(row), at.push_back(column);
      to.at(at) += x;
    };
    Shape rows = in[0].shape;
    rows[-1] = 1;
    for_each_index(rows, [&](const Shape& at) {
      const Shape lead = lead_of(at);
      const std::int64_t i = at[-2];
      const std::vector<double> w = query_weights(in[2], in[3], mask_of(in, 5), a, lead, i);
      double along = 0;
      for (std::int64_t n = 0; n < N; ++n)
        along += element_of(in[0], lead, heads, i, n) * element_of(in[1], lead, heads, i, n);
      for (std::int64_t j = 0; j < in[3].shape[-2]; ++j) {
        const double p = w[static_cast<std::size_t>(j)];
        double of_weight = 0;
        for (std::int64_t n = 0; n < N; ++n) {
          of_weight += element_of(in[0], lead, heads, i, n) * element_of(in[4], lead, heads, j, n);
          add(out[2], lead, j, n, p * element_of(in[0], lead, heads, i, n));
        }
        const double of_score = p * (of_weight - along) * a.scale;
        for (std::int64_t e = 0; e < E; ++e) {
          add(out[0], lead, i, e, of_score * element_of(in[3], lead, heads, j, e));
          add(out[1], lead, j, e, of_score * element_of(in[2], lead, heads, i, e));
        }
      }
    });
  }
  static std::vector<Sample> samples() { return samples_with(true); }
};

struct Attention {
  using Attributes = AttentionAttrs;
  static constexpr auto name = "attention";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const std::int64_t heads = heads_of(in[0].shape);
    for_each_index(out[0].shape, [&](const Shape& i) {
      const Shape lead = lead_of(i);
      const std::vector<double> w = query_weights(in[0], in[1], mask_of(in, 3), a, lead, i[-2]);
      for (std::size_t j = 0; j < w.size(); ++j)
        out[0].at(i) += w[j] * element_of(in[2], lead, heads, static_cast<std::int64_t>(j), i[-1]);
    });
  }
  static std::vector<Sample> samples() { return samples_with(false); }
};

const Added added = add<Attention, AttentionGrad>();

}  // namespace
}  // namespace oracles::attention
