/// Order along an axis: sorting, ranks, searches in sorted rows, order statistics, counts of equal elements.
#include "ferrite/tensor/sorting.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ferrite/tensor/along_axis.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/inline_vector.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/index.h"
#include "ferrite/tensor/ops/detail/row_sorter.h"
#include "ferrite/tensor/scatter.h"

namespace ferrite {

// ---- sorting, and choosing by rank ------------------------------------------------------------------------

namespace detail {
namespace {

/// Calls f(x's line, sorter, place among the rows that it took, line) for the lines of x along an axis; lines that are
/// not dense are copied.
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

/// Calls f with a number of the type in whose order x is sorted; not for bool, which is sorted as i32.
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

/// Checks that positions in a row fit 32 bits.
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

// ---- searches in sorted rows ------------------------------------------------------------------------------

namespace detail {
namespace {

struct SearchAttrs {
  bool right = false;
  static constexpr auto fields = attr_list(attr("right", &SearchAttrs::right));
};

/// Returns the first position whose element is not below the value (with `right`: is above it); a NaN goes to the end.
template <class T>
std::int64_t place_of(T value, const T* sorted, std::int64_t n, bool right) {
  std::int64_t begin = 0;
  while (n > 0) {
    const std::int64_t half = n / 2;
    const T middle = sorted[begin + half];
    const bool here = right ? middle > value : middle >= value;
    begin = here ? begin : begin + half + 1;
    n = here ? half : n - half - 1;
  }
  return begin;
}

struct SearchSorted {
  using Attributes = SearchAttrs;
  static constexpr auto name = "searchsorted", onnx = "", stablehlo = "";
  static constexpr auto summary =
      "i64 position at which each value keeps a sorted row sorted; before equal ones, or after";

  static Specs infer(Inputs in, const Attributes&) {
    const Shape &row = in[0].shape(), &values = in[1].shape();
    if (in[0].dtype() != in[1].dtype())
      throw_dtype(name, "dtypes differ: " + in[0].spec().str() + " and " + in[1].spec().str());
    if (in[0].dtype() == Dtype::boolean) throw_dtype(name, "bool is not supported; it takes numbers");
    bool fits = row.rank() == 1 || (row.rank() > 0 && row.rank() == values.rank());
    for (int i = 0; i + 1 < row.rank() && fits; ++i) fits = row[i] == values[i];
    if (!fits)
      throw_shape(name, "values " + values.str() + " do not fit sorted rows " + row.str() +
                            "; the rows have rank 1 or all axes but the last in common");
    return {{values, Dtype::i64}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& attrs) {
    const RowMajor sorted(in[0]), values(in[1]);
    const std::int64_t n = sorted->shape()[-1], rows = sorted->rank() == 1 ? 1 : n ? sorted->numel() / n : 0;
    std::int64_t* to = Writer::data<std::int64_t>(out[0]);
    if (n == 0) return std::fill_n(to, values->numel(), std::int64_t{0}), void();
    const std::int64_t each = rows ? values->numel() / rows : 0;
    visit_computed(sorted->dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T *row = sorted->data<T>(), *from = values->data<T>();
      in_shares(values->numel(), 16, [&](std::int64_t first, std::int64_t count) {
        for (std::int64_t i = first; i < first + count; ++i)
          to[i] = place_of(from[i], row + i / each * n, n, attrs.right);
      });
    });
  }
};

}  // namespace

}  // namespace detail

Tensor searchsorted(const Tensor& sorted, const Tensor& values, const SearchOptions& options) {
  return detail::call(detail::structured<detail::SearchSorted>, {{&sorted, &values}},
                      detail::SearchAttrs{options.right});
}
Tensor bucketize(const Tensor& values, const Tensor& boundaries, const SearchOptions& options) {
  if (boundaries.rank() != 1)
    detail::throw_shape("bucketize", "the boundaries must have rank 1, got " + boundaries.shape().str());
  return searchsorted(boundaries, values, options);
}

// ---- order statistics, composed of sorting and gathering --------------------------------------------------

namespace detail {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct RankAttrs {
  int axis = 0;
  std::int64_t k = 1;
  bool keepdim = false;
  static constexpr auto fields =
      attr_list(attr("axis", &RankAttrs::axis), attr("k", &RankAttrs::k), attr("keepdim", &RankAttrs::keepdim));
};

/// Returns the elements at an index with an extent of 1 along the axis, and the index; the axis is dropped unless it is
/// kept.
Tensors chosen(const Tensor& x, const Tensor& index, int axis, bool keepdim) {
  const Tensor values = gather_known(x, axis, index);
  if (keepdim) return {values, index};
  return {squeeze(values, axis), squeeze(index, axis)};
}

struct KthValue {
  using Attributes = RankAttrs;
  static constexpr auto name = "kthvalue", onnx = "";
  static constexpr auto summary = "the k-th smallest element along an axis, and its index; NaN largest";

