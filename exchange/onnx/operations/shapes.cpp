/// Lowers operations that move data: axes, slices, gathers, padding; and those that make values from shapes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/index.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/scatter.h"
#include "ferrite/tensor/shapes.h"
#include "ferrite/tensor/sorting.h"
#include "ferrite/tensor/windows.h"

namespace ferrite::onnx::detail {
namespace {

/// Returns y with the type of the first input, which data movement keeps.
Values like(const Call& c, const Tensor& y) { return {{y, c.type(0)}}; }

/// Returns the axes, an attribute before the version `input_since` and an input from it on; empty if there are none.
std::vector<std::int64_t> axes_of(const Call& c, std::int64_t input_since) {
  if (c.version() < input_since) return c.integers("axes");
  return c.has(1) ? c.known_ints(1) : std::vector<std::int64_t>{};
}

Values squeeze_(const Call& c) {
  Tensor x = c.tensor(0);
  std::vector<std::int64_t> axes = axes_of(c, 13);
  std::vector<int> places;
  for (const std::int64_t a : axes) places.push_back(axis_of(c, a, x.rank()));
  if (axes.empty())
    for (int i = 0; i < x.rank(); ++i)
      if (x.shape()[i] == 1) places.push_back(i);
  std::ranges::sort(places);
  Shape shape = x.shape();
  for (auto at = places.rbegin(); at != places.rend(); ++at) {
    if (shape[*at] != 1)
      c.refuse("axis " + std::to_string(*at) + " has extent " + std::to_string(shape[*at]) + ", not 1");
    shape.erase(*at);
  }
  if (axes.empty()) c.tell({shape.rank()});
  return like(c, reshape(x, shape));
}

Values unsqueeze_(const Call& c) {
  const Tensor& x = c.tensor(0);
  const std::vector<std::int64_t> axes = axes_of(c, 13);
  const int rank = x.rank() + static_cast<int>(axes.size());
  std::vector<int> places;
  for (const std::int64_t a : axes) places.push_back(axis_of(c, a, rank));
  std::ranges::sort(places);
  if (std::ranges::adjacent_find(places) != places.end()) c.refuse("names an axis twice");
  Shape shape = x.shape();
  for (const int a : places) shape.insert(a, 1);
  return like(c, reshape(x, shape));
}

Values flatten_(const Call& c) {
  const Tensor& x = c.tensor(0);
  const std::int64_t given = c.integer("axis", 1);
  const int axis = given == x.rank() ? x.rank() : axis_of(c, given, x.rank());
  std::int64_t before = 1, after = 1;
  for (int i = 0; i < x.rank(); ++i) (i < axis ? before : after) *= x.shape()[i];
  return like(c, reshape(x, {before, after}));
}

Values size(const Call& c) { return {{Tensor::from<std::int64_t>({c.tensor(0).numel()}, {}), ElementType::i64, true}}; }

Values expand_(const Call& c) {
  const Tensor& x = c.tensor(0);
  Shape wanted = shape_of(c.known_ints(1));
  Shape shape = x.shape();
  while (shape.rank() < wanted.rank()) shape.insert(0, 1);
  while (wanted.rank() < shape.rank()) wanted.insert(0, 1);
  for (int i = 0; i < shape.rank(); ++i)
    if (wanted[i] != 1) shape[i] = wanted[i];
  return like(c, expand(x, shape));
}

Values tile_(const Call& c) { return like(c, tile(c.tensor(0), shape_of(c.known_ints(1)))); }

/// Lowers Slice, whose bounds are clamped as ONNX prescribes.
Values slice_(const Call& c) {
  Tensor x = c.tensor(0);
  std::vector<std::int64_t> starts, ends, axes, steps;
  bool follow = false;  // whether bounds follow from extents
  if (c.version() < 10) {
    starts = c.integers("starts"), ends = c.integers("ends"), axes = c.integers("axes");
  } else {
    starts = c.known_ints(1), ends = c.known_ints(2);
    follow = c.value(1).known.defined() || c.value(2).known.defined();
    if (c.has(3)) axes = c.known_ints(3);
    if (c.has(4)) steps = c.known_ints(4);
  }
  if (axes.empty())
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    c.refuse("starts, ends, axes and steps differ in their lengths");
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int axis = axis_of(c, axes[i], x.rank());
    const std::int64_t n = x.shape()[axis], step = steps[i];
    if (step == 0) c.refuse("a step is 0");
    const auto from_front = [&](std::int64_t b) { return b < 0 ? b + n : b; };
    if (follow) c.tell({from_front(starts[i]), from_front(ends[i])});
    std::int64_t begin = std::max<std::int64_t>(from_front(starts[i]), -1);
    std::int64_t end = std::max<std::int64_t>(from_front(ends[i]), -1);
    if (step > 0) {
      begin = std::clamp<std::int64_t>(begin, 0, n), end = std::clamp<std::int64_t>(end, 0, n);
      x = slice(x, axis, begin, std::max(begin, end), std::min(step, std::max<std::int64_t>(n, 1)));
      continue;
    }
    begin = std::clamp<std::int64_t>(begin, -1, n - 1);
    if (starts[i] < -n) begin = n > 0 ? 0 : -1;
    end = std::clamp<std::int64_t>(end, -1, n - 1);
    // Backwards: the elements begin, begin + step, ... above end, as a forward slice that is reversed.
    const std::int64_t back = -std::max(step, -std::max<std::int64_t>(n, 1));
    const std::int64_t count = begin > end ? (begin - end + back - 1) / back : 0;
    c.tell({count});
    const std::int64_t first = count > 0 ? begin - (count - 1) * back : 0;
    x = flip(slice(x, axis, first, count > 0 ? begin + 1 : first, back), {axis});
  }
  return like(c, x);
}

Values split_(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int axis = axis_of(c, c.integer("axis", 0), x.rank());
  const std::int64_t n = x.shape()[axis];
  std::vector<std::int64_t> sizes = c.version() < 13 ? c.integers("split")
                                    : c.has(1)       ? c.known_ints(1)
                                                     : std::vector<std::int64_t>{};
  if (sizes.empty()) {
    const auto parts = c.version() >= 18 ? c.integer("num_outputs", static_cast<std::int64_t>(c.outputs()))
                                         : static_cast<std::int64_t>(c.outputs());
    (void)sizes_of(c, "num_outputs", {parts}, 1);
    const std::int64_t each = (n + parts - 1) / parts;
    for (std::int64_t i = 0; i < parts; ++i) sizes.push_back(std::min(each, n - i * each));
  }
  Values out;
  std::int64_t begin = 0;
  for (const std::int64_t s : sizes) {
    if (s < 0 || begin + s > n) c.refuse("parts do not fit an axis of " + std::to_string(n));
    out.push_back({slice(x, axis, begin, begin + s), c.type(0)});
    begin += s;
  }
  if (begin != n) c.refuse("parts leave a rest of an axis of " + std::to_string(n));
  return out;
}

/// Lowers Gather, whose index may have any rank: its axes replace the axis.
Values gather_(const Call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor& index = c.tensor(1);
  const int axis = axis_of(c, c.integer("axis", 0), x.rank());
  const Tensor y = index_select(x, axis, reshape(cast(index, Dtype::i64), {-1}));
  Shape shape;
  for (int i = 0; i < axis; ++i) shape.push_back(x.shape()[i]);
  for (const std::int64_t e : index.shape()) shape.push_back(e);
  for (int i = axis + 1; i < x.rank(); ++i) shape.push_back(x.shape()[i]);
  return like(c, reshape(y, shape));
}
Values gather_elements(const Call& c) {
  return like(c,
              gather(c.tensor(0), axis_of(c, c.integer("axis", 0), c.tensor(0).rank()), cast(c.tensor(1), Dtype::i64)));
}

Values constant_of_shape(const Call& c) {
  const Shape shape = shape_of(c.known_ints(0));
  if (!c.has_attribute("value")) return {{zeros(shape), ElementType::f32, true}};
  const Value v = c.tensor_attribute("value");
  if (v.tensor.numel() != 1) c.refuse("value must have one element, got " + v.tensor.shape().str());
  return {{contiguous(expand(reshape(v.tensor, {}), shape)), v.type, true}};
}

Values range(const Call& c) {
  const Dtype dtype = c.tensor(0).dtype();
  if (!is_float(dtype)) {
    const std::int64_t begin = c.known_int(0), end = c.known_int(1), step = c.known_int(2);
    if (step == 0) c.refuse("the step is 0");
    constexpr std::int64_t kFar = std::int64_t{1} << 60;
    if (std::min({begin, end, step}) < -kFar || std::max({begin, end, step}) > kFar)
      c.refuse("its numbers are too large");
    const std::int64_t n = std::max<std::int64_t>(0, (end - begin + step - (step > 0 ? 1 : -1)) / step);
    check_count(c, static_cast<double>(n));
    c.tell({n}, /*counts=*/true);
    return {{cast(arange(begin, begin + n * step, step), dtype), c.type(0), true}};
  }
  const double begin = c.known_float(0), end = c.known_float(1), step = c.known_float(2);
  if (step == 0) c.refuse("the step is 0");
  const double count = std::max(0.0, std::ceil((end - begin) / step));
  check_count(c, count);
  c.tell({static_cast<std::int64_t>(count)}, /*counts=*/true);
  return {{cast(arange(begin, end, step, Dtype::f64), dtype), c.type(0), true}};
}

// ---- padding ---------------------------------------------------------------------------------------------

Values pad_(const Call& c) {
  Tensor x = c.tensor(0);
  const std::string mode = c.text("mode", "constant");
  std::vector<std::int64_t> pads;
  double value = 0;
  if (c.version() < 11) {
    pads = pads_of(c, c.integers("pads")), value = c.number("value", 0);
  } else {
    pads = pads_of(c, c.known_ints(1));
    if (c.has(2)) value = c.known_float(2);
  }
  std::vector<std::int64_t> axes;
  if (c.version() >= 18 && c.has(3)) axes = c.known_ints(3);
  if (axes.empty())
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  if (pads.size() != 2 * axes.size())
    c.refuse("pads has " + std::to_string(pads.size()) + " numbers for " + std::to_string(axes.size()) + " axes");
  Shape before = Shape::filled(x.rank(), 0), after = before;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = axis_of(c, axes[i], x.rank());
    before[axis] = pads[i], after[axis] = pads[axes.size() + i];
  }
  if (mode == "constant") {
    const Scalar number = is_float(x.dtype()) ? Scalar(value) : Scalar(static_cast<std::int64_t>(value));
    return like(c, pad(x, before, after, number));
  }
  const PaddingMode how = mode == "reflect" ? PaddingMode::reflect
                          : mode == "edge"  ? PaddingMode::replicate
                          : mode == "wrap"  ? PaddingMode::circular
                                            : PaddingMode::zeros;
  if (how == PaddingMode::zeros) c.refuse("the mode '" + mode + "' is not supported");
  return like(c, pad(x, before, after, how));
}

