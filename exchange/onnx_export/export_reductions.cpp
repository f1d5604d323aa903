/// How reductions and products are written.
#include "ferrite/exchange/onnx_export/export_lowering.h"

namespace ferrite::onnx::detail {
namespace {

using ferrite::detail::ArgAttrs;
using ferrite::detail::ReductionAttrs;

/// Opset 17 has the axes of ReduceSum as an operand, those of the others as an attribute.
ExportValues reduced(GraphBuilder& b, const ExportCall& c, Dtype in) {
  const auto [axes, keepdim] = c.as<ReductionAttrs>();
  const ExportValue x = b.convert(c.in[0], in);
  if (axes.rank() == 0) return {b.convert(x, c.out[0].dtype)};
  const Spec out{c.out[0].shape, in};
  Attributes attributes{{"keepdims", std::int64_t{keepdim}}};
  ExportValues operands{x};
  if (c.op.onnx == "ReduceSum")
    operands.push_back(b.shape_of(axes));
  else
    attributes.push_back({"axes", Integers(axes.begin(), axes.end())});
  return {b.convert(b.node(std::string(c.op.onnx), operands, out, std::move(attributes)), c.out[0].dtype)};
}
ExportValues total(GraphBuilder& b, const ExportCall& c) { return reduced(b, c, c.out[0].dtype); }
ExportValues extremum(GraphBuilder& b, const ExportCall& c) {
  return reduced(b, c, c.out[0].dtype == Dtype::boolean ? Dtype::i32 : c.out[0].dtype);
}

ExportValues place(GraphBuilder& b, const ExportCall& c) {
  const auto [axis, keepdim] = c.as<ArgAttrs>();
  const ExportValue x = c.in[0].dtype() == Dtype::boolean ? b.convert(c.in[0], Dtype::i32) : c.in[0];
  return {b.node(std::string(c.op.onnx), {x}, c.out[0],
                 {{"axis", std::int64_t{axis}}, {"keepdims", std::int64_t{keepdim}}})};
}

/// A sum of no terms is written as the zero it is: not every implementation takes it.
ExportValues matmul(GraphBuilder& b, const ExportCall& c) {
  if (c.in[0].shape()[-1] == 0) return {b.filled(0, c.out[0])};
  return {b.node("MatMul", c.in, c.out[0])};
}

ExportValues determinant(GraphBuilder& b, const ExportCall& c) { return {b.node("Det", c.in, c.out[0])}; }

}  // namespace

ExportFamily export_reductions() {
  static constexpr NamedExportLowering list[] = {{"sum", total},     {"prod", total},     {"amax", extremum},
                                                 {"amin", extremum}, {"argmax", place},   {"argmin", place},
                                                 {"matmul", matmul}, {"det", determinant}};
  return list;
}

}  // namespace ferrite::onnx::detail