  static Tensors parts(Inputs in, const Attributes& a) {
    return chosen(in[0], rank_index(detach(in[0]), a.axis, a.k), a.axis, a.keepdim);
  }
};

struct Median {
  using Attributes = RankAttrs;  // `k` is unused
  static constexpr auto name = "median", onnx = "";
  static constexpr auto summary =
      "the median along an axis, the lower one of two, and its index; NaN where there is one";

  static Tensors parts(Inputs in, const Attributes& a) {
    const Tensor& x = in[0];
    const Tensor plain = detach(x);
    Tensor index = rank_index(plain, a.axis, (x.shape()[a.axis] + 1) / 2);
    if (is_float(x.dtype())) {
      const Tensor first_nan = argmax(plain, a.axis, true), at_nan = gather_known(plain, a.axis, first_nan);
      index = where(ne(at_nan, at_nan), first_nan, index);
    }
    return chosen(x, index, a.axis, a.keepdim);
  }
};

struct QuantileAttrs {
  int axis = 0;
  bool keepdim = false;
  std::int64_t interpolation = 0;  ///< number of a QuantileInterpolation
  static constexpr auto fields = attr_list(attr("axis", &QuantileAttrs::axis), attr("keepdim", &QuantileAttrs::keepdim),
                                           attr("interpolation", &QuantileAttrs::interpolation));
};

struct Quantile {
  using Attributes = QuantileAttrs;
  static constexpr auto name = "quantile", onnx = "";
  static constexpr auto summary = "elements at the ranks q (n - 1) of the sorted ones along an axis, interpolated";

