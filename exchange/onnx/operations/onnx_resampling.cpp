/// Lowers Resize and Upsample axis by axis, each element as a weighted sum of its neighbours.
#include <algorithm>
#include <array>
#include <cmath>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

/// The attributes that determine how elements are interpolated.
struct Rules {
  std::string mode = "nearest", coordinates = "asymmetric", rounding = "floor";
  double cubic = -0.75, outside = 0;
  bool antialias = false, exclude_outside = false;
};
/// The resizing of one axis, from one number of elements to another.
struct Resized {
  int axis = 0;
  std::int64_t from = 1, to = 1;
  double scale = 1;
  double begin = 0, end = 1;  ///< the part of the axis that is taken: tf_crop_and_resize
};

/// Returns the position of output i among the inputs.
double place(const Call& c, const Resized& r, const std::string& mode, std::int64_t i) {
  const auto at = static_cast<double>(i), n = static_cast<double>(r.from), m = static_cast<double>(r.to);
  const double whole = r.scale * n;
  if (mode == "half_pixel") return (at + 0.5) / r.scale - 0.5;
  if (mode == "pytorch_half_pixel") return r.to > 1 ? (at + 0.5) / r.scale - 0.5 : 0;
  if (mode == "align_corners") return whole != 1 ? at * (n - 1) / (whole - 1) : 0;
  if (mode == "asymmetric") return at / r.scale;
  if (mode == "tf_half_pixel_for_nn") return (at + 0.5) / r.scale;
  if (mode == "half_pixel_symmetric") return n / 2 * (1 - m / whole) + (at + 0.5) / r.scale - 0.5;
  if (mode == "tf_crop_and_resize") {
    const double first = r.begin * (n - 1), extent = (r.end - r.begin) * (n - 1);
    return first + (whole != 1 ? at * extent / (whole - 1) : extent / 2);
  }
  c.refuse("the coordinate_transformation_mode '" + mode + "' is not supported");
}

double nearest(const Call& c, const std::string& mode, double x) {
  const double down = std::floor(x);
  if (mode == "round_prefer_floor") return x - down <= 0.5 ? down : down + 1;
  if (mode == "round_prefer_ceil") return x - down < 0.5 ? down : down + 1;
  if (mode == "floor") return down;
  if (mode == "ceil") return std::ceil(x);
  c.refuse("there is no nearest_mode '" + mode + "'");
}

