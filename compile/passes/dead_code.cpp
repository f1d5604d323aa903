/// What nothing depends on goes, and values are numbered in order.
#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"

namespace ferrite::passes {
namespace {

/// Numbers in order of definition; values that nothing defines have none.
class Renumbering {
 public:
  explicit Renumbering(Graph& g) : g_(g), to_(g.values.size(), detail::kNoValue) {}

  void run() {
    for (ValueId& v : g_.inputs) define(v);
    for (Graph::CellValue& r : g_.reads) define(r.value);
    for (Graph::Constant& c : g_.constants) define(c.value);
    for (Graph::Node& n : g_.nodes) {
      for (ValueId& v : n.in) v = to_[v];
      for (ValueId& v : n.out) define(v);
    }
    for (ValueId& v : g_.outputs) v = to_[v];
    for (Graph::CellValue& w : g_.writes) w.value = to_[w.value];
    g_.values = std::move(specs_);
  }

 private:
  void define(ValueId& v) {
    to_[v] = static_cast<ValueId>(specs_.size());
    specs_.push_back(g_.values[v]);
    v = to_[v];
  }

  Graph& g_;
  std::vector<ValueId> to_;
  std::vector<Spec> specs_;
};

/// Cells that are neither read nor written any more.
void drop_cells(Graph& g) {
  constexpr std::uint32_t kGone = ~std::uint32_t{0};
  std::vector<std::uint32_t> to(g.cells.size(), kGone);
  for (const Graph::CellValue& r : g.reads) to[r.cell] = 0;
  for (const Graph::CellValue& w : g.writes) to[w.cell] = 0;
  std::vector<Cell> kept;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == kGone) continue;
    to[i] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(std::move(g.cells[i]));
  }
  g.cells = std::move(kept);
  for (Graph::CellValue& r : g.reads) r.cell = to[r.cell];
  for (Graph::CellValue& w : g.writes) w.cell = to[w.cell];
}

}  // namespace

void remove_dead_code(Graph& g) {
  std::vector<char> live(g.values.size());
  for (const ValueId v : g.outputs) live[v] = true;
  for (const Graph::CellValue& w : g.writes) live[w.value] = true;
  const std::vector<char> needed = detail::mark_needed(g, live);
  std::size_t at = 0;
  std::erase_if(g.nodes, [&](const Graph::Node&) { return !needed[at++]; });
  std::erase_if(g.constants, [&](const Graph::Constant& c) { return !live[c.value]; });
  std::erase_if(g.reads, [&](const Graph::CellValue& r) { return !live[r.value]; });
  drop_cells(g);
  Renumbering(g).run();
}

}  // namespace ferrite::passes
