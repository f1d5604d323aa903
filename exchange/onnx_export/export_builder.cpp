/// Nodes of ONNX with the types of their results.
#include "ferrite/exchange/onnx_export/export_builder.h"

#include <algorithm>
#include <limits>

#include "ferrite/exchange/onnx/value.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::onnx::detail {

Shape spread_shape(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape out = Shape::filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t p = i <= a.rank() ? a[-i] : 1, q = i <= b.rank() ? b[-i] : 1;
    out[-i] = p == 1 ? q : p;
  }
  return out;
}

bool GraphBuilder::makes(const ExportValue& value) const {
  return std::ranges::any_of(parts_.nodes,
                             [&](const NodeParts& n) { return std::ranges::find(n.out, value.name) != n.out.end(); });
}

ExportValues GraphBuilder::nodes(const std::string& op, const ExportValues& in, const std::vector<Spec>& out,
                                 Attributes attributes) {
  const std::string layer(layer_.path());
  NodeParts n{.op = op, .name = names_.claim(layer.empty() ? op : layer + "/" + op), .in = {}, .out = {}};
  for (const ExportValue& x : in) n.in.push_back(x.name);
  while (!n.in.empty() && n.in.back().empty()) n.in.pop_back();
  n.attributes = std::move(attributes);
  ExportValues results;
  for (std::size_t i = 0; i < out.size(); ++i) {
    results.push_back({names_.claim(n.name + (i ? ":" + std::to_string(i) : ":0")), out[i]});
    n.out.push_back(results.back().name);
  }
  parts_.nodes.push_back(std::move(n));
  return results;
}

ExportValue GraphBuilder::constant(const Tensor& tensor) {
  const bool repeated = tensor.numel() > 1 &&
                        std::all_of(tensor.strides().begin(), tensor.strides().end(), [](auto s) { return s == 0; });
  if (repeated) {
    const NewFrame frame;
    Tensor one = tensor;
    while (one.rank() > 0) one = ferrite::select(one, 0, 0);
    return expand(constant(one), tensor.shape());
  }
  parts_.initialisers.push_back({names_.claim("constant"), tensor});
  return {parts_.initialisers.back().name, tensor.spec()};
}

ExportValue GraphBuilder::scalar(Scalar value, Dtype dtype) {
  const NewFrame frame;
  return constant(full({}, value, dtype));
}

ExportValue GraphBuilder::integers(const Integers& values) {
  const NewFrame frame;
  return constant(Tensor::from<std::int64_t>(values, {static_cast<std::int64_t>(values.size())}));
}

ExportValue GraphBuilder::filled(Scalar value, const Spec& spec) {
  if (spec.shape.rank() == 0) return scalar(value, spec.dtype);
  if (!is_storage_only(spec.dtype)) return expand(scalar(value, spec.dtype), spec.shape);
  const ExportValue one = convert(scalar(value, spec.dtype), has_gradient(spec.dtype) ? Dtype::f32 : Dtype::i32);
  return convert(expand(one, spec.shape), spec.dtype);  // not every runtime expands these types
}

ExportValue GraphBuilder::elementwise(const std::string& op, const ExportValues& in) {
  Spec out = in[0].spec;
  for (const ExportValue& x : in) out.shape = spread_shape(out.shape, x.shape());
  return node(op, in, out);
}

ExportValue GraphBuilder::compare(const std::string& op, const ExportValue& a, const ExportValue& b) {
  return node(op, {a, b}, {spread_shape(a.shape(), b.shape()), Dtype::boolean});
}

ExportValue GraphBuilder::select(const ExportValue& condition, const ExportValue& a, const ExportValue& b) {
  if (a.dtype() == Dtype::boolean) {  // Where of bool is one that ONNX Runtime does not have
    const ExportValue first = elementwise("And", {condition, a});
    return elementwise("Or", {first, elementwise("And", {negation(condition), b})});
  }
  const Shape shape = spread_shape(condition.shape(), spread_shape(a.shape(), b.shape()));
  return node("Where", {condition, a, b}, {shape, a.dtype()});
}

ExportValue GraphBuilder::convert(const ExportValue& x, Dtype dtype) {
  if (x.dtype() == dtype) return x;
  const auto to = static_cast<std::int64_t>(type_for(dtype));
  return node("Cast", {x}, {x.shape(), dtype}, {{"to", to}});
}

ExportValue GraphBuilder::reshape(const ExportValue& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return node("Reshape", {x, shape_of(shape)}, {shape, x.dtype()});
}

ExportValue GraphBuilder::expand(const ExportValue& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return node("Expand", {x, shape_of(shape)}, {shape, x.dtype()});
}

ExportValue GraphBuilder::transpose(const ExportValue& x, const Shape& order) {
  Spec out = x.spec;
  bool same = true;
  for (int i = 0; i < order.rank(); ++i) {
    out.shape[i] = x.shape()[static_cast<int>(order[i])];
    same &= order[i] == i;
  }
  if (same) return x;
  return node("Transpose", {x}, out, {{"perm", Integers(order.begin(), order.end())}});
}

ExportValue GraphBuilder::slice(const ExportValue& x, int axis, std::int64_t begin, std::int64_t count,
                                std::int64_t step) {
  const std::int64_t extent = x.shape()[axis];
  if (begin == 0 && step == 1 && count == extent) return x;
  Spec out = x.spec;
  out.shape[axis] = count;
  std::int64_t end = step > 0 ? begin + (count - 1) * step + 1 : begin + (count - 1) * step - 1;
  if (end < 0) end = std::numeric_limits<std::int64_t>::min() + 1;
  return node("Slice", {x, integers({begin}), integers({end}), integers({axis}), integers({step})}, out);
}

ExportValue GraphBuilder::concatenate(const ExportValues& parts, int axis) {
  if (parts.size() == 1) return parts[0];
  Spec out = parts[0].spec;
  for (std::size_t i = 1; i < parts.size(); ++i) out.shape[axis] += parts[i].shape()[axis];
  return node("Concat", parts, out, {{"axis", std::int64_t{axis}}});
}

ExportValue GraphBuilder::unsqueeze(const ExportValue& x, int axis) {
  Spec out = x.spec;
  out.shape.insert(axis, 1);
  return node("Unsqueeze", {x, integers({axis})}, out);
}

ExportValue GraphBuilder::squeeze(const ExportValue& x, int axis) {
  Spec out = x.spec;
  out.shape.erase(axis);
  return node("Squeeze", {x, integers({axis})}, out);
}

}  // namespace ferrite::onnx::detail
