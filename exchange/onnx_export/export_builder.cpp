/// Builds ONNX nodes with the types of their results.
#include "ferrite/exchange/onnx_export/export_builder.h"

#include <algorithm>
#include <limits>

#include "ferrite/exchange/onnx/value.h"
#include "ferrite/exchange/onnx_export/export_model.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {
namespace {

/// Translates StableHLO's name of an operation to ONNX's; any other name is already ONNX's.
std::string_view onnx_name(std::string_view op) {
  static constexpr std::pair<std::string_view, std::string_view> names[] = {{"EQ", "Equal"},
                                                                            {"GE", "GreaterOrEqual"},
                                                                            {"GT", "Greater"},
                                                                            {"LE", "LessOrEqual"},
                                                                            {"LT", "Less"},
                                                                            {"abs", "Abs"},
                                                                            {"add", "Add"},
                                                                            {"and", "And"},
                                                                            {"ceil", "Ceil"},
                                                                            {"divide", "Div"},
                                                                            {"floor", "Floor"},
                                                                            {"log", "Log"},
                                                                            {"maximum", "Max"},
                                                                            {"minimum", "Min"},
                                                                            {"multiply", "Mul"},
                                                                            {"negate", "Neg"},
                                                                            {"or", "Or"},
                                                                            {"power", "Pow"},
                                                                            {"sine", "Sin"},
                                                                            {"sqrt", "Sqrt"},
                                                                            {"subtract", "Sub"},
                                                                            {"xor", "Xor"},
                                                                            {"round_nearest_even", "Round"}};
  const auto at = std::ranges::find(names, op, &std::pair<std::string_view, std::string_view>::first);
  return at == std::end(names) ? op : at->second;
}

}  // namespace

Shape spread_shape(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape out = Shape::filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t p = i <= a.rank() ? a[-i] : 1, q = i <= b.rank() ? b[-i] : 1;
    out[-i] = p == 1 ? q : p;
  }
  return out;
}

Values OnnxBuilder::nodes(std::string_view op, Values in, const std::vector<Spec>& out, Attributes attributes) {
  while (!in.empty() && !in.back().exists()) in.pop_back();
  return emit(op, in, out, std::move(attributes));
}

Value OnnxBuilder::variable(const std::string& name, const Tensor& tensor) {
  return node(kInitializer, {}, tensor.spec(), {{"value", tensor}, {"name", name}});
}

Value OnnxBuilder::constant(const Tensor& tensor) {
  const bool repeated = tensor.numel() > 1 &&
                        std::all_of(tensor.strides().begin(), tensor.strides().end(), [](auto s) { return s == 0; });
  if (repeated) {
    const NewFrame frame;
    Tensor one = tensor;
    while (one.rank() > 0) one = ferrite::select(one, 0, 0);
    return expand(constant(one), tensor.shape());
  }
  return node("Constant", {}, tensor.spec(), {{"value", tensor}});
}

Value OnnxBuilder::filled(Scalar value, const Spec& spec) {
  if (spec.shape.rank() == 0) {
    const NewFrame frame;
    return constant(full({}, value, spec.dtype));
  }
  if (!is_storage_only(spec.dtype)) return expand(scalar(value, spec.dtype), spec.shape);
  const Value one = convert(scalar(value, spec.dtype), has_gradient(spec.dtype) ? Dtype::f32 : Dtype::i32);
  return convert(expand(one, spec.shape), spec.dtype);  // not every runtime expands these types
}

Value OnnxBuilder::counted(std::int64_t count) {
  const Value first = scalar(0, Dtype::i64), last = scalar(count, Dtype::i64);
  return node("Range", {first, last, scalar(1, Dtype::i64)}, {{count}, Dtype::i64});
}

Value OnnxBuilder::elementwise(std::string_view op, const Values& in) {
  Spec out = in[0].spec;
  for (const Value& x : in) out.shape = spread_shape(out.shape, x.shape());
  return node(onnx_name(op), in, out);
}

/// Writes the remainder of the quotient rounded towards 0, which is not IEEE's remainder.
Value OnnxBuilder::remainder(const Value& a, const Value& b) {
  return node("Mod", {a, b}, {spread_shape(a.shape(), b.shape()), a.dtype()}, {{"fmod", std::int64_t{1}}});
}

