/// Views: reshape, permute, expand, detach, and views of parts: slice, select, unbind, split.
#include <algorithm>

#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {

// ---- views of the whole tensor -----------------------------------------------------------------------------

namespace detail {
namespace {

/// Finds the strides with which x has another shape without a copy; returns false where there are none.
bool reshaped_strides(const Tensor& x, const Shape& shape, Shape& strides) {
  strides = shape.strides();
  if (x.contiguous() || x.numel() == 0) return true;
  Walk<1> merged;
  for (int i = 0; i < x.rank(); ++i) merged.push(x.shape()[i], {x.strides()[i]});
  int from = merged.shape.rank() - 1;
  std::int64_t left = from >= 0 ? merged.shape[from] : 1;
  std::int64_t step = from >= 0 ? merged.strides[0][from] : 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    if (left == 1 && --from >= 0) {
      left = merged.shape[from];
      step = merged.strides[0][from];
    }
    if (left % shape[i] != 0) return false;
    strides[i] = step;
    step *= shape[i];
    left /= shape[i];
  }
  return true;
}

/// Returns the type of a view, built in place.
Specs one_result(const Shape& shape, Dtype dtype) {
  Specs out;
  Spec& s = out.emplace_back();
  s.shape = shape;
  s.dtype = dtype;
  return out;
}

struct Reshape {
  using Attributes = ShapeAttrs;
  static constexpr auto name = "reshape", onnx = "Reshape", stablehlo = "reshape";
  static constexpr TimeRule time = TimeRule::reshapes;
  static constexpr auto summary = "the elements in row-major order in another shape; a view where strides allow";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr bool takes_storage_types = true;

  static Specs infer(Inputs in, const Attributes& attrs) {
    const Shape& shape = attrs.shape;
    if (shape.numel(name) != in[0].numel())
      throw_shape(name, "numbers of elements differ: " + in[0].shape().str() + " to " + shape.str());
    return one_result(shape, in[0].dtype());
  }
  static bool view(const Tensor& x, const Spec& out, Layout& layout) {
    return reshaped_strides(x, out.shape, layout.strides);
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes&) { copy_to(Writer::raw(out[0]), in[0]); }
  static Tensors vjp(const Vjp& v, const Attributes&) { return {reshape(v.grad(), v.in_spec(0).shape)}; }
};

struct Contiguous {
  static constexpr auto name = "contiguous", onnx = "Identity", stablehlo = "";
  static constexpr TimeRule time = TimeRule::keeps;
  static constexpr auto summary = "the same values, row-major without gaps";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr bool takes_storage_types = true;

  static Specs infer(Inputs in, const NoAttrs&) { return {in[0].spec()}; }
  static void eval(Inputs in, std::span<Tensor> out, const NoAttrs&) { copy_to(Writer::raw(out[0]), in[0]); }
  static Tensors vjp(const Vjp& v, const NoAttrs&) { return {v.grad()}; }
};

struct Detach {
  static constexpr auto name = "detach", onnx = "Identity", stablehlo = "";
  static constexpr TimeRule time = TimeRule::keeps;
  static constexpr auto summary = "the same values; no gradient passes";
  static constexpr bool takes_storage_types = true;

  static Specs infer(Inputs in, const NoAttrs&) { return {in[0].spec()}; }
  static bool view(const Tensor& x, const Spec&, const NoAttrs&, std::size_t, Layout& layout) {
    layout.strides = x.strides();
    return true;
  }
};

void check_order(const Shape& shape, const Shape& order) {
  if (order.rank() != shape.rank())
    throw_shape("permute", "order " + order.str() + " does not fit shape " + shape.str());
}

struct Permute {
  using Attributes = PermuteAttrs;
  static constexpr auto name = "permute", onnx = "Transpose", stablehlo = "transpose";
  static constexpr TimeRule time = TimeRule::permutes;
  static constexpr auto summary = "axis i of the result is axis order[i]";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr bool takes_storage_types = true;

