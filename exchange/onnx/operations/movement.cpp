/// Operations that arrange elements anew, and that make tensors of shapes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ferrite/exchange/onnx/operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/shapes.h"
#include "ferrite/tensor/windows.h"

namespace ferrite::onnx::detail {
namespace {

Values squeezed(const Call& call) {
  const Tensor& x = call.tensor(0);
  auto axes = axes_of(call, axes_argument(call, 13, 1), x.rank());
  std::vector<std::int64_t> extents;
  for (std::int64_t i = 0; i < x.rank(); ++i) {
    const bool named = std::find(axes.begin(), axes.end(), i) != axes.end();
    const std::int64_t n = x.shape()[static_cast<int>(i)];
    if (named && n != 1) call.refuse("axis " + std::to_string(i) + " of " + x.shape().str() + " is not 1");
    if (!named && !(axes.empty() && n == 1)) extents.push_back(n);
  }
  return {moved(reshape(x, shape_of(extents)), call.type(0))};
}

Values unsqueezed(const Call& call) {
  const Tensor& x = call.tensor(0);
  const auto given = axes_argument(call, 13, 1);
  const auto rank = static_cast<std::int64_t>(given.size()) + x.rank();
  const auto axes = axes_of(call, given, rank);
  std::vector<std::int64_t> extents;
  int next = 0;
  for (std::int64_t i = 0; i < rank; ++i) {
    const auto times = std::count(axes.begin(), axes.end(), i);
    if (times > 1) call.refuse("axis " + std::to_string(i) + " is given twice");
    extents.push_back(times ? 1 : x.shape()[next++]);
  }
  if (rank > Shape::kMaxRank) call.refuse("more than 8 axes are not supported");
  return {moved(reshape(x, shape_of(extents)), call.type(0))};
}

Values divided(const Call& call) {
  const Tensor& x = call.tensor(0);
  const int axis = axis_of(call, call.integer("axis", 0), x.rank());
  std::vector<std::int64_t> sizes = axes_argument(call, 13, 1, "split");
  const std::int64_t n = x.size(axis);
  if (sizes.empty()) {
    const auto parts = call.version() >= 18 ? call.integer("num_outputs") : static_cast<std::int64_t>(call.outputs());
    if (parts < 1) call.refuse("it has no outputs");
    if (call.version() < 18 && n % parts != 0)
      call.refuse("an extent of " + std::to_string(n) + " has no " + std::to_string(parts) + " equal parts");
    const std::int64_t each = (n + parts - 1) / parts;
    for (std::int64_t i = 0, left = n; i < parts; ++i, left -= each)
      sizes.push_back(std::clamp<std::int64_t>(left, 0, each));
  }
  Values values;
  for (const Tensor& part : split(x, std::span<const std::int64_t>(sizes), axis))
    values.push_back(moved(part, call.type(0)));
  return values;
}

Values sliced(const Call& call) {
  Tensor x = call.tensor(0);
  const bool old = call.version() < 10;
  const auto begins = old ? call.integers("starts") : call.known_ints(1);
  const auto ends = old ? call.integers("ends") : call.known_ints(2);
  auto axes = axes_argument(call, 10, 3);
  if (axes.empty()) {
    axes.resize(begins.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  auto steps = !old && call.has(4) ? call.known_ints(4) : std::vector<std::int64_t>(begins.size(), 1);
  if (ends.size() != begins.size() || axes.size() != begins.size() || steps.size() != begins.size())
    call.refuse("starts, ends, axes and steps differ in length");
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const int axis = axis_of(call, axes[i], x.rank());
    const std::int64_t n = x.size(axis);
    const std::int64_t step = steps[i];
    if (step == 0) call.refuse("a step of 0");
    // Bounds are clamped by the standard's rule; the count of elements follows from them.
    const auto bound = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
      if (at < 0) at = at < -n ? -1 : at + n;
      return std::clamp(at, low, high);
    };
    if (step > 0) {
      const std::int64_t begin = begins[i] < -n ? 0 : bound(begins[i], 0, n);
      const std::int64_t end = ends[i] < -n ? 0 : bound(ends[i], 0, n);
      x = slice(x, axis, begin, std::max(begin, end), step);
      continue;
    }
    const std::int64_t begin = bound(begins[i], -1, n - 1);
    const std::int64_t end = bound(ends[i], -1, n - 1);
    if (begin <= end)
      x = slice(x, axis, 0, 0);
    else  // the elements end + 1..begin, turned around
      x = slice(flip(slice(x, axis, end + 1, begin + 1), Shape{axis}), axis, 0, kEnd, std::max(-n, step) * -1);
  }
  return {moved(x, call.type(0))};
}

Values expanded(const Call& call) {
  const Tensor& x = call.tensor(0);
  const auto wanted = call.known_ints(1);
  const auto rank = std::max<std::size_t>(wanted.size(), static_cast<std::size_t>(x.rank()));
  std::vector<std::int64_t> extents(rank, 1);
  for (std::size_t i = 0; i < rank; ++i) {
    const auto mine = static_cast<std::int64_t>(i) - static_cast<std::int64_t>(rank) + x.rank();
    const auto theirs = static_cast<std::int64_t>(i + wanted.size()) - static_cast<std::int64_t>(rank);
    const std::int64_t a = mine < 0 ? 1 : x.size(static_cast<int>(mine));
    const std::int64_t b = theirs < 0 ? 1 : wanted[static_cast<std::size_t>(theirs)];
    if (a != b && a != 1 && b != 1) call.refuse("an extent of " + std::to_string(a) + " does not become " + std::to_string(b));
    extents[i] = a == 1 ? b : a;
  }
  return {moved(expand(x, shape_of(extents)), call.type(0))};
}

Values tiled(const Call& call) {
  const auto counts = call.known_ints(1);
  if (static_cast<int>(counts.size()) != call.tensor(0).rank()) call.refuse("it takes a count for each axis");
  return {moved(tile(call.tensor(0), shape_of(counts)), call.type(0))};
}

Values padded(const Call& call) {
  Tensor x = call.tensor(0);
  const bool old = call.version() < 11;
  const std::string mode = call.text("mode", "constant");
  const auto pads = old ? call.integers("pads") : call.known_ints(1);
  std::vector<std::int64_t> axes(static_cast<std::size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  if (!old && call.has(3)) axes = axes_of(call, call.known_ints(3), x.rank());
  if (pads.size() != 2 * axes.size()) call.refuse("pads must have two numbers for each axis");
  std::vector<std::int64_t> before(static_cast<std::size_t>(x.rank())), after(before);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    before[static_cast<std::size_t>(axes[i])] = pads[i];
    after[static_cast<std::size_t>(axes[i])] = pads[i + axes.size()];
  }
  if (mode == "constant") {
    const bool whole = !is_floating(call.type(0));
    const double value = old ? call.number("value", 0.0) : call.has(2) && !whole ? call.known_float(2) : 0.0;
    const Scalar fill = whole ? Scalar(!old && call.has(2) ? call.known_int(2) : 0) : Scalar(value);
    return {moved(pad(x, shape_of(before), shape_of(after), fill), call.type(0))};
  }
  if (!old && call.has(2)) (void)call.value(2);  // the other modes have no value
  const bool wrap = mode == "wrap";
  if (mode != "reflect" && mode != "edge" && !wrap) call.refuse("mode \"" + mode + "\" is not supported");
  // Cropping first: negative amounts; then as much at a time as the mode has.
  for (int axis = 0; axis < x.rank(); ++axis) {
    auto& a = before[static_cast<std::size_t>(axis)];
    auto& b = after[static_cast<std::size_t>(axis)];
    const std::int64_t n = x.size(axis);
    if (a < 0 || b < 0) x = slice(x, axis, std::max<std::int64_t>(0, -a), n - std::max<std::int64_t>(0, -b));
    a = std::max<std::int64_t>(a, 0);
    b = std::max<std::int64_t>(b, 0);
    if (a == 0 && b == 0) continue;
    const std::int64_t have = x.size(axis);
    if (have == 0) call.refuse("an empty axis has no elements to pad with");
    std::vector<std::int64_t> index;
    for (std::int64_t i = -a; i < have + b; ++i) {
      std::int64_t at = std::clamp<std::int64_t>(i, 0, have - 1);
      if (wrap) at = ((i % have) + have) % have;
      if (mode == "reflect" && have > 1) {
        const std::int64_t period = 2 * (have - 1);
        at = ((i % period) + period) % period;
        at = at < have ? at : period - at;
      }
      index.push_back(at);
    }
    x = index_select(x, axis, Tensor::from<std::int64_t>(index, {static_cast<std::int64_t>(index.size())}));
  }
  return {moved(x, call.type(0))};
}

Values flattened(const Call& call) {
  const Tensor& x = call.tensor(0);
  std::int64_t axis = call.integer("axis", 1);
  if (axis < -x.rank() || axis > x.rank()) call.refuse("axis " + std::to_string(axis) + " lies outside of " + x.shape().str());
  if (axis < 0) axis += x.rank();
  std::int64_t rows = 1, columns = 1;
  for (int i = 0; i < x.rank(); ++i) (i < axis ? rows : columns) *= x.shape()[i];
  return {moved(reshape(x, {rows, columns}), call.type(0))};
}

Values size_of(const Call& call) {
  return {{full({}, call.tensor(0).numel(), Dtype::i64), ElementType::i64, true}};
}

Values constant_of_shape(const Call& call) {
  const auto extents = call.known_ints(0);
  Value value{full({}, 0.0), ElementType::f32, true};
  if (call.has_attribute("value")) value = call.tensor_attribute("value");
  if (value.tensor.numel() != 1) call.refuse("its value must have one element");
  return {{contiguous(expand(reshape(value.tensor, {}), shape_of(extents))), value.type, true}};
}

Values range(const Call& call) {
  const ElementType type = call.type(0);
  for (std::size_t i = 0; i < 3; ++i) {
    if (call.type(i) != type) call.refuse("its operands are of different types");
    if (!call.known(i)) call.refuse("input " + std::to_string(i) + " decides on its shape, and depends on data");
  }
  const Dtype dtype = dtype_for(type);
  if (is_floating(type)) {
    const double begin = call.known_float(0), end = call.known_float(1), step = call.known_float(2);
    if (step == 0) call.refuse("a step of 0");
    const double n = std::max(0.0, std::ceil((end - begin) / step));
    if (!(n < 1e9)) call.refuse("too many elements");
    const Tensor i = arange(Scalar(0), Scalar(static_cast<std::int64_t>(n)), Scalar(1), Dtype::i64);
    return {narrowed(cast(cast(i, Dtype::f64) * step + begin, dtype), type)};
  }
  const std::int64_t begin = call.known_int(0), end = call.known_int(1), step = call.known_int(2);
  if (step == 0) call.refuse("a step of 0");
  if ((step > 0) != (end > begin)) return {{zeros({0}, dtype), type, true}};
  return {{arange(Scalar(begin), Scalar(end), Scalar(step), dtype), type, true}};
}

Values triangle(const Call& call) {
  const std::int64_t k = call.has(1) ? call.known_int(1) : 0;
  const Tensor& x = call.tensor(0);
  if (x.numel() == 0) return {call.value(0)};
  const std::int64_t limit = x.size(-1) + x.size(-2);
  const std::int64_t offset = std::clamp(k, -limit, limit);
  return {moved(call.integer("upper", 1) ? triu(x, offset) : tril(x, offset), call.type(0))};
}

Values eye_like(const Call& call) {
  const Tensor& x = call.tensor(0);
  if (x.rank() != 2) call.refuse("it takes a matrix, not " + x.shape().str());
  const auto type = static_cast<ElementType>(call.integer("dtype", static_cast<std::int64_t>(call.type(0))));
  const Dtype dtype = dtype_for(type);
  const std::int64_t n = x.size(0), m = x.size(1), k = call.integer("k", 0);
  const Tensor rows = reshape(arange(Scalar(0), Scalar(n), Scalar(1), Dtype::i64), {n, 1});
  const Tensor columns = reshape(arange(Scalar(0), Scalar(m), Scalar(1), Dtype::i64), {1, m});
  return {{cast(eq(columns - rows, k), dtype), type, true}};
}

Values one_hot_of(const Call& call) {
  const Tensor index = cast(call.tensor(0), Dtype::i64);
  const auto depth = static_cast<std::int64_t>(call.known_floats(1).at(0));
  const Tensor& values = call.tensor(2);
  if (values.numel() != 2) call.refuse("values must be {off, on}");
  std::int64_t axis = call.integer("axis", -1);
  const std::int64_t rank = index.rank() + 1;
  axis = axis_of(call, axis, rank);
  // An index outside of -depth..depth - 1 gives a row of off values.
  const Tensor place = unsqueeze(where(lt(index, 0), index + depth, index), axis);
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank), 1);
  extents[static_cast<std::size_t>(axis)] = depth;
  const Tensor classes = reshape(arange(Scalar(0), Scalar(depth), Scalar(1), Dtype::i64), shape_of(extents));
  const Tensor flat = reshape(values, {2});
  return {moved(where(eq(place, classes), select(flat, 0, 1), select(flat, 0, 0)), call.type(2))};
}

