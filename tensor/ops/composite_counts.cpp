/// Counting: histograms, occurrences of integers, distinct elements.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/values_known.h"
#include "ferrite/tensor/scatter.h"
#include "ferrite/tensor/sorting.h"

namespace ferrite {
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

/// The distinct elements, from where each run of equal ones begins in a row: bool [n].
Unique of_runs(const Tensor& row, const Tensor& begins) {
  const Tensor starts = squeeze(nonzero(begins), 1);
  const Tensor end = full({1}, row.numel(), Dtype::i64);
  return {index_select(row, 0, starts), cumsum(begins, 0) - 1, diff(starts, {.append = end})};
}

/// Whether each element of a row differs from the one before it.
Tensor begins_of(const Tensor& row) {
  if (row.numel() == 0) return zeros({0}, Dtype::boolean);
  return concat({ones({1}, Dtype::boolean), ne(slice(row, 0, 1), slice(row, 0, 0, -1))}, 0);
}

}  // namespace

Family composite_counts_family() {
  static constexpr const Primitive* list[] = {&composite<Histc>, &composite<Bincount>};
  return list;
}

}  // namespace detail

using detail::composed;

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

}  // namespace ferrite