  static Specs infer(Inputs in, const Attributes& attrs) {
    const Shape& order = attrs.order;
    check_order(in[0].shape(), order);
    check_axes(name, order, order.rank());
    Specs out;
    Spec& s = out.emplace_back();
    for (const std::int64_t i : order) s.shape.push_back(in[0].shape()[static_cast<int>(i)]);
    s.dtype = in[0].dtype();
    return out;
  }
  static bool view(const Tensor& x, const Spec&, const Attributes& attrs, std::size_t, Layout& layout) {
    for (const std::int64_t i : attrs.order) layout.strides.push_back(x.strides()[static_cast<int>(i)]);
    return true;
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Shape& order = attrs.order;
    Shape back = order;
    for (int i = 0; i < order.rank(); ++i) back[static_cast<int>(order[i])] = i;
    return {permute(v.grad(), back)};
  }
};

struct Expand {
  using Attributes = ShapeAttrs;
  static constexpr auto name = "expand", onnx = "Expand", stablehlo = "broadcast_in_dim";
  static constexpr TimeRule time = TimeRule::expands;
  static constexpr auto summary = "repeats axes of extent 1 and new leading axes, without copying";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr bool takes_storage_types = true;

  static Specs infer(Inputs in, const Attributes& attrs) {
    const Shape& shape = attrs.shape;
    (void)shape.numel(name);
    const Shape& own = in[0].shape();
    const int lead = shape.rank() - own.rank();
    bool fits = lead >= 0;
    for (int i = 0; i < own.rank() && fits; ++i) fits = own[i] == 1 || own[i] == shape[lead + i];
    if (!fits) throw_shape(name, own.str() + " does not broadcast to " + shape.str());
    return one_result(shape, in[0].dtype());
  }
  static bool view(const Tensor& x, const Spec& out, Layout& layout) {
    layout.strides = broadcast_strides(x.shape(), x.strides(), out.shape);
    return true;
  }
  static Tensors vjp(const Vjp& v, const Attributes&) { return {sum_to(v.grad(), v.in_spec(0).shape)}; }
};

}  // namespace

namespace ops {

constinit const Primitive* const reshape = &structured<Reshape>;
constinit const Primitive* const contiguous = &structured<Contiguous>;
constinit const Primitive* const permute = &structured<Permute>;
constinit const Primitive* const expand = &structured<Expand>;
constinit const Primitive* const detach = &structured<Detach>;

}  // namespace ops

}  // namespace detail

Tensor reshape(const Tensor& x, const Shape& shape) {
  const std::optional<Shape> s = inferred(shape, x.numel(), "reshape");
  if (!s) detail::throw_shape("reshape", "numbers of elements differ: " + x.shape().str() + " to " + shape.str());
  if (*s == x.shape()) return x;
  return detail::call(detail::structured<detail::Reshape>, {{&x}}, detail::ShapeAttrs{*s});
}

Tensor contiguous(const Tensor& x) {
  if (!x.contiguous() || x.is_abstract()) return detail::call(detail::structured<detail::Contiguous>, {{&x}});
  return detail::frame().cut ? x.unmarked() : x;
}

Tensor permute(const Tensor& x, const Shape& order) {
  detail::check_order(x.shape(), order);
  Shape o;
  for (const std::int64_t i : order) o.push_back(axis_of(i, x.rank(), "permute"));
  return detail::call(detail::structured<detail::Permute>, {{&x}}, detail::PermuteAttrs{o});
}

Tensor expand(const Tensor& x, const Shape& shape) {
  Shape s = shape;
  const int lead = s.rank() - x.rank();
  bool fits = lead >= 0;
  for (int i = 0; i < s.rank() && fits; ++i) {
    const std::int64_t extent = i < lead ? 1 : x.shape()[i - lead];
    if (s[i] == -1 && i >= lead) s[i] = extent;
    fits = s[i] >= 0 && (extent == 1 || extent == s[i]);
  }
  if (!fits) detail::throw_shape("expand", x.shape().str() + " does not broadcast to " + shape.str());
  if (s == x.shape()) return x;
  return detail::call(detail::structured<detail::Expand>, {{&x}}, detail::ShapeAttrs{s});
}

