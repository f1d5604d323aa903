/// The steps of a plan: kernels with the products that run in them, and operations that run alone.
#include <algorithm>
#include <numeric>

#include "ferrite/compile/plan/detail/build.h"

namespace ferrite::detail {
namespace {

constexpr std::int64_t kWholeBytes = 1 << 20;    ///< the result of a product that stays in the caches as it is
constexpr std::int64_t kBlockBytes = 512 << 10;  ///< of rows that a kernel reads before the next are computed
constexpr std::int64_t kFewestRows = 96;         ///< fewer, and a product would pack its operands too often

PlannedCall call_of(const Graph& g, const Fused& fused, const Graph::Node& n) {
  PlannedCall call{n.op, n.attrs, {}, {}, n.scope};
  for (const ValueId v : n.in) {
    const Window& w = fused.windows[v];
    call.in.push_back({w.base, w.offset * size_of(g.values[v].dtype), g.values[v], w.strides});
  }
  for (const ValueId v : n.out) call.out.push_back({v, 0, g.values[v], g.values[v].shape.strides()});
  return call;
}

/// Cuts the products of a step into blocks of rows, if their results are large and rows end where tiles end.
void cut_rows(PlannedStep& s, PlannedProgram& program) {
  const Kernel& k = program.kernels[static_cast<std::size_t>(s.kernel)];
  const auto call_of = [&](const PlannedProduct& p) -> PlannedCall& {
    return program.calls[static_cast<std::size_t>(p.call)];
  };
  std::int64_t row_bytes = 0;
  if (k.axes.across != Across::none) return;
  for (const PlannedProduct& p : s.products) {
    const PlannedCall& c = call_of(p);
    const Spec& out = c.out[0].spec;
    if (out.shape.rank() != 2 || c.in[0].spec.shape.rank() != 2) return;
    if (s.rows && s.rows != out.shape[0]) return;
    s.rows = out.shape[0];
    row_bytes += out.shape[1] * size_of(out.dtype);
  }
  if (s.rows * row_bytes <= kWholeBytes) return;
  const Kernel::Tiling& t = k.tiling;
  const std::int64_t points = t.elements() / s.rows;  // of the kernel's domain, for each row
  const bool one_run = t.tile_rows == 0 && t.rows == 1;
  const std::int64_t unit = one_run ? t.tile : (t.tile_rows ? t.tile_rows * t.length : t.length);
  const std::int64_t even = unit / std::gcd(unit, points);  // so many rows end where a tile ends
  const std::int64_t wanted = std::max(kBlockBytes / row_bytes, kFewestRows);
  const std::int64_t block = (wanted + even - 1) / even * even;
  if (block * 2 > s.rows || block > 4 * wanted) return;
  s.block_rows = block;
  s.block_tiles = block * points / unit * (one_run || t.tile_rows ? 1 : t.pieces);
  for (PlannedProduct& p : s.products) {
    PlannedCall& c = call_of(p);
    p.row_bytes = c.out[0].spec.shape[1] * size_of(c.out[0].spec.dtype);
    c.in[0].spec.shape[0] = block;
    c.out[0].spec.shape[0] = block;
  }
}

}  // namespace

PlannedProgram write_program(const Graph& g, const Fused& fused, bool blocks) {
  PlannedProgram to;
  const auto add_call = [&](std::size_t node) {
    to.calls.push_back(call_of(g, fused, g.nodes[node]));
    return static_cast<int>(to.calls.size()) - 1;
  };
  for (const Task& t : fused.tasks) {
    PlannedStep step;
    if (t.group >= 0) {
      step.kernel = static_cast<int>(to.kernels.size());
      to.kernels.push_back(build_kernel(g, fused.groups[static_cast<std::size_t>(t.group)], fused.windows));
      for (const std::size_t node : t.products) step.products.push_back({add_call(node)});
      if (blocks) cut_rows(step, to);
    } else {
      step.call = add_call(t.position);
    }
    to.steps.push_back(std::move(step));
  }
  return to;
}

}  // namespace ferrite::detail
