/// Lowers pooling: extremes, means and norms of windows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/convolution.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/pooling.h"
#include "ferrite/tensor/scatter.h"

namespace ferrite::onnx::detail {
namespace {

using Numbers = std::vector<std::int64_t>;

/// The sizes, strides, dilations and padding of windows along the spatial axes.
struct Windows {
  Numbers kernel, stride, dilation, before, after;
  std::size_t axes() const { return kernel.size(); }
};

Numbers or_ones(const Call& call, std::string_view name, std::size_t n) {
  const Numbers given = call.integers(name, Numbers(n, 1));
  if (given.size() != n)
    call.refuse("attribute \"" + std::string(name) + "\" must have " + std::to_string(n) + " numbers");
  return sizes_of(call, name, given, 1);
}

/// Returns the attributes of windows over x [N, C, ...].
Windows windows_of(const Call& call, const Tensor& x) {
  Windows w;
  const auto n = static_cast<std::size_t>(std::max(x.rank() - 2, 0));
  if (n < 1 || n > 3) call.refuse("one to three axes of space are supported, not " + x.shape().str());
  w.kernel = sizes_of(call, "kernel_shape", call.integers("kernel_shape"), 1);
  if (w.kernel.size() != n) call.refuse("kernel_shape does not fit");
  w.stride = or_ones(call, "strides", n);
  w.dilation = or_ones(call, "dilations", n);
  w.before.assign(n, 0);
  w.after.assign(n, 0);
  const std::string rule = call.text("auto_pad", "NOTSET");
  if (rule == "NOTSET" || rule.empty()) {
    const Numbers pads = pads_of(call, call.integers("pads", Numbers(2 * n, 0)));
    if (pads.size() != 2 * n) call.refuse("pads must have two numbers for each axis of space");
    w.before.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n));
    w.after.assign(pads.begin() + static_cast<std::ptrdiff_t>(n), pads.end());
    return w;
  }
  call.without_effect("pads");  // auto_pad determines them
  if (rule == "VALID") return w;
  if (rule != "SAME_UPPER" && rule != "SAME_LOWER") call.refuse("auto_pad \"" + rule + "\" is not supported");
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t extent = x.size(static_cast<int>(i) + 2);
    const std::int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
    const std::int64_t count = (extent + w.stride[i] - 1) / w.stride[i];
    const std::int64_t total = std::max<std::int64_t>(0, (count - 1) * w.stride[i] + reach - extent);
    w.before[i] = rule == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.after[i] = total - w.before[i];
  }
  return w;
}

/// Returns x padded along its spatial axes.
Tensor around(const Tensor& x, const Numbers& before, const Numbers& after, Scalar value) {
  Numbers front(2, 0), back(2, 0);
  front.insert(front.end(), before.begin(), before.end());
  back.insert(back.end(), after.begin(), after.end());
  if (std::all_of(front.begin(), front.end(), [](auto a) { return a == 0; }) &&
      std::all_of(back.begin(), back.end(), [](auto a) { return a == 0; }))
    return x;
  return pad(x, shape_of(front), shape_of(back), value);
}

/// Returns the numbers of elements after the last one that the last windows reach with ceil_mode. A window must begin
/// within x or the padding before it.
Numbers beyond(const Call& call, const Tensor& x, const Windows& w, bool up) {
  Numbers more(w.axes(), 0);
  for (std::size_t i = 0; i < w.axes(); ++i) {
    const std::int64_t extent = x.size(static_cast<int>(i) + 2);
    const std::int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
    const std::int64_t room = extent + w.before[i] + w.after[i] - reach;
    if (room < 0 && !up) call.refuse("no window fits " + x.shape().str());
    std::int64_t count = room / w.stride[i] + 1;
    if (up) {
      count = (room + w.stride[i] - 1) / w.stride[i] + 1;
      if ((count - 1) * w.stride[i] >= extent + w.before[i]) --count;
    }
    more[i] = std::max(w.after[i], (count - 1) * w.stride[i] + reach - (extent + w.before[i]));
  }
  return more;
}

