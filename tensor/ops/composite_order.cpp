/// Order statistics, composed of sorting and gathering: the k-th value, medians and quantiles.
#include <limits>

#include "ferrite/tensor/ops/define.h"
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

struct KthValue {
  using Attributes = RankAttrs;
  static constexpr auto name = "kthvalue", onnx = "";
  static constexpr auto summary = "the k-th smallest element along an axis, and its index; NaN largest";

  static Tensors parts(Inputs in, const Attributes& a) {
    return chosen(in[0], rank_index(detach(in[0]), a.axis, a.k), a.axis, a.keepdim);
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
