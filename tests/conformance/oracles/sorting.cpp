// Oracles and samples of tensor/ops/sorting.cpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/along_axis.h"
#include "ferrite/tensor/ops/detail/index.h"
#include "ferrite/tensor/ops/detail/row_sorter.h"

namespace oracles::sorting {
namespace {

/// Returns the positions of a line's first k values in their order.
std::vector<std::size_t> oracle_order(const std::vector<double>& v, std::int64_t k, bool descending, bool sorted) {
  std::vector<std::size_t> at(v.size());
  std::iota(at.begin(), at.end(), std::size_t{0});
  const auto less = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  std::stable_sort(at.begin(), at.end(),
                   [&](std::size_t i, std::size_t j) { return descending ? less(v[j], v[i]) : less(v[i], v[j]); });
  at.resize(static_cast<std::size_t>(k));
  if (!sorted) std::sort(at.begin(), at.end());
  return at;
}

void oracle_chosen(const Dense& x, std::span<Dense> out, int axis, std::int64_t k, bool descending, bool sorted) {
  const AlongAxis from(x.shape, axis), to(out[0].shape, axis);
  for (std::int64_t line = 0; line < from.lines(); ++line) {
    std::vector<double> v;
    for (std::int64_t i = 0; i < from.n; ++i)
      v.push_back(x.values[static_cast<std::size_t>(from.first(line) + i * from.inner)]);
    const auto at = oracle_order(v, k, descending, sorted);
    for (std::int64_t j = 0; j < k; ++j) {
      const auto place = static_cast<std::size_t>(to.first(line) + j * to.inner);
      out[0].values[place] = v[at[static_cast<std::size_t>(j)]];
      out[1].values[place] = static_cast<double>(at[static_cast<std::size_t>(j)]);
    }
  }
}

struct SortAttrs {
  int axis = 0;
  bool descending = false;
  static constexpr auto fields = attr_list(attr("axis", &SortAttrs::axis), attr("descending", &SortAttrs::descending));
};

std::vector<double> with_nan() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {1, nan, 3, 0, -0.0, 2, 2, nan, -INFINITY, 1, 3, INFINITY};
}

struct Sort {
  using Attributes = SortAttrs;
  static constexpr auto name = "sort";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    oracle_chosen(in[0], out, attrs.axis, in[0].shape[attrs.axis], attrs.descending, true);
  }
  static std::vector<Sample> samples() {
    const auto along = [](int axis, bool descending) { return SortAttrs{axis, descending}; };
    std::vector<Sample> list = {
        {.inputs = {{{3, 7}}}, .attrs = along(1, false)},
        {.inputs = {{{5, 3}}}, .attrs = along(0, true)},
        {.inputs = {{{2, 17, 2}}}, .attrs = along(1, false)},
        {.inputs = {{{2, 64}}}, .attrs = along(1, true)},
        {.inputs = {{{2, 100}}}, .attrs = along(1, false)},
        {.inputs = {{{300}}}, .attrs = along(0, true)},
        {.inputs = {{{3, 0}}}, .attrs = along(1, false)},
        {.inputs = {{{0, 3}}}, .attrs = along(1, false)},
        {.inputs = {{{3, 1}}}, .attrs = along(1, true)},
        {.inputs = {{{2, 12}}}, .attrs = along(1, false), .values = with_nan(), .smooth = false},
        {.inputs = {{{2, 96}}}, .attrs = along(1, true), .values = with_nan(), .smooth = false},
        {.inputs = {{{7}, Dtype::i64}}, .attrs = along(0, false), .indices = {2, -5, 5, 1}},
        {.inputs = {{{70}, Dtype::i64}}, .attrs = along(0, true), .indices = {2, -5, 5, 1}},
        {.inputs = {{{5}, Dtype::i32}}, .attrs = along(0, true), .indices = {2, -5, 5, 1}},
        {.inputs = {{{5}, Dtype::boolean}}, .attrs = along(0, false), .indices = {1, 0, 1}}};
    for (Sample& s : list) {
      s.smooth_at_ties = false;
      s.smooth =
          s.smooth && s.inputs[0].shape.numel() < 100;  // with more, some are too close for the difference quotient
    }
    return list;
  }
};