/// Returns the weight of an element at distance x: a triangle, or Keys' cubic.
double kernel(const Rules& rules, double x) {
  const double d = std::fabs(x), a = rules.cubic;
  if (rules.mode == "linear") return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

Tensor chosen(const Tensor& x, int axis, const std::vector<std::int64_t>& places) {
  return index_select(x, axis, Tensor::from<std::int64_t>(places, {static_cast<std::int64_t>(places.size())}));
}
Tensor along_axis(const Tensor& x, int axis, const std::vector<double>& numbers) {
  Shape line = Shape::filled(x.rank(), 1);
  line[axis] = static_cast<std::int64_t>(numbers.size());
  return reshape(cast(Tensor::from<double>(numbers, {line[axis]}), x.dtype()), line);
}

/// Returns x resized along one axis, as the sum of weighted neighbours.
Tensor interpolated(const Call& c, const Tensor& x, const Resized& r, const Rules& rules) {
  const double shrink = rules.antialias ? std::min(1.0, r.scale) : 1;
  const double reach = (rules.mode == "linear" ? 1 : 2) / shrink;
  check_count(c, 2 * std::ceil(reach) * static_cast<double>(r.to));
  const auto taps = static_cast<std::size_t>(2 * std::ceil(reach));
  const auto count = static_cast<std::size_t>(r.to);
  std::vector<std::vector<std::int64_t>> places(taps, std::vector<std::int64_t>(count));
  std::vector<std::vector<double>> weights(taps, std::vector<double>(count));
  for (std::size_t i = 0; i < count; ++i) {
    const double at = place(c, r, rules.coordinates, static_cast<std::int64_t>(i));
    const auto first = static_cast<std::int64_t>(std::floor(at)) - static_cast<std::int64_t>(taps / 2) + 1;
    double total = 0;
    for (std::size_t k = 0; k < taps; ++k) {
      const std::int64_t j = first + static_cast<std::int64_t>(k);
      const bool outside = j < 0 || j >= r.from;
      const double w = rules.exclude_outside && outside ? 0 : kernel(rules, (static_cast<double>(j) - at) * shrink);
      places[k][i] = std::clamp<std::int64_t>(j, 0, r.from - 1);
      weights[k][i] = w;
      total += w;
    }
    if (rules.exclude_outside || rules.antialias)
      for (auto& of_tap : weights) of_tap[i] = total == 0 ? 0 : of_tap[i] / total;
  }
  Tensor y;
  for (std::size_t k = 0; k < taps; ++k) {
    if (std::all_of(weights[k].begin(), weights[k].end(), [](double w) { return w == 0; })) continue;
    const Tensor part = chosen(x, r.axis, places[k]) * along_axis(x, r.axis, weights[k]);
    y = y.defined() ? y + part : part;
  }
  return y;
}

Tensor along(const Call& c, const Tensor& x, const Resized& r, const Rules& rules) {
  Tensor y;
  if (rules.mode == "nearest") {
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < r.to; ++i) {
      const double at = nearest(c, rules.rounding, place(c, r, rules.coordinates, i));
      places.push_back(std::clamp<std::int64_t>(static_cast<std::int64_t>(at), 0, r.from - 1));
    }
    y = chosen(x, r.axis, places);
  } else {
    y = interpolated(c, x, r, rules);
  }
  if (rules.coordinates != "tf_crop_and_resize") return y;
  std::vector<double> inside;  // positions outside have a separate value
  for (std::int64_t i = 0; i < r.to; ++i) {
    const double at = place(c, r, rules.coordinates, i);
    inside.push_back(at < 0 || at > static_cast<double>(r.from - 1) ? 0 : 1);
  }
  return where(ne(along_axis(y, r.axis, inside), 0), y, full({}, rules.outside, y.dtype()));
}

Values resized(const Call& c, std::vector<Resized>& axes, const Rules& rules) {
  Tensor x = c.tensor(0);
  if (rules.mode != "nearest" && rules.mode != "linear" && rules.mode != "cubic")
    c.refuse("the mode '" + rules.mode + "' is not supported");
  const bool whole = !is_float(x.dtype());
  const bool crops = rules.coordinates == "tf_crop_and_resize";
  if (whole && (rules.mode != "nearest" || crops)) x = cast(x, Dtype::f64);
  for (const Resized& r : axes) {
    if (r.to < 1 || r.from < 1) c.refuse("an axis has or gets no elements");
    check_count(c, static_cast<double>(r.to));
    if (r.to == r.from && r.scale == 1 && (!crops || (r.begin == 0 && r.end == 1))) continue;
    x = along(c, x, r, rules);
  }
  if (x.dtype() == c.tensor(0).dtype()) return {narrowed(x, c.type(0))};
  // integers: toward zero, within their range
  const ElementType type = c.type(0);
  if (bits_of(type) > 32) c.refuse("integers of 64 bits are not interpolated");
  const double range = std::ldexp(1, bits_of(type)), low = is_unsigned(type) ? 0 : -range / 2;
  return {{cast(clamp(x, low, low + range - 1), dtype_for(type)), type}};
}