  /// Returns the elements at ranks q: x's other axes, then the axis of the ranks.
  static Tensor at_ranks(const Tensor& x, const Tensor& q, QuantileInterpolation how) {
    const std::int64_t last = x.shape()[-1] - 1;
    const Tensor sorted = sort(x, -1).values, end = detach(slice(sorted, -1, last));
    const Tensor rank = q * static_cast<double>(last), plain = detach(rank);
    const Tensor below = cast(plain, Dtype::i64), share = rank - cast(below, x.dtype());
    const Tensor above = below + cast(gt(detach(share), 0), Dtype::i64);
    const auto element = [&](const Tensor& i) {
      Shape shape = x.shape();
      shape[-1] = i.numel();
      // A NaN comes last, and is taken wherever there is one.
      return gather_known(sorted, x.rank() - 1, where(ne(end, end), last, expand(i, shape)));
    };
    if (how == QuantileInterpolation::lower) return element(below);
    if (how == QuantileInterpolation::higher) return element(above);
    if (how == QuantileInterpolation::nearest) {
      const Tensor even = cast(cast(plain * 0.5, Dtype::i64), x.dtype()) * 2;  // below or below - 1
      const Tensor odd = ne(even, cast(below, x.dtype()));
      const Tensor up = gt(detach(share), 0.5) || (eq(detach(share), 0.5) && odd);
      return element(where(up, above, below));
    }
    return between(element(below), element(above), how == QuantileInterpolation::midpoint ? Tensor() : share);
  }
  /// Returns the value at a share of the way from a to b, or half of it. An infinite end wins over a finite one, and
  /// takes the gradient; two infinities of one sign give that infinity, and those of both signs NaN.
  static Tensor between(const Tensor& a, const Tensor& b, const Tensor& share) {
    const Tensor low = eq(abs(detach(a)), kInfinity), high = eq(abs(detach(b)), kInfinity), either = low || high;
    const Tensor from = where(either, 0.0, a), way = where(either, 0.0, b) - from;
    const Tensor finite = from + (share.defined() ? share * way : 0.5 * way);
    const Tensor end = where(low && high && ne(detach(a), detach(b)), std::numeric_limits<double>::quiet_NaN(), a);
    return where(low, end, where(high, b, finite));
  }
  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor& x = in[0];
    Shape to_last, to_first{x.rank() - 1};
    for (int i = 0; i < x.rank(); ++i)
      if (i != a.axis) to_last.push_back(i);
    to_last.push_back(a.axis);
    for (int i = 0; i + 1 < x.rank(); ++i) to_first.push_back(i);
    const Tensor q = checked(in[1], 0.0, 1.0, "quantile: q");
    Tensor y = at_ranks(permute(x, to_last), reshape(q, {-1}), static_cast<QuantileInterpolation>(a.interpolation));
    y = permute(y, to_first);
    if (a.keepdim) y = unsqueeze(y, a.axis + 1);
    return in[1].rank() == 0 ? squeeze(y, 0) : y;
  }
};

void check_not_empty(std::string_view where, const Tensor& x, int axis) {
  if (x.shape()[axis] == 0)
    throw_shape(where, "no elements to choose from: axis " + std::to_string(axis) + " of " + x.shape().str());
}

}  // namespace

}  // namespace detail

using detail::composed;

ValuesAndIndices kthvalue(const Tensor& x, std::int64_t k, std::int64_t axis, bool keepdim) {
  const int at = axis_of(axis, x.rank(), "kthvalue");
  if (k < 1 || k > x.shape()[at])
    throw ValueError("kthvalue: k must be in 1.." + std::to_string(x.shape()[at]) + ", the extent of axis " +
                     std::to_string(at) + " of " + x.shape().str() + ": got " + std::to_string(k));
  const Tensors out = composed<detail::KthValue>({{&x}}, {at, k, keepdim});
  return {out[0], out[1]};
}

ValuesAndIndices median(const Tensor& x, std::int64_t axis, bool keepdim) {
  const int at = axis_of(axis, x.rank(), "median");
  if (x.dtype() == Dtype::boolean) detail::throw_dtype("median", "bool is not supported; it takes numbers");
  detail::check_not_empty("median", x, at);
  const Tensors out = composed<detail::Median>({{&x}}, {at, 1, keepdim});
  return {out[0], out[1]};
}

Tensor median(const Tensor& x) {
  const Tensor flat = reshape(x, {-1}), plain = detach(flat);
  const Tensor value = median(plain, 0).values;
  if (!is_float(x.dtype())) return value;
  // All elements equal to the median share its gradient: the added value is 0.
  const Tensor equal = eq(flat, value) || (ne(flat, flat) && ne(value, value));
  const Tensor finite = lt(abs(value), std::numeric_limits<double>::infinity());
  const Tensor nothing = where(equal && finite, flat - plain, 0);
  return value + sum(nothing) / sum(cast(equal, x.dtype()));
}

Tensor quantile(const Tensor& x, const Tensor& q, const QuantileOptions& options) {
  if (!is_float(x.dtype()) || q.dtype() != x.dtype())
    detail::throw_dtype("quantile", "takes floats of one dtype, got " + x.spec().str() + " and " + q.spec().str());
  if (q.rank() > 1) detail::throw_shape("quantile", "q must have rank 0 or 1, got " + q.shape().str());
  const Tensor in = options.axis ? x : reshape(x, {-1});
  const int axis = axis_of(options.axis.value_or(0), in.rank(), "quantile");
  detail::check_not_empty("quantile", in, axis);
  const bool keepdim = options.keepdim && options.axis.has_value();
  const auto how = static_cast<std::int64_t>(options.interpolation);
  const Tensor y = composed<detail::Quantile>({{&in, &q}}, {axis, keepdim, how});
  if (keepdim || !options.keepdim) return y;
  Shape kept = q.shape();
  for (int i = 0; i < x.rank(); ++i) kept.push_back(1);
  return reshape(y, kept);
}

Tensor quantile(const Tensor& x, double q, const QuantileOptions& options) {
  if (!(q >= 0 && q <= 1)) throw ValueError("quantile: q must be in 0..1, got " + Scalar(q).str());
  return quantile(x, full({}, q, is_float(x.dtype()) ? x.dtype() : Dtype::f32), options);
}

// ---- histograms, occurrences of integers, distinct elements -----------------------------------------------

namespace detail {
namespace {

struct HistcAttrs {
  std::int64_t bins = 1;
  double low = 0, high = 0;
  static constexpr auto fields =
      attr_list(attr("bins", &HistcAttrs::bins), attr("low", &HistcAttrs::low), attr("high", &HistcAttrs::high));
};

struct Histc {
  using Attributes = HistcAttrs;
  static constexpr auto name = "histc", onnx = "", summary = "how many elements fall into each of equal intervals";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor x = reshape(in[0], {-1});
    const Tensor none = zeros({a.bins}, x.dtype());
    Tensor low = full({}, a.low, x.dtype()), high = full({}, a.high, x.dtype());
    if (a.low == 0 && a.high == 0 && x.numel() > 0) {
      const double infinity = std::numeric_limits<double>::infinity();
      low = amin(where(eq(x, x), x, infinity));
      high = amax(where(eq(x, x), x, -infinity));
    }
    const Tensor one = eq(low, high);
    low = where(one, low - 1, low);
    high = where(one, high + 1, high);
    const Tensor inside = ge(x, low) && le(x, high);
    const Tensor share = (x - low) * static_cast<double>(a.bins) / (high - low);
    const Tensor bin = minimum(cast(where(inside, share, 0), Dtype::i64), a.bins - 1);
    return scatter_add(none, 0, bin, cast(inside, x.dtype()));
  }
};

struct BincountAttrs {
  std::int64_t size = 0;
  static constexpr auto fields = attr_list(attr("size", &BincountAttrs::size));
};

struct Bincount {
  using Attributes = BincountAttrs;
  static constexpr auto name = "bincount", onnx = "";
  static constexpr auto summary = "how often 0, 1, ... size - 1 occur, or the sums of their weights";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor weights = in.size() > 1 ? in[1] : ones(in[0].shape(), Dtype::i64);
    return scatter_add(zeros({a.size}, weights.dtype()), 0, in[0], weights, {.who = "bincount: value"});
  }
};

std::int64_t largest_or(const Tensor& x, std::int64_t none) {
  return x.numel() ? cast(amax(x), Dtype::i64).item<std::int64_t>() : none;
}

/// Returns the distinct elements, given where each run of equal ones begins in a row: bool [n].
Unique of_runs(const Tensor& row, const Tensor& begins) {
  const Tensor starts = squeeze(nonzero(begins), 1);
  const Tensor end = full({1}, row.numel(), Dtype::i64);
  return {index_select(row, 0, starts), cumsum(begins, 0) - 1, diff(starts, {.append = end})};
}

/// Returns whether each element of a row differs from the one before it.
Tensor begins_of(const Tensor& row) {
  if (row.numel() == 0) return zeros({0}, Dtype::boolean);
  return concat({ones({1}, Dtype::boolean), ne(slice(row, 0, 1), slice(row, 0, 0, -1))}, 0);
}

}  // namespace

}  // namespace detail