/// Calls one of three functions, by the number of spatial axes.
template <class Result>
Result max_pooled(const Tensor& x, const Windows& w,
                  Result (*const (&by_axes)[3])(const Tensor&, const Shape&, const MaxPoolOptions&)) {
  const MaxPoolOptions options{.stride = shape_of(w.stride), .dilation = shape_of(w.dilation)};
  return by_axes[w.axes() == 1 ? 0 : w.axes() == 2 ? 1 : 2](x, shape_of(w.kernel), options);
}

/// Returns the sums of windows; those of dilated windows by a convolution of each channel with ones.
Tensor sums_of(const Tensor& x, const Windows& w) {
  const Shape kernel = shape_of(w.kernel), stride = shape_of(w.stride);
  if (std::all_of(w.dilation.begin(), w.dilation.end(), [](auto d) { return d == 1; })) {
    const AvgPoolOptions options{.stride = stride, .divisor_override = 1};
    return w.axes() == 1   ? avg_pool1d(x, kernel, options)
           : w.axes() == 2 ? avg_pool2d(x, kernel, options)
                           : avg_pool3d(x, kernel, options);
  }
  Numbers extents{x.size(1), 1};
  extents.insert(extents.end(), w.kernel.begin(), w.kernel.end());
  const Tensor weight = ones(shape_of(extents), x.dtype());
  ConvolutionOptions options{.stride = stride, .dilation = shape_of(w.dilation), .groups = x.size(1)};
  return w.axes() == 1   ? conv1d(x, weight, {}, options)
         : w.axes() == 2 ? conv2d(x, weight, {}, options)
                         : conv3d(x, weight, {}, options);
}

Values max_pool(const Call& call) {
  const Tensor& given = call.tensor(0);
  const bool floats = is_floating(call.type(0));
  const Tensor x = floats ? given : cast(given, Dtype::f64);
  Windows w = windows_of(call, x);
  const bool up = call.integer("ceil_mode", 0) != 0;
  const bool columns = call.integer("storage_order", 0) != 0;
  const Numbers more = beyond(call, x, w, up);
  const Tensor wide = around(x, w.before, more, -std::numeric_limits<double>::infinity());
  const auto typed = [&](const Tensor& y) { return Value{floats ? y : cast(y, given.dtype()), call.type(0)}; };
  if (!call.wants(1)) return {typed(max_pooled<Tensor>(wide, w, {max_pool1d, max_pool2d, max_pool3d}))};
  const MaxPooled best =
      max_pooled<MaxPooled>(wide, w, {max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices});
  Values values{typed(best.values)};
  // Places in the padded plane become places in all of x, row-major or, for storage order 1, with the axes reversed.
  Tensor rest = best.indices, place;
  const int axes = static_cast<int>(w.axes());
  std::int64_t factor = 1;
  std::vector<Tensor> coordinates(w.axes());
  for (int i = axes; i-- > 0;) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t extent = wide.size(i + 2);
    coordinates[at] = remainder(rest, extent) - w.before[at];
    rest = floor_divide(rest, extent);
  }
  for (int j = 0; j < axes; ++j) {
    const int i = columns ? j : axes - 1 - j;
    const Tensor part = coordinates[static_cast<std::size_t>(i)] * factor;
    place = place.defined() ? place + part : part;
    factor *= x.size(i + 2);
  }
  Numbers planes(static_cast<std::size_t>(x.rank()), 1);
  planes[0] = x.size(0);
  planes[1] = x.size(1);
  const Tensor plane = arange(Scalar(0), Scalar(planes[0] * planes[1]), Scalar(1), Dtype::i64) * factor;
  values.push_back({place + reshape(plane, shape_of(planes)), ElementType::i64});
  return values;
}