/// Returns the named axes with their scales or sizes.
std::vector<Resized> axes_of_sizes(const Call& c, const std::vector<std::int64_t>& named,
                                   const std::vector<double>& scales, const std::vector<std::int64_t>& sizes) {
  const Tensor& x = c.tensor(0);
  const std::size_t given = sizes.empty() ? scales.size() : sizes.size();
  if (given != named.size()) c.refuse("scales and sizes must hold " + std::to_string(named.size()) + " numbers");
  std::vector<Resized> all;
  for (std::size_t i = 0; i < named.size(); ++i) {
    Resized r{.axis = axis_of(c, named[i], x.rank())};
    r.from = x.size(r.axis);
    if (sizes.empty()) {
      r.scale = scales[i];
      if (!(r.scale > 0)) c.refuse("scales must be above 0");
      check_count(c, static_cast<double>(r.from) * r.scale);
      // The product in f32, as the scale is: 20 / 12 rounded down must give 20 of 12.
      r.to = static_cast<std::int64_t>(std::floor(static_cast<float>(r.from) * static_cast<float>(r.scale)));
    } else {
      r.to = sizes_of(c, "sizes", {sizes[i]}, 0)[0];
      check_count(c, static_cast<double>(r.to));
      r.scale = static_cast<double>(r.to) / static_cast<double>(std::max<std::int64_t>(r.from, 1));
    }
    all.push_back(r);
  }
  return all;
}

std::vector<std::int64_t> all_axes(const Call& c) {
  std::vector<std::int64_t> axes;
  for (int i = 0; i < c.tensor(0).rank(); ++i) axes.push_back(i);
  return axes;
}

Values resize(const Call& c) {
  Rules rules{.mode = c.text("mode", "nearest")};
  if (c.version() < 11) {
    auto axes = axes_of_sizes(c, all_axes(c), c.known_floats(1), {});
    return resized(c, axes, rules);
  }
  std::vector<double> scales, roi;
  std::vector<std::int64_t> sizes, named = all_axes(c);
  if (c.has_attribute("axes")) named = c.integers("axes");
  if (c.has(2)) scales = c.known_floats(2);
  if (c.has(3)) sizes = c.known_ints(3);
  if (!sizes.empty() && !scales.empty()) c.refuse("scales and sizes are both given");
  rules.coordinates = c.text("coordinate_transformation_mode", "half_pixel");
  rules.rounding = c.text("nearest_mode", "round_prefer_floor");
  rules.cubic = c.number("cubic_coeff_a", -0.75);
  rules.outside = c.number("extrapolation_value", 0.0);
  rules.antialias = c.integer("antialias", 0) != 0;
  rules.exclude_outside = c.integer("exclude_outside", 0) != 0;
  if (c.has(1)) {
    if (rules.coordinates == "tf_crop_and_resize")
      roi = c.known_floats(1);
    else
      (void)c.tensor(1);  // only for that mode
  }
  auto axes = axes_of_sizes(c, named, scales, sizes);
  const std::string policy = c.text("keep_aspect_ratio_policy", "stretch");
  if (!sizes.empty() && policy != "stretch") {
    if (policy != "not_larger" && policy != "not_smaller")
      c.refuse("there is no keep_aspect_ratio_policy '" + policy + "'");
    double scale = axes.empty() ? 1 : axes[0].scale;
    for (const Resized& r : axes) scale = policy == "not_larger" ? std::min(scale, r.scale) : std::max(scale, r.scale);
    for (Resized& r : axes) {
      r.scale = scale;
      r.to = static_cast<std::int64_t>(std::floor(scale * static_cast<double>(r.from) + 0.5));
    }
  }
  if (rules.coordinates == "tf_crop_and_resize") {
    if (roi.size() != 2 * axes.size()) c.refuse("roi must hold two numbers for each axis");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      axes[i].begin = roi[i];
      axes[i].end = roi[i + axes.size()];
    }
  }
  return resized(c, axes, rules);
}

Values upsample(const Call& c) {
  const std::vector<double> scales = c.version() < 9 ? c.numbers("scales") : c.known_floats(1);
  auto axes = axes_of_sizes(c, all_axes(c), scales, {});
  return resized(c, axes, {.mode = c.text("mode", "nearest")});
}

constexpr std::array<Operation, 2> kRows{{{.name = "Resize", .lower = resize, .static_inputs = 14},
                                          {.name = "Upsample", .lower = upsample, .static_inputs = 2}}};

}  // namespace

Operations resampling_operations() { return kRows; }

}  // namespace ferrite::onnx::detail
