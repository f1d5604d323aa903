/// What running a program costs, as a whole and layer by layer.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "ferrite/compile/graph.h"

namespace ferrite {
namespace {

Cost cost_of(const Graph& g, const Graph::Node& n) {
  const auto specs_of = [&](const auto& values) {
    Specs specs;
    for (const ValueId v : values) specs.push_back(g.values[v]);
    return specs;
  };
  const Specs in = specs_of(n.in), out = specs_of(n.out);
  return cost_of(*n.op, {in.data(), in.size()}, {out.data(), out.size()}, n.attrs);
}

}  // namespace

Cost cost_of(const Graph& graph) {
  Cost cost;
  for (const Graph::Node& n : graph.nodes) cost += cost_of(graph, n);
  return cost;
}

std::vector<LayerCost> cost_by_layer(const Graph& graph) {
  std::vector<LayerCost> layers;
  std::unordered_map<std::string_view, std::size_t> at;
  for (const Graph::Node& n : graph.nodes) {
    const auto [found, fresh] = at.try_emplace(n.scope.path(), layers.size());
    if (fresh) layers.push_back({n.scope, 0, {}});
    LayerCost& layer = layers[found->second];
    layer.operations += 1;
    layer.cost += cost_of(graph, n);
  }
  return layers;
}

std::string cost_table(const Graph& graph) {
  constexpr std::size_t kColumns = 4;
  std::vector<std::array<std::string, kColumns>> rows = {{"layer", "operations", "multiply-adds", "bytes"}};
  LayerCost total;
  const auto add = [&](const std::string& name, const LayerCost& l) {
    rows.push_back(
        {name, std::to_string(l.operations), std::to_string(l.cost.multiply_adds), std::to_string(l.cost.bytes)});
  };
  for (const LayerCost& l : cost_by_layer(graph)) {
    add(l.scope.empty() ? "(no layer)" : std::string(l.scope.path()), l);
    total.operations += l.operations;
    total.cost += l.cost;
  }
  add("total", total);
  std::array<std::size_t, kColumns> widths{};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    text += row[0] + std::string(widths[0] - row[0].size(), ' ');
    for (std::size_t i = 1; i < kColumns; ++i) text += std::string(2 + widths[i] - row[i].size(), ' ') + row[i];
    text += '\n';
  }
  return text;
}

}  // namespace ferrite
