/// Views: reshape, permute, expand, detach.
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {
namespace detail {
namespace {

/// Strides under which x, seen in another shape, needs no copy; false where there are none.
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

/// The type of a view, without copies on the way.
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

Family view_family() {
  static constexpr const Primitive* list[] = {&structured<Reshape>, &structured<Contiguous>, &structured<Permute>,
                                              &structured<Expand>, &structured<Detach>};
  return list;
}

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
  // A program says where gradients end: it may be differentiated after it has been traced.
  if (detail::frame().tracing) return detail::call(detail::structured<detail::Detach>, {{&x}}).unmarked();
  return x.unmarked();
}

}  // namespace ferrite