struct TopkAttrs {
  int axis = 0;
  std::int64_t k = 1;
  bool largest = true, sorted = true;
  static constexpr auto fields = attr_list(attr("axis", &TopkAttrs::axis), attr("k", &TopkAttrs::k),
                                           attr("largest", &TopkAttrs::largest), attr("sorted", &TopkAttrs::sorted));
};

struct Topk {
  using Attributes = TopkAttrs;
  static constexpr auto name = "topk";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    oracle_chosen(in[0], out, attrs.axis, attrs.k, attrs.largest, attrs.sorted);
  }
  static std::vector<Sample> samples() {
    const auto of = [](int axis, std::int64_t k, bool largest, bool sorted) {
      return TopkAttrs{axis, k, largest, sorted};
    };
    std::vector<Sample> list = {
        {.inputs = {{{3, 7}}}, .attrs = of(1, 3, true, true)},
        {.inputs = {{{5, 3}}}, .attrs = of(0, 2, false, false)},
        {.inputs = {{{2, 9, 2}}}, .attrs = of(1, 9, false, true)},
        {.inputs = {{{2, 90}}}, .attrs = of(1, 5, true, true)},
        {.inputs = {{{2, 90}}}, .attrs = of(1, 60, false, false)},
        {.inputs = {{{700}}}, .attrs = of(0, 8, true, false)},
        {.inputs = {{{3, 4}}}, .attrs = of(1, 0, true, true)},
        {.inputs = {{{0, 3}}}, .attrs = of(1, 2, true, true)},
        {.inputs = {{{2, 12}}}, .attrs = of(1, 4, true, true), .values = with_nan(), .smooth = false},
        {.inputs = {{{900}, Dtype::i64}}, .attrs = of(0, 100, false, true), .indices = {2, -5, 5, 1, 7, 9, -3}},
        {.inputs = {{{5}, Dtype::boolean}}, .attrs = of(0, 2, true, true), .indices = {0, 0, 1}}};
    for (Sample& s : list) {
      s.smooth_at_ties = false;
      s.smooth =
          s.smooth && s.inputs[0].shape.numel() < 100;  // with more, some are too close for the difference quotient
    }
    return list;
  }
};

struct RankIndexAttrs {
  int axis = 0;
  std::int64_t k = 1;
  static constexpr auto fields = attr_list(attr("axis", &RankIndexAttrs::axis), attr("k", &RankIndexAttrs::k));
};

struct RankIndex {
  using Attributes = RankIndexAttrs;
  static constexpr auto name = "rank_index";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    std::size_t next = 0;
    const AlongAxis a(in[0].shape, attrs.axis);
    for (std::int64_t line = 0; line < a.lines(); ++line) {
      std::vector<double> v;
      for (std::int64_t i = 0; i < a.n; ++i)
        v.push_back(in[0].values[static_cast<std::size_t>(a.first(line) + i * a.inner)]);
      out[0].values[next++] = static_cast<double>(oracle_order(v, attrs.k, false, true).back());
    }
  }
  static std::vector<Sample> samples() {
    const auto of = [](int axis, std::int64_t k) { return RankIndexAttrs{axis, k}; };
    return {{.inputs = {{{3, 7}}}, .attrs = of(1, 3)},
            {.inputs = {{{5, 3}}}, .attrs = of(0, 5)},
            {.inputs = {{{2, 90}}}, .attrs = of(1, 45)},
            {.inputs = {{{700, 2}}}, .attrs = of(0, 1)},
            {.inputs = {{{2, 12}}}, .attrs = of(1, 11), .values = with_nan()},
            {.inputs = {{{0, 3}}}, .attrs = of(1, 2)},
            {.inputs = {{{6}, Dtype::i32}}, .attrs = of(0, 4), .indices = {2, -5, 5, 1}},
            {.inputs = {{{5}, Dtype::boolean}}, .attrs = of(0, 2), .indices = {1, 0, 1}}};
  }
};

const Added added = add<Sort, Topk, RankIndex>();

}  // namespace
}  // namespace oracles::sorting