// ---- others ----------------------------------------------------------------------------------------------

Values trilu(const Call& c) {
  const std::int64_t k = c.has(1) ? c.known_int(1) : 0;
  return like(c, c.integer("upper", 1) != 0 ? triu(c.tensor(0), k) : tril(c.tensor(0), k));
}

Values eye_like(const Call& c) {
  const Tensor& x = c.tensor(0);
  if (x.rank() != 2) c.refuse("its input must be of rank 2, got " + x.shape().str());
  const auto type = static_cast<ElementType>(c.integer("dtype", static_cast<std::int64_t>(c.type(0))));
  const std::int64_t k = c.integer("k", 0), n = x.shape()[0], m = x.shape()[1];
  const Tensor row = reshape(arange(0, n, 1, Dtype::i64), {n, 1}),
               column = reshape(arange(0, m, 1, Dtype::i64), {1, m});
  return {{cast(eq(column - row, k), dtype_for(type)), type}};
}

Values one_hot_(const Call& c) {
  check_count(c, std::fabs(c.known_float(1)));
  const auto depth = sizes_of(c, "depth", {static_cast<std::int64_t>(c.known_float(1))}, 0)[0];
  const Tensor index = cast(c.tensor(0), Dtype::i64), &values = c.tensor(2);
  const int axis = axis_of(c, c.integer("axis", -1), index.rank() + 1);
  const Tensor at = unsqueeze(where(index < 0, index + depth, index), axis);
  Shape line = Shape::filled(index.rank() + 1, 1);
  line[axis] = depth;
  const Tensor hit = eq(at, reshape(arange(0, depth, 1, Dtype::i64), line));
  return {{where(hit, select(values, 0, 1), select(values, 0, 0)), c.type(2)}};
}