Values average_pool(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Windows w = windows_of(call, x);
  const bool padding_counts = call.integer("count_include_pad", 0) != 0;
  const Numbers more = beyond(call, x, w, call.integer("ceil_mode", 0) != 0);
  const Tensor total = sums_of(around(x, w.before, more, 0), w);
  Numbers extents{1, 1};
  for (int i = 2; i < x.rank(); ++i) extents.push_back(x.size(i));
  // Number of elements that count: those of x and, if asked for, of its padding, but none beyond.
  Tensor counted = ones(shape_of(extents), x.dtype());
  Numbers behind = more;
  if (padding_counts) {
    counted = around(counted, w.before, w.after, 1);
    for (std::size_t i = 0; i < behind.size(); ++i) behind[i] -= w.after[i];
    counted = around(counted, Numbers(w.axes(), 0), behind, 0);
  } else {
    counted = around(counted, w.before, behind, 0);
  }
  return {narrowed(total / sums_of(counted, w), call.type(0))};
}

Values lp_pool(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Windows w = windows_of(call, x);
  const auto p = static_cast<double>(call.integer("p", 2));
  const Numbers more = beyond(call, x, w, call.integer("ceil_mode", 0) != 0);
  const Tensor powers = p == 2 ? square(x) : p == 1 ? abs(x) : pow(abs(x), p);
  const Tensor total = sums_of(around(powers, w.before, more, 0), w);
  return {narrowed(p == 2 ? sqrt(total) : p == 1 ? total : pow(total, 1 / p), call.type(0))};
}

Values global_pool(const Call& call) {
  const Tensor& x = call.tensor(0);
  Numbers axes;
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  if (axes.empty()) call.refuse("no axes of space in " + x.shape().str());
  const Shape over = shape_of(axes);
  const std::string_view name = call.name();
  if (name == "GlobalAveragePool") return {narrowed(mean(x, over, true), call.type(0))};
  if (name == "GlobalMaxPool") return {narrowed(amax(x, over, true), call.type(0))};
  const auto p = static_cast<double>(call.integer("p", 2));
  const Tensor total = sum(p == 2 ? square(x) : pow(abs(x), p), over, true);
  return {narrowed(p == 2 ? sqrt(total) : pow(total, 1 / p), call.type(0))};
}

Values max_unpool(const Call& call) {
  const Tensor& x = call.tensor(0);
  const auto n = static_cast<std::size_t>(std::max(x.rank() - 2, 0));
  const Numbers kernel = sizes_of(call, "kernel_shape", call.integers("kernel_shape"), 1);
  const Numbers stride = or_ones(call, "strides", n);
  const Numbers pads = pads_of(call, call.integers("pads", Numbers(2 * n, 0)));
  if (kernel.size() != n || pads.size() != 2 * n)
    call.refuse("its attributes have not a number for each axis of space");
  Numbers inner{x.size(0), x.size(1)};
  for (std::size_t i = 0; i < n; ++i)
    inner.push_back((x.size(static_cast<int>(i) + 2) - 1) * stride[i] + kernel[i] - pads[i] - pads[i + n]);
  const Shape plain = shape_of(inner);
  const Tensor flat = zeros({plain.numel()}, x.dtype());
  Tensor y = reshape(scatter(flat, 0, reshape(call.tensor(1), {x.numel()}), reshape(x, {x.numel()})), plain);
  if (call.has(2)) {
    const Numbers wanted = call.known_ints(2);
    Numbers none(wanted.size(), 0), more;
    for (std::size_t i = 0; i < wanted.size() && i < inner.size(); ++i) more.push_back(wanted[i] - inner[i]);
    if (wanted.size() != inner.size()) call.refuse("output_shape does not fit " + x.shape().str());
    y = pad(y, shape_of(none), shape_of(more), 0);
  }
  return {moved(y, call.type(0))};
}

constexpr Operation kOperations[] = {
    {.name = "MaxPool", .lower = max_pool},
    {.name = "AveragePool", .lower = average_pool},
    {.name = "LpPool", .lower = lp_pool, .since = 2},
    {.name = "GlobalAveragePool", .lower = global_pool},
    {.name = "GlobalMaxPool", .lower = global_pool},
    {.name = "GlobalLpPool", .lower = global_pool, .since = 2},
    {.name = "MaxUnpool", .lower = max_unpool, .static_inputs = 4},
};

}  // namespace

Operations pooling_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
