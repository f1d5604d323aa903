/// How views, joins and padding are written.
#include "ferrite/exchange/onnx_export/export_lowering.h"

namespace ferrite::onnx::detail {
namespace {

using ferrite::detail::PadAttrs;
using ferrite::detail::PermuteAttrs;
using ferrite::detail::SelectAttrs;
using ferrite::detail::SliceAttrs;

ExportValues reshape(GraphBuilder& b, const ExportCall& c) { return {b.reshape(c.in[0], c.out[0].shape)}; }
ExportValues same(GraphBuilder&, const ExportCall& c) { return {c.in[0]}; }
ExportValues permute(GraphBuilder& b, const ExportCall& c) {
  return {b.transpose(c.in[0], c.as<PermuteAttrs>().order)};
}
ExportValues expand(GraphBuilder& b, const ExportCall& c) { return {b.expand(c.in[0], c.out[0].shape)}; }
ExportValues slice(GraphBuilder& b, const ExportCall& c) {
  const auto [axis, begin, count, step] = c.as<SliceAttrs>();
  return {b.slice(c.in[0], axis, begin, count, step)};
}

/// One index along an axis, which is dropped.
ExportValue picked(GraphBuilder& b, const ExportValue& x, int axis, std::int64_t index) {
  Spec out = x.spec;
  out.shape.erase(axis);
  return b.node("Gather", {x, b.scalar(index, Dtype::i64)}, out, {{"axis", std::int64_t{axis}}});
}

ExportValues select(GraphBuilder& b, const ExportCall& c) {
  return {picked(b, c.in[0], c.axis(), c.as<SelectAttrs>().index)};
}

ExportValues unbind(GraphBuilder& b, const ExportCall& c) {
  ExportValues out;
  for (std::size_t i = 0; i < c.out.size(); ++i)
    out.push_back(c.read[i] ? picked(b, c.in[0], c.axis(), static_cast<std::int64_t>(i)) : ExportValue());
  return out;
}

ExportValues split(GraphBuilder& b, const ExportCall& c) {
  const int axis = c.axis();
  if (c.out.size() == 1) return {c.in[0]};
  Integers sizes;
  for (const Spec& piece : c.out) sizes.push_back(piece.shape[axis]);
  return b.nodes("Split", {c.in[0], b.integers(sizes)}, c.out, {{"axis", std::int64_t{axis}}});
}

ExportValues concat(GraphBuilder& b, const ExportCall& c) {
  ExportValues parts;
  for (const ExportValue& x : c.in)
    if (x.shape()[c.axis()] > 0) parts.push_back(x);
  return {b.concatenate(parts, c.axis())};
}

ExportValues stack(GraphBuilder& b, const ExportCall& c) {
  ExportValues parts;
  for (const ExportValue& x : c.in) parts.push_back(b.unsqueeze(x, c.axis()));
  return {b.concatenate(parts, c.axis())};
}

/// The values of a gradient that a program wrote by hand, or of a hook: a program that is exported has no gradients.
ExportValues last_operands(GraphBuilder&, const ExportCall& c) {
  return {c.in.end() - static_cast<std::ptrdiff_t>(c.out.size()), c.in.end()};
}

/// Crops first: what runtimes do with negative amounts and nothing left differs.
ExportValues pad(GraphBuilder& b, const ExportCall& c) {
  const auto [before, after, value] = c.as<PadAttrs>();
  ExportValue x = c.in[0];
  Integers amounts;
  bool grows = false;
  for (const Shape& side : {before, after})
    for (const std::int64_t n : side) amounts.push_back(std::max<std::int64_t>(n, 0)), grows |= n > 0;
  for (int i = 0; i < before.rank(); ++i) {
    const std::int64_t begin = std::max<std::int64_t>(-before[i], 0), cut = std::max<std::int64_t>(-after[i], 0);
    const std::int64_t left = x.shape()[i] - begin - cut;
    if (left <= 0 && begin + cut > 0) return {b.filled(value, c.out[0])};  // nothing of x is there
    x = b.slice(x, i, begin, left);
  }
  if (!grows) return {x};
  return {b.node("Pad", {x, b.integers(amounts), b.scalar(value, x.dtype())}, c.out[0])};
}

}  // namespace

ExportFamily export_views() {
  static constexpr NamedExportLowering list[] = {{"reshape", reshape},
                                                 {"contiguous", same},
                                                 {"permute", permute},
                                                 {"expand", expand},
                                                 {"slice", slice},
                                                 {"select", select},
                                                 {"unbind", unbind},
                                                 {"split", split},
                                                 {"concat", concat},
                                                 {"stack", stack},
                                                 {"pad", pad},
                                                 {"detach", same},
                                                 {"checked", same},
                                                 {"custom_gradient", last_operands},
                                                 {"gradient_hook", last_operands},
                                                 {"recompute", last_operands}};
  return list;
}

}  // namespace ferrite::onnx::detail