Values depth_to_space(const Call& c) {
  const Tensor& x = c.tensor(0);
  const std::int64_t b = sizes_of(c, "blocksize", {c.integer("blocksize")}, 1)[0];
  const std::string mode = c.version() >= 11 ? c.text("mode", "DCR") : "DCR";
  if (x.rank() != 4) c.refuse("its input must be of rank 4, got " + x.shape().str());
  const std::int64_t N = x.shape()[0], C = x.shape()[1], H = x.shape()[2], W = x.shape()[3];
  if (b < 1 || C % (b * b) != 0) c.refuse("blocksize " + std::to_string(b) + " does not fit " + x.shape().str());
  const Tensor parts = mode == "DCR" ? permute(reshape(x, {N, b, b, C / (b * b), H, W}), {0, 3, 4, 1, 5, 2})
                                     : permute(reshape(x, {N, C / (b * b), b, b, H, W}), {0, 1, 4, 2, 5, 3});
  return like(c, reshape(parts, {N, C / (b * b), H * b, W * b}));
}

Values space_to_depth(const Call& c) {
  const Tensor& x = c.tensor(0);
  const std::int64_t b = sizes_of(c, "blocksize", {c.integer("blocksize")}, 1)[0];
  if (x.rank() != 4) c.refuse("its input must be of rank 4, got " + x.shape().str());
  const std::int64_t N = x.shape()[0], C = x.shape()[1], H = x.shape()[2], W = x.shape()[3];
  if (b < 1 || H % b != 0 || W % b != 0)
    c.refuse("blocksize " + std::to_string(b) + " does not fit " + x.shape().str());
  const std::string mode = c.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.refuse("mode is DCR or CRD, got '" + mode + "'");
  const Tensor split = reshape(x, {N, C, H / b, b, W / b, b});
  const Tensor parts = permute(split, mode == "DCR" ? Shape{0, 3, 5, 1, 2, 4} : Shape{0, 1, 3, 5, 2, 4});
  return like(c, reshape(parts, {N, C * b * b, H / b, W / b}));
}

