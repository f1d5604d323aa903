// Oracles and samples of tensor/ops/choices.cpp.
#include <cmath>
#include <numeric>
#include <vector>

#include "conformance/oracles/draws.h"
#include "ferrite/tensor/ops.h"

namespace oracles::choices {
namespace {

struct MultinomialAttrs : KeyAttrs {
  std::int64_t n = 1;
  bool replacement = false;
  static constexpr auto fields =
      KeyAttrs::fields.with(attr("n", &MultinomialAttrs::n), attr("replacement", &MultinomialAttrs::replacement));
  MultinomialAttrs() = default;
  MultinomialAttrs(const KeyAttrs& key, std::int64_t count, bool again) : KeyAttrs(key), n(count), replacement(again) {}
};

struct Multinomial {
  using Attributes = MultinomialAttrs;
  static constexpr auto name = "multinomial";
  /// Unlike the kernel, adds sums from the front, and finds one smallest number after another.
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const RandomKey key = key_of(in, 1, a);
    const auto C = static_cast<std::size_t>(in[0].shape[-1]), n = static_cast<std::size_t>(a.n);
    for (std::size_t r = 0; r < out[0].values.size() / n; ++r) {
      std::vector<double> w(in[0].values.begin() + static_cast<std::ptrdiff_t>(r * C),
                            in[0].values.begin() + static_cast<std::ptrdiff_t>((r + 1) * C));
      for (std::size_t j = 0; j < n; ++j) {
        std::size_t best = C;
        double least = INFINITY, sum = 0;
        const double wanted = open_unit(key, r * n + j) * std::accumulate(w.begin(), w.end(), 0.0);
        for (std::size_t c = 0; c < C; ++c) {
          sum += w[c];
          const double race = -std::log(open_unit(key, r * C + c)) / w[c];
          if (a.replacement ? best == C && sum > wanted : w[c] > 0 && race < least) best = c, least = race;
        }
        out[0].values[r * n + j] = static_cast<double>(best);
        if (!a.replacement) w[best] = 0;
      }
    }
  }
  static std::vector<Sample> samples() {
    const KeyAttrs key{7, 11, 2};
    return {{.inputs = {{{3, 5}}}, .attrs = MultinomialAttrs(key, 4, true), .range = {0, 2}},
            {.inputs = {{{3, 5}}}, .attrs = MultinomialAttrs(key, 3, false), .range = {0.1, 2}},
            {.inputs = {{{6}}, {{2}, Dtype::i64}, {{}, Dtype::i64}},
             .attrs = MultinomialAttrs({}, 2, false),
             .indices = {5, 3, 1},
             .values = {0, 1, 0, 0.5, 0, 2}},
            {.inputs = {{{0, 3}}}, .attrs = MultinomialAttrs(key, 2, true)}};
  }
};

struct Categorical {
  using Attributes = KeyAttrs;
  static constexpr auto name = "categorical";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const auto C = static_cast<std::size_t>(in[0].shape[-1]);
    std::vector<Dense> operands(in.begin(), in.end());
    for (std::size_t r = 0; r < out[0].values.size(); ++r) {
      const auto row = operands[0].values.begin() + static_cast<std::ptrdiff_t>(r * C);
      const double largest = *std::max_element(row, row + static_cast<std::ptrdiff_t>(C));
      std::for_each(row, row + static_cast<std::ptrdiff_t>(C), [&](double& x) { x = std::exp(x - largest); });
    }
    Multinomial::oracle(operands, out, MultinomialAttrs(a, 1, true));
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .attrs = KeyAttrs{7, 11, 2}},
            {.inputs = {{{2, 2, 4}}, {{2}, Dtype::i64}, {{}, Dtype::i64}}, .attrs = KeyAttrs{}, .indices = {5, 3, 1}}};
  }
};

struct FilterAttrs {
  double temperature = 1;
  std::int64_t top_k = 0;
  double top_p = 1;
  static constexpr auto fields = attr_list(attr("temperature", &FilterAttrs::temperature),
                                           attr("top_k", &FilterAttrs::top_k), attr("top_p", &FilterAttrs::top_p));
};

struct FilterLogits {
  using Attributes = FilterAttrs;
  static constexpr auto name = "filter_logits";
  /// Judges each class by those before it.
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const auto C = static_cast<std::size_t>(in[0].shape[-1]);
    const double t = a.temperature == 0 ? 1 : a.temperature;
    const std::size_t k = a.temperature == 0 ? 1 : a.top_k == 0 ? C : static_cast<std::size_t>(a.top_k);
    for (std::size_t r = 0; C != 0 && r < in[0].values.size() / C; ++r) {
      const double* x = in[0].values.data() + r * C;
      const auto rank_of = [&](std::size_t c) {
        std::size_t before = 0;
        for (std::size_t i = 0; i < C; ++i) before += x[i] > x[c] || (x[i] == x[c] && i < c) ? 1 : 0;
        return before;
      };
      double all = 0;
      for (std::size_t c = 0; c < C; ++c) all += rank_of(c) < k ? std::exp(x[c] / t) : 0;
      for (std::size_t c = 0; c < C; ++c) {
        double before = 0;
        for (std::size_t i = 0; i < C; ++i) before += rank_of(i) < rank_of(c) ? std::exp(x[i] / t) : 0;
        const bool kept = rank_of(c) < k && (rank_of(c) == 0 || a.top_p == 1 || before / all < a.top_p);
        out[0].values[r * C + c] = kept ? x[c] / t : -INFINITY;
      }
    }
  }
  static std::vector<Sample> samples() {
    const std::vector<double> values = {1, 0.5, 2, -1, 0.25, 2, 2, -3, 0, 1.5, 0.1, 0.2, 0.3, 0.4, 0.6};
    const auto of = [&](FilterAttrs a) {
      return Sample{.inputs = {{{3, 5}}}, .attrs = a, .values = values, .smooth = false};
    };
    return {of({0.5, 0, 1}),
            of({1, 2, 1}),
            of({2, 0, 0.6}),
            of({0.7, 3, 0.8}),
            of({0, 0, 1}),
            of({1, 9, 0}),
            {.inputs = {{{0, 3}}}, .attrs = FilterAttrs{}}};
  }
};

struct SampleAttrs : KeyAttrs {
  double temperature = 1;
  std::int64_t top_k = 0;
  double top_p = 1;
  static constexpr auto fields =
      KeyAttrs::fields.with(attr("temperature", &SampleAttrs::temperature), attr("top_k", &SampleAttrs::top_k),
                            attr("top_p", &SampleAttrs::top_p));
  SampleAttrs() = default;
  SampleAttrs(const KeyAttrs& key, const FilterAttrs& f)
      : KeyAttrs(key), temperature(f.temperature), top_k(f.top_k), top_p(f.top_p) {}
  FilterAttrs filter() const { return {temperature, top_k, top_p}; }
};

struct SampleLogits {
  using Attributes = SampleAttrs;
  static constexpr auto name = "sample_logits";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    std::vector<Dense> operands(in.begin(), in.end());
    FilterLogits::oracle(in, {operands.data(), 1}, a.filter());
    Categorical::oracle(operands, out, a);
  }
  static std::vector<Sample> samples() {
    const KeyAttrs key{7, 11, 2};
    return {{.inputs = {{{4, 5}}}, .attrs = SampleAttrs(key, {0.8, 3, 0.9})},
            {.inputs = {{{5}}}, .attrs = SampleAttrs(key, {0, 0, 1})}};
  }
};

const Added added = add<Multinomial, FilterLogits, Categorical, SampleLogits>();

}  // namespace
}  // namespace oracles::choices
