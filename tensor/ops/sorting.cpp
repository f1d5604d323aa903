/// Sorting along an axis and choosing by rank.
#include "ferrite/tensor/sorting.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/along_axis.h"
#include "ferrite/tensor/ops/detail/known_index.h"
#include "ferrite/tensor/ops/detail/rank_index.h"
#include "ferrite/tensor/ops/detail/row_sorter.h"
#include "ferrite/tensor/pooled.h"

namespace ferrite {
namespace detail {
namespace {

/// f(x's line, sorter, place among the rows that it took, line) for the lines of x along an axis, dense copies where
/// they do not lie so.
template <class T, class F>
void each_sorted_line(const Tensor& x, int axis, const RowOrder& order, F&& f) {
  const AlongAxis a(x.shape(), axis);
  const T* from = x.data<T>();
  in_shares(a.lines(), 8 * a.n, [&](std::int64_t first, std::int64_t count) {
    RowSorter<T> sorter(order);
    const std::int64_t together = std::min(sorter.together(), count);
    PooledVector<T> copies(static_cast<std::size_t>(a.inner == 1 ? 0 : together * a.n));
    const T* rows[kNetworkRows];
    for (std::int64_t line = first; line < first + count; line += together) {
      const std::int64_t taken = std::min(together, first + count - line);
      for (std::int64_t r = 0; r < taken; ++r) {
        rows[r] = from + a.first(line + r);
        if (a.inner == 1) continue;
        T* const copy = copies.data() + r * a.n;
        for (std::int64_t k = 0; k < a.n; ++k) copy[k] = rows[r][k * a.inner];
        rows[r] = copy;
      }
      sorter.take(rows, taken);
      for (std::int64_t r = 0; r < taken; ++r) f(rows[r], sorter, r, line + r);
    }
  });
}

/// Calls f with a number of the type whose order x has: a bool's is that of i32.
template <class F>
void visit_ordered(const Tensor& x, F&& f) {
  visit_computed(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, bool>) f(zero);
  });
}

void order_rows(const Tensor& any, std::span<Tensor> out, int axis, const RowOrder& order) {
  const RowMajor dense(any);
  const bool logic = any.dtype() == Dtype::boolean;
  const NewFrame frame;
  const Tensor x = logic ? cast(*dense, Dtype::i32) : *dense;
  const AlongAxis to(out[0].shape(), axis);
  std::int64_t* index = Writer::data<std::int64_t>(out[1]);
  visit_ordered(x, [&](auto zero) {
    using T = decltype(zero);
    const auto write = [&](auto* values) {
      using V = std::remove_pointer_t<decltype(values)>;
      each_sorted_line<T>(x, axis, order,
                          [&](const T* row, RowSorter<T>& sorter, std::int64_t taken, std::int64_t line) {
                            const std::int64_t begin = to.first(line);
                            sorter.run(taken, [&](std::int64_t j, std::int64_t i) {
                              values[begin + j * to.inner] = static_cast<V>(row[i]);
                              index[begin + j * to.inner] = i;
                            });
                          });
    };
    logic ? write(Writer::data<bool>(out[0])) : write(Writer::data<T>(out[0]));
  });
}

/// Positions of a line's values in their order, the first k.
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

/// Positions in long rows have 32 bits.
void check_row(std::string_view where, const Shape& s, int axis) {
  check_axis(where, axis, s.rank());
  if (s[axis] > std::int64_t{UINT32_MAX}) throw_shape(where, "a row has too many elements: " + s.str());
}

struct Sort {
  using Attributes = SortAttrs;
  static constexpr auto name = "sort", onnx = "", stablehlo = "";
  static constexpr auto summary = "elements in order along an axis, and where they were; stable, NaN largest";
  static constexpr Reads reads{0, 0b10};