constexpr std::array kRows = std::to_array<Operation>({
    {.name = "Squeeze", .lower = squeeze_, .static_inputs = 2},
    {.name = "Unsqueeze", .lower = unsqueeze_, .static_inputs = 2},
    {.name = "Flatten", .lower = flatten_},
    {.name = "Size", .lower = size},
    {.name = "Expand", .lower = expand_, .static_inputs = 2},
    {.name = "Tile", .lower = tile_, .static_inputs = 2},
    {.name = "Slice", .lower = slice_, .static_inputs = 30},
    {.name = "Split", .lower = split_, .static_inputs = 2},
    {.name = "Gather", .lower = gather_},
    {.name = "GatherElements", .lower = gather_elements},
    {.name = "ConstantOfShape", .lower = constant_of_shape, .static_inputs = 1},
    {.name = "Range", .lower = range, .static_inputs = 7},
    {.name = "Pad", .lower = pad_, .static_inputs = 14},
    {.name = "Trilu", .lower = trilu, .static_inputs = 2},
    {.name = "EyeLike", .lower = eye_like},
    {.name = "OneHot", .lower = one_hot_, .static_inputs = 2},
    {.name = "DepthToSpace", .lower = depth_to_space},
    {.name = "SpaceToDepth", .lower = space_to_depth},
});

}  // namespace

Operations shape_operations() { return kRows; }

}  // namespace ferrite::onnx::detail