Tensor detach(const Tensor& x) {
  // A traced program must record where gradients end: it may be differentiated later.
  if (detail::frame().tracing) return detail::call(detail::structured<detail::Detach>, {{&x}}).unmarked();
  return x.unmarked();
}

// ---- views of parts ---------------------------------------------------------------------------------------

namespace detail {
namespace {

struct Slice {
  using Attributes = SliceAttrs;
  static constexpr auto name = "slice", onnx = "Slice", stablehlo = "slice";
  static constexpr TimeRule time = TimeRule::slices;
  static constexpr auto summary = "count elements from begin along an axis, step apart";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr bool takes_storage_types = true;

  static Specs infer(Inputs in, const Attributes& attrs) {
    Specs out;
    Spec& s = out.emplace_back(in[0].spec());
    check_axis(name, attrs.axis, s.shape.rank());
    if (!is_inside(attrs, s.shape[attrs.axis])) throw_outside(attrs, s);
    s.shape[attrs.axis] = attrs.count;
    return out;
  }
  static bool view(const Tensor& x, const Spec& out, const Attributes& attrs, std::size_t, Layout& layout) {
    const int axis = attrs.axis;
    layout.strides = x.strides();
    layout.strides[axis] *= attrs.step;
    layout.offset = out.shape[axis] == 0 ? 0 : attrs.begin * x.strides()[axis];
    return true;
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Shape& s = v.in_spec(0).shape;
    const int axis = attrs.axis;
    const std::int64_t begin = attrs.begin;
    const std::int64_t count = attrs.count;
    const std::int64_t step = attrs.step;
    if (step != 1) return {spread(v.grad(), s, axis, begin, count, step)};
    Shape before = Shape::filled(s.rank(), 0);
    Shape after = before;
    before[axis] = begin;
    after[axis] = s[axis] - begin - count;
    return {pad(v.grad(), before, after)};
  }

 private:
  /// Returns whether all elements taken are among n elements.
  static bool is_inside(const Attributes& a, std::int64_t n) {
    if (a.begin < -1 || a.begin > n || a.count < 0) return false;
    if (a.count == 0) return true;
    if (a.begin < 0 || a.begin >= n || a.step == 0) return false;
    if (a.step == 1) return a.count <= n - a.begin;
    const std::int64_t most = a.step > 0 ? (n - 1 - a.begin) / a.step : -(a.begin / a.step);
    return a.count - 1 <= most;
  }
  [[noreturn]] static void throw_outside(const Attributes& a, const Spec& s) {
    throw_shape(name, std::to_string(a.count) + " elements from " + std::to_string(a.begin) + ", " +
                          std::to_string(a.step) + " apart, are not on axis " + std::to_string(a.axis) + " of " +
                          s.shape.str());
  }
  /// Returns the adjoint of a slice with a step: g with zeros between its elements.
  static Tensor spread(const Tensor& g, const Shape& shape, int axis, std::int64_t begin, std::int64_t count,
                       std::int64_t step) {
    if (count == 0) return zeros(shape, g.dtype());
    const std::int64_t low = step > 0 ? begin : begin + (count - 1) * step;
    const std::int64_t gap = step > 0 ? step : -step;
    const Tensor ascending = step > 0 ? g : flip(g, {axis});
    Shape before = Shape::filled(shape.rank() + 1, 0);
    Shape after = before;
    after[axis + 1] = gap - 1;
    Shape wide = g.shape();
    wide[axis] *= gap;
    const Tensor apart = reshape(pad(unsqueeze(ascending, axis + 1), before, after), wide);
    Shape left = Shape::filled(shape.rank(), 0);
    Shape right = left;
    left[axis] = low;
    right[axis] = shape[axis] - low - count * gap;  // may be negative: crops
    return pad(apart, left, right);
  }
};

struct Select {
  using Attributes = SelectAttrs;
  static constexpr auto name = "select", onnx = "Gather", stablehlo = "";
  static constexpr TimeRule time = TimeRule::along_axis;
  static constexpr auto summary = "one index along an axis, which is dropped";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr bool takes_storage_types = true;