  static Specs infer(Inputs in, const Attributes& attrs) {
    check_row(name, in[0].shape(), attrs.axis);
    return {in[0].spec(), {in[0].shape(), Dtype::i64}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const std::int64_t n = in[0].shape()[attrs.axis];
    order_rows(in[0], out, attrs.axis, {n, n, attrs.descending, true});
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    return {scatter_known(v.in_spec(0), attrs.axis, v.out(1), v.grad_or_zeros(0))};
  }
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
          s.smooth && s.inputs[0].shape.numel() < 100;  // of more, some are nearer than the difference quotient's
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
  static constexpr auto name = "topk", onnx = "TopK", stablehlo = "";
  static constexpr auto summary = "the k largest or smallest elements along an axis, and where they were; NaN largest";
  static constexpr Reads reads{0, 0b10};

  static Specs infer(Inputs in, const Attributes& attrs) {
    Spec s = in[0].spec();
    check_row(name, s.shape, attrs.axis);
    if (attrs.k < 0 || attrs.k > s.shape[attrs.axis])
      throw ValueError("topk: k must be in 0.." + std::to_string(s.shape[attrs.axis]) + ", the extent of axis " +
                       std::to_string(attrs.axis) + " of " + s.shape.str() + ": got " + std::to_string(attrs.k));
    s.shape[attrs.axis] = attrs.k;
    return {s, {s.shape, Dtype::i64}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    order_rows(in[0], out, attrs.axis, {in[0].shape()[attrs.axis], attrs.k, attrs.largest, attrs.sorted});
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    return {scatter_known(v.in_spec(0), attrs.axis, v.out(1), v.grad_or_zeros(0))};
  }
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
          s.smooth && s.inputs[0].shape.numel() < 100;  // of more, some are nearer than the difference quotient's
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
  static constexpr auto name = "rank_index", onnx = "", stablehlo = "";
  static constexpr auto summary = "i64 index of the k-th smallest element along an axis, whose extent becomes 1";

  static Specs infer(Inputs in, const Attributes& attrs) {
    Shape s = in[0].shape();
    check_row(name, s, attrs.axis);
    if (attrs.k < 1 || attrs.k > s[attrs.axis])
      throw ValueError("rank_index: k must be in 1.." + std::to_string(s[attrs.axis]) + ", got " +
                       std::to_string(attrs.k));
    s[attrs.axis] = 1;
    return {{s, Dtype::i64}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor dense(in[0]);
    const NewFrame frame;
    const Tensor x = in[0].dtype() == Dtype::boolean ? cast(*dense, Dtype::i32) : *dense;
    const std::int64_t n = x.shape()[attrs.axis];
    std::int64_t* to = Writer::data<std::int64_t>(out[0]);
    visit_ordered(x, [&](auto zero) {
      using T = decltype(zero);
      const RowOrder order{n, attrs.k, false, true};
      each_sorted_line<T>(x, attrs.axis, order,
                          [&](const T*, RowSorter<T>& sorter, std::int64_t taken, std::int64_t line) {
                            to[line] = sorter.at_rank(taken);
                          });
    });
  }
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

}  // namespace

Tensor rank_index(const Tensor& x, int axis, std::int64_t k) {
  return call(structured<RankIndex>, {{&x}}, RankIndexAttrs{axis, k});
}

Family sorting_family() {
  static constexpr const Primitive* list[] = {&structured<Sort>, &structured<Topk>, &structured<RankIndex>};
  return list;
}

}  // namespace detail

ValuesAndIndices sort(const Tensor& x, std::int64_t axis, bool descending) {
  const detail::SortAttrs attrs{axis_of(axis, x.rank(), "sort"), descending};
  const Tensors out = detail::structured<detail::Sort>.apply({{&x}}, attrs);
  return {out[0], out[1]};
}

Tensor argsort(const Tensor& x, std::int64_t axis, bool descending) {
  (void)axis_of(axis, x.rank(), "argsort");
  return sort(x, axis, descending).indices;
}

ValuesAndIndices topk(const Tensor& x, std::int64_t k, const TopkOptions& options) {
  const detail::TopkAttrs attrs{axis_of(options.axis, x.rank(), "topk"), k, options.largest, options.sorted};
  const Tensors out = detail::structured<detail::Topk>.apply({{&x}}, attrs);
  return {out[0], out[1]};
}

}  // namespace ferrite
