#include <algorithm>

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"

namespace ferrite::passes {
namespace {

constexpr ValueId kNone = ~ValueId{0};

/// Numbers in order of definition; values that nothing defines have none.
class Renumbering {
 public:
  explicit Renumbering(Graph& g) : g_(g), to_(g.values.size(), kNone) {}

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
  std::vector<std::uint32_t> to(g.cells.size(), kNone);
  for (const Graph::CellValue& r : g.reads) to[r.cell] = 0;
  for (const Graph::CellValue& w : g.writes) to[w.cell] = 0;
  std::vector<Cell> kept;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == kNone) continue;
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
  std::vector<char> dead(g.nodes.size());
  for (std::size_t i = g.nodes.size(); i-- > 0;) {
    const Graph::Node& n = g.nodes[i];
    dead[i] = std::none_of(n.out.begin(), n.out.end(), [&](ValueId v) { return live[v]; }) &&
              !detail::effects_of(g, n).must_run();
    if (!dead[i])
      for (const ValueId v : n.in) live[v] = true;
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    if (dead[i]) continue;
    if (at != i) g.nodes[at] = std::move(g.nodes[i]);
    ++at;
  }
  g.nodes.resize(at);
  std::erase_if(g.constants, [&](const Graph::Constant& c) { return !live[c.value]; });
  std::erase_if(g.reads, [&](const Graph::CellValue& r) { return !live[r.value]; });
  drop_cells(g);
  Renumbering(g).run();
}

}  // namespace ferrite::passes
