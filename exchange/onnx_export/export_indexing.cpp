/// How gathers, scatters and orders along an axis are written.
#include "ferrite/exchange/onnx_export/export_lowering.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/sorting.h"

namespace ferrite::onnx::detail {
namespace {

ExportValues index_select(GraphBuilder& b, const ExportCall& c) {
  return {b.node("Gather", {c.in[0], c.in[1]}, c.out[0], {{"axis", std::int64_t{c.axis()}}})};
}

ExportValues gather(GraphBuilder& b, const ExportCall& c) {
  return {b.node("GatherElements", {c.in[0], c.in[1]}, c.out[0], {{"axis", std::int64_t{c.axis()}}})};
}

ExportValues scattered(GraphBuilder& b, const ExportCall& c, const std::string& reduction) {
  if (c.in[1].shape().numel() == 0) return {c.in[0]};
  return {b.node("ScatterElements", {c.in[0], c.in[1], c.in[2]}, c.out[0],
                 {{"axis", std::int64_t{c.axis()}}, {"reduction", reduction}})};
}
/// Of elements for the same place the last one stays here; ONNX leaves that open.
ExportValues scatter(GraphBuilder& b, const ExportCall& c) { return scattered(b, c, "none"); }
ExportValues scatter_add(GraphBuilder& b, const ExportCall& c) { return scattered(b, c, "add"); }
ExportValues scatter_prod(GraphBuilder& b, const ExportCall& c) { return scattered(b, c, "mul"); }

/// TopK gives the first of equal elements first, in either direction: a stable order. It takes no bool.
ExportValues ordered(GraphBuilder& b, const ExportCall& c, std::int64_t k, bool largest, bool sorted) {
  const bool of_bool = c.in[0].dtype() == Dtype::boolean;
  const ExportValue x = of_bool ? b.convert(c.in[0], Dtype::i32) : c.in[0];
  Spec values = x.spec, places{x.shape(), Dtype::i64};
  values.shape[c.axis()] = places.shape[c.axis()] = k;
  ExportValues out =
      b.nodes("TopK", {x, b.integers({k})}, {values, places},
              {{"axis", std::int64_t{c.axis()}}, {"largest", std::int64_t{largest}}, {"sorted", std::int64_t{sorted}}});
  if (of_bool) out[0] = b.convert(out[0], Dtype::boolean);
  return out;
}
ExportValues sort(GraphBuilder& b, const ExportCall& c) {
  return ordered(b, c, c.in[0].shape()[c.axis()], c.named("descending", false), true);
}
/// Without `sorted`, elements stand in the order of their places.
ExportValues topk(GraphBuilder& b, const ExportCall& c) {
  const ExportValues best = ordered(b, c, c.out[0].shape[c.axis()], c.named("largest", true), true);
  if (c.named("sorted", true)) return best;
  const int axis = c.axis();
  const auto by_place = [&](const Tensors& in) -> Tensors {
    const Tensor places = ferrite::sort(in[1], axis).values;
    return {ferrite::gather(in[0], axis, places), places};
  };
  return lower_traced(b, by_place, {c.in[0], best[1]});
}
ExportValues rank_index(GraphBuilder& b, const ExportCall& c) {
  const auto k = c.named<std::int64_t>("k", 1);
  const ExportValues best = ordered(b, c, k, false, true);
  return {b.slice(best[1], c.axis(), k - 1, 1)};
}

/// How many elements of a row stand before each value.
ExportValues searchsorted(GraphBuilder& b, const ExportCall& c) {
  const bool right = c.named("right", false);
  const auto count = [&](const Tensors& in) -> Tensors {
    const Tensor row = in[0].rank() == 1 ? in[0] : unsqueeze(in[0], -2), value = unsqueeze(in[1], -1);
    return {sum(cast(right ? !(row > value) : !(row >= value), Dtype::i64), {-1})};
  };
  return lower_traced(b, count, {c.in[0], c.in[1]});
}

}  // namespace

ExportFamily export_indexing() {
  static constexpr NamedExportLowering list[] = {
      {"index_select", index_select}, {"gather", gather}, {"scatter", scatter}, {"scatter_add", scatter_add},
      {"scatter_prod", scatter_prod}, {"sort", sort},     {"topk", topk},       {"rank_index", rank_index},
      {"searchsorted", searchsorted}};
  return list;
}

}  // namespace ferrite::onnx::detail