Values depth_to_space(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::int64_t b = call.integer("blocksize");
  const std::string mode = call.version() < 11 ? "DCR" : call.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") call.refuse("mode \"" + mode + "\" is neither DCR nor CRD");
  if (x.rank() != 4 || b < 1 || x.size(1) % (b * b) != 0) call.refuse("blocks do not fit " + x.shape().str());
  const std::int64_t n = x.size(0), c = x.size(1) / (b * b), h = x.size(2), w = x.size(3);
  const Tensor y = mode == "DCR" ? permute(reshape(x, {n, b, b, c, h, w}), {0, 3, 4, 1, 5, 2})
                                 : permute(reshape(x, {n, c, b, b, h, w}), {0, 1, 4, 2, 5, 3});
  return {moved(reshape(y, {n, c, h * b, w * b}), call.type(0))};
}

Values space_to_depth(const Call& call) {
  const Tensor& x = call.tensor(0);
  const std::int64_t b = call.integer("blocksize");
  if (x.rank() != 4 || b < 1 || x.size(2) % b != 0 || x.size(3) % b != 0)
    call.refuse("blocks do not fit " + x.shape().str());
  const std::int64_t n = x.size(0), c = x.size(1), h = x.size(2) / b, w = x.size(3) / b;
  const Tensor y = permute(reshape(x, {n, c, h, b, w, b}), {0, 3, 5, 1, 2, 4});
  return {moved(reshape(y, {n, c * b * b, h, w}), call.type(0))};
}