Tensor histc(const Tensor& x, std::int64_t bins, double low, double high) {
  if (!is_float(x.dtype())) detail::throw_dtype("histc", "takes floats, got " + x.spec().str() + "; cast it first");
  if (bins < 1) throw ValueError("histc: bins must be positive, got " + std::to_string(bins));
  if (!(low <= high) || !std::isfinite(low) || !std::isfinite(high))
    throw ValueError("histc: low must not exceed high, both finite: got " + Scalar(low).str() + " and " +
                     Scalar(high).str());
  return composed<detail::Histc>({{&x}}, {bins, low, high});
}

Tensor bincount(const Tensor& x, const BincountOptions& options) {
  if (!is_integer(x.dtype())) detail::throw_dtype("bincount", "takes i64 or i32, got " + x.spec().str());
  if (x.rank() != 1) detail::throw_shape("bincount", "takes rank 1, got " + x.shape().str());
  if (options.weights.defined() && options.weights.shape() != x.shape())
    detail::throw_shape("bincount",
                        "weights " + options.weights.shape().str() + " and values " + x.shape().str() + " differ");
  if (options.minlength < 0 || options.size.value_or(0) < 0)
    throw ValueError("bincount: minlength and size must not be negative, got " + std::to_string(options.minlength) +
                     " and " + std::to_string(options.size.value_or(0)));
  if (!options.size) detail::check_values_known("bincount", x, "give a size");
  const std::int64_t size = options.size ? *options.size : std::max(options.minlength, detail::largest_or(x, -1) + 1);
  if (!options.weights.defined()) return composed<detail::Bincount>({{&x}}, {size});
  return composed<detail::Bincount>({{&x, &options.weights}}, {size});
}

Unique unique_consecutive(const Tensor& x) {
  detail::check_values_known("unique_consecutive", x, "call it outside of the traced function");
  const Tensor row = reshape(x, {-1});
  Unique u = detail::of_runs(row, detail::begins_of(row));
  u.inverse = reshape(u.inverse, x.shape());
  return u;
}

Unique unique(const Tensor& x) {
  detail::check_values_known("unique", x, "call it outside of the traced function");
  const auto [row, order] = sort(reshape(x, {-1}), 0);
  Unique u = detail::of_runs(row, detail::begins_of(row));
  u.inverse = reshape(scatter(zeros_like(order), 0, order, u.inverse), x.shape());
  return u;
}

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family sorting_family() {
  static constexpr const Primitive* list[] = {&structured<Sort>, &structured<Topk>, &structured<RankIndex>,
                                              &structured<SearchSorted>};
  return list;
}

Family composite_order_family() {
  static constexpr const Primitive* list[] = {&composite<KthValue>, &composite<Median>, &composite<Quantile>,
                                              &composite<Histc>, &composite<Bincount>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
