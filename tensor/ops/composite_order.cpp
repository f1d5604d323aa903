/// Order statistics, composed of sorting and gathering: the k-th value, medians and quantiles.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/groups.h"
#include "ferrite/tensor/ops/detail/known_index.h"
#include "ferrite/tensor/ops/detail/rank_index.h"
#include "ferrite/tensor/sorting.h"

namespace ferrite {
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

/// The elements at an index with an extent of 1 along the axis, and the index, the axis dropped unless it is kept.
Tensors chosen(const Tensor& x, const Tensor& index, int axis, bool keepdim) {
  const Tensor values = gather_known(x, axis, index);
  if (keepdim) return {values, index};
  return {squeeze(values, axis), squeeze(index, axis)};
}

bool is_less(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

/// Index of the k-th smallest of a line, k from 1, by counting.
std::size_t index_of_rank(const std::vector<double>& v, std::int64_t k) {
  for (std::size_t i = 0; i < v.size(); ++i) {
    std::int64_t before = 0;
    for (std::size_t j = 0; j < v.size(); ++j) before += is_less(v[j], v[i]) || (j < i && !is_less(v[i], v[j]));
    if (before == k - 1) return i;
  }
  return 0;
}

template <class F>
void choice_oracle(const Dense& x, int axis, std::span<Dense> out, F&& index_of) {
  std::size_t next = 0;
  for_each_group(x, {axis}, [&](const Shape&, const std::vector<Shape>& members) {
    std::vector<double> v;
    for (const Shape& i : members) v.push_back(x.at(i));
    const std::size_t at = index_of(v);
    out[0].values[next] = v[at];
    out[1].values[next++] = static_cast<double>(at);
  });
}

struct KthValue {
  using Attributes = RankAttrs;
  static constexpr auto name = "kthvalue", onnx = "";
  static constexpr auto summary = "the k-th smallest element along an axis, and its index; NaN largest";

  static Tensors parts(Inputs in, const Attributes& a) {
    return chosen(in[0], rank_index(detach(in[0]), a.axis, a.k), a.axis, a.keepdim);
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    choice_oracle(in[0], a.axis, out, [&](const std::vector<double>& v) { return index_of_rank(v, a.k); });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list = {
        {.inputs = {{{3, 7}}}, .attrs = RankAttrs{1, 3, false}},
        {.inputs = {{{5, 3}}}, .attrs = RankAttrs{0, 5, true}},
        {.inputs = {{{2, 80}}}, .attrs = RankAttrs{1, 33, false}},
        {.inputs = {{{0, 3}}}, .attrs = RankAttrs{1, 1, false}},
        {.inputs = {{{4}, Dtype::i64}}, .attrs = RankAttrs{0, 2, false}, .indices = {4, 1, 1, 7}}};
    for (Sample& s : list) s.smooth_at_ties = false;
    return list;
  }
};

struct Median {
  using Attributes = RankAttrs;  // of which k says nothing
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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    choice_oracle(in[0], a.axis, out, [](const std::vector<double>& v) {
      for (std::size_t i = 0; i < v.size(); ++i)
        if (std::isnan(v[i])) return i;
      return index_of_rank(v, (static_cast<std::int64_t>(v.size()) + 1) / 2);
    });
  }
  static std::vector<Sample> samples() {
    const double nan = std::nan("");
    std::vector<Sample> list = {
        {.inputs = {{{3, 7}}}, .attrs = RankAttrs{1, 1, false}},
        {.inputs = {{{4, 3}}}, .attrs = RankAttrs{0, 1, true}},
        {.inputs = {{{0, 3}}}, .attrs = RankAttrs{1, 1, false}},
        {.inputs = {{{3, 3}}},
         .attrs = RankAttrs{1, 1, false},
         .values = {1, nan, 0, 3, 2, 1, nan, 0, nan},
         .smooth = false},
        {.inputs = {{{4}, Dtype::i64}}, .attrs = RankAttrs{0, 1, false}, .indices = {4, 1, 1, 7}}};
    for (Sample& s : list) s.smooth_at_ties = false;
    return list;
  }
};

struct QuantileAttrs {
  int axis = 0;
  bool keepdim = false;
  std::int64_t interpolation = 0;  ///< the number of an QuantileInterpolation
  static constexpr auto fields = attr_list(attr("axis", &QuantileAttrs::axis), attr("keepdim", &QuantileAttrs::keepdim),
                                           attr("interpolation", &QuantileAttrs::interpolation));
};

struct Quantile {
  using Attributes = QuantileAttrs;
  static constexpr auto name = "quantile", onnx = "";
  static constexpr auto summary = "elements at the ranks q (n - 1) of the sorted ones along an axis, interpolated";