Values reverse_sequence(const Call& call) {
  const Tensor& x = call.tensor(0);
  const int batch = axis_of(call, call.integer("batch_axis", 1), x.rank());
  const int time = axis_of(call, call.integer("time_axis", 0), x.rank());
  if (batch == time) call.refuse("its axes are the same");
  const std::int64_t steps = x.size(time);
  std::vector<std::int64_t> along(static_cast<std::size_t>(x.rank()), 1), across(along);
  along[static_cast<std::size_t>(time)] = steps;
  across[static_cast<std::size_t>(batch)] = x.size(batch);
  const Tensor t = reshape(arange(Scalar(0), Scalar(steps), Scalar(1), Dtype::i64), shape_of(along));
  const Tensor length = reshape(cast(call.tensor(1), Dtype::i64), shape_of(across));
  const Tensor index = where(lt(t, length), length - 1 - t, t + zeros_like(length));
  return {moved(gather(x, time, contiguous(expand(index, x.shape()))), call.type(0))};
}

constexpr Operation kOperations[] = {
    {.name = "Squeeze", .lower = squeezed, .static_inputs = 2},
    {.name = "Unsqueeze", .lower = unsqueezed, .static_inputs = 2},
    {.name = "Split", .lower = divided, .static_inputs = 2, .since = 2},
    {.name = "Slice", .lower = sliced, .static_inputs = 0b11110},
    {.name = "Expand", .lower = expanded, .static_inputs = 2},
    {.name = "Tile", .lower = tiled, .static_inputs = 2, .since = 6},
    {.name = "Pad", .lower = padded, .static_inputs = 0b1110, .since = 2},
    {.name = "Flatten", .lower = flattened},
    {.name = "Size", .lower = size_of},
    {.name = "ConstantOfShape", .lower = constant_of_shape, .static_inputs = 1},
    {.name = "Range", .lower = range, .static_inputs = 7},
    {.name = "Trilu", .lower = triangle, .static_inputs = 2},
    {.name = "EyeLike", .lower = eye_like},
    {.name = "OneHot", .lower = one_hot_of, .static_inputs = 6, .quoted = true},
    {.name = "DepthToSpace", .lower = depth_to_space},
    {.name = "SpaceToDepth", .lower = space_to_depth},
    {.name = "ReverseSequence", .lower = reverse_sequence, .static_inputs = 2},
};

}  // namespace

Operations movement_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
