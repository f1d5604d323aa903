/// Dead code elimination, and renumbering of values in order.
#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"

namespace ferrite::passes {
namespace {

/// Numbers values in order of definition; those that nothing defines are dropped.
void renumber(Graph& g) {
  std::vector<ValueId> to(g.values.size(), detail::kNoValue);
  std::vector<Spec> specs;
  const auto define = [&](ValueId& v) {
    specs.push_back(g.values[v]);
    v = to[v] = static_cast<ValueId>(specs.size() - 1);
  };
  for (ValueId& v : g.inputs) define(v);
  for (Graph::VariableValue& r : g.reads) define(r.value);
  for (Graph::Constant& c : g.constants) define(c.value);
  for (Graph::Node& n : g.nodes) {
    for (ValueId& v : n.in) v = to[v];
    for (ValueId& v : n.out) define(v);
  }
  for (ValueId& v : g.outputs) v = to[v];
  for (Graph::VariableValue& w : g.writes) w.value = to[w.value];
  g.values = std::move(specs);
}

/// Variables that are neither read nor written any more.
void drop_variables(Graph& g) {
  constexpr std::uint32_t kGone = ~std::uint32_t{0};
  std::vector<std::uint32_t> to(g.variables.size(), kGone);
  for (const Graph::VariableValue& r : g.reads) to[r.variable] = 0;
  for (const Graph::VariableValue& w : g.writes) to[w.variable] = 0;
  std::vector<Variable> kept;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == kGone) continue;
    to[i] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(std::move(g.variables[i]));
  }
  g.variables = std::move(kept);
  for (Graph::VariableValue& r : g.reads) r.variable = to[r.variable];
  for (Graph::VariableValue& w : g.writes) w.variable = to[w.variable];
}

}  // namespace

void remove_dead_code(Graph& g) {
  std::vector<char> live(g.values.size());
  for (const ValueId v : g.outputs) live[v] = true;
  for (const Graph::VariableValue& w : g.writes) live[w.value] = true;
  const std::vector<char> needed = detail::mark_needed(g, live);
  std::size_t at = 0;
  std::erase_if(g.nodes, [&](const Graph::Node&) { return !needed[at++]; });
  std::erase_if(g.constants, [&](const Graph::Constant& c) { return !live[c.value]; });
  std::erase_if(g.reads, [&](const Graph::VariableValue& r) { return !live[r.value]; });
  drop_variables(g);
  renumber(g);
}

}  // namespace ferrite::passes