/// Writes a comparison; bool is converted, as ONNX Runtime lacks comparisons of bool.
Value OnnxBuilder::compare(std::string_view direction, const Value& a, const Value& b) {
  if (direction == "NE") return negation(compare("EQ", a, b));
  if (a.dtype() == Dtype::boolean && direction == "EQ") return negation(elementwise("Xor", {a, b}));
  if (a.dtype() == Dtype::boolean && direction == "LT") return elementwise("And", {negation(a), b});
  if (a.dtype() == Dtype::boolean && direction == "LE") return elementwise("Or", {negation(a), b});
  return node(onnx_name(direction), {a, b}, {spread_shape(a.shape(), b.shape()), Dtype::boolean});
}

Value OnnxBuilder::select(const Value& condition, const Value& a, const Value& b) {
  if (a.dtype() == Dtype::boolean) {  // ONNX Runtime lacks Where for bool
    const Value first = elementwise("And", {condition, a});
    return elementwise("Or", {first, elementwise("And", {negation(condition), b})});
  }
  const Shape shape = spread_shape(condition.shape(), spread_shape(a.shape(), b.shape()));
  return node("Where", {condition, a, b}, {shape, a.dtype()});
}

Value OnnxBuilder::convert(const Value& x, Dtype dtype) {
  if (x.dtype() == dtype) return x;
  const auto to = static_cast<std::int64_t>(onnx::detail::type_for(dtype));
  return node("Cast", {x}, {x.shape(), dtype}, {{"to", to}});
}

/// Converts as `cast` does: what does not fit saturates and NaN gives 0. ONNX leaves both undefined.
Value OnnxBuilder::cast(const Value& x, Dtype to) {
  if (kind_of(to) != DtypeKind::integer || kind_of(x.dtype()) != DtypeKind::floating) return convert(x, to);
  const Value from = is_storage_only(x.dtype()) ? convert(x, Dtype::f32) : x;  // it holds the bounds
  return saturated(from, to, is_storage_only(to) ? Dtype::i32 : to);
}

Value OnnxBuilder::reshape(const Value& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return node("Reshape", {x, shape_of(shape)}, {shape, x.dtype()});
}

Value OnnxBuilder::expand(const Value& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return node("Expand", {x, shape_of(shape)}, {shape, x.dtype()});
}

Value OnnxBuilder::transpose(const Value& x, const Shape& order) {
  Spec out = x.spec;
  bool same = true;
  for (int i = 0; i < order.rank(); ++i) {
    out.shape[i] = x.shape()[static_cast<int>(order[i])];
    same &= order[i] == i;
  }
  if (same) return x;
  return node("Transpose", {x}, out, {{"perm", Integers(order.begin(), order.end())}});
}

Value OnnxBuilder::slice(const Value& x, int axis, std::int64_t begin, std::int64_t count, std::int64_t step) {
  const std::int64_t extent = x.shape()[axis];
  if (begin == 0 && step == 1 && count == extent) return x;
  Spec out = x.spec;
  out.shape[axis] = count;
  std::int64_t end = step > 0 ? begin + (count - 1) * step + 1 : begin + (count - 1) * step - 1;
  if (end < 0) end = std::numeric_limits<std::int64_t>::min() + 1;
  const Value first = integers({begin}), last = integers({end}), along = integers({axis});
  return node("Slice", {x, first, last, along, step == 1 ? Value() : integers({step})}, out);
}

Value OnnxBuilder::concatenate(const Values& parts, int axis) {
  if (parts.size() == 1) return parts[0];
  Spec out = parts[0].spec;
  for (std::size_t i = 1; i < parts.size(); ++i) out.shape[axis] += parts[i].shape()[axis];
  return node("Concat", parts, out, {{"axis", std::int64_t{axis}}});
}

Value OnnxBuilder::unsqueeze(const Value& x, int axis) {
  Spec out = x.spec;
  out.shape.insert(axis, 1);
  return node("Unsqueeze", {x, integers({axis})}, out);
}

Value OnnxBuilder::squeeze(const Value& x, int axis) {
  Spec out = x.spec;
  out.shape.erase(axis);
  return node("Squeeze", {x, integers({axis})}, out);
}

Value OnnxBuilder::picked(const Value& x, int axis, std::int64_t index) {
  Spec out = x.spec;
  out.shape.erase(axis);
  return node("Gather", {x, scalar(index, Dtype::i64)}, out, {{"axis", std::int64_t{axis}}});
}

Value OnnxBuilder::extent_of(const Value& x, int axis) {
  return picked(node("Shape", {x}, {{x.shape().rank()}, Dtype::i64}), 0, axis);
}

}  // namespace ferrite::exchange::detail