  /// x's other axes, then that of the ranks.
  static Tensor at_ranks(const Tensor& x, const Tensor& q, QuantileInterpolation how) {
    const std::int64_t last = x.shape()[-1] - 1;
    const Tensor sorted = sort(x, -1).values, end = detach(slice(sorted, -1, last));
    const Tensor rank = q * static_cast<double>(last), plain = detach(rank);
    const Tensor below = cast(plain, Dtype::i64), share = rank - cast(below, x.dtype());
    const Tensor above = below + cast(gt(detach(share), 0), Dtype::i64);
    const auto element = [&](const Tensor& i) {
      Shape shape = x.shape();
      shape[-1] = i.numel();
      // Where there is a NaN it stands last, and is taken.
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
  /// At a share of the way from a to b, or half of it. An infinite end wins over a finite one, and takes the gradient;
  /// two of one sign are that end, and between two of both signs there is nothing: NaN.
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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const auto how = static_cast<QuantileInterpolation>(a.interpolation);
    const std::size_t count = in[1].values.size(), groups = out[0].values.size() / std::max<std::size_t>(count, 1);
    std::size_t group = 0;
    for_each_group(in[0], {a.axis}, [&](const Shape&, const std::vector<Shape>& members) {
      std::vector<double> v;
      for (const Shape& i : members) v.push_back(in[0].at(i));
      std::sort(v.begin(), v.end(), is_less);
      for (std::size_t k = 0; k < count; ++k) {
        const double rank = in[1].values[k] * static_cast<double>(v.size() - 1), low = std::floor(rank);
        const double lower = v[static_cast<std::size_t>(low)], higher = v[static_cast<std::size_t>(std::ceil(rank))];
        const double t = how == QuantileInterpolation::midpoint ? 0.5 : rank - low;
        double y = lower + t * (higher - lower);
        if (std::isinf(lower)) y = std::isinf(higher) && lower != higher ? std::nan("") : lower;
        if (std::isinf(higher) && !std::isinf(lower)) y = higher;
        if (how == QuantileInterpolation::lower) y = lower;
        if (how == QuantileInterpolation::higher) y = higher;
        if (how == QuantileInterpolation::nearest) y = v[static_cast<std::size_t>(std::nearbyint(rank))];
        out[0].values[k * groups + group] = std::isnan(v.back()) ? v.back() : y;
      }
      ++group;
    });
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    // x, then q: ranks between elements and on them.
    const std::vector<double> a{0.5, -1.5, 2, 7, 3.25, -4, 0.25, 1, 6, -2, 0.3, 0.55};
    const std::vector<double> corners{1, 1, 2, std::nan(""), 3, 0, 0, -1, 1, 0, 0.5, 1};
    for (std::int64_t how = 0; how < 5; ++how) {
      list.push_back({.inputs = {{{2, 5}}, {{2}}}, .attrs = QuantileAttrs{1, false, how}, .values = a});
      list.push_back(
          {.inputs = {{{3, 3}}, {{3}}}, .attrs = QuantileAttrs{0, true, how}, .values = corners, .smooth = false});
    }
    const std::vector<double> infinite{-INFINITY, -INFINITY, 1, INFINITY, 2, -INFINITY, 0, 0.25, 0.5, 0.875};
    for (const std::int64_t how : {0, 4})
      list.push_back(
          {.inputs = {{{2, 3}}, {{4}}}, .attrs = QuantileAttrs{1, false, how}, .values = infinite, .smooth = false});
    list.push_back({.inputs = {{{2, 5, 1}}, {{}}}, .attrs = QuantileAttrs{1, true, 0}, .values = a});
    list.push_back({.inputs = {{{0, 3}}, {{}}}, .attrs = QuantileAttrs{1, false, 0}, .values = {0.25}});
    return list;
  }
};

void check_not_empty(std::string_view where, const Tensor& x, int axis) {
  if (x.shape()[axis] == 0)
    throw_shape(where, "no elements to choose from: axis " + std::to_string(axis) + " of " + x.shape().str());
}

}  // namespace

Family composite_order_family() {
  static constexpr const Primitive* list[] = {&composite<KthValue>, &composite<Median>, &composite<Quantile>};
  return list;
}

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
  // Its gradient is shared by all elements that are equal to it: what is added is 0.
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

}  // namespace ferrite
