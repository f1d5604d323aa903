/// Sorting along an axis and choosing by rank.
#include "ferrite/tensor/sorting.h"

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

struct SortAttrs {
  int axis = 0;
  bool descending = false;
  static constexpr auto fields = attr_list(attr("axis", &SortAttrs::axis), attr("descending", &SortAttrs::descending));
};

/// Positions in long rows have 32 bits.
void check_row(std::string_view where, const Shape& s, int axis) {
  check_axis(where, axis, s.rank());
  if (s[axis] > std::int64_t{UINT32_MAX}) throw_shape(where, "a row has too many elements: " + s.str());
}

struct Sort {
  using Attributes = SortAttrs;
  static constexpr auto name = "sort", onnx = "", stablehlo = "";
  static constexpr TimeRule time = TimeRule::along_axis;
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
  static constexpr TimeRule time = TimeRule::along_axis;
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
