/// Resize and Upsample: other extents along axes, axis by axis.
#include <algorithm>
#include <array>
#include <cmath>

#include "ferrite/exchange/onnx/operations.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

/// One axis: so many elements become so many others.
struct Resized {
  int axis = 0;
  std::int64_t from = 1, to = 1;
  double scale = 1;
};

/// Where output i lies among the inputs.
double place(const Call& c, const Resized& r, const std::string& mode, std::int64_t i) {
  const auto at = static_cast<double>(i), n = static_cast<double>(r.from), m = static_cast<double>(r.to);
  if (mode == "half_pixel") return (at + 0.5) / r.scale - 0.5;
  if (mode == "pytorch_half_pixel") return m > 1 ? (at + 0.5) / r.scale - 0.5 : 0;
  if (mode == "align_corners") return m > 1 ? at * (n - 1) / (r.scale * n - 1) : 0;
  if (mode == "asymmetric") return at / r.scale;
  if (mode == "half_pixel_symmetric") {
    const double whole = r.scale * n;
    return n / 2 * (1 - m / whole) + (at + 0.5) / r.scale - 0.5;
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

Tensor chosen(const Tensor& x, int axis, const std::vector<std::int64_t>& places) {
  return index_select(x, axis, Tensor::from<std::int64_t>(places, {static_cast<std::int64_t>(places.size())}));
}

Tensor along(const Call& c, const Tensor& x, const Resized& r, const std::string& mode, const std::string& coordinates,
             const std::string& rounding) {
  std::vector<std::int64_t> low, high;
  std::vector<double> weight;
  const auto within = [&](double at) { return std::clamp<std::int64_t>(static_cast<std::int64_t>(at), 0, r.from - 1); };
  for (std::int64_t i = 0; i < r.to; ++i) {
    const double at = place(c, r, coordinates, i);
    if (mode == "nearest") {
      low.push_back(within(nearest(c, rounding, at)));
      continue;
    }
    const double inside = std::clamp(at, 0.0, static_cast<double>(r.from - 1));
    low.push_back(within(std::floor(inside))), high.push_back(within(std::floor(inside) + 1));
    weight.push_back(inside - std::floor(inside));
  }
  const Tensor a = chosen(x, r.axis, low);
  if (mode == "nearest") return a;
  Shape line = Shape::filled(x.rank(), 1);
  line[r.axis] = r.to;
  const Tensor w = reshape(cast(Tensor::from<double>(weight, {r.to}), x.dtype()), line);
  return a * (1 - w) + chosen(x, r.axis, high) * w;
}

Values resized(const Call& c, const std::vector<double>& scales, const std::vector<std::int64_t>& sizes,
               const std::vector<std::int64_t>& axes, const std::string& mode, const std::string& coordinates,
               const std::string& rounding) {
  Tensor x = c.tensor(0);
  if (mode != "nearest" && mode != "linear") c.refuse("the mode '" + mode + "' is not supported");
  if (mode == "linear" && !is_float(x.dtype())) c.refuse("linear takes floats");
  const std::size_t n = axes.size();
  if ((sizes.empty() ? scales.size() : sizes.size()) != n)
    c.refuse("scales and sizes must hold " + std::to_string(n) + " numbers");
  for (std::size_t i = 0; i < n; ++i) {
    Resized r{.axis = static_cast<int>(axes[i] < 0 ? axes[i] + x.rank() : axes[i])};
    if (r.axis < 0 || r.axis >= x.rank()) c.refuse("axis " + std::to_string(axes[i]) + " is not there");
    r.from = x.shape()[r.axis];
    if (sizes.empty()) {
      r.scale = scales[i];
      if (!(r.scale > 0)) c.refuse("scales must be above 0");
      r.to = static_cast<std::int64_t>(std::floor(static_cast<double>(r.from) * r.scale));
    } else {
      r.to = sizes[i];
      r.scale = static_cast<double>(r.to) / static_cast<double>(r.from);
    }
    if (r.to < 1 || r.from < 1) c.refuse("an axis has or gets no elements");
    if (r.to == r.from && r.scale == 1) continue;
    x = along(c, x, r, mode, coordinates, rounding);
  }
  return {narrowed(x, c.type(0))};
}

std::vector<std::int64_t> all_axes(const Call& c) {
  std::vector<std::int64_t> axes;
  for (int i = 0; i < c.tensor(0).rank(); ++i) axes.push_back(i);
  return axes;
}

Values resize(const Call& c) {
  const bool old = c.version() < 11;
  std::vector<double> scales;
  std::vector<std::int64_t> sizes, axes = all_axes(c);
  const std::string mode = c.text("mode", "nearest");
  if (old) return resized(c, c.known_floats(1), {}, axes, mode, "asymmetric", "floor");
  if (c.has(1)) (void)c.tensor(1);  // roi, of tf_crop_and_resize alone
  if (c.has(2)) scales = c.known_floats(2);
  if (c.has(3)) sizes = c.known_ints(3);
  if (!sizes.empty()) scales.clear();
  if (c.integer("antialias", 0) != 0) c.refuse("antialias is not supported");
  if (c.integer("exclude_outside", 0) != 0) c.refuse("exclude_outside is not supported");
  c.without_effect("cubic_coeff_a");        // of cubic alone, which is refused
  c.without_effect("extrapolation_value");  // of tf_crop_and_resize alone, which is refused
  if (c.has_attribute("axes")) axes = c.integers("axes");
  if (c.text("keep_aspect_ratio_policy", "stretch") != "stretch" && !sizes.empty())
    c.refuse("a keep_aspect_ratio_policy other than stretch is not supported");
  return resized(c, scales, sizes, axes, mode, c.text("coordinate_transformation_mode", "half_pixel"),
                 c.text("nearest_mode", "round_prefer_floor"));
}

Values upsample(const Call& c) {
  const std::vector<double> scales = c.version() < 9 ? c.numbers("scales") : c.known_floats(1);
  return resized(c, scales, {}, all_axes(c), c.text("mode", "nearest"), "asymmetric", "floor");
}

constexpr std::array<Operation, 2> kRows{{{.name = "Resize", .lower = resize, .static_inputs = 14},
                                          {.name = "Upsample", .lower = upsample, .static_inputs = 2}}};

}  // namespace

Operations resampling_operations() { return kRows; }

}  // namespace ferrite::onnx::detail
