/// How operations that create tensors are written.
#include "ferrite/exchange/onnx_export/export_lowering.h"

namespace ferrite::onnx::detail {
namespace {

using ferrite::detail::ArangeAttrs;
using ferrite::detail::FullAttrs;

ExportValues full(GraphBuilder& b, const ExportCall& c) { return {b.filled(c.as<FullAttrs>().value, c.out[0])}; }

/// begin + i step, floats in f64 as the operation computes them.
ExportValues arange(GraphBuilder& b, const ExportCall& c) {
  const auto [begin, step, count, dtype] = c.as<ArangeAttrs>();
  const ExportValue first = b.scalar(0, Dtype::i64), last = b.scalar(count, Dtype::i64);
  ExportValue x = b.node("Range", {first, last, b.scalar(1, Dtype::i64)}, {{count}, Dtype::i64});
  if (begin.is_floating() || step.is_floating()) x = b.convert(x, Dtype::f64);
  if (step.real() != 1) x = b.multiply(x, b.scalar_like(step, x));
  if (begin.real() != 0) x = b.add(x, b.scalar_like(begin, x));
  return {cast_value(b, x, dtype)};
}

}  // namespace

ExportFamily export_creation() {
  static constexpr NamedExportLowering list[] = {{"full", full}, {"arange", arange}};
  return list;
}

}  // namespace ferrite::onnx::detail