  static Specs infer(Inputs in, const Attributes& attrs) {
    Spec s = in[0].spec();
    check_axis(name, attrs.axis, s.shape.rank());
    if (attrs.index < 0 || attrs.index >= s.shape[attrs.axis])
      throw_shape(name, "index " + std::to_string(attrs.index) + " is out of range for axis " +
                            std::to_string(attrs.axis) + " of " + s.shape.str());
    s.shape.erase(attrs.axis);
    return {s};
  }
  static bool view(const Tensor& x, const Spec&, const Attributes& attrs, std::size_t, Layout& layout) {
    const int axis = attrs.axis;
    layout.strides = x.strides();
    layout.strides.erase(axis);
    layout.offset = attrs.index * x.strides()[axis];
    return true;
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    const Shape& s = v.in_spec(0).shape;
    const int axis = attrs.axis;
    Shape before = Shape::filled(s.rank(), 0);
    Shape after = before;
    before[axis] = attrs.index;
    after[axis] = s[axis] - 1 - before[axis];
    return {pad(unsqueeze(v.grad(), axis), before, after)};
  }
};

/// All slices along an axis at once: one operation, and one stack for the gradient.
struct Unbind {
  using Attributes = AxisAttrs;
  static constexpr auto name = "unbind", onnx = "Split", stablehlo = "";
  static constexpr TimeRule time = TimeRule::along_axis;
  static constexpr auto summary = "the slices along an axis, the axis dropped; all views";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr bool takes_storage_types = true;

  static Specs infer(Inputs in, const Attributes& attrs) {
    Spec s = in[0].spec();
    const int axis = attrs.axis;
    check_axis(name, axis, s.shape.rank());
    const std::int64_t n = s.shape[axis];
    s.shape.erase(axis);
    Specs out;
    out.reserve(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) out.push_back(s);
    return out;
  }
  static bool view(const Tensor& x, const Spec&, const Attributes& attrs, std::size_t i, Layout& layout) {
    const int axis = attrs.axis;
    layout.strides = x.strides();
    layout.strides.erase(axis);
    layout.offset = static_cast<std::int64_t>(i) * x.strides()[axis];
    return true;
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    Tensors parts;
    parts.reserve(v.outputs());
    for (std::size_t i = 0; i < v.outputs(); ++i) parts.push_back(v.grad_or_zeros(i));
    return {stack(std::span<const Tensor>(parts.data(), parts.size()), attrs.axis)};
  }
};

struct SplitAttrs {
  int axis = 0;
  std::int64_t size = 1;
  static constexpr auto fields = attr_list(attr("axis", &SplitAttrs::axis), attr("size", &SplitAttrs::size));
};

/// Pieces of equal size; the last one may be smaller.
struct Split {
  using Attributes = SplitAttrs;
  static constexpr auto name = "split", onnx = "Split", stablehlo = "";
  static constexpr TimeRule time = TimeRule::along_axis;
  static constexpr auto summary = "pieces of a size along an axis, the last one smaller; all views";
  static constexpr Linearity linearity = Linearity::together;
  static constexpr bool takes_storage_types = true;

