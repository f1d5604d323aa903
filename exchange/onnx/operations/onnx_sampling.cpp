/// Lowers operations that read or write images at places: GridSample, AffineGrid, Col2Im, CenterCropPad.
#include <algorithm>
#include <cmath>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/windows.h"

namespace ferrite::onnx::detail {
namespace {

using Numbers = std::vector<std::int64_t>;

/// The treatment of places outside of an axis of n elements.
enum class Outside : std::uint8_t { zeros, border, reflection };

/// Returns places mirrored into the interval from low to high.
Tensor reflected(const Tensor& x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return zeros_like(x) + low;
  const Tensor around = remainder(x - low, 2 * range);
  return minimum(around, 2 * range - around) + low;
}

/// Reads x [N, C, ...] at integral places, given as one tensor [N, ...] for each spatial axis.
Tensor read(const Tensor& x, const std::vector<Tensor>& places, Outside outside, bool corners) {
  const int space = x.rank() - 2;
  const Shape grid = places[0].shape();
  Tensor flat = zeros({1}, Dtype::i64), inside;
  for (int i = 0; i < space; ++i) {
    const std::int64_t n = x.size(i + 2);
    Tensor at = places[static_cast<std::size_t>(i)];
    if (outside == Outside::reflection) {
      const auto last = static_cast<double>(n - 1);
      at = corners ? reflected(at, 0, last) : reflected(at, -0.5, last + 0.5);
      at = trunc(at);  // -0.5 mirrored lies at 0
    }
    const Tensor here = ge(at, 0) && le(at, n - 1);
    if (outside == Outside::zeros) inside = inside.defined() ? inside && here : here;
    flat = flat * n + cast(clamp(at, 0, n - 1), Dtype::i64);
  }
  const std::int64_t batch = x.size(0), channels = x.size(1);
  const std::int64_t points = batch > 0 ? flat.numel() / batch : 0;
  const Tensor index = expand(reshape(flat, {batch, 1, points}), {batch, channels, points});
  std::int64_t plane = 1;
  for (int i = 0; i < space; ++i) plane *= x.size(i + 2);
  Tensor y = gather(reshape(x, {batch, channels, plane}), 2, contiguous(index));
  if (inside.defined()) y = where(reshape(inside, {batch, 1, points}), y, 0.0);
  Numbers extents{batch, channels};
  extents.insert(extents.end(), grid.begin() + 1, grid.end());
  return reshape(y, shape_of(extents));
}

/// Returns the weights of the neighbours of a place at distance t, in elements, after the one below it.
std::vector<Tensor> weights_of(const Tensor& t, bool cubic) {
  if (!cubic) return {1 - t, t};
  const double a = -0.75;
  const auto near = [&](const Tensor& d) { return ((d * (a + 2)) - (a + 3)) * d * d + 1; };
  const auto far = [&](const Tensor& d) { return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

Values grid_sample(const Call& call) {
  const Tensor &x = call.tensor(0), &grid = call.tensor(1);
  const int space = x.rank() - 2;
  if (space < 1 || grid.rank() != x.rank() || grid.size(-1) != space || grid.size(0) != x.size(0))
    call.refuse("a grid " + grid.shape().str() + " does not fit " + x.shape().str());
  std::string mode = call.text("mode", call.version() < 20 ? "bilinear" : "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  const std::string padding = call.text("padding_mode", "zeros");
  const bool corners = call.integer("align_corners", 0) != 0;
  if (mode != "linear" && mode != "cubic" && mode != "nearest") call.refuse("the mode '" + mode + "' is not supported");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    call.refuse("the padding_mode '" + padding + "' is not supported");
  if (x.numel() == 0) call.refuse("its input has no elements");
  const Outside outside = padding == "zeros"    ? Outside::zeros
                          : padding == "border" ? Outside::border
                                                : Outside::reflection;
  std::vector<Tensor> places;
  for (int i = 0; i < space; ++i) {
    // the last number of a point belongs to the first spatial axis
    const Tensor at = cast(select(grid, -1, space - 1 - i), x.dtype());
    const auto n = static_cast<double>(x.size(i + 2));
    Tensor place = corners ? (at + 1) / 2.0 * (n - 1) : ((at + 1) * n - 1) / 2.0;
    if (mode == "nearest") place = round(place);
    if (outside == Outside::border) place = clamp(place, 0, n - 1);
    if (outside == Outside::reflection) place = corners ? reflected(place, 0, n - 1) : reflected(place, -0.5, n - 0.5);
    places.push_back(place);
  }
  if (mode == "nearest") return {moved(read(x, places, outside, corners), call.type(0))};
  const bool cubic = mode == "cubic";
  const int taps = cubic ? 4 : 2;
  std::vector<std::vector<Tensor>> weights;
  std::vector<Tensor> below;
  for (const Tensor& place : places) {
    below.push_back(floor(place));
    weights.push_back(weights_of(place - below.back(), cubic));
  }
  int all = 1;
  for (int i = 0; i < space; ++i) all *= taps;
  Tensor y;
  for (int k = 0; k < all; ++k) {
    std::vector<Tensor> at;
    Tensor weight;
    for (int i = 0, rest = k; i < space; ++i, rest /= taps) {
      const auto axis = static_cast<std::size_t>(i), tap = static_cast<std::size_t>(rest % taps);
      at.push_back(below[axis] + static_cast<double>(rest % taps - (cubic ? 1 : 0)));
      weight = weight.defined() ? weight * weights[axis][tap] : weights[axis][tap];
    }
    const Tensor part = read(x, at, outside, corners) * unsqueeze(weight, 1);
    y = y.defined() ? y + part : part;
  }
  return {narrowed(y, call.type(0))};
}

Values affine_grid(const Call& call) {
  const Tensor& theta = call.tensor(0);
  const Numbers size = sizes_of(call, "size", call.known_ints(1), 0);
  const bool corners = call.integer("align_corners", 0) != 0;
  const int space = static_cast<int>(size.size()) - 2;
  if ((space != 2 && space != 3) || theta.rank() != 3 || theta.size(1) != space || theta.size(2) != space + 1)
    call.refuse("theta " + theta.shape().str() + " does not fit a size of " + std::to_string(size.size()) + " numbers");
  Shape points;
  for (int i = 0; i < space; ++i) points.push_back(size[static_cast<std::size_t>(i) + 2]);
  std::vector<Tensor> coordinates;  // x, y, (z), 1
  for (int i = space; i-- > 0;) {
    const std::int64_t n = points[i];
    check_count(call, static_cast<double>(n));
    std::vector<double> line;
    for (std::int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<double>(j), m = static_cast<double>(n);
      line.push_back(corners ? (n > 1 ? -1 + 2 * at / (m - 1) : -1) : (2 * at + 1) / m - 1);
    }
    Shape along = Shape::filled(space, 1);
    along[i] = n;
    coordinates.push_back(expand(reshape(Tensor::from<double>(line, {n}), along), points));
  }
  coordinates.push_back(ones(points, Dtype::f64));
  const Tensor homogeneous = cast(reshape(stack(coordinates, -1), {points.numel(), space + 1}), theta.dtype());
  Shape shape{theta.size(0)};
  for (const std::int64_t n : points) shape.push_back(n);
  shape.push_back(space);
  return {narrowed(reshape(matmul(homogeneous, transpose(theta)), shape), call.type(0))};
}

Values columns_to_image(const Call& call) {
  const Tensor& x = call.tensor(0);
  const Numbers image = sizes_of(call, "image_shape", call.known_ints(1), 0),
                block = sizes_of(call, "block_shape", call.known_ints(2), 1);
  const std::size_t n = image.size();
  const Numbers pads = pads_of(call, call.integers("pads", Numbers(2 * n, 0)));
  const Numbers dilations = sizes_of(call, "dilations", call.integers("dilations", Numbers(n, 1)), 1),
                strides = sizes_of(call, "strides", call.integers("strides", Numbers(n, 1)), 1);
  if (n < 1 || n > 3 || block.size() != n || pads.size() != 2 * n || dilations.size() != n || strides.size() != n)
    call.refuse("its arguments have not a number for each axis");
  // The sums are over the padded image, whose edges are then cropped.
  Shape padded, before{0, 0}, after{0, 0};
  for (std::size_t i = 0; i < n; ++i) {
    padded.push_back(image[i] + pads[i] + pads[i + n]);
    before.push_back(-pads[i]);
    after.push_back(-pads[i + n]);
  }
  UnfoldOptions options{.stride = shape_of(strides), .dilation = shape_of(dilations)};
  const Tensor y = fold(x, padded, shape_of(block), options);
  return {narrowed(pad(y, before, after, 0), call.type(0))};
}

Values center_crop_pad(const Call& call) {
  Tensor x = call.tensor(0);
  const Numbers shape = sizes_of(call, "shape", call.known_ints(1), 0);
  Numbers axes = call.integers("axes");
  if (!call.has_attribute("axes"))
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  if (axes.size() != shape.size()) call.refuse("shape must hold a number for each axis");
  Shape before = Shape::filled(x.rank(), 0), after = before;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = axis_of(call, axes[i], x.rank());
    const std::int64_t more = shape[i] - x.size(axis);
    before[axis] = more / 2;  // toward zero: an odd element is added or cropped at the end
    after[axis] = more - more / 2;
  }
  return {moved(pad(x, before, after, 0), call.type(0))};
}

constexpr Operation kOperations[] = {
    {.name = "GridSample", .lower = grid_sample},
    {.name = "AffineGrid", .lower = affine_grid, .static_inputs = 2},
    {.name = "Col2Im", .lower = columns_to_image, .static_inputs = 6},
    {.name = "CenterCropPad", .lower = center_crop_pad, .static_inputs = 2},
};

}  // namespace

Operations sampling_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