  static Specs infer(Inputs in, const Attributes& attrs) {
    Spec s = in[0].spec();
    const int axis = attrs.axis;
    const std::int64_t size = attrs.size;
    check_axis(name, axis, s.shape.rank());
    if (size < 1) throw ValueError("split: the size of a piece must be positive, got " + std::to_string(size));
    const std::int64_t extent = s.shape[axis];
    Specs out;
    out.reserve(static_cast<std::size_t>(extent / size + 1));
    for (std::int64_t at = 0; at < extent; at += size) {
      s.shape[axis] = std::min(size, extent - at);
      out.push_back(s);
    }
    return out;
  }
  static bool view(const Tensor& x, const Spec&, const Attributes& attrs, std::size_t i, Layout& layout) {
    const int axis = attrs.axis;
    layout.strides = x.strides();
    layout.offset = static_cast<std::int64_t>(i) * attrs.size * x.strides()[axis];
    return true;
  }
  static Tensors vjp(const Vjp& v, const Attributes& attrs) {
    Tensors parts;
    for (std::size_t i = 0; i < v.outputs(); ++i) parts.push_back(v.grad_or_zeros(i));
    return {concat(std::span<const Tensor>(parts.data(), parts.size()), attrs.axis)};
  }
};

/// The element that Python's x[begin:end:step] starts at, and the number of elements taken.
struct Bounds {
  std::int64_t begin;
  std::int64_t count;
};
Bounds resolve(std::int64_t n, std::int64_t begin, std::int64_t end, std::int64_t step) {
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? n : n - 1;
  const auto settle = [&](std::int64_t b) { return std::clamp(b < 0 ? b + n : b, low, high); };
  const std::int64_t first = settle(begin);
  const std::int64_t last = step < 0 && end == kEnd ? -1 : settle(end);
  const std::int64_t span = step > 0 ? last - first : first - last;
  const std::int64_t stride = step > 0 ? step : -step;
  return {first, span <= 0 ? 0 : (span - 1) / stride + 1};
}

}  // namespace

namespace ops {

constinit const Primitive* const slice = &structured<Slice>;

}  // namespace ops

}  // namespace detail

Tensor slice(const Tensor& x, std::int64_t axis, std::int64_t begin, std::int64_t end, std::int64_t step) {
  if (step == 0) throw ValueError("slice: step must not be 0");
  const int at = axis_of(axis, x.rank(), "slice");
  const std::int64_t n = x.shape()[at];
  const detail::Bounds b = detail::resolve(n, begin, end, std::clamp(step, -kEnd, kEnd));
  if (b.count <= 1) step = 1;  // no element follows
  if (step == 1 && b.count == n) return x;
  return detail::call(detail::structured<detail::Slice>, {{&x}}, detail::SliceAttrs{at, b.begin, b.count, step});
}

Tensor select(const Tensor& x, std::int64_t axis, std::int64_t index) {
  const int at = axis_of(axis, x.rank(), "select");
  const std::int64_t n = x.shape()[at];
  if (index < -n || index >= n)
    detail::throw_shape("select", "index " + std::to_string(index) + " is out of range for axis " + std::to_string(at) +
                                      " of " + x.shape().str());
  return detail::call(detail::structured<detail::Select>, {{&x}},
                      detail::SelectAttrs{at, index < 0 ? index + n : index});
}

Tensors unbind(const Tensor& x, std::int64_t axis) {
  const int at = axis_of(axis, x.rank(), "unbind");
  const Tensor* in[] = {&x};
  return detail::structured<detail::Unbind>.apply(in, detail::AxisAttrs{at});
}

Tensors split(const Tensor& x, std::int64_t size, std::int64_t axis) {
  const int at = axis_of(axis, x.rank(), "split");
  const Tensor* in[] = {&x};
  return detail::structured<detail::Split>.apply(in, detail::SplitAttrs{at, size});
}

Tensors split(const Tensor& x, std::span<const std::int64_t> sizes, std::int64_t axis) {
  const int at = axis_of(axis, x.rank(), "split");
  std::int64_t total = 0;
  for (const std::int64_t s : sizes) {
    if (s < 0) throw ValueError("split: the size of a piece must not be negative, got " + std::to_string(s));
    total = detail::checked_add(total, s, "split");
  }
  if (total != x.shape()[at])
    detail::throw_shape("split", "sizes add up to " + std::to_string(total) + ", axis " + std::to_string(at) + " of " +
                                     x.shape().str() + " does not");
  Tensors out;
  std::int64_t begin = 0;
  for (const std::int64_t s : sizes) {
    out.push_back(slice(x, at, begin, begin + s));
    begin += s;
  }
  return out;
}

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family view_family() {
  static constexpr const Primitive* list[] = {&structured<Reshape>, &structured<Contiguous>, &structured<Permute>,
                                              &structured<Expand>,  &structured<Detach>,     &structured<Slice>,
                                              &structured<Select>,  &structured<Unbind>,     &structured<Split>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
